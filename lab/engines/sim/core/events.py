"""Events in the order of their time; those of one moment in the order in which they were asked for. A binary heap."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

DUE_NS, ORDER, WHAT, FIELDS = range(
    4
)  # the row of an event; where two are compared, DUE_NS is left out for it is 0


@jit
def schedule(row: Ints, at_ns: int, what: int) -> None:
    """Let `what` happen at `at_ns`."""
    heap, n, asked = row[at.HEAP], row[at.HEAP_COUNT], row[at.EVENTS_SCHEDULED]
    row[at.HEAP_COUNT], row[at.EVENTS_SCHEDULED] = n + 1, asked + 1
    here = heap + n * FIELDS
    while n > 0:
        n = (n - 1) >> 1
        above = heap + n * FIELDS
        if row[above + DUE_NS] <= at_ns:  # what was asked for earlier goes first
            break
        row[here + DUE_NS], row[here + ORDER], row[here + WHAT] = (
            row[above + DUE_NS],
            row[above + ORDER],
            row[above + WHAT],
        )
        here = above
    row[here + DUE_NS], row[here + ORDER], row[here + WHAT] = at_ns, asked, what


@jit
def pop(row: Ints) -> int:
    """Take the first event, which is due at `first_ns`."""
    heap, count = row[at.HEAP], row[at.HEAP_COUNT] - 1
    row[at.HEAP_COUNT] = count
    first, last = row[heap + WHAT], heap + count * FIELDS
    at_ns, asked, what = row[last + DUE_NS], row[last + ORDER], row[last + WHAT]
    here, n = heap, 1
    while n < count:
        below, right = heap + n * FIELDS, heap + (n + 1) * FIELDS
        if right < last and (
            row[right] < row[below]
            or (row[right] == row[below] and row[right + ORDER] < row[below + ORDER])
        ):
            below, n = right, n + 1
        if at_ns < row[below] or (at_ns == row[below] and asked < row[below + ORDER]):
            break
        row[here + DUE_NS], row[here + ORDER], row[here + WHAT] = (
            row[below + DUE_NS],
            row[below + ORDER],
            row[below + WHAT],
        )
        here, n = below, 2 * n + 1
    row[here + DUE_NS], row[here + ORDER], row[here + WHAT] = at_ns, asked, what
    return first


@jit
def next_ns(row: Ints) -> int:
    """When the first event is due; without one, never."""
    return row[row[at.HEAP] + DUE_NS] if row[at.HEAP_COUNT] > 0 else at.FOREVER


# --- timers


@jit
def start_timer(row: Ints, place: int, due_ns: int, what: int) -> None:
    """Let it run out at `due_ns`, whatever it was set to."""
    row[place] = due_ns
    if row[place + 1] == 0 or due_ns < row[place + 1]:
        row[place + 1] = due_ns
        schedule(row, due_ns, what)


@jit
def timer_has_expired(row: Ints, place: int, now_ns: int, what: int) -> bool:
    """Its event has come: whether it has really run out, and has not been put off or stopped."""
    if now_ns != row[place + 1]:
        return False  # an earlier event has taken its place
    row[place + 1] = 0
    if row[place] > now_ns:
        row[place + 1] = row[place]
        schedule(row, row[place], what)
        return False
    return row[place] > 0
