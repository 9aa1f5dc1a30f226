"""Changes of a subflow's congestion window. The rules that all congestion controls share (RFC 5681)
are here. For the rest, `dispatch` calls the congestion control of the subflow."""

from __future__ import annotations

from lab.engines.sim.core import dispatch, expected_rate
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.laws import dctcp
from lab.engines.sim.core.state import Subflow

LOSS_WINDOW = 1.0  # segments, RFC 5681, section 3.1


@jit
def begin(s: Subflow, now_ns: int) -> None:
    """Let the congestion control of subflow `s` begin."""
    s.is_rate_based, s.pacing_rate, s.paced_burst = 0, 0.0, 0
    dispatch.begin(s, now_ns)


@jit
def on_ack(s: Subflow, acked: int, now_ns: int) -> None:
    """Grow the window of subflow `s` for `acked` newly acknowledged segments. Up to SSTHRESH it
    grows by slow start (RFC 5681, section 3.1), beyond SSTHRESH by the subflow's congestion
    control."""
    dispatch.in_slow_start(s, now_ns)
    expected_rate.end_slow_start(s)
    below_ssthresh = s.ssthresh - s.cwnd
    if below_ssthresh > 0:
        grown = min(float(acked), below_ssthresh)
        s.cwnd += grown
        acked -= int(grown)
    if acked <= 0:
        return
    before = s.cwnd
    dispatch.on_ack(s, acked, now_ns)
    expected_rate.slow_growth(s, before)


@jit
def on_loss(s: Subflow, now_ns: int) -> None:
    dispatch.on_loss(s, now_ns)
    s.is_cwr_due = s.connection.is_ecn


@jit
def on_mark(s: Subflow, now_ns: int) -> None:
    """Reduce the window of subflow `s` because of a mark: as after a loss, unless it is DCTCP."""
    if s.connection.is_dctcp == 1:
        dctcp.reduce(s)
        s.is_cwr_due = 1
    else:
        on_loss(s, now_ns)


@jit
def on_round(s: Subflow, rtt_ns: int, samples: int) -> None:
    """Call the subflow's congestion control at the end of a round trip. `rtt_ns` is the mean of
    `samples` RTT samples."""
    dispatch.on_round(s, rtt_ns, samples)


@jit
def on_timeout(s: Subflow, now_ns: int) -> None:
    """Handle a timeout of subflow `s`: set SSTHRESH as after a loss, and the window to one segment.
    Slow start then begins (RFC 5681, section 3.1)."""
    on_loss(s, now_ns)
    s.cwnd = LOSS_WINDOW
