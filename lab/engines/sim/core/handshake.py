"""Open the subflows of a connection with packets: the handshake of TCP (RFC 9293, section 3.5),
with the options of Multipath TCP (RFC 8684, sections 3.1 and 3.2).

The client is the user, the server is the server, whoever sends the data. The first subflow:

    client: SYN                                server: SYN/ACK
    client: third ACK; with a download it carries the request, which is repeated until the server is
            heard again. The client may send data now
    server: data may be sent when the third ACK has arrived or, of a download, the request

A further subflow (MP_JOIN) is opened when the client has heard the server once more on the first
one (Linux, check_fully_established), so the first data waits for no further subflow. Those to an
address of the server that the client does not know wait until it is announced (`announcements`):

    client: SYN                                server: SYN/ACK
    client: third ACK, repeated until it is    server: fourth ACK. The server may send data now
            confirmed. The client may send
            data when the fourth ACK is here

A sender whose application has closed its side refuses it (Linux, mptcp_is_fully_established). If
this is the client, it sends all again that is not acknowledged (Linux, __mptcp_close_ssk).

A SYN is repeated after 1 s, 3 s, 7 s and so on, and given up after 127 s; a SYN/ACK is given up
after 63 s (RFC 6298; Linux, tcp_syn_retries). All packets use the usual routes and queues.
"""

from __future__ import annotations

from lab.engines.sim.core import (
    announcements,
    application,
    congestion,
    events,
    links,
    linux_scheduler,
    round_trips,
)
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Connection, Packet, Subflow, World

FIRST_RTO_NS = 1_000_000_000  # RFC 6298, (2.1)
RTO_MAX_NS = 120_000_000_000  # Linux, TCP_RTO_MAX
SYN_TRIES, SYN_ACK_TRIES = 7, 6  # the first one and its repetitions
REQUEST_BYTES = 300  # what the programs of the emulation send to start a download
# Ethernet frames: headers of 14 + 20 + 20 bytes, then the options of a SYN (20: MSS, SACK, time
# stamps, window scale) or of other packets (12: time stamps), as Linux sends them
SYN_BYTES, PLAIN_BYTES = 74, 66
# the options MP_CAPABLE and MP_JOIN (RFC 8684, figures 4 to 8), and a data sequence signal
CAPABLE_SYN, CAPABLE_SYN_ACK, CAPABLE_ACK, CAPABLE_DATA = 4, 12, 20, 24
JOIN_SYN, JOIN_SYN_ACK, JOIN_ACK, DATA_ACK = 12, 16, 24, 12


@jit
def option_bytes(is_join: bool, kind: int) -> int:
    """Return the length of the options of Multipath TCP in a packet of a handshake."""
    if kind == at.SYN:
        return JOIN_SYN if is_join else CAPABLE_SYN
    if kind == at.SYN_ACK:
        return JOIN_SYN_ACK if is_join else CAPABLE_SYN_ACK
    if kind == at.THIRD_ACK:
        return JOIN_ACK if is_join else CAPABLE_ACK
    return CAPABLE_DATA if kind == at.REQUEST else DATA_ACK


@jit
def frame_bytes(s: Subflow, kind: int) -> int:
    size = SYN_BYTES if kind == at.SYN or kind == at.SYN_ACK else PLAIN_BYTES
    size += REQUEST_BYTES if kind == at.REQUEST else 0
    if s.connection.is_mptcp == 1:
        size += option_bytes(s.number > 0, kind)
    return size


@jit
def send(w: World, s: Subflow, kind: int, now_ns: int) -> None:
    """Send a packet of the handshake of subflow `s`."""
    from_server = kind == at.SYN_ACK or kind == at.CONFIRMATION
    from_sender = from_server == (s.connection.is_upload == 0)
    route, line = s.ack_route, s.ack_line
    if from_sender:
        route, line = s.data_route, s.host_line
    p = links.new_packet(w, s, kind, route, frame_bytes(s, kind))
    p.stamp_ns = now_ns
    p.echo_ns = s.server_echo_ns if from_server else s.client_echo_ns
    links.forward(w, line, p, now_ns + 1, now_ns)


