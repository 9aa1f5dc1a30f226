"""S-MPTCP's flow control on the host, on the numbers of its description and over a link."""

from __future__ import annotations

import pytest

from controller.command import Expect
from lab.engines import registry
from lab.engines.sim.core import congestion, expected_rate
from lab.errors import LabError, RequestError
from lab.run.engine import Options
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides

from .networks import MS, Connection
from .scripted import FIRST, SECOND, TWO, WIRE, goodput, known, request

__all__ = ["known"]


def expecting(mbps, cwnd, ssthresh=1.0, law="reno", rtt_ms=30, base_ms=30):
    """A subflow that has this expected rate."""
    connection = Connection(law, (cwnd,), (rtt_ms / 1000,), expected_by="window")
    s = connection.rows[0]
    connection.set(s, cwnd, ssthresh)
    s.expected_bps, s.base_rtt_ns = round(mbps * 1_000_000), base_ms * MS
    return s


def test_9_mbps_over_30_ms_reduce_the_window_to_20_segments_when_the_queue_has_grown():
    """9 Mb/s are 743.06 frames of 1514 bytes per second; 0.9 of that in 30 ms are 20.06."""
    s = expecting(9, 40.0)
    congestion.on_round(s, 36 * MS, 10)  # 1111 segments/s; 40 x 6/36 = 6.67 in queues
    assert s.cwnd == s.ssthresh == pytest.approx(20.06, abs=0.005)
    assert s.last_round_queue == pytest.approx(6.667, abs=0.001)
    assert s.growth_divisor == 5


def test_a_shrinking_or_short_queue_does_not_reduce_the_window():
    s = expecting(9, 40.0)
    s.last_round_queue = 7.0
    congestion.on_round(s, 36 * MS, 10)
    assert s.cwnd == 40
    s = expecting(9, 40.0)
    congestion.on_round(s, 30 * MS, 10)
    assert s.cwnd == 40


def test_the_window_grows_by_a_fifth_above_the_expected_rate_and_fully_below():
    s = expecting(9, 40.0)
    congestion.on_round(s, 30 * MS, 10)
    congestion.on_ack(s, 1, 0)
    assert s.cwnd == pytest.approx(40 + 1 / 40 / 5)
    s.cwnd = 20.0  # 667 segments/s
    congestion.on_round(s, 30 * MS, 10)
    congestion.on_ack(s, 1, 0)
    assert s.cwnd == pytest.approx(20 + 1 / 20)


def test_slow_start_ends_at_the_expected_rate():
    s = expecting(9, 20.0, ssthresh=1e9)
    congestion.on_ack(s, 2, 0)
    assert s.cwnd == 22
    s.cwnd = 23.0  # 767 segments/s
    congestion.on_ack(s, 1, 0)
    assert s.ssthresh == 23
    assert s.cwnd == pytest.approx(23 + 1 / 23)


def test_the_window_does_not_fall_below_two_segments():
    s = expecting(0.5, 8.0)
    congestion.on_round(s, 60 * MS, 10)
    assert s.cwnd == expected_rate.MIN_WINDOW


@pytest.mark.parametrize("law", ["reno", "cubic", "lia", "olia", "balia"])
def test_a_loss_is_left_to_the_law(law):
    limited, alone = expecting(9, 20.0, law=law), expecting(9, 20.0, law=law)
    alone.connection.is_expected_by_window = 0
    for each in (limited, alone):
        congestion.on_loss(each, MS)
    assert limited.cwnd == alone.cwnd < 20


def test_the_window_grows_normally_without_an_expected_rate_or_with_pacing():
    for mbps, by_window in ((0, 1), (9, 0)):
        s = expecting(mbps, 40.0)
        s.connection.is_expected_by_window = by_window
        congestion.on_round(s, 36 * MS, 10)
        congestion.on_ack(s, 1, 0)
        assert s.cwnd == pytest.approx(40 + 1 / 40)


@pytest.mark.parametrize("cc", ["reno", "balia"])
def test_windows_keep_subflows_at_their_expected_rates(paths, cc):
    """Above the expected rate growth is only slower, so a subflow alone on its link still fills
    it."""
    multipath = {"cc": cc, "expected_by": "window"}
    simulation = paths(
        *TWO, strategy={"name": "scripted", "params": {"interval_s": 0.5}}, multipath=multipath
    )
    request(simulation, Expect(FIRST, 20_000_000), Expect(SECOND, 12_000_000))
    simulation.run(4)
    rtts = []
    frames = simulation.run(4)
    for subflow in simulation.network.tables.subflows["ue1-1"]:
        rtts.append(subflow.record.srtt_ns / subflow.record.base_rtt_ns)
    assert goodput(frames, FIRST) == pytest.approx(20 * WIRE, rel=0.1)
    assert goodput(frames, SECOND) == pytest.approx(12 * WIRE, rel=0.1)
    assert max(rtts) < 1.6  # a hundred queued packets would make the first RTT 4 times as long


def test_a_law_that_reacts_to_delay_is_refused():
    wanted = scenario.load(
        "pooling", Overrides(settings=("multipath.expected_by=window", "multipath.cc=wvegas"))
    )
    with pytest.raises(RequestError, match="wvegas"):
        registry.admit("sim", wanted, Options(speed=0.0))


def test_a_change_to_a_law_that_reacts_to_delay_is_refused(paths):
    simulation = paths(*TWO, multipath={"expected_by": "window"})
    with pytest.raises(LabError, match="reacts to delay"):
        simulation.flip("cc", "wvegas")


def test_the_emulation_limits_windows_too_but_not_with_a_law_that_reacts_to_delay():
    by_window = "multipath.expected_by=window"
    wanted = scenario.load("pooling", Overrides(settings=(by_window,)))
    registry.admit("mininet", wanted, Options())
    wanted = scenario.load("pooling", Overrides(settings=(by_window, "multipath.cc=wvegas")))
    with pytest.raises(RequestError, match=r"'wvegas' with multipath\.expected_by"):
        registry.admit("mininet", wanted, Options())
