"""Tail loss probes (RFC 8985, section 7; Linux, tcp_send_loss_probe).

If the last segments of a flight are lost, no later arrival reveals the loss, and the sender would
wait for its RTO. Instead it sends one segment, the probe, after about two round trips, even if the
window is full. The probe is a new segment or, if there is none, the last segment again. Its
acknowledgement reveals losses before it. After the probe, the subflow's timer is for the RTO again
(`sender.restart_timer`).
"""

from __future__ import annotations

from lab.engines.sim.core import congestion, sender
from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit


@jit
def send(w: at.World, f: int, now_ns: int) -> None:
    """Send a probe on subflow `f`, unless an earlier probe is not acknowledged yet. In both cases,
    start the timer of the RTO."""
    row = w.row
    if row[f + at.PROBE_END] == 0 and sender.may_probe(row, f):
        row[f + at.PROBE_TRANSMISSION] = at.NOTHING
        if row[f + at.SND_NXT] < row[f + at.WRITE_SEQ]:
            seq = row[f + at.SND_NXT]
            row[f + at.SND_NXT] = seq + 1
        else:
            seq = row[f + at.SND_NXT] - 1
            row[f + at.PROBE_TRANSMISSION] = row[f + at.TRANSMISSIONS]
            row[f + at.PIPE] -= 1  # `transmit` counts the segment again
            row[f + at.SEGMENTS_RETRANSMITTED] += 1
        sender.transmit(row, f, seq, now_ns)
        row[f + at.PROBE_END] = row[f + at.SND_NXT]
    sender.restart_rto(row, f, now_ns)


@jit
def receive_ack(w: at.World, f: int, number: int, now_ns: int) -> None:
    """End the probe of subflow `f` when the probe and all segments sent before it are acknowledged.

    `number` is the transmission that caused the acknowledgement. If the probe repeated a segment,
    and `number` is the probe or a later transmission, the segment's first transmission was lost.
    The window is then reduced.
    """
    row = w.row
    if row[f + at.PROBE_END] == 0 or row[f + at.SND_UNA] < row[f + at.PROBE_END]:
        return
    row[f + at.PROBE_END] = 0
    probe = row[f + at.PROBE_TRANSMISSION]
    if probe != at.NOTHING and number >= probe and row[f + at.MODE] == at.OPEN:
        congestion.on_loss(w, f, now_ns)