@jit
def establish(w: World, s: Subflow, now_ns: int) -> None:
    """Let the sender of subflow `s` send data from now on."""
    c = s.connection
    s.state = at.ESTABLISHED
    congestion.begin(s, now_ns)
    if c.state == at.OPENING:
        c.state = at.ESTABLISHED
        application.restart(w, c, now_ns)
    else:
        events.schedule(w, now_ns, c.push)


# --- the client


@jit
def begin(w: World, s: Subflow, now_ns: int) -> None:
    """Let the client send the first SYN of subflow `s` now, in an event of its own."""
    s.state = at.OPENING
    events.start_timer(w, s.client_timer, now_ns + 1)


@jit
def on_client_due(w: World, s: Subflow, now_ns: int) -> None:
    """Let the client send the packet again for which it waits for an answer."""
    if not events.has_expired(w, s.client_timer, now_ns) or is_over(s):
        return
    tries = s.client_tries
    s.client_tries = tries + 1
    if s.client <= at.SYN_SENT:
        if tries == SYN_TRIES:
            s.state = at.CLOSED
            return
        s.client = at.SYN_SENT
        send(w, s, at.SYN, now_ns)
        wait_ns = FIRST_RTO_NS << tries
    elif s.number == 0:
        send(w, s, at.REQUEST, now_ns)
        wait_ns = min(round_trips.first_rto_ns(s.client_rtt_ns) << min(tries, 10), RTO_MAX_NS)
    else:
        send(w, s, at.THIRD_ACK, now_ns)
        wait_ns = 2 * s.client_rtt_ns  # Linux, schedule_3rdack_retransmission
    events.start_timer(w, s.client_timer, now_ns + wait_ns)


@jit
def on_syn_ack(w: World, s: Subflow, p: Packet, now_ns: int) -> None:
    """Handle a SYN/ACK at the client of subflow `s`."""
    s.client_echo_ns = p.stamp_ns
    c = s.connection
    if c.is_upload == 1 and refuses(s):
        linux_scheduler.reinject_everything(c)
        events.schedule(w, now_ns, c.push)
        return
    if s.client != at.SYN_SENT:
        send(w, s, at.THIRD_ACK, now_ns)  # the first one was lost
        return
    round_trips.take_handshake(s, True, s.client_tries, now_ns - p.echo_ns)
    s.client, s.client_tries = at.ANSWERED, 0
    s.client_timer.expires_ns = 0
    if s.number > 0 or c.is_upload == 0:
        events.start_timer(w, s.client_timer, now_ns)  # sends the request or the third ACK
        return
    send(w, s, at.THIRD_ACK, now_ns)
    establish(w, s, now_ns)


@jit
def confirm(w: World, s: Subflow, now_ns: int) -> None:
    """Note that the client has heard the server after the handshake of subflow `s`."""
    s.client = at.CONFIRMED
    s.client_timer.expires_ns = 0
    c = s.connection
    if s.number == 0:
        open_others(w, c, now_ns)
    elif s.state == at.OPENING and c.is_upload == 1:
        establish(w, s, now_ns)


@jit
def open_others(w: World, c: Connection, now_ns: int) -> None:
    """Open the further subflows to addresses that the client knows and that were not removed."""
    for k in range(1, c.count):
        s = c.subflows[k]
        is_known = s.announced == 0 or c.addresses_heard >> s.announced & 1 == 1
        if s.state == at.IDLE and is_known:
            begin(w, s, now_ns)


@jit
def on_announcement(w: World, s: Subflow, number: int, now_ns: int) -> None:
    """Handle the announcement of an address at the client of subflow `s`."""
    c = s.connection
    c.addresses_heard |= 1 << number
    announcements.send(w, s, at.ADD_ADDR_ECHO, number, now_ns)
    if s.client == at.ANSWERED:
        confirm(w, s, now_ns)
    if c.subflows[0].client == at.CONFIRMED:
        open_others(w, c, now_ns)


# --- the server


