"""BBR alone on a link, where rate, RTT and queue are known, and beside other flows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.engines import registry
from lab.engines.sim.core import policer
from lab.engines.sim.core.laws import bbr
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading

from .networks import BULK, MS, SECOND, chain, started
from .rows import places

RATE_BPS, SEGMENTS_PER_S = 10_000_000, 10_000_000 / 8 / 1514


@pytest.fixture(scope="module")
def alone():
    """10 Mb/s with an RTT of 40 ms, after 8 s, and the segments received in the last 4 s."""
    shape = {"rate_bps": RATE_BPS, "delay_ns": 10 * MS, "queue_packets": 200}
    network = started(chain(2, **shape), replace(BULK, cc="bbr"))
    network.run(4 * SECOND)
    _, s = places(network)
    before = s.segments_received
    network.run(8 * SECOND)
    return s, s.segments_received - before


def test_bbr_fills_the_link(alone):
    _, received = alone
    assert received / 4 == pytest.approx(SEGMENTS_PER_S, rel=0.02)


def test_bbr_finds_the_rate_and_the_smallest_rtt(alone):
    s, _ = alone
    assert s.bbr.phase == bbr.PROBE_BW
    assert s.bbr.best_1 == pytest.approx(SEGMENTS_PER_S, rel=0.05)
    assert s.bbr.min_rtt_ns == pytest.approx(40 * MS, rel=0.15)


def test_bbr_drains_the_queue_of_its_start(alone):
    """About one BDP is in flight, and no packet was lost in a queue of six."""
    s, _ = alone
    assert s.segments_lost == 0
    assert s.pipe < 2 * SEGMENTS_PER_S * 0.04


def test_a_timeout_sets_the_window_to_one_segment_and_keeps_the_rate(alone):
    s, _ = alone
    window, rate = int(s.cwnd), s.bbr.best_1
    bbr.on_loss(s, 8 * SECOND)
    bbr.on_timeout(s)
    assert (s.bbr.window_before, s.bbr.best_1) == (window, rate)


def rates_mbps(folder, ccs, queue_packets, seed):
    """The throughput of downloads that share 10 Mb/s for 30 s, with an RTT of 40 ms."""
    users = [f"ue{n}" for n in range(1, len(ccs) + 1)]
    raw = {"name": "shared", "title": "Shared", "duration_s": 30, "seed": seed}
    raw["topology"] = {
        **{"kind": "shared_bottleneck", "rate_mbps": 10, "delay_ms": 20},
        **{"queue_packets": queue_packets, "users": [{"id": user} for user in users]},
    }
    raw["traffic"] = [{"user": user, "cc": cc} for user, cc in zip(users, ccs, strict=True)]
    scenario = loading.from_data(raw, "test")
    done = run(
        scenario, registry.create("sim", Options(speed=0.0)), Recorder(folder, scenario, "sim")
    )
    assert not done.error, done.error
    return [done.result["users"][user]["throughput_mbps"] for user in users]


@pytest.mark.parametrize("seed", [1, 2])
def test_two_flows_of_bbr_share_a_link(seed, tmp_path):
    one, other = rates_mbps(tmp_path, ["bbr", "bbr"], 66, seed)
    assert one + other > 9
    assert max(one, other) < 1.5 * min(one, other)


@pytest.mark.parametrize("seed", [1, 2])
def test_beside_cubic_bbr_wins_in_a_shallow_queue_and_loses_in_a_deep_one(seed, tmp_path):
    """M. Hock, R. Bless and M. Zitterbart, Experimental Evaluation of BBR Congestion Control,
    ICNP 2017: BBR keeps about one BDP in the queue, however deep it is."""
    (tmp_path / "shallow").mkdir()
    (tmp_path / "deep").mkdir()
    bbr_mbps, cubic_mbps = rates_mbps(tmp_path / "shallow", ["bbr", "cubic"], 17, seed)
    assert bbr_mbps > 2 * cubic_mbps
    bbr_mbps, cubic_mbps = rates_mbps(tmp_path / "deep", ["bbr", "cubic"], 165, seed)
    assert bbr_mbps < cubic_mbps


def watched(s, rounds, delivered, lost, now_ns):
    """Let `rounds` round trips pass, the last of which ends with a loss, at time `now_ns`."""
    for _ in range(rounds):
        s.bbr.starts_round = 1
        policer.watch(s, False, False)
    s.bbr.starts_round = 0
    s.delivery.delivered += delivered
    s.delivery.delivered_ns = now_ns
    s.segments_lost += lost
    policer.watch(s, True, False)


@pytest.fixture
def watching():
    """A subflow that has just seen its first loss, at 20 s."""
    network = started(chain(2), replace(BULK, cc="bbr"))
    network.run(SECOND)
    _, s = places(network)
    policer.forget(s)
    s.delivery.delivered_ns = 20 * SECOND
    policer.watch(s, True, False)
    return s


def test_two_intervals_with_a_fifth_lost_show_a_policer(watching):
    s = watching
    watched(s, 4, 400, 100, 21 * SECOND)
    assert (s.bbr.is_policed, s.bbr.policed_rate) == (0, 400)
    watched(s, 5, 440, 100, 22 * SECOND)
    assert (s.bbr.is_policed, s.bbr.policed_rate) == (1, 420)
    s.bbr.starts_round = 1
    assert [policer.is_held_long_enough(s) for _ in range(48)] == [False] * 47 + [True]


@pytest.mark.parametrize(
    ("rounds", "delivered", "lost"),
    [(3, 440, 100), (5, 440, 80), (5, 500, 120), (17, 440, 100)],
    ids=["too short", "too few lost", "another rate", "too long"],
)
def test_other_losses_show_no_policer(watching, rounds, delivered, lost):
    s = watching
    watched(s, 4, 400, 100, 21 * SECOND)
    watched(s, rounds, delivered, lost, 22 * SECOND)
    assert s.bbr.is_policed == 0


def test_an_interval_ends_when_the_application_has_nothing_to_send(watching):
    s = watching
    watched(s, 4, 400, 100, 21 * SECOND)
    policer.watch(s, True, True)
    assert (s.bbr.policed_rate, s.bbr.is_watching) == (0, 0)
