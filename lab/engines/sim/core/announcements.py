"""The server of a connection announces its other addresses (ADD_ADDR; RFC 8684, section 3.4.1).

The number of an address is that of the server's interface; 0 is the address that the client knows.
The server announces one address at a time, from the third ACK of the first subflow on, over the
first subflow that is open. The client confirms it (echo), and opens its subflows to the address.
The next announcement follows the echo. Without an echo, it is repeated after 120 s, three times
(Linux, mptcp_pm_add_timer, net.mptcp.add_addr_timeout).
"""

from __future__ import annotations

from lab.engines.sim.core import events, links
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Connection, Subflow, World

REPEATED_AFTER_NS, MOST_REPEATS = 120_000_000_000, 3
# acknowledgements without payload: 66 bytes, and the option with IPv4 address and HMAC, or without
# HMAC (RFC 8684, figure 12)
ADD_ADDR_BYTES, ECHO_BYTES = 66 + 16, 66 + 8


@jit
def announce(w: World, c: Connection, number: int, now_ns: int) -> None:
    """Let the server announce an address, perhaps again."""
    c.addresses_due |= 1 << number
    c.addresses_heard &= ~(1 << number)
    begin(w, c, now_ns)


@jit
def begin(w: World, c: Connection, now_ns: int) -> None:
    """Let the server announce what is due, unless it waits for an echo, or for the third ACK."""
    if c.announcing == 0 and c.subflows[0].server == at.ACCEPTED:
        next_address(w, c, now_ns)


@jit
def next_address(w: World, c: Connection, now_ns: int) -> None:
    c.announcing, c.address_tries = 0, 0
    c.address_timer.expires_ns = 0
    number = 1
    while c.addresses_due >> number > 0:
        if c.addresses_due >> number & 1:
            c.addresses_due &= ~(1 << number)
            c.announcing = number
            say(w, c, now_ns)
            return
        number += 1


@jit
def say(w: World, c: Connection, now_ns: int) -> None:
    """Send the announcement, over the first subflow that is open at the server, if there is one."""
    c.address_tries += 1
    events.start_timer(w, c.address_timer, now_ns + REPEATED_AFTER_NS)
    for k in range(c.count):
        s = c.subflows[k]
        if s.server == at.ACCEPTED and s.state == at.ESTABLISHED:
            send(w, s, at.ADD_ADDR, c.announcing, now_ns)
            return


@jit
def send(w: World, s: Subflow, kind: int, number: int, now_ns: int) -> None:
    """Send the announcement of address `number`, or its echo, on subflow `s`."""
    from_server = kind == at.ADD_ADDR
    route, line = s.ack_route, s.ack_line
    if from_server == (s.connection.is_upload == 0):
        route, line = s.data_route, s.host_line
    p = links.new_packet(w, s, kind, route, ADD_ADDR_BYTES if from_server else ECHO_BYTES)
    p.seq = number
    links.forward(w, line, p, now_ns + 1, now_ns)


@jit
def on_address_due(w: World, c: Connection, now_ns: int) -> None:
    """Repeat the announcement that was not confirmed, or go on with the next one."""
    if not events.has_expired(w, c.address_timer, now_ns) or c.state == at.CLOSED or c.done_ns > 0:
        return
    if c.address_tries > MOST_REPEATS:
        next_address(w, c, now_ns)
    else:
        say(w, c, now_ns)


@jit
def on_echo(w: World, c: Connection, number: int, now_ns: int) -> None:
    if number == c.announcing:
        next_address(w, c, now_ns)
