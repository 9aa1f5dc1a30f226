"""Describe the tables that the core works on: an entity is a row, and its name is the place where
its row begins.

    w.row[f + at.PIPE]      field PIPE of the subflow whose row begins at f; `at` is this module
    w.window[f + at.CWND]   the floating-point half of the same row
    w.row[at.NOW]           a global field: the global row begins at 0

The variables are the same everywhere: f a subflow (r another one of its connection), c a connection
or a cell, h a hop, p a packet, e one direction of an LTE cell. Functions that need no
floating-point numbers get `row` alone. Times are in ns, sizes in bytes, rates in bit/s; sequence
numbers count full segments, from 0. A fraction in ppm is in millionths.
"""

from __future__ import annotations

from typing import NamedTuple

from lab.engines.sim.core.jit import Floats, Ints, jit

NS_PER_S = 1_000_000_000
NOTHING = -1  # no row
FOREVER = 1 << 60  # a time or a number of segments that is never reached

# --- global fields
(
    NOW, HOST_NOISE_NS,  # a host sends within HOST_NOISE_NS of when it could
    HEAP, HEAP_SIZE, HEAP_COUNT, EVENTS_SCHEDULED,  # the events, see `events`
    FREE_PACKET, FREE_PACKETS, PACKETS_IN_BEARERS,  # the first free packet, and how many are free
    PLACES_USED,  # the first place of the table that belongs to no row
    RING_SIZE,  # segments that a ring holds, see `rings`
    BALIA_DECREASE, OLIA_METRIC,  # KERNEL or DRAFT
    PENALISATION, EXPECTED_BY_WINDOW,  # 0 or 1: settings of the scenario
    GLOBAL_FIELDS,
) = range(16)  # fmt: skip
KERNEL, DRAFT = range(2)

# --- a hop: one direction of a link, of a WiFi station's air, or an LTE bearer
HOP_FIELDS = 32
(
    KIND, UP, CELL,  # CELL: of its access point
    MEDIUM,  # the cell, or the direction of an LTE cell, with whose hops it shares the air
    RATE_BPS, DELAY_NS, JITTER_NS, LOSS_PPM,
    QUEUE, QUEUE_SIZE, QUEUE_HEAD, QUEUE_COUNT,  # a ring; QUEUE is where it begins
    BUSY_UNTIL_NS, LAST_OUT_NS,  # the end of the last transmission; when the last packet leaves
    RNG_1, RNG_2,  # its random stream
    IN_PACKETS, IN_BYTES, OUT_PACKETS, OUT_BYTES, DROPS, DROPPED_BYTES,
    METERED, METER_DROPS, METER_PASSED_BYTES,  # METERED: 0 or the number of its cell's meter
    FRAME_AIRTIME_NS, BYTE_AIRTIME_PS,  # WiFi: the air that a frame takes, and each of its bytes
    NEXT_BEARER, WEIGHT_PPM, HEAD_SENT_BITS,  # LTE; bits of the first packet that were sent
    AIRTIME_NS, MEAN_AIRTIME,  # LTE: of this TTI, and its mean (see `lte`)
) = range(HOP_FIELDS)  # fmt: skip
WIRE, AIR_DOWN, AIR_UP, BEARER = range(4)  # KIND

# --- a cell: the air of an access point, and the two meters of the switch in front of it
CELL_FIELDS = 12
(
    DOWNLINK_BUSY_UNTIL_NS, UPLINK_BUSY_UNTIL_NS,
    MAX_WAIT_NS,  # the access point's buffer, as time on the air
    DOWNLINK_AIRTIME_NS,  # of the last frame down
    BACKLOG,  # packets that wait for the air downwards
    TRANSMISSIONS_PPM,  # how often a frame is sent on average, because of collisions
    METER_BPS, METER_BURST_NS, METER_FULL_NS,  # METER_FULL_NS: when the bucket will be full
    _METER_2_BPS, _METER_2_BURST_NS, _METER_2_FULL_NS,
) = range(CELL_FIELDS)  # fmt: skip
METER_FIELDS = 3
TIER_2_METER, DEMAND_METER = 1, 2  # METERED

# --- one direction of an LTE cell
LTE_FIELDS = 9
(
    FIRST_BEARER, IS_UPLINK,
    IS_AWAKE, LAST_TTI,  # it has scheduled its next TTI; the last one that it served
    HARQ_RING, HARQ_RING_SIZE,  # ns of air that retransmissions take of TTIs to come
    BLOCK_ERROR_PPM, HARQ_TTIS, ATTEMPTS,
) = range(LTE_FIELDS)  # fmt: skip

# --- a packet in flight
PACKET_FIELDS = 8
(
    SUBFLOW, PACKET_TYPE, SIZE,
    ROUTE_POSITION,  # a place of its route, which lists hops, with NOTHING behind the last one
    SEQ,  # of a segment; of an acknowledgement, what the receiver expects next
    DSN,  # the same at the level of the connection (RFC 8684)
    TRANSMISSION,  # its number in the subflow; of an acknowledgement, that of its cause
    SEGMENTS_SO_FAR,  # acknowledgement: segments that the receiver has got
) = range(PACKET_FIELDS)  # fmt: skip
NEXT_FREE = SUBFLOW  # of a free packet
SEGMENT, ACK, DATAGRAM = range(3)  # PACKET_TYPE

