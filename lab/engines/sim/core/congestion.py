"""Changes of a subflow's congestion window. The rules that all congestion controls share (RFC 5681)
are here. For the rest, `dispatch` calls the congestion control of the subflow."""

from __future__ import annotations

from lab.engines.sim.core import dispatch, expected_rate
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit

LOSS_WINDOW = 1.0  # segments, RFC 5681, section 3.1


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Grow the window of subflow `f` for `acked` newly acknowledged segments. Up to SSTHRESH it
    grows by slow start (RFC 5681, section 3.1), beyond SSTHRESH by the subflow's congestion
    control."""
    dispatch.in_slow_start(w, f, now_ns)
    expected_rate.end_slow_start(w, f)
    below_ssthresh = w.window[f + at.SSTHRESH] - w.window[f + at.CWND]
    if below_ssthresh > 0:
        grown = min(float(acked), below_ssthresh)
        w.window[f + at.CWND] += grown
        acked -= int(grown)
    if acked <= 0:
        return
    before = w.window[f + at.CWND]
    dispatch.on_ack(w, f, acked, now_ns)
    expected_rate.slow_growth(w, f, before)


@jit
def on_loss(w: at.World, f: int, now_ns: int) -> None:
    dispatch.on_loss(w, f, now_ns)


@jit
def on_round(w: at.World, f: int, rtt_ns: int, samples: int) -> None:
    """Call the subflow's congestion control at the end of a round trip. `rtt_ns` is the mean of
    `samples` RTT samples."""
    dispatch.on_round(w, f, rtt_ns, samples)


@jit
def on_timeout(w: at.World, f: int, now_ns: int) -> None:
    """Handle a timeout of subflow `f`: set SSTHRESH as after a loss, and the window to one segment.
    Slow start then begins (RFC 5681, section 3.1)."""
    dispatch.on_loss(w, f, now_ns)
    w.window[f + at.CWND] = LOSS_WINDOW
