"""Requests of a client over an open connection, each of which asks the server for data.

A request is one packet; the engine counts those of a larger one. The client sends it over the
usable subflow with the lowest RTT, backups last. The server confirms each request; the client
repeats those that are not confirmed after the retransmission timeout, over the next subflow.
Requests that overtake others wait for them.

The core stops (`World.halted_by`) when the server has heard a request, and when the data that the
connection's application awaits has arrived. The engine then lets the application act.
"""

from __future__ import annotations

from lab.engines.sim.core import events, links
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Connection, Packet, Subflow, World

MOST_AHEAD = 62  # requests that wait for an earlier one; the bits of `asks_held`
MOST_DOUBLINGS = 10
RTO_MIN_NS = 200_000_000  # Linux, TCP_RTO_MIN


@jit
def usable_subflow(w: World, c: Connection, turn: int) -> Subflow:
    """Return the subflow for the next request, or no subflow if none is usable. `turn` counts
    repetitions: each takes the next usable subflow."""
    usable, best, best_rank = 0, w.no_subflow, at.FOREVER
    for k in range(c.count):
        s = c.subflows[k]
        if s.state == at.ESTABLISHED and s.client == at.CONFIRMED:
            usable += 1
            rank = s.backup * at.BACKUP_RANK + s.srtt_ns
            if rank < best_rank:
                best, best_rank = s, rank
    if usable < 2 or turn == 0:
        return best
    left = turn % usable
    for k in range(c.count):
        s = c.subflows[(best.number + k) % c.count]
        if s.state == at.ESTABLISHED and s.client == at.CONFIRMED:
            if left == 0:
                return s
            left -= 1
    return best


@jit
def ask(w: World, c: Connection, now_ns: int) -> None:
    """Let the client of connection `c` send one more request, in an event of its own."""
    c.asked += 1
    c.ask_tries = 0
    events.start_timer(w, c.ask_timer, now_ns + 1)


@jit
def on_ask_due(w: World, c: Connection, now_ns: int) -> None:
    """Send the requests of connection `c` that are new or, if there are none, repeat those that are
    not confirmed."""
    if not events.has_expired(w, c.ask_timer, now_ns) or c.state != at.ESTABLISHED:
        return
    first = c.ask_sent if c.ask_sent < c.asked else c.ask_confirmed
    if first == c.ask_sent and c.ask_sent == c.asked:
        return
    s = usable_subflow(w, c, c.ask_tries)
    if s == w.no_subflow:
        events.start_timer(w, c.ask_timer, now_ns + RTO_MIN_NS)
        return
    for number in range(first, min(c.asked, first + MOST_AHEAD)):
        p = links.new_packet(w, s, at.ASK, s.ack_route, c.ask_bytes)
        p.seq = number
        links.forward(w, s.ack_line, p, now_ns + 1, now_ns)
    if first == c.ask_confirmed:
        c.ask_tries += 1
    c.ask_sent = max(c.ask_sent, min(c.asked, first + MOST_AHEAD))
    wait_ns = max(RTO_MIN_NS, s.receiver_rto_ns) << min(max(0, c.ask_tries - 1), MOST_DOUBLINGS)
    events.start_timer(w, c.ask_timer, now_ns + wait_ns)


@jit
def receive(w: World, p: Packet, now_ns: int) -> None:
    """Receive packet `p`, a request or its confirmation, at the end of its route, and free it."""
    s = p.subflow
    c = s.connection
    if c.state == at.ESTABLISHED and s.state == at.ESTABLISHED:
        if p.kind == at.ASK:
            hear(w, s, p.seq, now_ns)
        elif p.seq > c.ask_confirmed:
            c.ask_confirmed, c.ask_tries = p.seq, 0
            if c.ask_confirmed == c.asked:
                c.ask_timer.expires_ns = 0
    links.free_packet(w, p)


@jit
def hear(w: World, s: Subflow, number: int, now_ns: int) -> None:
    """Note that the server of subflow `s` has received a request, and confirm it."""
    c = s.connection
    ahead = number - c.heard
    if 0 <= ahead < MOST_AHEAD:
        c.asks_held |= 1 << ahead
    while c.asks_held & 1:
        c.asks_held >>= 1
        c.heard += 1
        w.halted_by = c.application
    p = links.new_packet(w, s, at.ASK_CONFIRMATION, s.data_route, c.ack_bytes)
    p.seq = c.heard
    links.forward(w, s.host_line, p, now_ns + 1, now_ns)
