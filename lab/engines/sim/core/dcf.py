"""The channel of WiFi cells with `air: dcf`, one event per access (IEEE 802.11-2016, section 10.3).

1) Contenders are the nodes that have a frame to send: stations, and access points, each of which is
   one contender with one queue. The smallest backoff ends the silence (10.3.4.3).
2) A frame that is alone arrives and is acknowledged. Frames that begin in the same slot are all
   lost. They take the time of the longest, and their senders wait for the acknowledgement in vain
   (10.3.2.9).
3) After a loss, the contention window is doubled, from 15 to 1023 slots; the seventh loss drops the
   frame. After a success it is 15 again, and a backoff follows even if no frame waits (10.3.4.3).
4) A backoff pauses while the channel is busy and goes on from where it was (10.3.4.3).
5) A frame that finds the channel idle, and no backoff running, is sent after a DIFS (10.3.4.2).
6) In 802.11n, frames to the same receiver are sent as one A-MPDU.

All nodes hear each other, and frames that collide are equally strong, so that no preamble can be
recognised: the others wait for a DIFS afterwards, not for an EIFS (10.3.2.3.7), as in ns-3.

The channel counts the slots in which it was idle. A contender knows the count at which it sends, so
its backoff needs no update. For colliders, that includes the time until they know of the loss, in
whole slots.
"""

from __future__ import annotations

from lab.engines.sim.core import events, links
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.random_numbers import random_below
from lab.engines.sim.core.state import Air, Contender, Hop, Packet, World

CW_MIN, CW_MAX = 15, 1023
ATTEMPTS = 7  # dot11ShortRetryLimit
SERVICE_BITS = 22  # service field and tail


@jit
def enter(w: World, h: Hop, p: Packet, now_ns: int) -> None:
    """Put packet `p` into the queue of the sender of hop `h`, or drop it. Packets from an access
    point must also pass its meter; the others do so when they arrive there."""
    n = h.contender
    is_down = h.kind == at.DCF_DOWN
    if (is_down and not links.passes_meter(h, p, now_ns)) or n.count >= n.limit:
        links.drop(w, h, p)
        return
    p.next = w.no_packet
    if n.count == 0:
        n.first = p
    else:
        n.last.next = p
    n.last = p
    n.count += 1
    if n.count == 1:
        begin(w, n, now_ns)