# --- a subflow, its sender and its receiver
SUB_FIELDS = 61
(
    STATE, CONNECTION, LAW, BACKUP, REQUESTED_BACKUP,  # LAW: see `dispatch.number`
    DATA_ROUTE, ACK_ROUTE, RING,  # where the routes and the ring of its segments begin
    # sender: RFC 9293, section 3.3.1; WRITE_SEQ follows the last segment that it was given
    SND_UNA, SND_NXT, WRITE_SEQ,
    # loss detection: RFC 6675 (PIPE), RFC 8985 (order of transmissions)
    PIPE, LOST, LOST_HINT, TRANSMISSIONS, LOSS_SCANNED,
    MODE, RECOVER,  # RECOVER: RFC 6582
    SRTT_NS, RTTVAR_NS, RTO_NS, BACKOFF, RTO_TIMER_NS, RTO_EVENT_NS,  # RFC 6298
    LAST_SENT_NS, PACED_UNTIL_NS, EXPECTED_BPS, HOST_RNG_1, HOST_RNG_2,
    CWND_LIMITED, MAX_PACKETS_OUT, CWND_USAGE_SEQ,  # RFC 7661, as Linux's tcp_cwnd_validate
    EPOCH_NS,  # RFC 9438
    # the current round trip
    BASE_RTT_NS, ROUND_END, ROUND_START_NS, ROUND_RTT_SUM_NS, ROUND_MIN_RTT_NS, ROUND_SAMPLES,
    # receiver
    RCV_NXT, OUT_OF_ORDER_HELD, UNACKED, LAST_TRANSMISSION, DELACK_NS, DELACK_EVENT_NS,
    # counters
    SEGMENTS_SENT, SEGMENTS_RETRANSMITTED, SEGMENTS_LOST, SEGMENTS_DROPPED, TIMEOUTS,
    SEGMENTS_RECEIVED, SEGMENTS_OUT_OF_ORDER,
    SEGMENTS_DROPPED_FIRST,  # those of SEGMENTS_DROPPED that the sender's own link dropped
    # Linux's scheduler, see `linux_scheduler`; MEAN_PACING_RATE in bytes/s
    MEAN_PACING_RATE, SNDBUF_BYTES, ACKS_RECEIVED, ACKS_AT_CHECK, STALE_COUNT, IS_STALE,
    REDUNDANT_NXT,  # redundant scheduler: behind the last segment of data that it carried
    PENALISED_NS,  # when it last halved the window of a slower subflow
) = range(SUB_FIELDS)  # fmt: skip
IDLE, JOINING, ESTABLISHED, CLOSED = range(4)  # STATE
OPEN, RECOVERY, TIMED_OUT = range(3)  # MODE

# its floating-point half; LAW_1 to LAW_6 belong to the congestion control law that runs
(
    CWND, SSTHRESH, LAW_1, LAW_2, LAW_3, LAW_4, LAW_5, LAW_6,
    GROWTH_DIVISOR, LAST_ROUND_QUEUE,  # see `expected_rate`
) = range(10)  # fmt: skip

# --- a connection, its application, its sender's and its receiver's half
CONN_FIELDS = 33
(
    CONN_STATE, FIRST, COUNT, SCHEDULER, DATAGRAMS,  # FIRST, COUNT: its subflows
    SEGMENT_BYTES, FRAME_BYTES, ACK_BYTES,  # payload of a segment, and frames on the wire
    # application: WRITTEN follows the last segment that it has written
    TOTAL_SEGMENTS, VOLUME_BYTES, WRITTEN, DEMAND_BPS, CREDIT_BITS,
    APP_EVENT_NS, STARTED_NS, DONE_NS,
    # sender, in data sequence numbers (RFC 8684)
    DATA_SND_UNA, DATA_SND_NXT, SEND_WINDOW, PUSH_SCHEDULED,
    ROUND_ROBIN_NEXT,  # the number of the next subflow, counted from 0
    CONN_RING, REINJECT_HEAD, REINJECT_COUNT, REINJECTED, OPPORTUNISTIC_DSN,
    REINJECT_TIMER_NS, REINJECT_EVENT_NS,
    # receiver
    DATA_RCV_NXT, RECEIVE_WINDOW, REORDER_BUFFERED, REORDER_BUFFERED_MAX, DATA_OUT_OF_ORDER,
) = range(CONN_FIELDS)  # fmt: skip
RUNNING = 1  # CONN_STATE, besides IDLE and CLOSED
LOWEST_RTT, ROUND_ROBIN, LINUX, REDUNDANT = range(4)  # SCHEDULER
BACKUP_RANK = 1 << 50  # ranks a backup behind all other subflows, whose ranks are times in ns
UNLIMITED = -1  # DEMAND_BPS

# --- kinds of events; an event is (row of its entity) * EVENT_KINDS + kind
EVENT_KINDS = 9
(
    ARRIVAL,  # of a packet at its next hop or at the end of its route
    TTI_DUE,  # of one direction of an LTE cell
    RTO_DUE, DELACK_DUE, JOINED, PRIORITY,  # of a subflow
    APP_DUE, PUSH, REINJECT_DUE,  # of a connection
) = range(EVENT_KINDS)  # fmt: skip


class World(NamedTuple):
    """Hold all of a run in two tables: each more would cost the compiler time for every function
    that gets it."""

    row: Ints
    window: Floats


@jit
def subflows(row: Ints, c: int) -> range:
    """Return the places at which the rows of a connection's subflows begin."""
    first = row[c + FIRST]
    return range(first, first + row[c + COUNT] * SUB_FIELDS, SUB_FIELDS)
