"""Explicit congestion notification (RFC 3168): a queue marks segments instead of dropping them.

1) New segments are sent as ECN-capable (ECT); retransmissions and acknowledgements are not.
2) A queue marks a segment (CE, `marks`).
3) From then on, the receiver's acknowledgements carry the mark back (ECE).
4) The sender halves its window as after a loss, but at most once per round trip, and says so with
   its next new segment (CWR). It says so after losses, too.
5) The receiver then ends 3).

DCTCP has other rules for 1) (`links.new_packet`), 3) and 5) (`receiver.note_mark`), and 4)
(`laws.dctcp`).
"""

from __future__ import annotations

from lab.engines.sim.core import congestion, window_reduction
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Packet, Queue, Subflow

QUICK_ACKS = 2  # Linux, __tcp_ecn_check_ce: the window of the sender may be small


@jit
def send(s: Subflow, p: Packet) -> None:
    """Make a new segment ECN-capable (1, 4)."""
    p.ecn = at.ECT
    p.echo = s.is_cwr_due
    s.is_cwr_due = 0


@jit
def marks(q: Queue, p: Packet) -> bool:
    """Mark packet `p` (RFC 3168, CE), and return True, if the queue marks and the sender of the
    packet understands it."""
    if q.is_marking == 0 or p.ecn == at.NOT_ECT:
        return False
    p.ecn = at.CE
    q.marked += 1
    return True


@jit
def receive(s: Subflow, p: Packet) -> None:
    """Note what segment `p` says (3, 5). It is then acknowledged at once."""
    if p.echo == 1:
        s.is_echoing = 0
        s.quick_acks = max(s.quick_acks, 1)
    if p.ecn == at.CE and s.is_echoing == 0:
        s.is_echoing = 1
        s.quick_acks = max(s.quick_acks, QUICK_ACKS)


@jit
def reduce(s: Subflow, now_ns: int) -> None:
    """Reduce the window of subflow `s`, to which an acknowledgement has brought a mark (4)."""
    before = s.cwnd
    congestion.on_mark(s, now_ns)
    window_reduction.begin(s, before)
    s.mode, s.recover = at.REDUCED, s.snd_nxt


@jit
def is_over(s: Subflow) -> bool:
    """Return True if the round trip has passed in which subflow `s` recovers from a loss or a mark.
    After a mark, the segment with CWR must have arrived, too."""
    return s.snd_una >= s.recover + int(s.mode == at.REDUCED)
