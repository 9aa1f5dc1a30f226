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

from lab.engines.sim.core import events, rings
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

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
def written_segments(row: Ints, c: int) -> int:
    return min(row[c + at.WRITTEN], row[c + at.TOTAL_SEGMENTS])


@jit
def unacknowledged(row: Ints, f: int) -> int:
    """Return how many segments are in the socket of subflow `f`. They are unsent, or sent but not
    acknowledged."""
    return row[f + at.WRITE_SEQ] - row[f + at.SND_UNA]


@jit
def memory_used(row: Ints, f: int) -> int:
    """Return the memory in bytes that segments use in the socket of subflow `f`. Each segment needs
    OVERHEAD_BYTES besides its payload."""
    segment = row[row[f + at.CONNECTION] + at.SEGMENT_BYTES] + OVERHEAD_BYTES
    return unacknowledged(row, f) * segment


@jit
def has_free_memory(row: Ints, f: int) -> bool:
    """Return True if the socket of subflow `f` has memory for more data (sk_stream_memory_free)."""
    fits_ring = unacknowledged(row, f) < row[at.RING_SIZE] // 2
    return memory_used(row, f) < row[f + at.SNDBUF_BYTES] and fits_ring


@jit
def pacing_rate(w: at.World, f: int) -> int:
    """Return the pacing rate of the socket of subflow `f` in bytes/s, as Linux computes it
    (tcp_update_pacing_rate). If `f` has an expected rate, the result is at most this rate."""
    row = w.row
    cwnd, ssthresh = w.window[f + at.CWND], w.window[f + at.SSTHRESH]
    percent = SLOW_START_PERCENT if cwnd < ssthresh / 2.0 else AVOIDANCE_PERCENT
    segments = max(int(cwnd), row[f + at.PIPE])
    window_bytes = segments * row[row[f + at.CONNECTION] + at.SEGMENT_BYTES]
    rate = max(1, window_bytes * percent // 100 * at.NS_PER_S // row[f + at.SRTT_NS])
    return min(rate, row[f + at.EXPECTED_BPS] // 8) if row[f + at.EXPECTED_BPS] > 0 else rate


@jit
def grow_buffers(w: at.World, c: int) -> None:
    """Let the send buffers of connection `c` grow. A socket gets more memory if it does not fill
    its congestion window although the application waits to write (tcp_should_expand_sndbuf).

    Then set the connection's send window to the memory of all its sockets together, but at most to
    the rest of the receive window (`receiver.window_end`).
    """
    row = w.row
    total = MIN_BUFFER_BYTES
    written = written_segments(row, c)
    application_waits = written >= row[c + at.DATA_SND_UNA] + row[c + at.SEND_WINDOW]
    for f in at.subflows(row, c):
        if row[f + at.STATE] == at.ESTABLISHED:
            cwnd, size = int(w.window[f + at.CWND]), row[f + at.SNDBUF_BYTES]
            size = max(size, INITIAL_BUFFER_BYTES)
            if application_waits and row[f + at.PIPE] < cwnd:
                size = max(size, BUFFER_PER_SEGMENT * max(cwnd, INITIAL_WINDOW))
            row[f + at.SNDBUF_BYTES] = size
            total += size
    receive_window = row[c + at.SENDER_WINDOW_END] - row[c + at.DATA_SND_UNA]
    row[c + at.SEND_WINDOW] = min(receive_window, total // row[c + at.SEGMENT_BYTES])


@jit
def has_data(row: Ints, c: int) -> bool:
    """Return True if the send window of connection `c` has data that no subflow was given yet."""
    written = written_segments(row, c)
    window_end = row[c + at.DATA_SND_UNA] + row[c + at.SEND_WINDOW]
    return row[c + at.DATA_SND_NXT] < min(written, window_end)


@jit
def is_active(row: Ints, f: int) -> bool:
    """Return True if subflow `f` may get data: it is established and not stale. The module
    docstring says when a subflow becomes stale.

    If `f` is stale, but got an acknowledgement since `becomes_stale` began to count, clear its
    stale mark first.
    """
    if row[f + at.ACKS_RECEIVED] != row[f + at.ACKS_AT_CHECK]:
        row[f + at.IS_STALE] = 0
    return row[f + at.STATE] == at.ESTABLISHED and row[f + at.IS_STALE] == 0


@jit
def choose_subflow(w: at.World, c: int, now_ns: int) -> int:
    """Return the subflow of connection `c` for the next burst: the one that would send its queued
    data soonest. A backup is chosen only if no other subflow is active. Return NOTHING (-1) if no
    subflow is active, or if the socket of the chosen one is full.

    Also update the mean pacing rate of the chosen subflow. The new mean is a weighted mean of the
    old one and the present pacing rate. The weight of the old mean is the memory used in the
    socket, and the weight of the present rate is the size of the burst. If there is data to send,
    also set the interval of the reinjection timer.
    """
    row = w.row
    grow_buffers(w, c)
    if row[c + at.REINJECT_COUNT] > 0 or has_data(row, c):
        set_interval(row, c, now_ns)
    best, best_rank = at.NOTHING, at.FOREVER
    for f in at.subflows(row, c):
        if is_active(row, f):
            if row[f + at.MEAN_PACING_RATE] == 0:
                row[f + at.MEAN_PACING_RATE] = pacing_rate(w, f)
            queue_ns = memory_used(row, f) * at.NS_PER_S // row[f + at.MEAN_PACING_RATE]
            rank = queue_ns + row[f + at.BACKUP] * at.BACKUP_RANK
            if rank < best_rank:
                best, best_rank = f, rank
    if best == at.NOTHING or not has_free_memory(row, best):
        return at.NOTHING
    window_end = row[c + at.DATA_SND_UNA] + row[c + at.SEND_WINDOW]
    window_bytes = (window_end - row[c + at.DATA_SND_NXT]) * row[c + at.SEGMENT_BYTES]
    burst, used = min(BURST_BYTES, window_bytes), memory_used(row, best)
    if burst > 0:
        queued = row[best + at.MEAN_PACING_RATE] * used
        row[best + at.MEAN_PACING_RATE] = (queued + pacing_rate(w, best) * burst) // (used + burst)
    return best


# --- reinjection


@jit
def ends_fragment(row: Ints, c: int, dsn: int) -> bool:
    """Return True if a segment of connection `c` is the last one of a fragment (FRAGMENT segments),
    or the last one that the application has written so far. `dsn` is the data sequence number of
    the segment."""
    written = written_segments(row, c)
    return (dsn + 1) % FRAGMENT == 0 or dsn + 1 == written


@jit
def set_interval(row: Ints, c: int, now_ns: int) -> None:
    """Set the interval that the reinjection timer of connection `c` will have at its next start
    (mptcp_set_timeout). The scheduler calls this whenever it has data to send, and after each
    fragment that it has given to a subflow.

    The interval is the time until the last of the subflows' retransmission timers expires. A
    subflow counts only if it is established, not stale, and has a STALE_COUNT of 0
    (`becomes_stale`). If there is no such subflow, the interval is 200 ms.
    """
    longest_ns = 0
    for f in at.subflows(row, c):
        if (
            row[f + at.STATE] == at.ESTABLISHED
            and row[f + at.IS_STALE] == 0
            and row[f + at.RTO_TIMER_NS] > 0
            and row[f + at.STALE_COUNT] == 0
        ):
            longest_ns = max(longest_ns, row[f + at.RTO_TIMER_NS] - now_ns)
    row[c + at.REINJECT_INTERVAL_NS] = longest_ns if longest_ns > 0 else INITIAL_TIMER_NS


@jit
def restart_timer(row: Ints, c: int, now_ns: int) -> None:
    """Restart the reinjection timer of connection `c` with its interval (`set_interval`). If all
    data is acknowledged, stop the timer (mptcp_reset_rtx_timer).

    Once all data has been given to subflows, the interval stays the same, even if queues and RTTs
    grow.
    """
    if row[c + at.DATA_SND_UNA] == row[c + at.DATA_SND_NXT]:
        row[c + at.REINJECT_TIMER_NS] = 0
        return
    interval_ns = row[c + at.REINJECT_INTERVAL_NS]
    due_ns = now_ns + (interval_ns if interval_ns > 0 else INITIAL_TIMER_NS)
    events.start_timer(row, c + at.REINJECT_TIMER_NS, due_ns, at.REINJECT_DUE, c)


@jit
def becomes_stale(row: Ints, c: int, f: int) -> bool:
    """Return True if subflow `f` becomes stale now. Call this for a subflow with unacknowledged
    data when the reinjection timer of connection `c` expires.

    First the field STALE_COUNT of `f` is updated: how often the timer has expired in a row without
    an acknowledgement on `f`. From 0 it becomes 1. Later it rises by 1, or returns to 0 if an
    acknowledgement has arrived since it became 1. Then `f` is stale if its count is at least 5 and
    another active subflow has a count below 3 (mptcp_pm_subflow_chk_stale).
    """
    if row[f + at.STALE_COUNT] == 0:
        row[f + at.ACKS_AT_CHECK] = row[f + at.ACKS_RECEIVED]
    elif row[f + at.ACKS_RECEIVED] != row[f + at.ACKS_AT_CHECK]:
        row[f + at.STALE_COUNT] = 0
        row[f + at.IS_STALE] = 0
        return False
    row[f + at.STALE_COUNT] += 1
    if row[f + at.IS_STALE] == 1 or row[f + at.STALE_COUNT] <= STALE_AFTER:
        return False
    for r in at.subflows(row, c):
        if r != f and is_active(row, r) and row[r + at.STALE_COUNT] < ACTIVE_BELOW:
            row[f + at.IS_STALE] = 1
    return row[f + at.IS_STALE] == 1


@jit
def idle_subflow(row: Ints, c: int) -> int:
    """Return an idle subflow of connection `c`, or NOTHING (-1). Idle means established and without
    unacknowledged data. A backup is returned only if no other subflow is idle, and if each subflow
    with unacknowledged data has a STALE_COUNT of at least 2.

    Subflows are checked in the order in which they were opened. If one becomes stale
    (`becomes_stale`), all unacknowledged data of the connection is queued for reinjection. Linux
    sends this data immediately, so of the subflows opened later, only backups can still be idle.
    """
    idle, backup, least, is_queued = at.NOTHING, at.NOTHING, at.FOREVER, False
    for f in at.subflows(row, c):
        if row[f + at.STATE] != at.ESTABLISHED:
            continue
        if unacknowledged(row, f) > 0:
            if becomes_stale(row, c, f):
                reinject_everything(row, c)
                is_queued = True
            least = min(least, row[f + at.STALE_COUNT])
        elif row[f + at.BACKUP] == 1:
            backup = f if backup == at.NOTHING else backup
        elif idle == at.NOTHING and not is_queued:
            idle = f
    return backup if idle == at.NOTHING and least > 1 else idle


@jit
def reinject_everything(row: Ints, c: int) -> None:
    """Queue all unacknowledged data of connection `c` for reinjection
    (__mptcp_retransmit_pending_data)."""
    una = row[c + at.DATA_SND_UNA]
    row[c + at.REINJECT_COUNT] = row[c + at.DATA_SND_NXT] - una
    for n in range(row[c + at.REINJECT_COUNT]):
        slot = rings.data(row, c, row[c + at.REINJECT_HEAD] + n)
        row[slot + rings.DSN_REINJECT] = una + n
