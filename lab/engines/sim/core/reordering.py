"""Segments that arrive late because others have overtaken them (RFC 8985, section 6.2; Linux,
tcp_recovery.c).

1) A sender has seen reordering when an acknowledgement is for an earlier transmission than another
   one before. As long as paths keep the order, it never does.
2) From then on, no number of later arrivals makes a segment lost, but time: the latest RTT plus the
   reordering window after it was sent, if something that was sent later has arrived.
3) The window is a quarter of the smallest RTT. It grows by another quarter when the receiver
   reports a segment that has arrived twice (DSACK, RFC 2883), at most once per round trip, and up
   to the smoothed RTT. It shrinks again after 16 recoveries without such a report.
4) If all segments arrive that counted as lost in a recovery, the reduction of the window is undone.
   When the first one does, those that were not repeated yet are in flight again.
"""

from __future__ import annotations

from lab.engines.sim.core import round_trips
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Packet, Subflow, segment, transmission

MOST_STEPS = 254  # besides the first
RECOVERIES = 16  # TCP_RACK_RECOVERY_THRESH


@jit
def note(s: Subflow, p: Packet, now_ns: int) -> bool:
    """Note what acknowledgement `p` says about the order of arrivals, before anything else is done
    with it. Return True if a segment arrives that counted as lost (4).

    An acknowledgement that another one has overtaken says nothing new.
    """
    number = p.transmission
    if p.segments_so_far <= s.arrivals_known or not round_trips.is_remembered(s, number):
        return False
    s.arrivals_known = p.segments_so_far
    sent = transmission(s, number)
    seq = sent.seq
    if seq < s.snd_una or segment(s, seq).state == at.SACKED:
        note_duplicate(s, number)
        return False
    s.latest_rtt_ns = now_ns - sent.sent_ns
    if number > s.newest_arrived:
        s.newest_arrived = number
        return False
    if number == s.newest_arrived:
        return False
    s.is_reordering = 1
    slot = segment(s, seq)
    was_lost = slot.state == at.LOST or slot.transmission != number
    return s.mode == at.RECOVERY and was_lost


@jit
def note_duplicate(s: Subflow, number: int) -> None:
    """Note that transmission `number` has brought a segment that was there already (3). If there
    are more such reports than repeated segments, the network has doubled packets. A tail loss probe
    is a repetition that may well be in vain."""
    s.duplicates_reported += 1
    if (
        s.is_reordering == 1
        and s.duplicates_reported <= s.segments_retransmitted
        and number != s.probe_transmission
        and number >= s.reorder_steps_since
    ):
        s.reorder_steps = min(MOST_STEPS, s.reorder_steps + 1)
        s.reorder_steps_since = s.transmissions
        s.reorder_recoveries = RECOVERIES


@jit
def end_recovery(s: Subflow) -> None:
    if s.reorder_recoveries > 0:
        s.reorder_recoveries -= 1
        if s.reorder_recoveries == 0:
            s.reorder_steps = 0


@jit
def lost_at_ns(s: Subflow, number: int) -> int:
    """Return when transmission `number` counts as lost (2)."""
    window_ns = min(s.base_rtt_ns // 4 * (1 + s.reorder_steps), s.srtt_ns)
    return transmission(s, number).sent_ns + s.latest_rtt_ns + window_ns


@jit
def is_missing(s: Subflow, number: int) -> bool:
    """Return True if transmission `number` is the last one of a segment that is in flight."""
    if not round_trips.is_remembered(s, number):
        return False
    seq = transmission(s, number).seq
    if seq < s.snd_una:
        return False
    slot = segment(s, seq)
    return slot.state == at.IN_FLIGHT and slot.transmission == number


@jit
def wait_until_ns(s: Subflow) -> int:
    """Return when all segments count as lost that others have overtaken; 0 if there is none."""
    if s.is_reordering == 0:
        return 0
    number = s.newest_arrived - 1
    while number >= s.loss_scanned:
        if is_missing(s, number):
            return lost_at_ns(s, number)
        number -= 1
    return 0