@jit
def begin(w: World, n: Contender, now_ns: int) -> None:
    """Let node `n`, which has a frame now, contend for its channel (4 and 5 of the module
    docstring)."""
    air = n.air
    if now_ns < air.busy_until_ns:
        if n.turn <= air.slots:
            n.turn = air.slots + backoff(n)
    elif air.first == w.no_contender and n.turn <= idle_slots(air, now_ns):
        air.slots = n.turn = idle_slots(air, now_ns)
        air.counts_from_ns = now_ns + air.access_ns
    else:
        waiting_ns = now_ns + air.access_ns - air.counts_from_ns
        n.turn = max(n.turn, air.slots + -(-waiting_ns // air.slot_ns))
    n.before = w.no_contender
    n.next = air.first
    air.first.before = n
    air.first = n
    due_ns = due(air, n)
    if air.access.expires_ns == 0 or due_ns < air.access.expires_ns:
        events.start_timer(w, air.access, due_ns)


@jit
def leave(w: World, n: Contender) -> None:
    """Let node `n`, which has no frame any more, contend no longer."""
    if n.before == w.no_contender:
        n.air.first = n.next
    else:
        n.before.next = n.next
    n.next.before = n.before


@jit
def backoff(n: Contender) -> int:
    return random_below(n.random, n.window + 1)


@jit
def idle_slots(air: Air, now_ns: int) -> int:
    """Return how many slots the channel has been idle."""
    return air.slots + max(0, now_ns - air.counts_from_ns) // air.slot_ns


@jit
def due(air: Air, n: Contender) -> int:
    """Return when node `n` sends if the channel stays idle."""
    return air.counts_from_ns + (n.turn - air.slots) * air.slot_ns


# --- one access


@jit
def on_access(w: World, air: Air, now_ns: int) -> None:
    """Let all nodes send whose backoff ends now."""
    if not events.has_expired(w, air.access, now_ns):
        return
    idle = (now_ns - air.counts_from_ns) // air.slot_ns
    air.slots += idle
    air.counts_from_ns = now_ns
    senders, longest_ns, sender = 0, 0, w.no_contender
    n = air.first
    while n != w.no_contender:
        following = n.next
        if n.turn > air.slots:
            n.turn -= max(0, n.timeout_slots - idle)
            n.timeout_slots = 0
        elif has_frame(w, n):
            prepare(w, n)
            senders += 1
            longest_ns = max(longest_ns, n.airtime_ns)
            sender = n
        n = following
    if senders == 1:
        succeed(w, sender, now_ns)
    elif senders > 1:
        collide(w, air, now_ns + longest_ns, now_ns)
    schedule(w, air)


@jit
def schedule(w: World, air: Air) -> None:
    """Schedule the next access to a channel, if any node has a frame."""
    air.access.expires_ns = 0
    n = air.first
    if n == w.no_contender:
        return
    turn = n.turn
    while n != w.no_contender:
        turn = min(turn, n.turn)
        n = n.next
    at_ns = air.counts_from_ns + (turn - air.slots) * air.slot_ns
    events.start_timer(w, air.access, at_ns)


@jit
def has_frame(w: World, n: Contender) -> bool:
    """Return True if node `n` has a frame for a station that is still there. Frames for others are
    dropped; if none is left, the node contends no longer."""
    while n.count > 0 and n.first.step.hop.is_up == 0:
        p = take_first(n)
        links.drop(w, p.step.hop, p)
    if n.count == 0:
        leave(w, n)
    return n.count > 0


@jit
def take_first(n: Contender) -> Packet:
    p = n.first
    n.first = p.next
    n.count -= 1
    return p


@jit
def prepare(w: World, n: Contender) -> None:
    """Decide how many frames node `n` sends, and how long they take: the first one and, in an
    A-MPDU, as many of the others with the same receiver as fit."""
    air, p = n.air, n.first
    h = p.step.hop
    n.is_sending, n.frames, n.timeout_slots = 1, 1, 0
    n.airtime_ns = duration_ns(air, h, p.size + air.mac_bytes)
    size = in_aggregate(air, p)
    while n.frames < air.aggregated and p != n.last:
        p = p.next
        if p.step.hop == h:
            size += in_aggregate(air, p)
            longer_ns = duration_ns(air, h, size)
            if longer_ns > air.longest_ns:
                break
            n.airtime_ns = longer_ns
            n.frames += 1


@jit
def in_aggregate(air: Air, p: Packet) -> int:
    """Return the bytes of a frame in an A-MPDU: with a delimiter, in words of 4 bytes."""
    return 4 + (p.size + air.mac_bytes + 3) // 4 * 4


@jit
def duration_ns(air: Air, h: Hop, size: int) -> int:
    microbits = (SERVICE_BITS + 8 * size) * at.MILLION
    return air.preamble_ns + -(-microbits // h.symbol_microbits) * air.symbol_ns


@jit
def succeed(w: World, n: Contender, now_ns: int) -> None:
    """Let the frames of node `n`, which sends alone, arrive."""
    air, h = n.air, n.first.step.hop
    arrived_ns = now_ns + n.airtime_ns
    answer_ns = h.answer_ns if n.frames == 1 else h.block_answer_ns
    air.busy_until_ns = n.sent_until_ns = arrived_ns + answer_ns
    air.counts_from_ns = air.busy_until_ns + air.access_ns
    for _ in range(n.frames):
        arrive(w, h, take_next(n, h), arrived_ns, now_ns)
    n.is_sending = n.losses = 0
    n.window = CW_MIN
    n.turn = air.slots + backoff(n)
    if n.count == 0:
        leave(w, n)


@jit
def take_next(n: Contender, h: Hop) -> Packet:
    """Remove the next frame over hop `h` from the queue of node `n`, and return it. There is
    one."""
    before = p = n.first
    if p.step.hop == h:
        return take_first(n)
    while p.step.hop != h:
        before, p = p, p.next
    before.next = p.next
    if p == n.last:
        n.last = before
    n.count -= 1
    return p


@jit
def arrive(w: World, h: Hop, p: Packet, arrived_ns: int, now_ns: int) -> None:
    if h.kind == at.DCF_UP and not links.passes_meter(h, p, arrived_ns):
        links.drop(w, h, p)
        return
    links.count_out(h, p)
    links.forward(w, h.line, p, arrived_ns, now_ns)


@jit
def collide(w: World, air: Air, end_ns: int, now_ns: int) -> None:
    """Let all nodes that send now lose their frames. The channel is busy until `end_ns`."""
    air.busy_until_ns = end_ns
    air.counts_from_ns = end_ns + air.access_ns
    n = air.first
    while n != w.no_contender:
        following = n.next
        if n.is_sending == 1:
            n.is_sending = 0
            after_ns = now_ns + n.airtime_ns + air.timeout_ns - end_ns
            n.timeout_slots = max(0, -(-after_ns // air.slot_ns))
            lose(w, n)
            n.turn = air.slots + n.timeout_slots + backoff(n)
            if n.count == 0:
                leave(w, n)
        n = following


@jit
def lose(w: World, n: Contender) -> None:
    """Double the contention window of node `n`. If it has lost its frames often enough, drop
    them."""
    n.losses += 1
    n.window = min(2 * n.window + 1, CW_MAX)
    if n.losses == ATTEMPTS:
        n.losses = 0
        n.window = CW_MIN
        h = n.first.step.hop
        for _ in range(n.frames):
            links.drop(w, h, take_next(n, h))
