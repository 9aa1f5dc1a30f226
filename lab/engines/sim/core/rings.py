"""Remember the last RING_SIZE segments of each subflow and connection, in rings whose size is a
power of two."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

# a subflow's row at number n: of segment n, and of the subflow's transmission n
(
    SEG_STATE, SEG_DSN,
    SEG_TRANSMISSION,  # the number of its last transmission
    SEG_ARRIVAL,  # receiver: 1 for the first segment that arrived, 2 for the next one; 0: none yet
    SENT_SEQ, SENT_NS,  # of the transmission
    SUBFLOW_FIELDS,
) = range(7)  # fmt: skip
UNSENT, IN_FLIGHT, SACKED, LOST = range(4)  # SEG_STATE

# a connection's row at number n: whether segment n is in the receiver's reorder buffer; the n-th
# segment to be reinjected
DSN_RECEIVED, DSN_REINJECT, CONNECTION_FIELDS = range(3)


@jit
def segment(row: Ints, f: int, number: int) -> int:
    """Return where the row of this segment or transmission of a subflow begins."""
    return row[f + at.RING] + (number & (row[at.RING_SIZE] - 1)) * SUBFLOW_FIELDS


@jit
def data(row: Ints, c: int, number: int) -> int:
    """Return where the row of this segment of a connection's data begins."""
    return row[c + at.CONN_RING] + (number & (row[at.RING_SIZE] - 1)) * CONNECTION_FIELDS
