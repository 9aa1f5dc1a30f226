"""Rings of SLOTS places, a power of two: what is remembered of the last so many segments. A place is a row of its own."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

# of a subflow: of the segment with this number, and of the transmission with this number
(SEG_STATE, SEG_DSN, SEG_TRANSMISSION, SEG_ARRIVAL, SENT_SEQ, SENT_NS, SUBFLOW_FIELDS) = range(7)
UNSENT, IN_FLIGHT, SACKED, LOST = range(
    4
)  # SEG_STATE; SEG_ARRIVAL: as which of all it arrived, 0 if it has not
DSN_RECEIVED, DSN_REINJECT, CONNECTION_FIELDS = range(3)  # of a connection


@jit
def segment(row: Ints, f: int, number: int) -> int:
    """Where a subflow keeps this segment or transmission."""
    return row[f + at.RING] + (number & (row[at.RING_SIZE] - 1)) * SUBFLOW_FIELDS


@jit
def data(row: Ints, c: int, dsn: int) -> int:
    """Where a connection keeps this segment, or that which waits at this place to be sent again."""
    return row[c + at.CONN_RING] + (dsn & (row[at.RING_SIZE] - 1)) * CONNECTION_FIELDS
