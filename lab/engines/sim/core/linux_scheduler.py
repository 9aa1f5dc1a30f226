"""Linux's packet scheduler (net/mptcp/protocol.c of 6.12 and 6.18: mptcp_subflow_get_send, __mptcp_retrans).

A subflow is given data before its window lets it send them, as far as its socket's memory goes. What is queued there, over
the socket's mean pacing rate, is how long it lingers; the next burst of 64 kB goes to the subflow that lingers least, or to
nobody while that one's memory is full. An idle subflow lingers for no time at all, however slow it is.

Nothing is taken back: not after a subflow's timeout, not when it becomes backup. The connection has a timer of its own. When
it runs out, the oldest fragment of data goes once more over a subflow with nothing to do; a subflow that has been silent at
five such times in a row is stale: it gets nothing, and everything that is not acknowledged goes again over the others.
"""

from __future__ import annotations

from lab.engines.sim.core import events, rings
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

BURST_BYTES = 65_428  # MPTCP_SEND_BURST_SIZE
FRAGMENT = 23  # segments in 32 kB of pages, where data wait for a subflow (mptcp_carve_data_frag)
OVERHEAD_BYTES = 896  # of a socket's memory per segment (alloc_skb_fclone; hosts of the emulation do no segmentation offload)
LEAST_BUFFER_BYTES, FIRST_BUFFER_BYTES = (
    10_240,
    87_380,
)  # net.ipv4.tcp_wmem of the emulation's hosts
BUFFER_PER_SEGMENT, FIRST_WINDOW = (
    8704,
    10,
)  # bytes of buffer per segment of the window (tcp_sndbuf_expand)
SLOW_START_PERCENT, PERCENT = (
    200,
    120,
)  # pacing rate, of window per round trip (tcp_update_pacing_rate)
FIRST_TIMER_NS = 200_000_000  # TCP_RTO_MIN
STALE_AFTER, BETTER_THAN = (
    4,
    3,
)  # net.mptcp.stale_loss_cnt, and what another must be below (mptcp_pm_subflow_chk_stale)


@jit
def memory_used(row: Ints, f: int) -> int:
    """What waits in a subflow's socket to be sent or acknowledged [bytes of its memory]."""
    segment = row[row[f + at.CONNECTION] + at.SEGMENT_BYTES] + OVERHEAD_BYTES
    return (row[f + at.WRITE_SEQ] - row[f + at.SND_UNA]) * segment


@jit
def has_free_memory(row: Ints, f: int) -> bool:
    """Whether its socket takes more (sk_stream_memory_free)."""
    return (
        memory_used(row, f) < row[f + at.SNDBUF_BYTES]
        and row[f + at.WRITE_SEQ] - row[f + at.SND_UNA] < row[at.RING_SIZE] // 2
    )


