"""The state of a simulated network: its records, and the terms of the core.

- World: everything that exists once. Each function that schedules events or makes packets gets it.
- Hop: one direction of a link, of a WiFi station's channel, or of an LTE bearer (the queue of one
  station). A route is a chain of steps, one for each hop; the hop of the last step has kind END.
- Ring: a list in which entry n is at index n modulo its size, where it replaces an older entry.
- Stand-in: a field that refers to no packet, hop, subflow or contender holds `w.no_packet`,
  `w.no_hop`, `w.no_subflow` or `w.no_contender`, so that no field is ever empty.

Variables have the same names in all modules: w is the world, s a subflow, r another subflow of the
same connection, c a connection, h a hop, p a packet, e an event. Records are compared with `==`.

Times are in ns, sizes in bytes, rates in bit/s. Sequence numbers count full segments, from 0. A
fraction in ppm is in millionths. A field `is_...` is 0 or 1.
"""

from __future__ import annotations

from lab.engines.sim.core.jit import jit, record

NS_PER_S = 1_000_000_000
MILLION = 1_000_000
FOREVER = 1 << 60  # a time or a number of segments that is never reached
UNLIMITED, AS_ASKED = -1, -2  # Connection.demand_bps
NOTHING = -1  # no segment, no transmission
BACKUP_RANK = 1 << 50  # ranks a backup behind all other subflows, whose ranks are times in ns

WIRE, AIR_DOWN, AIR_UP, BEARER, END, MANAGED, DCF_DOWN, DCF_UP = range(8)  # Hop.kind
CODEL, FQ_CODEL, RED, TAIL = range(4)  # Queue.kind
NOT_ECT, ECT, CE = range(3)  # Packet.ecn (RFC 3168)
TIER_2_METER, DEMAND_METER = 1, 2  # Hop.metered
SEGMENT, ACK, DATAGRAM = range(3)  # Packet.kind; the others open a subflow, see `handshake`
SYN, SYN_ACK, THIRD_ACK, REQUEST, CONFIRMATION = range(3, 8)
ADD_ADDR, ADD_ADDR_ECHO = range(8, 10)  # see `announcements`
ASK, ASK_CONFIRMATION = range(10, 12)  # see `exchanges`
IDLE, OPENING, ESTABLISHED, CLOSED = range(4)  # Subflow.state, Connection.state
SYN_SENT, ANSWERED, CONFIRMED = range(1, 4)  # Subflow.client, besides IDLE
SYN_RECEIVED, ACCEPTED = range(1, 3)  # Subflow.server, besides IDLE
OPEN, RECOVERY, TIMED_OUT, REDUCED = range(4)  # Subflow.mode
RTO, PROBE, REORDERING = range(3)  # Subflow.timer_is_for
UNSENT, IN_FLIGHT, SACKED, LOST = range(4)  # Segment.state
LOWEST_RTT, ROUND_ROBIN, LINUX, REDUNDANT = range(4)  # Connection.scheduler
KERNEL, DRAFT = range(2)  # Connection.balia_decrease, Connection.olia_metric

ARRIVAL, LINE = range(2)  # Event.kind: of one packet; of the first packet of a line
TTI_DUE = 2  # of one direction of an LTE cell
RTO_DUE, DELACK_DUE, CLIENT_DUE, SERVER_DUE, PRIORITY, REMOVAL = range(3, 9)  # of a subflow
APP_DUE, PUSH, REINJECT_DUE = range(9, 12)  # of a connection
SENT = 12  # of a queue: a transmission ends
ASK_DUE = 13  # of a connection
ACCESS_DUE = 14  # to a channel with DCF
ADDRESS_DUE = 15  # of a connection


