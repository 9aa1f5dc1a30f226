"""The two tables of numbers that hold the state of a simulated network, and the terms of the core.

- Table: a long list of numbers. `w.row` is the integer table, `w.window` the floating-point table.
- Row: the numbers in the integer table that belong to one entity, such as a subflow, a hop or a
  packet. They are adjacent and in the order of the fields below.
- Place: an index into the integer table. The place of an entity is the index of the first number of
  its row. "Subflow f" is the subflow whose row begins at place f.
- Field: one number of a row. The constants below are the positions of the fields within a row.
- Hop: one direction of a link, of a WiFi station's channel or of an LTE bearer (the queue of one
  station). A route is a list of hops in the integer table, each given by its place. NOTHING ends
  the list.
- Ring: a circular buffer in the integer table. Entry number n is at position n modulo the size of
  the ring, where it replaces an older entry.

    w.row[f + at.PIPE]      field PIPE of subflow f; `at` is this module
    w.window[f + at.CWND]   the floating-point table has fields of subflows only, at the same place
    w.row[at.NOW]           a global field: the global row is at place 0

Variables have the same names in all modules. Each of these is a place: f of a subflow, r of another
subflow of the same connection, c of a connection or a WiFi cell, h of a hop, p of a packet, e of
one direction of an LTE cell. Functions that need no floating-point numbers get only the integer
table, as `row`.

Times are in ns, sizes in bytes, rates in bit/s. Sequence numbers count full segments, from 0. A
fraction in ppm is in millionths.
"""

from __future__ import annotations

from typing import NamedTuple

from lab.engines.sim.core.jit import Floats, Ints, jit

NS_PER_S = 1_000_000_000
NOTHING = -1  # no row
FOREVER = 1 << 60  # a time or a number of segments that is never reached

# --- global fields
(
    NOW, HOST_NOISE_NS,  # a host sends up to HOST_NOISE_NS later than it could
    HEAP, HEAP_SIZE, HEAP_COUNT, EVENTS_SCHEDULED,  # the event heap: its place; sizes in events
    FREE_PACKET, FREE_PACKETS, PACKETS_IN_BEARERS,  # the first free packet, and how many are free
    PLACES_USED,  # the first place that nothing uses yet
    RING_SIZE,  # entries of a ring of segments, see `rings`
    BALIA_DECREASE, OLIA_METRIC,  # KERNEL or DRAFT
    PENALISATION, EXPECTED_BY_WINDOW,  # 0 or 1: settings of the scenario
    GLOBAL_FIELDS,
) = range(16)  # fmt: skip
KERNEL, DRAFT = range(2)

# --- a hop: one direction of a link, of a WiFi station's channel, or of an LTE bearer
HOP_FIELDS = 34
(
    KIND, UP, CELL,  # CELL: the row of its access point
    MEDIUM,  # the row with the state of its channel: a cell, or a direction of LTE
    RATE_BPS, DELAY_NS, JITTER_NS, LOSS_PPM,
    QUEUE, QUEUE_SIZE, QUEUE_HEAD, QUEUE_COUNT,  # a ring; QUEUE is its place
    BUSY_UNTIL_NS, LAST_OUT_NS,  # the end of the last transmission; when the last packet leaves
    RNG_1, RNG_2,  # its random stream
    IN_PACKETS, IN_BYTES, OUT_PACKETS, OUT_BYTES, DROPS, DROPPED_BYTES,
    METERED, METER_DROPS, METER_PASSED_BYTES,  # METERED: 0 or the number of its cell's meter
    FRAME_AIRTIME_NS, BYTE_AIRTIME_PS,  # WiFi: airtime of a frame, plus airtime per byte
    NEXT_BEARER, WEIGHT_PPM, HEAD_SENT_BITS,  # LTE; bits of the first packet that were sent
    AIRTIME_NS, MEAN_AIRTIME,  # LTE: airtime in this TTI, and its mean (see `lte`)
    LINE, _LINE_LAST,  # packets on the way to the next hop, see `events.line_up`
) = range(HOP_FIELDS)  # fmt: skip
WIRE, AIR_DOWN, AIR_UP, BEARER = range(4)  # KIND