@jit
def pacing_rate(w: at.World, f: int) -> int:
    """The socket's own idea of its rate [bytes/s]."""
    row = w.row
    cwnd = int(w.window[f + at.CWND])
    percent = (
        SLOW_START_PERCENT if w.window[f + at.CWND] < w.window[f + at.SSTHRESH] / 2.0 else PERCENT
    )
    window_bytes = max(cwnd, row[f + at.PIPE]) * row[row[f + at.CONNECTION] + at.SEGMENT_BYTES]
    rate = max(1, window_bytes * percent // 100 * at.NS_PER_S // row[f + at.SRTT_NS])
    return min(rate, row[f + at.EXPECTED_BPS] // 8) if row[f + at.EXPECTED_BPS] > 0 else rate


@jit
def grow_buffers(w: at.World, c: int) -> None:
    """A socket that does not fill its window while the application waits for memory gets more (tcp_should_expand_sndbuf).
    The connection has the memory of its subflows together, for data that the other end has not acknowledged."""
    row = w.row
    total = LEAST_BUFFER_BYTES
    waits = (
        min(row[c + at.WRITTEN], row[c + at.TOTAL_SEGMENTS])
        >= row[c + at.DATA_SND_UNA] + row[c + at.SEND_WINDOW]
    )
    for k in range(row[c + at.COUNT]):
        f = row[c + at.FIRST] + k * at.SUB_FIELDS
        if row[f + at.STATE] == at.ESTABLISHED:
            cwnd, has = (
                int(w.window[f + at.CWND]),
                max(row[f + at.SNDBUF_BYTES], FIRST_BUFFER_BYTES),
            )
            if waits and row[f + at.PIPE] < cwnd:
                has = max(has, BUFFER_PER_SEGMENT * max(cwnd, FIRST_WINDOW))
            row[f + at.SNDBUF_BYTES] = has
            total += has
    row[c + at.SEND_WINDOW] = min(row[c + at.RECEIVE_WINDOW], total // row[c + at.SEGMENT_BYTES])


@jit
def is_active(row: Ints, f: int) -> bool:
    """Whether a subflow may be given something; one that was heard of again is not stale any more."""
    if row[f + at.ACKS_RECEIVED] != row[f + at.ACKS_AT_CHECK]:
        row[f + at.IS_STALE] = 0
    return row[f + at.STATE] == at.ESTABLISHED and row[f + at.IS_STALE] == 0


@jit
def choose_subflow(w: at.World, c: int) -> int:
    """The subflow for the next burst; a backup while no other is active. Its mean pacing rate takes in that of now."""
    row = w.row
    grow_buffers(w, c)
    best, best_rank = at.NOTHING, at.FOREVER
    for k in range(row[c + at.COUNT]):
        f = row[c + at.FIRST] + k * at.SUB_FIELDS
        if is_active(row, f):
            if row[f + at.MEAN_PACING_RATE] == 0:
                row[f + at.MEAN_PACING_RATE] = pacing_rate(w, f)
            rank = (
                memory_used(row, f) * at.NS_PER_S // row[f + at.MEAN_PACING_RATE]
                + row[f + at.BACKUP] * at.BACKUP_RANK
            )
            if rank < best_rank:
                best, best_rank = f, rank
    if best == at.NOTHING or not has_free_memory(row, best):
        return at.NOTHING
    room = (row[c + at.DATA_SND_UNA] + row[c + at.SEND_WINDOW] - row[c + at.DATA_SND_NXT]) * row[
        c + at.SEGMENT_BYTES
    ]
    burst, had = min(BURST_BYTES, room), memory_used(row, best)
    if burst > 0:
        row[best + at.MEAN_PACING_RATE] = (
            row[best + at.MEAN_PACING_RATE] * had + pacing_rate(w, best) * burst
        ) // (had + burst)
    return best


# --- sending again


@jit
def restart_timer(row: Ints, c: int, now_ns: int) -> None:
    """It runs as long as the longest timer of a subflow that is heard of (__mptcp_set_timeout)."""
    longest_ns = 0
    if row[c + at.DATA_SND_UNA] == row[c + at.DATA_SND_NXT]:
        row[c + at.REINJECT_TIMER_NS] = 0
        return
    for k in range(row[c + at.COUNT]):
        f = row[c + at.FIRST] + k * at.SUB_FIELDS
        if (
            row[f + at.STATE] == at.ESTABLISHED
            and row[f + at.RTO_TIMER_NS] > 0
            and row[f + at.STALE_COUNT] == 0
        ):
            longest_ns = max(longest_ns, row[f + at.RTO_TIMER_NS] - now_ns)
    due_ns = now_ns + (longest_ns if longest_ns > 0 else FIRST_TIMER_NS)
    events.start_timer(row, c + at.REINJECT_TIMER_NS, due_ns, c * at.EVENT_KINDS + at.REINJECT_DUE)


@jit
def becomes_stale(row: Ints, c: int, f: int) -> bool:
    """A subflow with something to do is looked at: silent again, once too often, and another one is not."""
    if row[f + at.ACKS_RECEIVED] != row[f + at.ACKS_AT_CHECK]:
        row[f + at.ACKS_AT_CHECK], row[f + at.STALE_COUNT], row[f + at.IS_STALE] = (
            row[f + at.ACKS_RECEIVED],
            0,
            0,
        )
        return False
    row[f + at.STALE_COUNT] += 1
    if row[f + at.IS_STALE] == 1 or row[f + at.STALE_COUNT] <= STALE_AFTER:
        return False
    for k in range(row[c + at.COUNT]):
        r = row[c + at.FIRST] + k * at.SUB_FIELDS
        if r != f and is_active(row, r) and row[r + at.STALE_COUNT] < BETTER_THAN:
            row[f + at.IS_STALE] = 1
    return row[f + at.IS_STALE] == 1


@jit
def idle_subflow(row: Ints, c: int) -> int:
    """One with nothing to do, a backup only where everybody is silent; those with something to do are looked at."""
    idle, backup, least = at.NOTHING, at.NOTHING, at.FOREVER
    for k in range(row[c + at.COUNT] - 1, -1, -1):
        f = row[c + at.FIRST] + k * at.SUB_FIELDS
        if row[f + at.STATE] != at.ESTABLISHED:
            continue
        if row[f + at.WRITE_SEQ] > row[f + at.SND_UNA]:
            if becomes_stale(row, c, f):
                reinject_everything(row, c)
            least = min(least, row[f + at.STALE_COUNT])
        elif row[f + at.BACKUP] == 1:
            backup = f
        else:
            idle = f
    return backup if idle == at.NOTHING and least > 1 else idle


@jit
def reinject_everything(row: Ints, c: int) -> None:
    """All that the other end has not acknowledged is there to be given to a subflow (__mptcp_retransmit_pending_data)."""
    row[c + at.REINJECT_COUNT] = row[c + at.DATA_SND_NXT] - row[c + at.DATA_SND_UNA]
    for n in range(row[c + at.REINJECT_COUNT]):
        row[rings.data(row, c, row[c + at.REINJECT_HEAD] + n) + rings.DSN_REINJECT] = (
            row[c + at.DATA_SND_UNA] + n
        )
