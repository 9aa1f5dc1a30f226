"""Records of the last RING_SIZE segments of each subflow and connection. They are in circular
buffers in the integer table (see `layout`). RING_SIZE is a power of two."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import Ints, jit

# entry n in the ring of a subflow: about segment n, and about transmission n of the subflow
(
    SEG_STATE, SEG_DSN,
    SEG_TRANSMISSION,  # the number of its last transmission
    SEG_ARRIVAL,  # receiver: 1 for the first segment that arrived, 2 for the next one; 0: none yet
    SENT_SEQ, SENT_NS,  # about the transmission
    SUBFLOW_FIELDS,
) = range(7)  # fmt: skip
UNSENT, IN_FLIGHT, SACKED, LOST = range(4)  # SEG_STATE

# entry n in the ring of a connection: whether segment n is in the receiver's reorder buffer; the
# data sequence number of the n-th segment to be reinjected
DSN_RECEIVED, DSN_REINJECT, CONNECTION_FIELDS = range(3)


@jit
def segment(row: Ints, f: int, number: int) -> int:
    """Return the index in `row` of entry `number` of the ring buffer of subflow `f`.

    The fields SENT_SEQ and SENT_NS of the entry are about the subflow's transmission `number`. All
    other fields are about segment `number`.
    """
    return row[f + at.RING] + (number & (row[at.RING_SIZE] - 1)) * SUBFLOW_FIELDS


@jit
def data(row: Ints, c: int, number: int) -> int:
    """Return the index in `row` of entry `number` of the ring buffer of connection `c`. This buffer
    records recent segments of the connection's data."""
    return row[c + at.CONN_RING] + (number & (row[at.RING_SIZE] - 1)) * CONNECTION_FIELDS