@jit
def on_server_due(w: World, s: Subflow, now_ns: int) -> None:
    """Let the server repeat its SYN/ACK. After the last one, it forgets the SYN."""
    if not events.has_expired(w, s.server_timer, now_ns) or is_over(s):
        return
    if s.server_tries == SYN_ACK_TRIES:
        s.server, s.server_tries = at.IDLE, 0
        return
    answer(w, s, now_ns)


@jit
def answer(w: World, s: Subflow, now_ns: int) -> None:
    """Let the server send a SYN/ACK, and repeat it if no third ACK arrives."""
    send(w, s, at.SYN_ACK, now_ns)
    events.start_timer(w, s.server_timer, now_ns + (FIRST_RTO_NS << s.server_tries))
    s.server_tries += 1


@jit
def on_syn(w: World, s: Subflow, p: Packet, now_ns: int) -> None:
    """Handle a SYN at the server of subflow `s`."""
    if s.server == at.ACCEPTED:
        return
    s.server_echo_ns = p.stamp_ns
    if s.server == at.IDLE:
        s.server = at.SYN_RECEIVED
        answer(w, s, now_ns)
    else:
        send(w, s, at.SYN_ACK, now_ns)


@jit
def accept(s: Subflow) -> None:
    s.server = at.ACCEPTED
    s.server_timer.expires_ns = 0


@jit
def on_third_ack(w: World, s: Subflow, p: Packet, now_ns: int) -> None:
    """Handle a third ACK at the server of subflow `s`, with or without a request."""
    if s.connection.is_upload == 0 and refuses(s):
        return
    if s.server != at.ACCEPTED:
        accept(s)
        round_trips.take_handshake(s, False, s.server_tries, now_ns - p.echo_ns)
    s.server_echo_ns = p.stamp_ns
    starts = s.number > 0 or p.kind == at.REQUEST
    if starts and s.connection.is_upload == 0 and s.state == at.OPENING:
        establish(w, s, now_ns)
    if s.number > 0 or (p.kind == at.REQUEST and s.snd_una == 0):
        send(w, s, at.CONFIRMATION, now_ns)
    if s.connection.addresses_due > 0:
        announcements.begin(w, s.connection, now_ns)


# --- both


@jit
def is_over(s: Subflow) -> bool:
    """Return True if subflow `s` or its connection needs no handshake any more."""
    return s.state == at.CLOSED or s.connection.done_ns > 0


@jit
def refuses(s: Subflow) -> bool:
    """Close subflow `s` and return True if the sender opens no further subflow."""
    if s.number > 0 and s.state == at.OPENING and linux_scheduler.has_closed(s.connection):
        s.state = at.CLOSED
        s.client_timer.expires_ns = s.server_timer.expires_ns = 0
        return True
    return False


@jit
def hear(w: World, s: Subflow, kind: int, now_ns: int) -> None:
    """Note that a segment or an acknowledgement has arrived on subflow `s`, whose handshake has not
    ended at both ends. It stands for the last packet of the handshake."""
    at_client = (kind == at.SEGMENT) == (s.connection.is_upload == 0)
    if not at_client:
        accept(s)
        if s.connection.addresses_due > 0:
            announcements.begin(w, s.connection, now_ns)
    elif s.client == at.ANSWERED:
        confirm(w, s, now_ns)


@jit
def receive(w: World, p: Packet, now_ns: int) -> None:
    """Receive packet `p`, of a handshake or announcement, at the end of its route, and free it."""
    s, kind = p.subflow, p.kind
    if not is_over(s):
        if kind == at.SYN:
            on_syn(w, s, p, now_ns)
        elif kind == at.SYN_ACK:
            on_syn_ack(w, s, p, now_ns)
        elif kind == at.CONFIRMATION:
            if s.client == at.ANSWERED:
                confirm(w, s, now_ns)
        elif kind == at.ADD_ADDR:
            on_announcement(w, s, p.seq, now_ns)
        elif kind == at.ADD_ADDR_ECHO:
            announcements.on_echo(w, s.connection, p.seq, now_ns)
        else:
            on_third_ack(w, s, p, now_ns)
    links.free_packet(w, p)
