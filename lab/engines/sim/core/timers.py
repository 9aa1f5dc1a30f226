"""A timer that is mostly put off: two places, when it runs out (0: not) and when its event comes, which waits where it is."""

from __future__ import annotations

from lab.engines.sim.core import event_heap as heap
from lab.engines.sim.core.jit import Ints, jit


@jit
def start(row: Ints, place: int, due_ns: int, what: int) -> None:
    """Let it run out at `due_ns`, whatever it was set to."""
    row[place] = due_ns
    if row[place + 1] == 0 or due_ns < row[place + 1]:
        row[place + 1] = due_ns
        heap.push(row, due_ns, what)


@jit
def has_run_out(row: Ints, place: int, now_ns: int, what: int) -> bool:
    """Its event has come: whether it has really run out, and has not been put off or stopped."""
    if now_ns != row[place + 1]:
        return False  # an earlier event has taken its place
    row[place + 1] = 0
    if row[place] > now_ns:
        row[place + 1] = row[place]
        heap.push(row, row[place], what)
        return False
    return row[place] > 0