# --- a cell: the channel of an access point, and the two meters of the switch in front of it
CELL_FIELDS = 12
(
    DOWNLINK_BUSY_UNTIL_NS, UPLINK_BUSY_UNTIL_NS,
    MAX_WAIT_NS,  # the access point's buffer, as airtime
    DOWNLINK_AIRTIME_NS,  # of the last frame sent down
    BACKLOG,  # downlink packets that wait or are in transmission
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
    IS_AWAKE, LAST_TTI,  # its next TTI is scheduled; the last TTI that it served
    HARQ_RING, HARQ_RING_SIZE,  # airtime of retransmissions in the next TTIs, in ns
    BLOCK_ERROR_PPM, HARQ_TTIS, ATTEMPTS,
) = range(LTE_FIELDS)  # fmt: skip

# --- a packet in flight
PACKET_FIELDS = 12
(
    SUBFLOW, PACKET_TYPE, SIZE,
    ROUTE_POSITION,  # the place in its route that holds its next hop
    SEQ,  # of a segment; of an acknowledgement, what the receiver expects next
    DSN,  # data sequence number or data acknowledgement (RFC 8684)
    TRANSMISSION,  # its number in the subflow; of an ACK, the number of its cause
    SEGMENTS_SO_FAR,  # acknowledgement: segments that the receiver has got
    WINDOW_END,  # acknowledgement: the end of the receive window, see `receiver.window_end`
    PACKET_DUE_NS, PACKET_ORDER, NEXT_IN_LINE,  # see `events.line_up`
) = range(PACKET_FIELDS)  # fmt: skip
NEXT_FREE = SUBFLOW  # of a free packet
SEGMENT, ACK, DATAGRAM = range(3)  # PACKET_TYPE

# --- a subflow, its sender and its receiver
SUB_FIELDS = 75
(
    STATE, CONNECTION, LAW, BACKUP, REQUESTED_BACKUP,  # LAW: see `dispatch.number`
    DATA_ROUTE, ACK_ROUTE, RING,  # places of both routes and of the ring of segments
    # sender: RFC 9293, section 3.3.1; WRITE_SEQ is one past the last segment it was given
    SND_UNA, SND_NXT, WRITE_SEQ,
    # loss detection: RFC 6675 (PIPE), RFC 8985 (order of transmissions)
    PIPE, LOST, LOST_HINT, TRANSMISSIONS, LOSS_SCANNED,
    MODE, RECOVER,  # RECOVER: RFC 6582
    SRTT_NS, RTTVAR_NS, RTO_NS, BACKOFF, RTO_TIMER_NS, RTO_EVENT_NS,  # RFC 6298
    RTT_DEVIATION_NS, LARGEST_DEVIATION_NS, RTT_ROUND_END,  # see `round_trips`
    IS_PROBE,  # 1 if the retransmission timer is for a tail loss probe, 0 if it is the RTO
    PROBE_END, PROBE_TRANSMISSION,  # SND_NXT after the probe; its number if it repeats a segment
    SENT_BEFORE_TIMEOUT,  # smaller transmissions are older than the timeout; 0: it is not undone
    LAST_SENT_NS, PACED_UNTIL_NS, EXPECTED_BPS, HOST_RNG_1, HOST_RNG_2,
    CWND_LIMITED, MAX_PACKETS_OUT, CWND_USAGE_SEQ,  # RFC 7661, as Linux's tcp_cwnd_validate
    EPOCH_NS,  # RFC 9438
    # the current round trip
    BASE_RTT_NS, ROUND_END, ROUND_START_NS, ROUND_RTT_SUM_NS, ROUND_MIN_RTT_NS, ROUND_SAMPLES,
    # receiver
    RCV_NXT, OUT_OF_ORDER_HELD, UNACKED, LAST_TRANSMISSION, DELACK_NS, DELACK_EVENT_NS,
    QUICK_ACKS, LAST_RECEIVED_NS, RECEIVER_RTO_NS,  # see `receiver.receive_segment`
    # counters
    SEGMENTS_SENT, SEGMENTS_RETRANSMITTED, SEGMENTS_LOST, SEGMENTS_DROPPED, TIMEOUTS,
    SEGMENTS_RECEIVED, SEGMENTS_OUT_OF_ORDER,
    SEGMENTS_DROPPED_FIRST,  # those of SEGMENTS_DROPPED that the sender's own link dropped
    # Linux's scheduler, see `linux_scheduler`; MEAN_PACING_RATE in bytes/s
    MEAN_PACING_RATE, SNDBUF_BYTES, ACKS_RECEIVED, ACKS_AT_CHECK, STALE_COUNT, IS_STALE,
    REDUNDANT_NXT,  # redundant scheduler: one past the last data segment that it sent
    PENALISED_NS,  # when it last halved the window of a slower subflow
    HOST_LINE, _HOST_LINE_LAST, ACK_LINE, _ACK_LINE_LAST,  # see `events.line_up`
) = range(SUB_FIELDS)  # fmt: skip
IDLE, JOINING, ESTABLISHED, CLOSED = range(4)  # STATE
OPEN, RECOVERY, TIMED_OUT = range(3)  # MODE

