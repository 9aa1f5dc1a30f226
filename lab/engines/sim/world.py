"""Build the two tables of numbers that hold a simulated network (`core.layout` describes them).
Lengthen the integer table while the network runs."""

from __future__ import annotations

from lab.engines.sim.compiled import floats, ints
from lab.engines.sim.core import events, rings, sender
from lab.engines.sim.core import layout as at
from lab.engines.sim.tables import Tables

NO_THRESHOLD = float(at.FOREVER)
PACKETS = 2048  # packets in flight that a new world has room for
SPARE = 1 << 16  # places that are added beyond those needed


def build(tables: Tables) -> at.World:
    """Return the two tables of numbers that hold a network. The integer table has the rows of
    `tables`, a ring buffer of recent segments for each subflow and connection, and space for
    packets and events."""
    row = ints(_with_rings(tables))
    return with_room(at.World(row, floats(_windows(tables))), PACKETS)


def with_room(w: at.World, packets: int) -> at.World:
    """Return `w` (both tables) with space for `packets` more packets in flight, and for as many
    more scheduled events."""
    size = int(w.row[at.HEAP_SIZE])
    w, begins = with_places(w, packets * at.PACKET_FIELDS)
    w, heap_begins = with_places(w, (size + packets) * events.FIELDS)
    row, old = w.row, int(w.row[at.HEAP])
    for p in range(begins, heap_begins, at.PACKET_FIELDS):
        row[p + at.NEXT_FREE], row[at.FREE_PACKET] = row[at.FREE_PACKET], p
    row[at.FREE_PACKETS] += packets
    row[heap_begins : heap_begins + size * events.FIELDS] = row[old : old + size * events.FIELDS]
    row[at.HEAP], row[at.HEAP_SIZE] = heap_begins, size + packets
    return w


def with_places(w: at.World, count: int) -> tuple[at.World, int]:
    """Reserve `count` places (entries) in the integer table; all are 0. Lengthen the table if
    needed.

    Return two values: the tables, of which the integer table may be a new one, and the index of the
    first reserved place.
    """
    begins = int(w.row[at.PLACES_USED])
    if begins + count > len(w.row):
        longer = ints([0] * (begins + count + SPARE))
        longer[: len(w.row)] = w.row
        w = w._replace(row=longer)
    w.row[at.PLACES_USED] = begins + count
    return w, begins


def _windows(tables: Tables) -> list[float]:
    """Return the floating-point table, with the initial congestion window, SSTHRESH and growth
    divisor of each subflow."""
    window = [0.0] * len(tables.values)
    for f in _subflows(tables):
        window[f + at.CWND] = sender.INITIAL_WINDOW
        window[f + at.SSTHRESH] = NO_THRESHOLD
        window[f + at.GROWTH_DIVISOR] = 1.0
    return window


def _with_rings(tables: Tables) -> list[int]:
    """Return the integer table: the rows of `tables`, then a ring buffer of recent segments for
    each subflow and each connection (`core.rings`)."""
    values, end = list(tables.values), len(tables.values)
    for field, places, fields in (
        (at.RING, _subflows(tables), rings.SUBFLOW_FIELDS),
        (at.CONN_RING, list(tables.connections.values()), rings.CONNECTION_FIELDS),
    ):
        for place in places:
            values[place + field] = end
            end += tables.ring_size * fields
    values[at.RING_SIZE], values[at.PLACES_USED] = tables.ring_size, end
    return values + [0] * (end - len(values))


def _subflows(tables: Tables) -> list[int]:
    return [each.place for subflows in tables.subflows.values() for each in subflows]
