"""The scheduled events, in a binary heap. They are ordered by time; events of the same time keep
the order in which they were scheduled.

Packets that arrive from the same place arrive in order. Such a line of packets has one entry of the
heap, for its first packet. A timer has few entries even if it is postponed often.
"""

from __future__ import annotations

from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import FOREVER, LINE, Event, Packet, World


@jit
def schedule(w: World, at_ns: int, e: Event) -> None:
    """Schedule event `e` for time `at_ns`."""
    n, order = w.heap_count, w.events_scheduled
    w.heap_count = n + 1
    w.events_scheduled = order + 1
    here = w.heap[n]
    while n > 0:
        n = (n - 1) >> 1
        parent = w.heap[n]
        if parent.at_ns <= at_ns:  # of equal times the earlier scheduled goes first
            break
        here.at_ns = parent.at_ns
        here.order = parent.order
        here.event = parent.event
        here = parent
    here.at_ns = at_ns
    here.order = order
    here.event = e


@jit
def next_ns(w: World) -> int:
    """Return the time of the earliest event in ns, or FOREVER if no event is scheduled."""
    return w.heap[0].at_ns if w.heap_count > 0 else FOREVER


@jit
def remove_first(w: World) -> None:
    """Remove the entry of the earliest event. At least one event must be scheduled."""
    w.heap_count -= 1
    last = w.heap[w.heap_count]
    replace_first(w, last.at_ns, last.order, last.event)


@jit
def replace_first(w: World, at_ns: int, order: int, e: Event) -> None:
    """Put an entry into the heap in place of the entry of the earliest event."""
    here, n, count = w.heap[0], 1, w.heap_count
    while n < count:
        child = w.heap[n]
        if n + 1 < count:
            right = w.heap[n + 1]
            if right.at_ns < child.at_ns or (
                right.at_ns == child.at_ns and right.order < child.order
            ):
                child, n = right, n + 1
        if at_ns < child.at_ns or (at_ns == child.at_ns and order < child.order):
            break
        here.at_ns = child.at_ns
        here.order = child.order
        here.event = child.event
        here, n = child, 2 * n + 1
    here.at_ns = at_ns
    here.order = order
    here.event = e


@jit
def restore_order(w: World) -> None:
    """Make a heap of the entries again, after some were removed and the others moved up."""
    for count in range(1, w.heap_count):
        n, here = count, w.heap[count]
        at_ns, order, e = here.at_ns, here.order, here.event
        while n > 0:
            n = (n - 1) >> 1
            parent = w.heap[n]
            if parent.at_ns < at_ns or (parent.at_ns == at_ns and parent.order < order):
                break
            here.at_ns = parent.at_ns
            here.order = parent.order
            here.event = parent.event
            here = parent
        here.at_ns = at_ns
        here.order = order
        here.event = e


# --- lines


@jit
def line_up(w: World, line: Event, at_ns: int, p: Packet) -> None:
    """Schedule the arrival of packet `p` at time `at_ns`, behind the other packets of `line`. If it
    arrives before the last of them, it gets an entry of its own."""
    if line.first == w.no_packet:
        line.first = p
        schedule(w, at_ns, line)
    else:
        last = line.last
        if at_ns < last.due_ns:
            schedule(w, at_ns, p.arrival)
            return
        last.next = p
        p.order = w.events_scheduled
        w.events_scheduled += 1
    line.last = p
    p.due_ns = at_ns
    p.next = w.no_packet


@jit
def take_arrival(w: World, e: Event) -> Packet:
    """Remove the earliest event, which is the arrival of a packet, and return the packet. `e` is
    the event: a line, or the packet's own."""
    p = e.first
    if e.kind == LINE:
        following = p.next
        e.first = following
        if following != w.no_packet:
            replace_first(w, following.due_ns, following.order, e)
            return p
    remove_first(w)
    return p


# --- timers


@jit
def start_timer(w: World, timer: Event, expires_ns: int) -> None:
    """Let a timer expire at `expires_ns`. If it is already running, the new time replaces the old
    one.

    If the timer is only postponed, its entry of the heap stays as it is. When that entry is due,
    `has_expired` schedules another one for the later time.
    """
    timer.expires_ns = expires_ns
    if timer.due_ns == 0 or expires_ns < timer.due_ns:
        timer.due_ns = expires_ns
        schedule(w, expires_ns, timer)


@jit
def has_expired(w: World, timer: Event, now_ns: int) -> bool:
    """Handle the event of a timer. Return True if the timer has expired. Return False if it was
    stopped, postponed, or set to an earlier time meanwhile.

    If the timer was postponed, schedule its event for the later time.
    """
    if now_ns != timer.due_ns:
        return False  # the timer was set to an earlier time, and this entry was replaced
    timer.due_ns = 0
    if timer.expires_ns > now_ns:
        timer.due_ns = timer.expires_ns
        schedule(w, timer.expires_ns, timer)
        return False
    return timer.expires_ns > 0
