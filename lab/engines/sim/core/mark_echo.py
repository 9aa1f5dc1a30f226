"""The receiver of DCTCP says exactly which segments were marked (RFC 8257, section 3.2; Linux,
tcp_dctcp.h).

Every acknowledgement says whether the last segment was marked (ECE). So that it is true of all
segments that it acknowledges, the receiver acknowledges at once when a segment differs from the one
before it. If an acknowledgement of earlier segments was delayed, that one is sent first.
"""

from __future__ import annotations

from lab.engines.sim.core import receiver
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Packet, Subflow, World


@jit
def note(w: World, s: Subflow, p: Packet, now_ns: int) -> Packet:
    """Note the mark of segment `p` of subflow `s`, before anything else is done with it. Return the
    acknowledgement of earlier segments if one is sent, as `receiver.send_ack` does."""
    earlier = w.no_packet
    if p.echo == 1:  # CWR: the window of the sender may be small
        s.quick_acks = max(s.quick_acks, 1)
    is_marked = int(p.ecn == at.CE)
    if p.seq < s.rcv_nxt or is_marked == s.is_echoing:
        return earlier
    if s.delack.expires_ns > 0:
        earlier = receiver.send_ack(w, s, now_ns)
    s.is_echoing = is_marked
    s.quick_acks = max(s.quick_acks, 1)
    return earlier
