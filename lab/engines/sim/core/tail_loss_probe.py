"""Tail loss probes (RFC 8985, section 7; Linux, tcp_send_loss_probe).

If the last segments of a flight are lost, no later arrival reveals the loss, and the sender would
wait for its RTO. Instead it sends one segment, the probe, after about two round trips, even if the
window is full. The probe is a new segment or, if there is none, the last segment again. Its
acknowledgement reveals losses before it. After the probe, the subflow's timer is for the RTO again
(`sender.restart_timer`).
"""

from __future__ import annotations

from lab.engines.sim.core import congestion, sender
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow, World


@jit
def send(w: World, s: Subflow, now_ns: int) -> None:
    """Send a probe on subflow `s`, unless an earlier probe is not acknowledged yet. In both cases,
    start the timer of the RTO."""
    if s.probe_end == 0 and sender.may_probe(s):
        s.probe_transmission = at.NOTHING
        if s.snd_nxt < s.write_seq:
            seq = s.snd_nxt
            s.snd_nxt = seq + 1
        else:
            seq = s.snd_nxt - 1
            s.probe_transmission = s.transmissions
            s.pipe -= 1  # `transmit` counts the segment again
            s.segments_retransmitted += 1
        sender.transmit(w, s, seq, now_ns)
        s.probe_end = s.snd_nxt
    sender.restart_rto(w, s, now_ns)


@jit
def receive_ack(s: Subflow, number: int, now_ns: int) -> None:
    """End the probe of subflow `s` when the probe and all segments sent before it are acknowledged.

    `number` is the transmission that caused the acknowledgement. If the probe repeated a segment,
    and `number` is the probe or a later transmission, the segment's first transmission was lost.
    The window is then reduced.
    """
    if s.probe_end == 0 or s.snd_una < s.probe_end:
        return
    s.probe_end = 0
    probe = s.probe_transmission
    if probe != at.NOTHING and number >= probe and s.mode == at.OPEN:
        congestion.on_mark(s, now_ns)  # Linux, tcp_process_tlp_ack: no loss for DCTCP
