"""Reinjection: data that one subflow has in flight is also sent over another subflow. This happens
after a timeout, when a subflow becomes a backup, and when the receive window is full."""

from __future__ import annotations

from lab.engines.sim.core import events, linux_scheduler, sender
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Connection, Subflow, World, segment

# a segment is retransmitted opportunistically if the subflow that has it in flight has at most this
# window, or more than this many times the RTT
SMALL_WINDOW, LONG_RTTS = 4, 4


@jit
def has_in_flight(s: Subflow, dsn: int) -> bool:
    """Return True if subflow `s` has the segment with data sequence number `dsn` in its send queue
    or in flight, and the segment is not yet acknowledged on `s`.

    The search assumes ascending data sequence numbers, so it can miss a reinjected segment.
    """
    seq = s.snd_una
    end = s.write_seq
    while seq < end and segment(s, seq).dsn < dsn:
        seq += 1
    return seq < end and segment(s, seq).dsn == dsn


@jit
def penalise(s: Subflow) -> None:
    """Halve the congestion window of subflow `s`, because `s` is slow and its connection waits for
    it, and end its slow start."""
    s.cwnd = max(s.cwnd / 2.0, 1.0)
    s.ssthresh = max(s.cwnd, 2.0)


@jit
def retransmit_opportunistically(c: Connection, s: Subflow, now_ns: int) -> int:
    """If the receive window of connection `c` is full, let subflow `s` send the segment that the
    receiver is missing: put it into the send queue of `s`. Also penalise a slower subflow that has
    this segment in flight. Return 1 if the segment was queued, else 0.

    A segment is queued in this way at most once. A subflow that has the segment in flight must have
    a small window or a long RTT. A subflow is penalised at most once per round trip of its own
    (Raiciu et al., NSDI 2012, section 4.2). Which segments are queued is decided as in
    mptcp_rcv_buf_optimization of the multipath-tcp.org kernel. That kernel leaves a penalised
    subflow in slow start, and waits for a round trip of `s` only: a subflow with a long queue then
    stays behind, and most of what it carries is sent twice. Upstream Linux (net/mptcp, 6.18)
    neither queues such a segment nor penalises.
    """
    dsn = c.data_snd_una
    window_has_room = dsn + c.receive_window > c.data_snd_nxt
    written = linux_scheduler.written_segments(c)
    if window_has_room or c.data_snd_nxt >= written:
        return 0  # the connection does not wait for the receiver
    helps, srtt_ns = False, s.srtt_ns
    for k in range(c.count):
        r = c.subflows[k]
        if r == s or not has_in_flight(r, dsn):
            continue
        is_due = now_ns - r.penalised_ns >= r.srtt_ns
        if is_due and srtt_ns < r.srtt_ns and r.mode == at.OPEN:
            penalise(r)
            r.penalised_ns = now_ns
        is_slow = LONG_RTTS * srtt_ns < r.srtt_ns
        helps = helps or r.cwnd <= SMALL_WINDOW or is_slow
    if not helps or c.opportunistic_dsn > dsn:
        return 0
    c.opportunistic_dsn = dsn + 1
    c.reinjected += 1
    sender.queue_segment(s, dsn)
    return 1


@jit
def reinject_in_flight(s: Subflow) -> None:
    """Queue the segments that subflow `s` has in flight for reinjection over other subflows. Do
    nothing if the connection has a single subflow, or if its scheduler is `redundant` or
    `linux`."""
    reinject(s, s.snd_nxt)


@jit
def reinject(s: Subflow, end: int) -> None:
    """Do as `reinject_in_flight`, with the segments of subflow `s` that are not acknowledged up to
    `end`."""
    c = s.connection
    if c.count < 2 or c.scheduler in (at.LINUX, at.REDUNDANT):
        return
    for seq in range(s.snd_una, end):
        slot = segment(s, seq)
        dsn = slot.dsn
        if slot.state != at.SACKED and dsn >= c.data_snd_una and c.reinject_count < c.ring_size:
            last = (c.reinject_head + c.reinject_count) & (c.ring_size - 1)
            c.reinject_queue[last] = dsn
            c.reinject_count += 1


@jit
def take_reinjected(c: Connection) -> int:
    """Take the next segment from the reinjection queue of connection `c`, and skip segments that
    are already acknowledged. Return its data sequence number, or NOTHING (-1) if the queue is
    empty."""
    while c.reinject_count > 0:
        dsn = c.reinject_queue[c.reinject_head & (c.ring_size - 1)]
        c.reinject_head += 1
        c.reinject_count -= 1
        if dsn >= c.data_snd_una:
            c.reinjected += 1
            return dsn
    return at.NOTHING


@jit
def on_reinject_timer(w: World, c: Connection, now_ns: int) -> bool:
    """Handle the event of the reinjection timer of connection `c`, which only Linux's scheduler
    uses. Return True if the timer has expired, else False.

    When the timer expires, send the oldest fragment of unacknowledged data again over an idle
    subflow. If no subflow is idle, send nothing. In both cases, restart the timer.
    """
    expired = events.has_expired(w, c.reinject_timer, now_ns)
    if not expired or c.state != at.ESTABLISHED:
        return False
    s, una = linux_scheduler.idle_subflow(w, c), c.data_snd_una
    if s != w.no_subflow:
        fragment_end = (una // linux_scheduler.FRAGMENT + 1) * linux_scheduler.FRAGMENT
        for dsn in range(una, min(fragment_end, c.data_snd_nxt)):
            sender.queue_segment(s, dsn)
            c.reinjected += 1
    linux_scheduler.restart_timer(w, c, now_ns)
    return True