@record
class World:
    now_ns: int
    host_noise_ns: int  # a host sends up to this much later than it could
    heap: list[Due]
    heap_size: int  # events for which the heap has space
    heap_count: int
    events_scheduled: int
    free_packet: Packet  # the first of a chain
    free_packets: int
    packets_in_bearers: int
    halted_by: int  # the number of an application that is to act now; 0: none
    no_packet: Packet
    no_hop: Hop
    no_subflow: Subflow
    no_contender: Contender
    end: Step  # of every route


# --- events


@record
class Due:
    """An entry of the heap: when an event is due."""

    at_ns: int
    order: int  # events that were scheduled before it
    event: Event


@record
class Event:
    """Something that happens to one entity. It is made with its entity, and scheduled often.

    A line is an event that stands for the arrivals of all packets on their way from one place: its
    entry of the heap is about the first of them. A timer is an event that may be postponed.
    """

    kind: int
    first: Packet  # of a line, or w.no_packet; of ARRIVAL and SENT, the packet
    last: Packet
    expires_ns: int  # timer: when it expires; 0: it is stopped
    due_ns: int  # timer: when its entry of the heap is due; 0: there is none
    subflow: Subflow
    connection: Connection
    direction: Direction
    air: Air


@record
class Stream:
    """The state of a stream of random numbers, see `random_numbers`."""

    first: int
    second: int


# --- the network


@record
class Hop:
    kind: int
    is_up: int
    cell: Cell  # of its access point
    channel: Cell  # WiFi: whose channel it uses
    direction: Direction  # LTE
    rate_bps: int
    delay_ns: int
    jitter_ns: int
    loss_ppm: int  # with bursts, the mean
    bursts: Bursts
    has_bursts: int
    reorder_ppm: int
    duplicate_ppm: int
    queue: list[int]  # a ring of times when packets have left, see `links.queue_length`
    packets: list[Waiting]  # LTE: a ring of waiting packets
    queue_size: int
    queue_head: int
    queue_count: int
    busy_until_ns: int  # the end of the last transmission
    last_out_ns: int  # when the last packet leaves
    random: Stream
    line: Event  # packets on their way to the next hop
    in_packets: int
    in_bytes: int
    out_packets: int
    out_bytes: int
    drops: int
    dropped_bytes: int
    metered: int  # 0, or the number of its cell's meter
    meter_drops: int
    meter_passed_bytes: int
    frame_airtime_ns: int  # WiFi: airtime of a frame, plus airtime per byte
    byte_airtime_ps: int
    next_bearer: Hop  # LTE; w.no_hop after the last
    weight_ppm: int
    head_sent_bits: int  # of the first packet
    airtime_ns: int  # in this TTI
    mean_airtime: int  # see `lte`
    managed: Queue  # of a MANAGED link, or of a bearer
    has_managed: int  # LTE: the bearer has this queue instead of `packets`
    contender: Contender  # DCF: who sends
    symbol_microbits: int  # DCF: bits in an OFDM symbol, in millionths
    answer_ns: int  # DCF: SIFS and acknowledgement of a frame,
    block_answer_ns: int  # and of an A-MPDU


@record
class Bursts:
    """The model of Gilbert and Elliott (`lab.topologies.bursts`)."""

    begin_ppm: int
    end_ppm: int
    good_ppm: int
    bad_ppm: int
    is_bad: int


@record
class Queue:
    """The queue of a link that drops or marks packets before it is full, see `queues`."""

    kind: int
    limit: int  # packets
    count: int  # packets, without the one in transmission
    size_bytes: int
    is_marking: int
    marked: int  # packets
    sent: Event  # its `first` is the packet in transmission, or w.no_packet
    target_ns: int  # CoDel
    interval_ns: int
    flows: list[FlowQueue]  # one, or with FQ_CODEL by `Subflow.flow_hash`
    new_flows: FlowList
    old_flows: FlowList
    min_bytes: int  # RED
    max_bytes: int
    weight_log: int  # a packet counts 1 / 2^weight_log of the average
    scaled_average: int  # bytes << weight_log
    span: int  # (max - min) / probability
    since_mark: int  # packets; -1: the average was below the minimum or above the maximum
    gap: int  # random number, which decides about the next mark
    idle_since_ns: int  # 0: it is not empty


