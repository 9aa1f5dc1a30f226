"""The scheduled events, as a binary heap in the integer table (`layout`). They are ordered by time;
events of the same time keep the order in which they were scheduled.

Timers are made of events. A timer needs few events even if it is postponed often: see
`start_timer`.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

# an entry of the heap. DUE_NS is 0, so it is left out where entries are compared; ORDER is the
# number of events that were scheduled before it
DUE_NS, ORDER, EVENT, FIELDS = range(4)


@jit
def schedule(row: Ints, at_ns: int, kind: int, place: int) -> None:
    """Schedule an event for time `at_ns`.

    `kind` is a constant of `layout`, such as RTO_DUE. `place` is the packet, subflow, connection or
    LTE cell that the event is for, as the index of its state in `row`.
    """
    heap, n, order = row[at.HEAP], row[at.HEAP_COUNT], row[at.EVENTS_SCHEDULED]
    row[at.HEAP_COUNT] = n + 1
    row[at.EVENTS_SCHEDULED] = order + 1
    here = heap + n * FIELDS
    while n > 0:
        n = (n - 1) >> 1
        parent = heap + n * FIELDS
        if row[parent + DUE_NS] <= at_ns:  # of equal times the earlier scheduled goes first
            break
        row[here + DUE_NS] = row[parent + DUE_NS]
        row[here + ORDER] = row[parent + ORDER]
        row[here + EVENT] = row[parent + EVENT]
        here = parent
    row[here + DUE_NS] = at_ns
    row[here + ORDER] = order
    row[here + EVENT] = place * at.EVENT_KINDS + kind


@jit
def line_up(row: Ints, line: int, at_ns: int, p: int) -> None:
    """Schedule the arrival of packet `p` at time `at_ns`. Of all packets of a line, only the first
    takes an entry of the heap.

    A line is two adjacent integers in `row`, its first and its last packet. The first is 0 while
    the line is empty; no packet has the place 0. A packet that arrives before the last one of its
    line gets an event of its own.
    """
    if row[line] == 0:
        row[line] = p
        schedule(row, at_ns, at.FIRST_ARRIVAL, line)
    else:
        last = row[line + 1]
        if at_ns < row[last + at.PACKET_DUE_NS]:
            schedule(row, at_ns, at.ARRIVAL, p)
            return
        row[last + at.NEXT_IN_LINE] = p
        row[p + at.PACKET_ORDER] = row[at.EVENTS_SCHEDULED]
        row[at.EVENTS_SCHEDULED] += 1
    row[line + 1] = p
    row[p + at.PACKET_DUE_NS] = at_ns
    row[p + at.NEXT_IN_LINE] = 0


@jit
def pop(row: Ints) -> int:
    """Remove the earliest event, and return place * EVENT_KINDS + kind (see `schedule`).

    Call `next_ns` before, if the time of the event is needed. At least one event must be scheduled.
    """
    heap, count = row[at.HEAP], row[at.HEAP_COUNT]
    first, has_next = row[heap + EVENT], False
    at_ns, order, event = 0, 0, first
    if first % at.EVENT_KINDS == at.FIRST_ARRIVAL:
        line = first // at.EVENT_KINDS
        p = row[line]
        first = p * at.EVENT_KINDS + at.ARRIVAL
        p = row[p + at.NEXT_IN_LINE]
        row[line] = p
        if p != 0:
            at_ns, order, has_next = row[p + at.PACKET_DUE_NS], row[p + at.PACKET_ORDER], True
    last = heap + count * FIELDS
    if not has_next:
        count -= 1
        row[at.HEAP_COUNT] = count
        last -= FIELDS
        at_ns, order, event = row[last + DUE_NS], row[last + ORDER], row[last + EVENT]
    here, n = heap, 1
    while n < count:
        child, right = heap + n * FIELDS, heap + (n + 1) * FIELDS
        if right < last and (
            row[right] < row[child]
            or (row[right] == row[child] and row[right + ORDER] < row[child + ORDER])
        ):
            child, n = right, n + 1
        if at_ns < row[child] or (at_ns == row[child] and order < row[child + ORDER]):
            break
        row[here + DUE_NS] = row[child + DUE_NS]
        row[here + ORDER] = row[child + ORDER]
        row[here + EVENT] = row[child + EVENT]
        here, n = child, 2 * n + 1
    row[here + DUE_NS] = at_ns
    row[here + ORDER] = order
    row[here + EVENT] = event
    return first


@jit
def next_ns(row: Ints) -> int:
    """Return the time of the earliest event in ns, or FOREVER if no event is scheduled."""
    return row[row[at.HEAP] + DUE_NS] if row[at.HEAP_COUNT] > 0 else at.FOREVER


# --- timers: two adjacent fields, when the timer expires (0: it is stopped) and when its event is
# due (0: none is scheduled)


@jit
def start_timer(row: Ints, timer: int, due_ns: int, kind: int, place: int) -> None:
    """Let a timer expire at `due_ns`. If it is already running, the new time replaces the old one.

    A timer is two adjacent integers in `row`, at index `timer`: the time when the timer expires,
    and the time of its scheduled event. `kind` and `place` describe this event, as in `schedule`.

    If the timer is only postponed, its scheduled event stays as it is. When that event is due,
    `timer_has_expired` schedules another one for the later time.
    """
    row[timer] = due_ns
    if row[timer + 1] == 0 or due_ns < row[timer + 1]:
        row[timer + 1] = due_ns
        schedule(row, due_ns, kind, place)


@jit
def timer_has_expired(row: Ints, timer: int, now_ns: int, kind: int, place: int) -> bool:
    """Handle the event of a timer. Return True if the timer has expired. Return False if it was
    stopped, postponed, or set to an earlier time meanwhile.

    If the timer was postponed, schedule an event for the later time. The parameters are those of
    `start_timer`.
    """
    if now_ns != row[timer + 1]:
        return False  # the timer was set to an earlier time, and this event was replaced
    row[timer + 1] = 0
    if row[timer] > now_ns:
        row[timer + 1] = row[timer]
        schedule(row, row[timer], kind, place)
        return False
    return row[timer] > 0
