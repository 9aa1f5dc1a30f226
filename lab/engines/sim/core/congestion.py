"""Change the congestion window of a subflow by the rules that all congestion control laws share
(RFC 5681); for the rest, call the subflow's law (`dispatch`)."""

from __future__ import annotations

from lab.engines.sim.core import dispatch, expected_rate
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit

LOSS_WINDOW = 1.0  # segments, RFC 5681, section 3.1


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    """Let the window grow by `acked` newly acknowledged segments: by slow start up to SSTHRESH (RFC
    5681, section 3.1), by the subflow's law for the segments that are left."""
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
    """Reduce the window after a loss, as the law of subflow `f` does."""
    dispatch.on_loss(w, f, now_ns)


@jit
def on_round(w: at.World, f: int, rtt_ns: int, samples: int) -> None:
    """Let the law of subflow `f` act at the end of a round trip. `rtt_ns` is the mean of `samples`
    RTT samples."""
    dispatch.on_round(w, f, rtt_ns, samples)


@jit
def on_timeout(w: at.World, f: int, now_ns: int) -> None:
    """Set SSTHRESH as after a loss, and the window to one segment: slow start begins (RFC 5681,
    section 3.1)."""
    dispatch.on_loss(w, f, now_ns)
    w.window[f + at.CWND] = LOSS_WINDOW