# its fields in the floating-point table; LAW_1 to LAW_6 are for the congestion control law in use
(
    CWND, SSTHRESH, LAW_1, LAW_2, LAW_3, LAW_4, LAW_5, LAW_6,
    GROWTH_DIVISOR, LAST_ROUND_QUEUE,  # see `expected_rate`
    CWND_BEFORE_TIMEOUT, SSTHRESH_BEFORE_TIMEOUT,
) = range(12)  # fmt: skip

# --- a connection, its application, its sender's and its receiver's half
CONN_FIELDS = 37
(
    CONN_STATE, FIRST, COUNT, SCHEDULER, DATAGRAMS,  # FIRST, COUNT: its subflows
    SEGMENT_BYTES, FRAME_BYTES, ACK_BYTES,  # payload of a segment, and frames on the wire
    # application: WRITTEN is one past the last segment that it has written
    TOTAL_SEGMENTS, VOLUME_BYTES, WRITTEN, DEMAND_BPS, CREDIT_BITS,
    APP_EVENT_NS, STARTED_NS, DONE_NS,
    # sender, in data sequence numbers (RFC 8684)
    DATA_SND_UNA, DATA_SND_NXT, SEND_WINDOW, PUSH_SCHEDULED,
    SENDER_WINDOW_END,  # the end of the receive window, as far as the sender knows
    ROUND_ROBIN_NEXT,  # the number of the next subflow, counted from 0
    CONN_RING, REINJECT_HEAD, REINJECT_COUNT, REINJECTED, OPPORTUNISTIC_DSN,
    REINJECT_TIMER_NS, REINJECT_EVENT_NS, REINJECT_INTERVAL_NS,
    # receiver
    DATA_RCV_NXT, RECEIVE_WINDOW, REORDER_BUFFERED, REORDER_BUFFERED_MAX, DATA_OUT_OF_ORDER,
    REORDER_BUFFERED_RECENT,  # the most since the last sample
    OFFERED_WINDOW_END,  # the end of the receive window that was offered last
) = range(CONN_FIELDS)  # fmt: skip
RUNNING = 1  # CONN_STATE, besides IDLE and CLOSED
LOWEST_RTT, ROUND_ROBIN, LINUX, REDUNDANT = range(4)  # SCHEDULER
BACKUP_RANK = 1 << 50  # ranks a backup behind all other subflows, whose ranks are times in ns
UNLIMITED = -1  # DEMAND_BPS

# --- kinds of events; an event is place * EVENT_KINDS + kind,
# where place is the place of the row of its entity
EVENT_KINDS = 10
(
    ARRIVAL,  # of a packet at its next hop or at the end of its route
    TTI_DUE,  # of one direction of an LTE cell
    RTO_DUE, DELACK_DUE, JOINED, PRIORITY,  # of a subflow
    APP_DUE, PUSH, REINJECT_DUE,  # of a connection
    FIRST_ARRIVAL,  # of the first packet of a line, see `events.line_up`
) = range(EVENT_KINDS)  # fmt: skip


class World(NamedTuple):
    """The whole state of a simulation: the integer table `row` and the floating-point table
    `window`. Functions with more tables as parameters would take longer to compile."""

    row: Ints
    window: Floats


@jit
def subflows(row: Ints, c: int) -> range:
    """Return the subflows of connection `c`. Each is the index of the subflow's state in `row`."""
    first = row[c + FIRST]
    return range(first, first + row[c + COUNT] * SUB_FIELDS, SUB_FIELDS)
