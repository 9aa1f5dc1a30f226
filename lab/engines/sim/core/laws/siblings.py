"""Windows, RTTs and rates of all subflows of a connection, for coupled congestion controls.

A subflow that is a backup, or is not established, has the rate 0. It adds nothing to a sum.
"""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit


@jit
def siblings(w: at.World, f: int) -> range:
    """Return all subflows of the connection of subflow `f`, including `f`. Each is the index of the
    subflow's state in `w.row`."""
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
    """Return window / smoothed RTT of subflow `r` in segments/s. Return 0 if `r` is a backup or not
    established."""
    return w.window[r + at.CWND] / rtt_s(w, r) if can_send(w, r) else 0.0


@jit
def total_rate(w: at.World, f: int) -> float:
    """Return the sum of the rates of all subflows of a connection, in segments/s. `f` is any of
    these subflows."""
    total = 0.0
    for r in siblings(w, f):
        total += rate(w, r)
    return total
