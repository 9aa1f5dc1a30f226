"""What the packets' code works on: flat tables of integers. An entity is the place where its row begins in its table.

    w.sub[f + at.PIPE]   field PIPE of the subflow whose row begins at f; this module is imported as `at`
    w.seg_state[r + i]   the same of a ring that begins at r; rings of segments have SLOTS places, a power of two

Times are ns, sizes bytes, sequence numbers count full segments. A packet's free place is kept in a stack.
"""

from __future__ import annotations

from typing import NamedTuple

from lab.engines.sim.jit import Floats, Ints

NS_PER_S = 1_000_000_000
NOTHING = -1
FOREVER = 1 << 60  # segments of a transfer that does not end

# w.g: the one row of things there is one of
(NOW, HEAP_COUNT, ORDER, FREE_COUNT, SLOTS, HOST_NOISE_NS, BALIA_DECREASE, OLIA_METRIC, PENALISES, EXPECTS_BY_WINDOW,
 IN_BEARERS, G_FIELDS) = range(12)  # fmt: skip
KERNEL, DRAFT = range(2)  # BALIA_DECREASE, OLIA_METRIC

# w.hop: one direction of a link, of a WiFi station's air, or an LTE bearer
WIRE, AIR_DOWN, AIR_UP, BEARER = range(4)
HOP_FIELDS = 32
(KIND, UP, RATE_BPS, DELAY_NS, JITTER_NS, LOSS_PPM, FREE_NS, LAST_OUT_NS, QUEUE, QUEUE_SIZE, QUEUE_HEAD, QUEUE_COUNT,
 PRICE_PS, CELL, METERED, HEAD_BITS, IN_PACKETS, IN_BYTES, OUT_PACKETS, OUT_BYTES, DROPS, DROPPED_BYTES,
 CHANCE_1, CHANCE_2, METER_DROPS, METER_PASSED_BYTES, FIXED_NS, AIR,
 WEIGHT_PPM, AIR_NS, MEAN_AIR, NEXT_BEARER) = range(HOP_FIELDS)  # fmt: skip

# w.cell: the air of an access point, and the two meters of the switch in front of it. A hop's CELL is its access point, its
# AIR the one whose clock it is on; METERED is 0 or the number of its meter
CELL_FIELDS = 12
(NEXT_FREE_NS, UPLINK_FREE_NS, LIMIT_NS, DOWNLINK_AIRTIME_NS, BACKLOG, SENT_PPM, METER_BPS, METER_BURST_NS, METER_FULL_NS,
 _METER_2_BPS, _METER_2_BURST_NS, _METER_2_FULL_NS) = range(CELL_FIELDS)  # fmt: skip
METER_FIELDS = 3
TIER_2_METER, DEMAND_METER = 1, 2  # METERED

# w.lte: one direction of an LTE cell, the AIR of its bearers. AGAIN is a ring in w.queue: air of TTIs to come [ns]
LTE_FIELDS = 9
FIRST_BEARER, AWAKE, LAST_TTI, AGAIN, AGAIN_SIZE, BLOCK_ERROR_PPM, HARQ_TTIS, ATTEMPTS, GOES_UP = range(LTE_FIELDS)

# w.packet: what is under way
PACKET_FIELDS = 8
OF_SUBFLOW, PLACE, SIZE, IS_ACK, SEQ, DSN, TRANSMISSION, ARRIVALS = range(PACKET_FIELDS)
DATAGRAM = 2  # IS_ACK, beside 0 (a segment) and 1

# w.sub: a subflow, its sender and its receiver
SUB_FIELDS = 60
(STATE, OF_CONNECTION, LAW, DATA_ROUTE, ACK_ROUTE, RING, UNA, NXT, END, PIPE, LOST, HINT, TRANSMISSIONS, SCANNED,
 MODE, RECOVER, SRTT_NS, RTTVAR_NS, RTO_NS, BACKOFF, TIMER_NS, TIMER_EVENT_NS, LAST_SENT_NS, RCV_NXT, HELD, UNACKED,
 DELACK_NS, DELACK_EVENT_NS, DATA_SEEN, SEGMENTS_SENT, SEGMENTS_AGAIN, SEGMENTS_LOST, SEGMENTS_IN, LATE_IN,
 NOISE_1, NOISE_2, EPOCH_NS, TIMEOUTS, DROPPED, BACKUP, ASKED_BACKUP, EXPECTED_BPS, PACED_NS,
 BASE_RTT_NS, ROUND_END, ROUND_BEGAN_NS, ROUND_SUM_NS, ROUND_LEAST_NS, ROUND_SAMPLES,
 PACE_BYTES, SEND_BUFFER, ACKS_IN, ACKS_SEEN, SILENT, STALE, COPIED, PENALISED_NS,
 LIMITED, MOST_OUT, USED_UNTIL) = range(SUB_FIELDS)  # fmt: skip
IDLE, JOINING, ESTABLISHED, CLOSED = range(4)  # STATE
OPEN, RECOVERY, TIMED_OUT = range(3)  # MODE
UNSENT, IN_FLIGHT, SACKED, TO_RESEND = range(4)  # w.seg_state; w.seg_got: as which of all it arrived, 0 if it has not

# w.window: the floating-point half of a subflow's row; the rest belongs to the law that runs
CWND, SSTHRESH, LAW_1, LAW_2, LAW_3, LAW_4, LAW_5, LAW_6, HELD_BACK, QUEUE_BEFORE = range(10)

# w.conn: a connection, its application, its sender's and its receiver's half
CONN_FIELDS = 33
(CONN_STATE, FIRST, COUNT, SEGMENT_BYTES, FRAME_BYTES, ACK_BYTES, TOTAL, HANDED, NEXT_DSN, DATA_UNA, WINDOW, SCHEDULER, TURN,
 DEMAND_BPS, CREDIT, APP_EVENT_NS, DATA_NXT, BUFFERED, BUFFERED_MAX, DONE_NS, STARTED_NS, CONN_RING, AGAIN_HEAD, AGAIN_COUNT,
 REINJECTED, PUSH_DUE, VOLUME_BYTES, EARLY_IN, SEND_WINDOW, REINJECT_NS, REINJECT_EVENT_NS, OPPORTUNE_DSN,
 DATAGRAMS) = range(CONN_FIELDS)  # fmt: skip
RUNNING = 1  # CONN_STATE, beside IDLE and CLOSED
LOWEST_RTT, ROUND_ROBIN, LINUX, REDUNDANT = range(4)  # SCHEDULER
BACKUP_RANK = 1 << 50  # of a backup in any order of subflows: behind all times [ns] of others
UNLIMITED = -1  # DEMAND_BPS

# kinds of events; an event is (row of its entity) * EVENT_KINDS + kind
EVENT_KINDS = 9
ARRIVES, TTI_DUE, RTO_DUE, DELACK_DUE, JOINED, APP_DUE, PUSH, PRIORITY, REINJECT_DUE = range(EVENT_KINDS)


class World(NamedTuple):
    """Every table of a run."""

    g: Ints
    heap_at: Ints
    heap_order: Ints
    heap_what: Ints
    hop: Ints
    cell: Ints
    lte: Ints
    queue: Ints
    route: Ints
    packet: Ints
    free: Ints
    sub: Ints
    window: Floats
    seg_state: Ints
    seg_dsn: Ints
    seg_sent: Ints
    sent_seq: Ints
    sent_ns: Ints
    seg_got: Ints
    conn: Ints
    dsn_got: Ints
    again: Ints
