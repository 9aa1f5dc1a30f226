"""What one subflow has under way and another sends again: after a timeout, for a backup, or for a receiver without room."""

from __future__ import annotations

from lab.engines.sim.core import events, linux_scheduler, rings, sender
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

FEW_SEGMENTS, FAR_RTTS = (
    4,
    4,
)  # whose window is so small, or round trip so much longer, is helped out


@jit
def has_in_flight(row: Ints, f: int, dsn: int) -> bool:
    """Whether a subflow has this segment under way; subflows carry segments in their order, but for what is sent again."""
    seq = row[f + at.SND_UNA]
    while seq < row[f + at.WRITE_SEQ] and row[rings.segment(row, f, seq) + rings.SEG_DSN] < dsn:
        seq += 1
    return seq < row[f + at.WRITE_SEQ] and row[rings.segment(row, f, seq) + rings.SEG_DSN] == dsn


@jit
def retransmit_opportunistically(w: at.World, c: int, f: int, now_ns: int) -> int:
    """The receiver waits for a segment that is under way elsewhere and has room for no other: send it here too, once, and
    halve the window of the slower subflow that has it, at most once per round trip; 1 if it is sent.

    As mptcp_rcv_buf_optimization of the multipath-sender.org kernel (Raiciu et al., NSDI 2012, section 4.2). Upstream Linux
    (net/mptcp, 6.18) has neither.
    """
    row = w.row
    window, dsn = w.window, row[c + at.DATA_SND_UNA]
    if dsn + row[c + at.RECEIVE_WINDOW] > row[c + at.DATA_SND_NXT] or row[
        c + at.DATA_SND_NXT
    ] >= min(row[c + at.WRITTEN], row[c + at.TOTAL_SEGMENTS]):
        return 0  # it is not the receiver that all wait for
    again, due = False, now_ns - row[f + at.PENALISED_NS] >= row[f + at.SRTT_NS]
    for k in range(row[c + at.COUNT]):
        r = row[c + at.FIRST] + k * at.SUB_FIELDS
        if r == f or not has_in_flight(row, r, dsn):
            continue
        if due and row[f + at.SRTT_NS] < row[r + at.SRTT_NS] and row[r + at.MODE] == at.OPEN:
            if window[r + at.CWND] >= window[r + at.SSTHRESH]:
                window[r + at.SSTHRESH] = max(window[r + at.SSTHRESH] / 2.0, 2.0)
            window[r + at.CWND] = max(window[r + at.CWND] / 2.0, 1.0)
            row[f + at.PENALISED_NS] = now_ns
        again = (
            again
            or window[r + at.CWND] <= FEW_SEGMENTS
            or FAR_RTTS * row[f + at.SRTT_NS] < row[r + at.SRTT_NS]
        )
    if not again or row[c + at.OPPORTUNISTIC_DSN] > dsn:
        return 0
    row[c + at.OPPORTUNISTIC_DSN] = dsn + 1
    row[c + at.REINJECTED] += 1
    sender.queue_segment(row, f, dsn)
    return 1


@jit
def reinject_in_flight(row: Ints, f: int) -> None:
    """What a subflow has under way may go over the others."""
    c = row[f + at.CONNECTION]
    if row[c + at.COUNT] < 2 or row[c + at.SCHEDULER] in (at.LINUX, at.REDUNDANT):
        return
    for seq in range(row[f + at.SND_UNA], row[f + at.SND_NXT]):
        slot = rings.segment(row, f, seq)
        dsn = row[slot + rings.SEG_DSN]
        if (
            row[slot + rings.SEG_STATE] != rings.SACKED
            and dsn >= row[c + at.DATA_SND_UNA]
            and row[c + at.REINJECT_COUNT] < row[at.RING_SIZE]
        ):
            row[
                rings.data(row, c, row[c + at.REINJECT_HEAD] + row[c + at.REINJECT_COUNT])
                + rings.DSN_REINJECT
            ] = dsn
            row[c + at.REINJECT_COUNT] += 1


@jit
def on_reinject_timer(row: Ints, c: int, now_ns: int) -> bool:
    """The event of the connection's own timer: the oldest fragment goes over an idle subflow."""
    ran_out = events.timer_has_expired(
        row, c + at.REINJECT_TIMER_NS, now_ns, c * at.EVENT_KINDS + at.REINJECT_DUE
    )
    if not ran_out or row[c + at.CONN_STATE] != at.RUNNING:
        return False
    f, una = linux_scheduler.idle_subflow(row, c), row[c + at.DATA_SND_UNA]
    if f != at.NOTHING:
        for dsn in range(
            una,
            min(
                (una // linux_scheduler.FRAGMENT + 1) * linux_scheduler.FRAGMENT,
                row[c + at.DATA_SND_NXT],
            ),
        ):
            sender.queue_segment(row, f, dsn)
            row[c + at.REINJECTED] += 1
    linux_scheduler.restart_timer(row, c, now_ns)
    return True