@record
class FlowQueue:
    """The packets of one flow in a queue, and the state of CoDel for it."""

    first: Packet  # without a meaning if `count` is 0
    last: Packet
    count: int
    size_bytes: int
    first_above_ns: int  # from then on packets are dropped if none waits less; 0: one did
    is_dropping: int
    drop_next_ns: int
    signals: int  # packets dropped or marked since CoDel began to drop
    last_signals: int  # their number then
    is_listed: int
    next: int  # the number of the next flow in its list
    deficit: int  # bytes that it may still send in this turn


@record
class FlowList:
    """A list of flows by their numbers. NOTHING: it is empty."""

    first: int
    last: int


@record
class Waiting:
    """An entry of the queue of a bearer."""

    packet: Packet


@record
class Cell:
    """The channel of an access point, and the two meters of the switch in front of it."""

    downlink_busy_until_ns: int
    uplink_busy_until_ns: int
    max_wait_ns: int  # the access point's buffer, as airtime
    downlink_airtime_ns: int  # of the last frame sent down
    backlog: int  # downlink packets that wait or are in transmission
    transmissions_ppm: int  # how often a frame is sent on average, because of collisions
    meters: list[Meter]  # meter number n is at index n - 1
    air: Air  # DCF


@record
class Air:
    """The channel of WiFi cells with DCF, see `dcf`."""

    first: Contender  # of those with a frame
    access: Event
    busy_until_ns: int  # the end of the last frame, with its acknowledgement
    counts_from_ns: int  # from then on slots are counted
    slots: int  # idle ones before
    slot_ns: int  # constants, see `lab.radio.dcf`
    access_ns: int
    timeout_ns: int
    preamble_ns: int
    symbol_ns: int
    longest_ns: int
    mac_bytes: int
    aggregated: int


@record
class Contender:
    """A node that sends on a channel with DCF: an access point or a station. Those that have a
    frame are chained by `next` and `before`."""

    air: Air
    next: Contender
    before: Contender
    random: Stream
    first: Packet  # of its queue; without a meaning if `count` is 0
    last: Packet
    count: int
    limit: int  # packets
    window: int  # CW
    losses: int  # of the first frame, in collisions
    turn: int  # it sends when the channel has been idle for so many slots
    timeout_slots: int  # of a collider: slots of its turn in which it waits for an answer
    is_sending: int
    frames: int  # that it sends or has sent at once,
    airtime_ns: int  # and how long they take
    sent_until_ns: int  # the end of its last successful transmission


@record
class Meter:
    rate_bps: int
    burst_ns: int
    full_ns: int  # when its bucket will be full


@record
class Direction:
    """One direction of an LTE cell."""

    first_bearer: Hop
    is_uplink: int
    is_awake: int  # its next TTI is scheduled
    last_tti: int  # that it served
    harq: list[int]  # a ring: airtime of retransmissions in the next TTIs, in ns
    harq_size: int
    block_error_ppm: int
    harq_ttis: int
    attempts: int
    tti: Event


@record
class Step:
    """A hop of a route, and how the route goes on."""

    hop: Hop
    next: Step
    before: Step  # of the first hop: a step without a hop


