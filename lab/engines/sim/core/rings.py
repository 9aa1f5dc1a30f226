"""Rings of SLOTS places, a power of two: what is remembered of the last so many segments. A place is a row of its own."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

# of a subflow: of the segment with this number, and of the transmission with this number
(SEG_STATE, SEG_DSN, SEG_SENT, SEG_GOT, SENT_SEQ, SENT_NS, SUBFLOW_FIELDS) = range(7)
UNSENT, IN_FLIGHT, SACKED, TO_RESEND = range(
    4
)  # SEG_STATE; SEG_GOT: as which of all it arrived, 0 if it has not
DSN_GOT, DSN_AGAIN, CONNECTION_FIELDS = range(3)  # of a connection


@jit
def of_subflow(row: Ints, f: int, number: int) -> int:
    """Where a subflow keeps this segment or transmission."""
    return row[f + at.RING] + (number & (row[at.SLOTS] - 1)) * SUBFLOW_FIELDS


@jit
def of_connection(row: Ints, c: int, dsn: int) -> int:
    """Where a connection keeps this segment, or that which waits at this place to be sent again."""
    return row[c + at.CONN_RING] + (dsn & (row[at.SLOTS] - 1)) * CONNECTION_FIELDS
