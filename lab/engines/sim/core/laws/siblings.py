"""What a coupled law asks of the other subflows of its connection.

The subflows of f's connection stand at `range(first(w, f), end(w, f), SUB_FIELDS)`. One that is a backup, or not
established, has the rate 0 and so counts in no sum.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit


@jit
def first(w: at.World, f: int) -> int:
    """The first subflow of a connection."""
    return w.row[w.row[f + at.CONNECTION] + at.FIRST]


@jit
def end(w: at.World, f: int) -> int:
    """Where the subflows of a connection end."""
    return first(w, f) + w.row[w.row[f + at.CONNECTION] + at.COUNT] * at.SUB_FIELDS


@jit
def counts(w: at.World, r: int) -> bool:
    """Whether a subflow can send."""
    return w.row[r + at.STATE] == at.ESTABLISHED and w.row[r + at.BACKUP] == 0


@jit
def rtt_s(w: at.World, r: int) -> float:
    """Smoothed round trip."""
    return w.row[r + at.SRTT_NS] / at.NS_PER_S


@jit
def rate(w: at.World, r: int) -> float:
    """x = w/rtt [segments/s]."""
    return w.window[r + at.CWND] / rtt_s(w, r) if counts(w, r) else 0.0


@jit
def total_rate(w: at.World, f: int) -> float:
    """The sum of x over the connection."""
    total = 0.0
    for r in range(first(w, f), end(w, f), at.SUB_FIELDS):
        total += rate(w, r)
    return total