@record
class Packet:
    """A packet in flight. `next` chains free packets, and the packets of a line."""

    subflow: Subflow  # of a free packet w.no_subflow
    kind: int
    size: int
    step: Step  # its next hop
    next: Packet
    due_ns: int  # of a packet in a line: when it arrives,
    order: int  # and how many events were scheduled before
    arrival: Event  # if it arrives before another packet of its line
    wire: Hop  # the last link that it entered,
    departs_ns: int  # when its transmission there ends,
    out_ns: int  # and when it is at the other end
    queued_ns: int  # when it entered a managed queue
    ecn: int
    echo: int  # of a segment: CWR; of an acknowledgement: ECE (RFC 3168)
    seq: int  # of a segment; of an acknowledgement, what the receiver expects next
    dsn: int  # data sequence number or data acknowledgement (RFC 8684)
    stamp_ns: int  # of a datagram: when it was sent; of a packet that opens a subflow: the same
    # (RFC 7323, TSval),
    echo_ns: int  # and the stamp that it answers (TSecr)
    transmission: int  # its number in the subflow; of an acknowledgement, the number of its cause
    segments_so_far: int  # acknowledgement: segments that the receiver has got
    window_end: int  # acknowledgement: the end of the receive window, see `receiver.window_end`


# --- a subflow, its sender and its receiver


@record
class Subflow:
    state: int  # of the sender's end
    number: int  # in its connection, from 0
    announced: int  # the address of the server that the client waits for; 0: it knows it
    connection: Connection
    law_number: int  # see `congestion.number`
    backup: int
    requested_backup: int
    data_route: Step
    ack_route: Step
    segments: list[Segment]  # rings
    transmissions_sent: list[Transmission]
    ring_size: int  # a power of two
    # sender: RFC 9293, section 3.3.1
    snd_una: int
    snd_nxt: int
    write_seq: int  # one past the last segment it was given
    # loss detection: RFC 6675 (pipe), RFC 8985 (order of transmissions)
    pipe: int
    lost: int
    lost_hint: int
    transmissions: int
    loss_scanned: int
    mode: int
    recover: int  # RFC 6582
    cwnd: float
    ssthresh: float
    cwnd_before: float  # the last recovery or timeout
    ssthresh_before: float
    # RFC 9937, see `window_reduction`
    reduced_cwnd: float
    reduction_from: int  # the window before it
    reduction_delivered: int  # segments, since it began
    reduction_sent: int
    # reordering: RFC 8985, see `reordering`
    is_reordering: int  # it was seen
    newest_arrived: int  # the transmission with the largest number that is known to have arrived
    latest_rtt_ns: int
    arrivals_known: int  # the largest `Packet.segments_so_far`
    reorder_steps: int  # the window, in quarters of the smallest RTT
    reorder_steps_since: int  # `transmissions` when it was enlarged
    reorder_recoveries: int  # for which it keeps this size
    duplicates_reported: int
    losses_to_prove: int  # segments that count as lost in this recovery, unless they were only late
    # round-trip time: RFC 6298
    srtt_ns: int
    rttvar_ns: int
    rto_ns: int
    backoff: int
    rtt_deviation_ns: int
    largest_deviation_ns: int
    rtt_round_end: int
    timer: Event
    timer_is_for: int
    probe_end: int  # snd_nxt after the probe
    probe_transmission: int  # its number if it repeats a segment
    sent_before_timeout: int  # smaller transmissions are older than the timeout; 0: not undone
    last_sent_ns: int
    paced_until_ns: int
    expected_bps: int
    host_random: Stream
    host_line: Event  # packets on their way out of the sending host
    # RFC 7661, as Linux's tcp_cwnd_validate
    cwnd_limited: int
    max_packets_out: int
    cwnd_usage_seq: int
    # the current round trip
    base_rtt_ns: int
    round_end: int
    round_start_ns: int
    round_rtt_sum_ns: int
    round_min_rtt_ns: int
    round_samples: int
    # the congestion control in use
    law: LawState
    bbr: Bbr
    dctcp: Dctcp
    is_rate_based: int  # it sets window and pacing rate at each acknowledgement, see `delivery`
    delivery: Delivery
    pacing_rate: float  # segments/s; 0: it sets none
    paced_burst: int  # segments that may still leave at once,
    paced_burst_ns: int  # if it is still this time
    epoch_ns: int  # RFC 9438
    growth_divisor: float  # see `expected_rate`
    last_round_queue: float
    # receiver
    rcv_nxt: int
    out_of_order_held: int
    unacked: int
    last_transmission: int
    delack: Event
    ack_line: Event  # acknowledgements on their way out of the receiving host
    quick_acks: int
    last_received_ns: int
    receiver_rto_ns: int
    # counters
    segments_sent: int
    segments_retransmitted: int
    segments_lost: int
    segments_dropped: int
    segments_dropped_first: int  # those that the sender's own link dropped
    timeouts: int
    segments_received: int
    segments_out_of_order: int
    # Linux's scheduler, see `linux_scheduler`
    mean_pacing_rate: int  # bytes/s
    sndbuf_bytes: int
    acks_received: int
    acks_at_check: int
    stale_count: int
    is_stale: int
    redundant_nxt: int  # redundant scheduler: one past the last data segment that it sent
    penalised_ns: int  # when its window was last halved for a faster subflow
    priority: Event
    removal: Event
    # how it is opened, see `handshake`
    client: int
    client_timer: Event
    client_tries: int  # how often the packet was sent that is to be answered
    client_rtt_ns: int
    client_echo_ns: int  # the stamp of the last packet of the handshake that arrived
    server: int
    server_timer: Event
    server_tries: int
    server_echo_ns: int
    flow_hash: int  # in queues that tell flows apart
    # RFC 3168, see `ecn`
    is_echoing: int
    is_cwr_due: int


