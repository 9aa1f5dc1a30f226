"""BBR alone on a link, where rate, RTT and queue are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.engines.sim.core.laws import bbr

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
