"""What the packets' code works on: one flat table of integers. An entity is the place where its row begins.

    w.row[f + at.PIPE]      field PIPE of the subflow whose row begins at f; this module is imported as `at`
    w.window[f + at.CWND]   the floating-point half of the same row
    w.row[at.NOW]           a thing there is one of: that row begins at 0

What needs no floating-point numbers is given `row` alone. Times are ns, sizes bytes, sequence numbers count full segments. What has a place stays there; what is new comes behind.
"""

from __future__ import annotations

from typing import NamedTuple

from lab.engines.sim.core.jit import Floats, Ints

NS_PER_S = 1_000_000_000
NOTHING = -1
FOREVER = 1 << 60  # segments of a transfer that does not end

# what there is one of. FREE is the first of the free packets, USED the first place that belongs to nobody, HEAP the events
(NOW, HEAP, HEAP_SIZE, HEAP_COUNT, ASKED_FOR, FREE, FREE_COUNT, IN_BEARERS, SLOTS, USED, HOST_NOISE_NS,
 BALIA_DECREASE, OLIA_METRIC, PENALISES, EXPECTS_BY_WINDOW, ONES) = range(16)  # fmt: skip
KERNEL, DRAFT = range(2)  # BALIA_DECREASE, OLIA_METRIC

# a hop: one direction of a link, of a WiFi station's air, or an LTE bearer
WIRE, AIR_DOWN, AIR_UP, BEARER = range(4)
HOP_FIELDS = 32
(KIND, UP, RATE_BPS, DELAY_NS, JITTER_NS, LOSS_PPM, FREE_NS, LAST_OUT_NS, QUEUE, QUEUE_SIZE, QUEUE_HEAD, QUEUE_COUNT,
 PRICE_PS, CELL, METERED, HEAD_BITS, IN_PACKETS, IN_BYTES, OUT_PACKETS, OUT_BYTES, DROPS, DROPPED_BYTES,
 CHANCE_1, CHANCE_2, METER_DROPS, METER_PASSED_BYTES, FIXED_NS, AIR,
 WEIGHT_PPM, AIR_NS, MEAN_AIR, NEXT_BEARER) = range(HOP_FIELDS)  # fmt: skip

# a cell: the air of an access point, and the two meters of the switch in front of it. A hop's CELL is its access point, its
# AIR the one whose clock it is on; METERED is 0 or the number of its meter
CELL_FIELDS = 12
(NEXT_FREE_NS, UPLINK_FREE_NS, LIMIT_NS, DOWNLINK_AIRTIME_NS, BACKLOG, SENT_PPM, METER_BPS, METER_BURST_NS, METER_FULL_NS,
 _METER_2_BPS, _METER_2_BURST_NS, _METER_2_FULL_NS) = range(CELL_FIELDS)  # fmt: skip
METER_FIELDS = 3
TIER_2_METER, DEMAND_METER = 1, 2  # METERED

# one direction of an LTE cell, the AIR of its bearers. AGAIN is a ring: air of TTIs to come [ns]
LTE_FIELDS = 9
FIRST_BEARER, AWAKE, LAST_TTI, AGAIN, AGAIN_SIZE, BLOCK_ERROR_PPM, HARQ_TTIS, ATTEMPTS, GOES_UP = (
    range(LTE_FIELDS)
)

# a packet under way; PLACE is where on its route, which is a hop's place at each stop, and NOTHING at its end
PACKET_FIELDS = 8
OF_SUBFLOW, PLACE, SIZE, IS_ACK, SEQ, DSN, TRANSMISSION, ARRIVALS = range(PACKET_FIELDS)
NEXT_FREE = OF_SUBFLOW  # of a free one
DATAGRAM = 2  # IS_ACK, beside 0 (a segment) and 1

# a subflow, its sender and its receiver
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

# its floating-point half; the rest belongs to the law that runs
CWND, SSTHRESH, LAW_1, LAW_2, LAW_3, LAW_4, LAW_5, LAW_6, HELD_BACK, QUEUE_BEFORE = range(10)

# a connection, its application, its sender's and its receiver's half
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
ARRIVES, TTI_DUE, RTO_DUE, DELACK_DUE, JOINED, APP_DUE, PUSH, PRIORITY, REINJECT_DUE = range(
    EVENT_KINDS
)


class World(NamedTuple):
    """All of a run; two tables, because the compiler takes its time over each for every function they are given to."""

    row: Ints
    window: Floats
