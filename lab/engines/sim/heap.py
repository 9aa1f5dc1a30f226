"""Events in the order of their time; those of one moment in the order in which they were asked for. A binary heap in three arrays."""

from __future__ import annotations

from lab.engines.sim.jit import jit
from lab.engines.sim.layout import HEAP_COUNT, ORDER, World


@jit
def push(w: World, at_ns: int, what: int) -> None:
    """Let `what` happen at `at_ns`."""
    at, orders, whats = w.heap_at, w.heap_order, w.heap_what
    order = w.g[ORDER]
    w.g[ORDER] = order + 1
    child = w.g[HEAP_COUNT]
    w.g[HEAP_COUNT] = child + 1
    while child > 0:
        parent = (child - 1) >> 1
        if at[parent] <= at_ns:  # what was asked for earlier goes first
            break
        at[child], orders[child], whats[child] = at[parent], orders[parent], whats[parent]
        child = parent
    at[child], orders[child], whats[child] = at_ns, order, what


@jit
def pop(w: World) -> int:
    """Take the first event; its time was `w.heap_at[0]`."""
    at, orders, whats = w.heap_at, w.heap_order, w.heap_what
    first = whats[0]
    count = w.g[HEAP_COUNT] - 1
    w.g[HEAP_COUNT] = count
    at_ns, order, what = at[count], orders[count], whats[count]
    parent, child = 0, 1
    while child < count:
        right = child + 1
        if right < count and (at[right] < at[child] or (at[right] == at[child] and orders[right] < orders[child])):
            child = right
        if at_ns < at[child] or (at_ns == at[child] and order < orders[child]):
            break
        at[parent], orders[parent], whats[parent] = at[child], orders[child], whats[child]
        parent, child = child, 2 * child + 1
    at[parent], orders[parent], whats[parent] = at_ns, order, what
    return first
