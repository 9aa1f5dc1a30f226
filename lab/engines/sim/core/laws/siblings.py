"""Windows, RTTs and rates of all subflows of a connection, for coupled congestion controls.

A subflow that is a backup, or is not established, has the rate 0. It adds nothing to a sum.
"""

from __future__ import annotations

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow


@jit
def can_send(r: Subflow) -> bool:
    """Return True if subflow `r` is established and not a backup."""
    return r.state == at.ESTABLISHED and r.backup == 0


@jit
def rtt_s(r: Subflow) -> float:
    return r.srtt_ns / at.NS_PER_S


@jit
def rate(r: Subflow) -> float:
    """Return window / smoothed RTT of subflow `r` in segments/s. Return 0 if `r` is a backup or not
    established."""
    return r.cwnd / rtt_s(r) if can_send(r) else 0.0


@jit
def total_rate(s: Subflow) -> float:
    """Return the sum of the rates of all subflows of a connection, in segments/s. `s` is any of
    these subflows."""
    total = 0.0
    for k in range(s.connection.count):
        r = s.connection.subflows[k]
        total += rate(r)
    return total
