"""Windows and RTTs of all subflows of a connection, for coupled congestion control.

A subflow that is a backup or not established has the rate 0, so it adds nothing to a sum.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit


@jit
def siblings(w: at.World, f: int) -> range:
    """Return all subflows of the connection of subflow `f`, `f` included, as the indices of their
    first fields in the integer table `w.row`."""
    return at.subflows(w.row, w.row[f + at.CONNECTION])


@jit
def can_send(w: at.World, r: int) -> bool:
    """Return True if subflow `r` is established and not a backup."""
    return w.row[r + at.STATE] == at.ESTABLISHED and w.row[r + at.BACKUP] == 0


@jit
def rtt_s(w: at.World, r: int) -> float:
    return w.row[r + at.SRTT_NS] / at.NS_PER_S


@jit
def rate(w: at.World, r: int) -> float:
    """Return window / smoothed RTT of subflow `r` in segments/s, or 0 if `r` is a backup or not
    established."""
    return w.window[r + at.CWND] / rtt_s(w, r) if can_send(w, r) else 0.0


@jit
def total_rate(w: at.World, f: int) -> float:
    """Return the sum of `rate` over all subflows of the connection of subflow `f`, in
    segments/s."""
    total = 0.0
    for r in siblings(w, f):
        total += rate(w, r)
    return total
