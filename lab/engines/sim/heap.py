"""Events in the order of their time; those of one moment in the order in which they were asked for. A binary heap in three arrays."""

from __future__ import annotations

from lab.engines.sim import layout as at
from lab.engines.sim.jit import jit


@jit
def push(w: at.World, at_ns: int, what: int) -> None:
    """Let `what` happen at `at_ns`."""
    times, orders, whats = w.heap_at, w.heap_order, w.heap_what
    order = w.g[at.ORDER]
    w.g[at.ORDER] = order + 1
    child = w.g[at.HEAP_COUNT]
    w.g[at.HEAP_COUNT] = child + 1
    while child > 0:
        parent = (child - 1) >> 1
        if times[parent] <= at_ns:  # what was asked for earlier goes first
            break
        times[child], orders[child], whats[child] = times[parent], orders[parent], whats[parent]
        child = parent
    times[child], orders[child], whats[child] = at_ns, order, what


@jit
def pop(w: at.World) -> int:
    """Take the first event; its time was `w.heap_at[0]`."""
    times, orders, whats = w.heap_at, w.heap_order, w.heap_what
    first = whats[0]
    count = w.g[at.HEAP_COUNT] - 1
    w.g[at.HEAP_COUNT] = count
    at_ns, order, what = times[count], orders[count], whats[count]
    parent, child = 0, 1
    while child < count:
        right = child + 1
        if right < count and (times[right] < times[child] or (times[right] == times[child] and orders[right] < orders[child])):
            child = right
        if at_ns < times[child] or (at_ns == times[child] and order < orders[child]):
            break
        times[parent], orders[parent], whats[parent] = times[child], orders[child], whats[child]
        parent, child = child, 2 * child + 1
    times[parent], orders[parent], whats[parent] = at_ns, order, what
    return first