@record
class LawState:
    """What a congestion control remembers of a subflow. All is 0 when another one takes over."""

    # Cubic
    w_max: float
    k_s: float
    w_est: float
    prior_cwnd: float
    train_ns: float
    # OLIA
    loss_seq: float  # snd_una at the last loss
    between_losses: float  # segments acknowledged between the last two losses
    # wVegas
    alpha: float
    rate: float
    min_queue_ns: float
    # a congestion control of one's own
    own_1: float
    own_2: float
    own_3: float
    own_4: float
    own_5: float
    own_6: float


@record
class Delivery:
    """What a sender knows about the rate at which its segments are delivered, see `delivery`."""

    delivered: int  # segments
    delivered_ns: int  # when the last acknowledgement was received
    first_sent_ns: int  # when the segment was sent that it acknowledged
    app_limited: int  # when so many are delivered, the sample is not limited any more; 0: it is not
    # the sample of the present acknowledgement
    in_flight_before: int
    number: int  # the transmission that it is of; NOTHING: none
    prior_delivered: int
    prior_ns: int
    is_app_limited: int
    acked: int
    lost: int
    count: int  # segments delivered during
    interval_ns: int  # this time; 0: it is not valid
    rtt_ns: int
    is_delayed: int  # the receiver may have waited before it sent the acknowledgement


@record
class Bbr:
    """What BBR remembers of a subflow, see `laws.bbr`."""

    phase: int
    # rounds
    rounds: int
    next_round: int  # segments delivered
    starts_round: int
    # the filter of the rate: samples [segments/s] and their rounds
    best_1: float
    best_2: float
    best_3: float
    best_1_round: int
    best_2_round: int
    best_3_round: int
    # the filter of the RTT
    min_rtt_ns: int
    min_rtt_at_ns: int
    probed_until_ns: int  # PROBE_RTT; 0: the queue is not empty yet
    has_probed_round: int
    # STARTUP
    is_full: int
    full_rate: float
    full_rounds: int
    # PROBE_BW
    cycle: int
    cycle_ns: int
    pacing_gain: float
    window_gain: float
    # the window during recovery
    mode_before: int  # Subflow.mode
    window_before: int
    is_conserving: int
    has_seen_rtt: int
    is_idle_restart: int
    # segments that arrive in bunches
    bunch_ns: int
    bunch: int
    extra_1: int
    extra_2: int
    extra_rounds: int
    extra_is_second: int
    # the policer, see `policer`
    policed_rate: float  # segments/s; 0: none
    is_policed: int  # the rate is used
    is_watching: int
    watched_ns: int  # since when
    watched_delivered: int  # Delivery.delivered then
    watched_lost: int  # Subflow.segments_lost then
    watched_rounds: int


