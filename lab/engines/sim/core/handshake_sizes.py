"""Sizes of the packets of a handshake on the wire, as Linux sends them."""

from __future__ import annotations

from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow

REQUEST_BYTES = 300  # what the programs of the emulation send to start a download

# Ethernet frames: headers of 14 + 20 + 20 bytes, then the options of a SYN (20: MSS, SACK, time
# stamps, window scale) or of other packets (12: time stamps), as Linux sends them
SYN_BYTES, PLAIN_BYTES = 74, 66
# the options MP_CAPABLE and MP_JOIN (RFC 8684, figures 4 to 8), and a data sequence signal
CAPABLE_SYN, CAPABLE_SYN_ACK, CAPABLE_ACK, CAPABLE_DATA = 4, 12, 20, 24
JOIN_SYN, JOIN_SYN_ACK, JOIN_ACK = 12, 16, 24
DATA_ACK = 12


@jit
def option_bytes(is_join: bool, kind: int) -> int:
    """Return the length of the options of Multipath TCP in a packet of a handshake."""
    if kind == at.SYN:
        return JOIN_SYN if is_join else CAPABLE_SYN
    if kind == at.SYN_ACK:
        return JOIN_SYN_ACK if is_join else CAPABLE_SYN_ACK
    if kind == at.THIRD_ACK:
        return JOIN_ACK if is_join else CAPABLE_ACK
    return CAPABLE_DATA if kind == at.REQUEST else DATA_ACK


@jit
def frame_bytes(s: Subflow, kind: int) -> int:
    size = SYN_BYTES if kind == at.SYN or kind == at.SYN_ACK else PLAIN_BYTES
    if kind == at.REQUEST:
        size += REQUEST_BYTES
    if s.connection.is_mptcp == 1:
        size += option_bytes(s.number > 0, kind)
    return size
