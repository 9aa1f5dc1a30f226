"""Schedule segments as upstream Linux does (net/mptcp/protocol.c of 6.12 and 6.18).

Choice of a subflow (mptcp_subflow_get_send): a subflow can get data as long as its socket has free
memory, even if its congestion window does not let it send the data yet. The scheduler estimates how
long queued data will stay in each socket: the size of the data divided by the socket's mean pacing
rate. The next burst of 64 kB goes to the subflow with the shortest time. If that subflow's socket
has no free memory, no subflow gets data. An idle subflow has the time 0, however slow it is.

Reinjection (__mptcp_retrans): data is never taken back from a subflow, neither after a timeout nor
when the subflow becomes a backup. Instead the connection has a reinjection timer. When this timer
expires, the oldest fragment of unacknowledged data (up to 23 segments) is sent once more over an
idle subflow. A subflow becomes stale if it gets no acknowledgement before five expiries in a row. A
stale subflow gets no more data, and all unacknowledged data is reinjected over the other subflows.
"""

from __future__ import annotations

from lab.engines.sim.core import delivery, events
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Connection, Subflow, World

BURST_BYTES = 65_428  # MPTCP_SEND_BURST_SIZE
FRAGMENT = 23  # segments in 32 kB of pages, in which data wait (mptcp_carve_data_frag)
# memory of a socket per segment besides its payload (alloc_skb_fclone; the emulation's hosts do no
# segmentation offload)
OVERHEAD_BYTES = 896
MIN_BUFFER_BYTES, INITIAL_BUFFER_BYTES = 10_240, 87_380  # net.ipv4.tcp_wmem of these hosts
BUFFER_PER_SEGMENT, INITIAL_WINDOW = 8704, 10  # bytes per segment of cwnd (tcp_sndbuf_expand)
# pacing rate, in percent of cwnd per round trip (tcp_update_pacing_rate)
SLOW_START_PERCENT, AVOIDANCE_PERCENT = 200, 120
INITIAL_TIMER_NS = 200_000_000  # TCP_RTO_MIN
STALE_AFTER = 4  # net.mptcp.stale_loss_cnt
ACTIVE_BELOW = 3  # a better subflow has a smaller count (mptcp_pm_subflow_chk_stale)


@jit
def written_segments(c: Connection) -> int:
    return min(c.written, c.total_segments)


@jit
def has_closed(c: Connection) -> bool:
    """Return True if the application has written a whole file and has closed its side: the send
    buffer has room for the rest."""
    if c.scheduler != at.LINUX or c.total_segments == at.FOREVER:
        return False
    return written_segments(c) == c.total_segments <= c.data_snd_una + c.send_window


@jit
def unacknowledged(s: Subflow) -> int:
    """Return how many segments are in the socket of subflow `s`. They are unsent, or sent but not
    acknowledged."""
    return s.write_seq - s.snd_una


@jit
def memory_used(s: Subflow) -> int:
    """Return the memory in bytes that segments use in the socket of subflow `s`. Each segment needs
    OVERHEAD_BYTES besides its payload."""
    segment = s.connection.segment_bytes + OVERHEAD_BYTES
    return unacknowledged(s) * segment


@jit
def has_free_memory(s: Subflow) -> bool:
    """Return True if the socket of subflow `s` has memory for more data (sk_stream_memory_free)."""
    fits_ring = unacknowledged(s) < s.ring_size // 2
    return memory_used(s) < s.sndbuf_bytes and fits_ring