@record
class Dctcp:
    """What DCTCP remembers of a subflow, see `laws.dctcp`."""

    alpha: int  # in 1/1024
    round_end: int  # SND_NXT when the round trip began
    # since then
    delivered: int
    marked: int


@record
class Segment:
    """An entry of a subflow's ring: what is known of segment n."""

    state: int
    dsn: int
    transmission: int  # the number of its last one
    arrival: int  # receiver: 1 for the first segment that arrived, 2 for the next; 0: none yet


@record
class Transmission:
    """An entry of a subflow's ring: transmission n."""

    seq: int
    sent_ns: int
    # what was known when it was sent, see `delivery`
    delivered: int
    delivered_ns: int  # 0: nothing
    first_sent_ns: int
    is_app_limited: int


# --- a connection, its application, its sender's and its receiver's half


@record
class Connection:
    state: int
    subflows: list[Subflow]
    count: int
    is_named: int  # by a packet or an event, see `reuse`
    scheduler: int
    is_datagrams: int
    segment_bytes: int  # payload of a segment
    frame_bytes: int  # on the wire
    ack_bytes: int
    is_mptcp: int
    is_upload: int  # 1: the client sends the data; 0: the server does
    # settings of the scenario
    balia_decrease: int
    olia_metric: int
    is_penalising: int
    is_expected_by_window: int
    is_ecn: int
    is_dctcp: int  # and so all of its packets are ECN-capable
    # application
    total_segments: int
    volume_bytes: int
    written: int  # one past the last segment that it has written
    demand_bps: int
    credit_bits: int
    app_event_ns: int
    started_ns: int
    done_ns: int
    app: Event
    # requests, see `exchanges`
    application: int  # its number, from 1; 0: the core never stops for it
    ask_bytes: int  # of the frame of a request
    asked: int
    ask_sent: int
    ask_confirmed: int
    ask_tries: int
    ask_timer: Event
    heard: int  # by the server
    asks_held: int  # bits: those that wait for the next one
    awaited: int  # data sequence number; 0: nothing
    # addresses of the server, see `announcements`; sets of them are bits
    addresses_due: int  # to be announced
    addresses_heard: int  # by the client
    announcing: int  # not confirmed; 0: none
    address_tries: int
    address_timer: Event
    # a call, see `udp`: datagrams that have arrived, until the engine takes them
    arrivals: int
    arrivals_size: int  # 0: it is no call
    arrival_numbers: list[int]
    arrival_delays_ns: list[int]
    # sender, in data sequence numbers (RFC 8684)
    data_snd_una: int
    data_snd_nxt: int
    send_window: int
    sender_window_end: int  # the end of the receive window, as far as the sender knows
    round_robin_next: int  # the number of the next subflow
    is_push_scheduled: int
    push: Event
    ring_size: int  # a power of two
    reinject_queue: list[int]  # a ring of data sequence numbers
    reinject_head: int
    reinject_count: int
    reinjected: int
    opportunistic_dsn: int
    reinject_timer: Event
    reinject_interval_ns: int
    # receiver
    received: list[int]  # a ring: 1 if the segment is in the reorder buffer
    data_rcv_nxt: int
    receive_window: int
    reorder_buffered: int
    reorder_buffered_max: int
    reorder_buffered_recent: int  # the most since the last sample
    data_out_of_order: int
    offered_window_end: int  # the end of the receive window that was offered last


@jit
def segment(s: Subflow, seq: int) -> Segment:
    return s.segments[seq & (s.ring_size - 1)]


@jit
def transmission(s: Subflow, number: int) -> Transmission:
    return s.transmissions_sent[number & (s.ring_size - 1)]
