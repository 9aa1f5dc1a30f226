"""A timer that is mostly put off: two places of a table, when it runs out (0: not) and when its event comes, which waits where it is."""

from __future__ import annotations

from lab.engines.sim import heap
from lab.engines.sim import layout as at
from lab.engines.sim.jit import Ints, jit


@jit
def start(w: at.World, table: Ints, place: int, due_ns: int, what: int) -> None:
    """Let it run out at `due_ns`, whatever it was set to."""
    table[place] = due_ns
    if table[place + 1] == 0 or due_ns < table[place + 1]:
        table[place + 1] = due_ns
        heap.push(w, due_ns, what)


@jit
def has_run_out(w: at.World, table: Ints, place: int, now_ns: int, what: int) -> bool:
    """Its event has come: whether it has really run out, and has not been put off or stopped."""
    if now_ns != table[place + 1]:
        return False  # an earlier event has taken its place
    table[place + 1] = 0
    if table[place] > now_ns:
        table[place + 1] = table[place]
        heap.push(w, table[place], what)
        return False
    return table[place] > 0
