"""Reno, Cubic and what all laws share, on vectors, without packets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.engines.sim.core import congestion, dispatch
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.laws import cubic

from .networks import BULK, SECOND, chain, started
from .rows import places


@pytest.fixture
def subflow():
    """A world with one subflow, and where its row begins."""

    def make(law, cwnd, ssthresh=1.0):
        network = started(chain(2))
        w, f = network.w, places(network)[1]
        w.row[f + at.LAW], w.window[f + at.CWND], w.window[f + at.SSTHRESH] = (
            dispatch.number(law),
            cwnd,
            ssthresh,
        )
        w.row[f + at.SRTT_NS] = SECOND // 10
        return w, f

    return make


@pytest.mark.parametrize(
    "law", [law for law in dispatch.LAWS if law != "wvegas"]
)  # which acts once per RTT
def test_slow_start_grows_by_what_was_acknowledged_up_to_the_threshold(subflow, law):
    w, f = subflow(law, 10.0, 14.0)
    congestion.on_ack(w, f, 2, SECOND)
    assert w.window[f + at.CWND] == 12
    congestion.on_ack(w, f, 2, SECOND)
    assert w.window[f + at.CWND] == 14
    congestion.on_ack(w, f, 1, SECOND)
    assert 14 < w.window[f + at.CWND] < 15.1


@pytest.mark.parametrize("law", dispatch.LAWS)
def test_a_timeout_sets_the_window_to_one_segment(subflow, law):
    w, f = subflow(law, 20.0)
    congestion.on_timeout(w, f, SECOND)
    assert w.window[f + at.CWND] == 1
    assert w.window[f + at.SSTHRESH] == pytest.approx(14 if law == "cubic" else 10)


def test_reno(subflow):
    w, f = subflow("reno", 10.0)
    congestion.on_ack(w, f, 1, SECOND)
    assert w.window[f + at.CWND] == pytest.approx(10.1)
    congestion.on_loss(w, f, SECOND)
    assert w.window[f + at.CWND] == w.window[f + at.SSTHRESH] == pytest.approx(5.05)
    w, f = subflow("reno", 3.0)
    congestion.on_loss(w, f, SECOND)
    assert w.window[f + at.CWND] == 2


@pytest.mark.parametrize(("peak", "k", "seconds", "window"), [
    (100, 4.2172, 1, 86.681), (100, 4.2172, 2, 95.640), (100, 4.2172, 5, 100.192),
    (10, 1.9574, 1, 9.6489), (1000, 9.0856, 1, 788.555),
])  # fmt: skip
def test_cubic_curve(subflow, peak, k, seconds, window):
    w, f = subflow("cubic", float(peak))
    congestion.on_loss(w, f, SECOND)
    assert w.window[f + at.CWND] == pytest.approx(0.7 * peak)
    cubic.begin_epoch(w, f, SECOND)
    assert w.window[f + cubic.K] == pytest.approx(k, abs=1e-4)
    assert cubic.curve(w, f, seconds) == pytest.approx(window, abs=1e-3)


def test_cubic_increase_per_acknowledgement(subflow):
    w, f = subflow("cubic", 100.0)
    congestion.on_loss(w, f, SECOND)
    cubic.begin_epoch(w, f, SECOND)
    w.window[f + at.CWND] = 86.681
    congestion.on_ack(w, f, 1, 2 * SECOND)
    assert w.window[f + at.CWND] - 86.681 == pytest.approx(0.013888, abs=5e-6)


def test_cubic_fast_convergence(subflow):
    w, f = subflow("cubic", 80.0)
    w.window[f + cubic.W_MAX] = 100.0
    congestion.on_loss(w, f, SECOND)
    cubic.begin_epoch(w, f, SECOND)
    assert w.window[f + cubic.W_MAX] == pytest.approx(68)
    assert w.window[f + at.CWND] == pytest.approx(56)
    assert w.window[f + cubic.K] == pytest.approx(3.107, abs=1e-3)


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
        f = places(network)[1]
        dropped[law] = int(network.w.row[f + at.SEGMENTS_DROPPED])
    assert dropped["reno"] > 100
    assert dropped["cubic"] == 0
    assert 33 <= network.w.window[f + at.SSTHRESH] < 100  # the path holds 33 segments


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.3, 1.0, 75.0, 1e12])
def test_cube_root(value):
    assert cubic.cube_root(value) == pytest.approx(value ** (1 / 3), rel=1e-12)
