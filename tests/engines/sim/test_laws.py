"""Reno, Cubic and what all laws share, on vectors, without packets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.engines.sim.core import congestion, dispatch
from lab.engines.sim.core.laws import cubic

from .networks import BULK, SECOND, chain, started
from .rows import places


@pytest.fixture
def subflow():
    """A subflow without packets."""

    def make(law, cwnd, ssthresh=1.0):
        network = started(chain(2))
        _, s = places(network)
        s.law_number, s.cwnd, s.ssthresh = (
            dispatch.number(law),
            cwnd,
            ssthresh,
        )
        s.srtt_ns = SECOND // 10
        return s

    return make


@pytest.mark.parametrize(
    "law", [law for law in dispatch.LAWS if law not in ("wvegas", "bbr")]
)  # wvegas acts once per RTT, bbr sets its window itself
def test_slow_start_grows_by_what_was_acknowledged_up_to_the_threshold(subflow, law):
    s = subflow(law, 10.0, 14.0)
    congestion.on_ack(s, 2, SECOND)
    assert s.cwnd == 12
    congestion.on_ack(s, 2, SECOND)
    assert s.cwnd == 14
    congestion.on_ack(s, 1, SECOND)
    assert 14 < s.cwnd < 15.1


@pytest.mark.parametrize("law", [law for law in dispatch.LAWS if law != "bbr"])
def test_a_timeout_sets_the_window_to_one_segment(subflow, law):
    s = subflow(law, 20.0)
    congestion.on_timeout(s, SECOND)
    assert s.cwnd == 1
    assert s.ssthresh == pytest.approx(14 if law == "cubic" else 10)


def test_reno(subflow):
    s = subflow("reno", 10.0)
    congestion.on_ack(s, 1, SECOND)
    assert s.cwnd == pytest.approx(10.1)
    congestion.on_loss(s, SECOND)
    assert s.cwnd == s.ssthresh == pytest.approx(5.05)
    s = subflow("reno", 3.0)
    congestion.on_loss(s, SECOND)
    assert s.cwnd == 2


@pytest.mark.parametrize(("peak", "k", "seconds", "window"), [
    (100, 4.2172, 1, 86.681), (100, 4.2172, 2, 95.640), (100, 4.2172, 5, 100.192),
    (10, 1.9574, 1, 9.6489), (1000, 9.0856, 1, 788.555),
])  # fmt: skip
def test_cubic_curve(subflow, peak, k, seconds, window):
    s = subflow("cubic", float(peak))
    congestion.on_loss(s, SECOND)
    assert s.cwnd == pytest.approx(0.7 * peak)
    cubic.begin_epoch(s, SECOND)
    assert s.law.k_s == pytest.approx(k, abs=1e-4)
    assert cubic.curve(s, seconds) == pytest.approx(window, abs=1e-3)


def test_cubic_increase_per_acknowledgement(subflow):
    s = subflow("cubic", 100.0)
    congestion.on_loss(s, SECOND)
    cubic.begin_epoch(s, SECOND)
    s.cwnd = 86.681
    congestion.on_ack(s, 1, 2 * SECOND)
    assert s.cwnd - 86.681 == pytest.approx(0.013888, abs=5e-6)


def test_cubic_fast_convergence(subflow):
    s = subflow("cubic", 80.0)
    s.law.w_max = 100.0
    congestion.on_loss(s, SECOND)
    cubic.begin_epoch(s, SECOND)
    assert s.law.w_max == pytest.approx(68)
    assert s.cwnd == pytest.approx(56)
    assert s.law.k_s == pytest.approx(3.107, abs=1e-3)


def test_cubic_ends_slow_start_before_a_deep_queue_overflows():
    """Reno fills the queue. HyStart detects that the RTT grows, or a long train of
    acknowledgements."""
    network, dropped = None, {}
    for law in ("reno", "cubic"):
        network = started(
            chain(2, rate_bps=20_000_000, delay_ns=10_000_000, queue_packets=400),
            replace(BULK, cc=law),
        )
        network.run(2 * SECOND)
        s = places(network)[1]
        dropped[law] = s.segments_dropped
    assert dropped["reno"] > 100
    assert dropped["cubic"] == 0
    assert 33 <= s.ssthresh < 100  # the path holds 33 segments


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.3, 1.0, 75.0, 1e12])
def test_cube_root(value):
    assert cubic.cube_root(value) == pytest.approx(value ** (1 / 3), rel=1e-12)
