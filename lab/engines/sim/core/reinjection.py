"""Reinjection: data that one subflow has in flight is also sent over another subflow. This happens
after a timeout, when a subflow becomes a backup, and when the receive window is full."""

from __future__ import annotations

from lab.engines.sim.core import events, linux_scheduler, rings, sender
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

# a segment is retransmitted opportunistically if the subflow that has it in flight has at most this
# window, or more than this many times the RTT
SMALL_WINDOW, LONG_RTTS = 4, 4


@jit
def has_in_flight(row: Ints, f: int, dsn: int) -> bool:
    """Return True if subflow `f` has the segment with data sequence number `dsn` in its send queue
    or in flight, and the segment is not yet acknowledged on `f`.

    The search assumes ascending data sequence numbers, so it can miss a reinjected segment.
    """
    seq = row[f + at.SND_UNA]
    end = row[f + at.WRITE_SEQ]
    while seq < end and row[rings.segment(row, f, seq) + rings.SEG_DSN] < dsn:
        seq += 1
    return seq < end and row[rings.segment(row, f, seq) + rings.SEG_DSN] == dsn


@jit
def penalise(w: at.World, f: int) -> None:
    """Halve the congestion window of subflow `f`, because `f` is slow and its connection waits for
    it. Halve SSTHRESH too, except in slow start."""
    window = w.window
    if window[f + at.CWND] >= window[f + at.SSTHRESH]:
        window[f + at.SSTHRESH] = max(window[f + at.SSTHRESH] / 2.0, 2.0)
    window[f + at.CWND] = max(window[f + at.CWND] / 2.0, 1.0)


@jit
def retransmit_opportunistically(w: at.World, c: int, f: int, now_ns: int) -> int:
    """If the receive window of connection `c` is full, let subflow `f` send the segment that the
    receiver is missing: put it into the send queue of `f`. Also penalise a slower subflow that has
    this segment in flight. Return 1 if the segment was queued, else 0.

    A segment is queued in this way at most once. A subflow that has the segment in flight must have
    a small window or a long RTT. `f` penalises other subflows at most once per round trip. This is
    mptcp_rcv_buf_optimization of the multipath-tcp.org kernel (Raiciu et al., NSDI 2012, section
    4.2). Upstream Linux (net/mptcp, 6.18) neither queues such a segment nor penalises.
    """
    row = w.row
    dsn = row[c + at.DATA_SND_UNA]
    window_has_room = dsn + row[c + at.RECEIVE_WINDOW] > row[c + at.DATA_SND_NXT]
    written = linux_scheduler.written_segments(row, c)
    if window_has_room or row[c + at.DATA_SND_NXT] >= written:
        return 0  # the connection does not wait for the receiver
    helps, srtt_ns = False, row[f + at.SRTT_NS]
    penalises = now_ns - row[f + at.PENALISED_NS] >= srtt_ns
    for r in at.subflows(row, c):
        if r == f or not has_in_flight(row, r, dsn):
            continue
        if penalises and srtt_ns < row[r + at.SRTT_NS] and row[r + at.MODE] == at.OPEN:
            penalise(w, r)
            row[f + at.PENALISED_NS] = now_ns
        is_slow = LONG_RTTS * srtt_ns < row[r + at.SRTT_NS]
        helps = helps or w.window[r + at.CWND] <= SMALL_WINDOW or is_slow
    if not helps or row[c + at.OPPORTUNISTIC_DSN] > dsn:
        return 0
    row[c + at.OPPORTUNISTIC_DSN] = dsn + 1
    row[c + at.REINJECTED] += 1
    sender.queue_segment(row, f, dsn)
    return 1


@jit
def reinject_in_flight(row: Ints, f: int) -> None:
    """Queue the segments that subflow `f` has in flight for reinjection over other subflows. Do
    nothing if the connection has a single subflow, or if its scheduler is `redundant` or
    `linux`."""
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
            last = rings.data(row, c, row[c + at.REINJECT_HEAD] + row[c + at.REINJECT_COUNT])
            row[last + rings.DSN_REINJECT] = dsn
            row[c + at.REINJECT_COUNT] += 1


@jit
def take_reinjected(row: Ints, c: int) -> int:
    """Take the next segment from the reinjection queue of connection `c`, and skip segments that
    are already acknowledged. Return its data sequence number, or NOTHING (-1) if the queue is
    empty."""
    while row[c + at.REINJECT_COUNT] > 0:
        dsn = row[rings.data(row, c, row[c + at.REINJECT_HEAD]) + rings.DSN_REINJECT]
        row[c + at.REINJECT_HEAD] += 1
        row[c + at.REINJECT_COUNT] -= 1
        if dsn >= row[c + at.DATA_SND_UNA]:
            row[c + at.REINJECTED] += 1
            return dsn
    return at.NOTHING


@jit
def on_reinject_timer(row: Ints, c: int, now_ns: int) -> bool:
    """Handle the event of the reinjection timer of connection `c`, which only Linux's scheduler
    uses. Return True if the timer has expired, else False.

    When the timer expires, send the oldest fragment of unacknowledged data again over an idle
    subflow. If no subflow is idle, send nothing. In both cases, restart the timer.
    """
    timer = c + at.REINJECT_TIMER_NS
    expired = events.timer_has_expired(row, timer, now_ns, at.REINJECT_DUE, c)
    if not expired or row[c + at.CONN_STATE] != at.RUNNING:
        return False
    f, una = linux_scheduler.idle_subflow(row, c), row[c + at.DATA_SND_UNA]
    if f != at.NOTHING:
        fragment_end = (una // linux_scheduler.FRAGMENT + 1) * linux_scheduler.FRAGMENT
        for dsn in range(una, min(fragment_end, row[c + at.DATA_SND_NXT])):
            sender.queue_segment(row, f, dsn)
            row[c + at.REINJECTED] += 1
    linux_scheduler.restart_timer(row, c, now_ns)
    return True