@jit
def pacing_rate(s: Subflow) -> int:
    """Return the pacing rate of the socket of subflow `s` in bytes/s, as Linux computes it
    (tcp_update_pacing_rate). If `s` has an expected rate, the result is at most this rate."""
    if s.is_rate_based == 1:
        return max(1, int(delivery.pacing_rate(s) * s.connection.segment_bytes))
    cwnd, ssthresh = s.cwnd, s.ssthresh
    percent = SLOW_START_PERCENT if cwnd < ssthresh / 2.0 else AVOIDANCE_PERCENT
    segments = max(int(cwnd), s.pipe)
    window_bytes = segments * s.connection.segment_bytes
    rate = max(1, window_bytes * percent // 100 * at.NS_PER_S // s.srtt_ns)
    return min(rate, s.expected_bps // 8) if s.expected_bps > 0 else rate


@jit
def grow_buffers(c: Connection) -> None:
    """Let the send buffers of connection `c` grow. While the application waits to write, they
    follow the congestion windows: Linux checks after each segment, and all but the last of a burst
    leave room in the window (tcp_event_new_data_sent, tcp_should_expand_sndbuf).

    Then set the connection's send window to the memory of all its sockets together, but at most to
    the rest of the receive window (`receiver.window_end`).
    """
    total = MIN_BUFFER_BYTES
    written = written_segments(c)
    application_waits = written >= c.data_snd_una + c.send_window
    for k in range(c.count):
        s = c.subflows[k]
        if s.state == at.ESTABLISHED:
            cwnd, size = int(s.cwnd), s.sndbuf_bytes
            size = max(size, INITIAL_BUFFER_BYTES)
            if application_waits:
                # BBR wants three windows in the buffer, other laws two (sndbuf_expand)
                per_segment = BUFFER_PER_SEGMENT * (3 if s.is_rate_based == 1 else 2) // 2
                size = max(size, per_segment * max(cwnd, INITIAL_WINDOW))
            s.sndbuf_bytes = size
            total += size
    receive_window = c.sender_window_end - c.data_snd_una
    c.send_window = min(receive_window, total // c.segment_bytes)


@jit
def has_data(c: Connection) -> bool:
    """Return True if the send window of connection `c` has data that no subflow was given yet."""
    written = written_segments(c)
    window_end = c.data_snd_una + c.send_window
    return c.data_snd_nxt < min(written, window_end)


@jit
def is_active(s: Subflow) -> bool:
    """Return True if subflow `s` may get data: it is established and not stale. The module
    docstring says when a subflow becomes stale.

    If `s` is stale, but got an acknowledgement since `becomes_stale` began to count, clear its
    stale mark first.
    """
    if s.acks_received != s.acks_at_check:
        s.is_stale = 0
    return s.state == at.ESTABLISHED and s.is_stale == 0


@jit
def choose_subflow(w: World, c: Connection, now_ns: int) -> Subflow:
    """Return the subflow of connection `c` for the next burst: the one that would send its queued
    data soonest. A backup is chosen only if no other subflow is active. Return no subflow if no
    subflow is active, or if the socket of the chosen one is full.

    Also update the mean pacing rate of the chosen subflow. The new mean is a weighted mean of the
    old one and the present pacing rate. The weight of the old mean is the memory used in the
    socket, and the weight of the present rate is the size of the burst. If there is data to send,
    also set the interval of the reinjection timer.
    """
    grow_buffers(c)
    if c.reinject_count > 0 or has_data(c):
        set_interval(c, now_ns)
    best, best_rank = w.no_subflow, at.FOREVER
    for k in range(c.count):
        s = c.subflows[k]
        if is_active(s):
            if s.mean_pacing_rate == 0:
                s.mean_pacing_rate = pacing_rate(s)
            queue_ns = memory_used(s) * at.NS_PER_S // s.mean_pacing_rate
            rank = queue_ns + s.backup * at.BACKUP_RANK
            if rank < best_rank:
                best, best_rank = s, rank
    if best == w.no_subflow or not has_free_memory(best):
        return w.no_subflow
    window_end = c.data_snd_una + c.send_window
    window_bytes = (window_end - c.data_snd_nxt) * c.segment_bytes
    burst, used = min(BURST_BYTES, window_bytes), memory_used(best)
    if burst > 0:
        queued = best.mean_pacing_rate * used
        best.mean_pacing_rate = (queued + pacing_rate(best) * burst) // (used + burst)
    return best


# --- reinjection


@jit
def ends_fragment(c: Connection, dsn: int) -> bool:
    """Return True if a segment of connection `c` is the last one of a fragment (FRAGMENT segments),
    or the last one that the application has written so far. `dsn` is the data sequence number of
    the segment."""
    written = written_segments(c)
    return (dsn + 1) % FRAGMENT == 0 or dsn + 1 == written


@jit
def set_interval(c: Connection, now_ns: int) -> None:
    """Set the interval that the reinjection timer of connection `c` will have at its next start
    (mptcp_set_timeout). The scheduler calls this whenever it has data to send, and after each
    fragment that it has given to a subflow.

    The interval is the time until the last of the subflows' retransmission timers expires. A
    subflow counts only if it is established, not stale, and has a STALE_COUNT of 0
    (`becomes_stale`). If there is no such subflow, the interval is 200 ms.
    """
    longest_ns = 0
    for k in range(c.count):
        s = c.subflows[k]
        if (
            s.state == at.ESTABLISHED
            and s.is_stale == 0
            and s.timer.expires_ns > 0
            and s.stale_count == 0
        ):
            longest_ns = max(longest_ns, s.timer.expires_ns - now_ns)
    c.reinject_interval_ns = longest_ns if longest_ns > 0 else INITIAL_TIMER_NS


@jit
def restart_timer(w: World, c: Connection, now_ns: int) -> None:
    """Restart the reinjection timer of connection `c` with its interval (`set_interval`). If all
    data is acknowledged, stop the timer (mptcp_reset_rtx_timer).

    Once all data has been given to subflows, the interval stays the same, even if queues and RTTs
    grow.
    """
    if c.data_snd_una == c.data_snd_nxt:
        c.reinject_timer.expires_ns = 0
        return
    interval_ns = c.reinject_interval_ns
    due_ns = now_ns + (interval_ns if interval_ns > 0 else INITIAL_TIMER_NS)
    events.start_timer(w, c.reinject_timer, due_ns)


@jit
def becomes_stale(c: Connection, s: Subflow) -> bool:
    """Return True if subflow `s` becomes stale now. Call this for a subflow with unacknowledged
    data when the reinjection timer of connection `c` expires.

    First the field STALE_COUNT of `s` is updated: how often the timer has expired in a row without
    an acknowledgement on `s`. From 0 it becomes 1. Later it rises by 1, or returns to 0 if an
    acknowledgement has arrived since it became 1. Then `s` is stale if its count is at least 5 and
    another active subflow has a count below 3 (mptcp_pm_subflow_chk_stale).
    """
    if s.stale_count == 0:
        s.acks_at_check = s.acks_received
    elif s.acks_received != s.acks_at_check:
        s.stale_count = 0
        s.is_stale = 0
        return False
    s.stale_count += 1
    if s.is_stale == 1 or s.stale_count <= STALE_AFTER:
        return False
    for k in range(c.count):
        r = c.subflows[k]
        if r != s and is_active(r) and r.stale_count < ACTIVE_BELOW:
            s.is_stale = 1
    return s.is_stale == 1


@jit
def idle_subflow(w: World, c: Connection) -> Subflow:
    """Return an idle subflow of connection `c`, or no subflow. Idle means established and without
    unacknowledged data. A backup is returned only if no other subflow is idle, and if each subflow
    with unacknowledged data has a STALE_COUNT of at least 2.

    Subflows are checked in the order in which they were opened. If one becomes stale
    (`becomes_stale`), all unacknowledged data of the connection is queued for reinjection. Linux
    sends this data immediately, so of the subflows opened later, only backups can still be idle.
    """
    idle, backup = w.no_subflow, w.no_subflow
    least, is_queued = at.FOREVER, False
    for k in range(c.count):
        s = c.subflows[k]
        if s.state != at.ESTABLISHED:
            continue
        if unacknowledged(s) > 0:
            if becomes_stale(c, s):
                reinject_everything(c)
                is_queued = True
            least = min(least, s.stale_count)
        elif s.backup == 1:
            backup = s if backup == w.no_subflow else backup
        elif idle == w.no_subflow and not is_queued:
            idle = s
    return backup if idle == w.no_subflow and least > 1 else idle


@jit
def reinject_everything(c: Connection) -> None:
    """Queue all unacknowledged data of connection `c` for reinjection
    (__mptcp_retransmit_pending_data)."""
    una = c.data_snd_una
    c.reinject_count = c.data_snd_nxt - una
    for n in range(c.reinject_count):
        c.reinject_queue[(c.reinject_head + n) & (c.ring_size - 1)] = una + n
