"""The sender and the receiver of one subflow, driven by hand: there are no links, and the test sets
the time."""

from __future__ import annotations

from lab.engines.sim.core import acknowledgements, links, receiver, rings, sender
from lab.engines.sim.core import layout as at

from .networks import MS, chain, started
from .rows import places


class Ends:
    """The sender starts in congestion avoidance with a window of ten segments."""

    def __init__(self):
        network = started(chain(2, delay_ns=10 * MS))
        self.w, (_, self.f) = network.w, places(network)
        self.now_ns = 1000 * MS
        self.w.row[self.f + at.STATE] = at.ESTABLISHED
        self.set_window(10.0)

    def set_window(self, cwnd, ssthresh=1.0):
        self.w.window[self.f + at.CWND], self.w.window[self.f + at.SSTHRESH] = cwnd, ssthresh

    def write(self, segments):
        """Give the sender more segments, and let it send."""
        for _ in range(segments):
            sender.queue_segment(self.w.row, self.f, self.w.row[self.f + at.WRITE_SEQ])
        self.send()

    def send(self):
        """Let the sender send; return the sequence numbers of what it transmits."""
        before = self.w.row[self.f + at.TRANSMISSIONS]
        sender.send(self.w, self.f, 64, self.now_ns)
        return [
            int(self.w.row[rings.segment(self.w.row, self.f, n) + rings.SENT_SEQ])
            for n in range(before, self.w.row[self.f + at.TRANSMISSIONS])
        ]

    def arrive(self, *seqs):
        """Let the last transmission of each segment arrive, without an acknowledgement."""
        for seq in seqs:
            self.arrive_as(
                seq, self.w.row[rings.segment(self.w.row, self.f, seq) + rings.SEG_TRANSMISSION]
            )

    def arrive_as(self, seq, transmission):
        """Let this transmission of a segment arrive; true if it is acknowledged at once."""
        p = links.new_packet(self.w.row, self.f, at.SEGMENT, 0, 1514)
        self.w.row[p + at.SEQ], self.w.row[p + at.TRANSMISSION] = seq, transmission
        return receiver.receive_segment(self.w.row, self.f, p, self.now_ns)

    def acknowledge(self):
        """Let an acknowledgement of the receiver reach the sender."""
        p, w = links.new_packet(self.w.row, self.f, at.SEGMENT, 0, 1514), self.w
        w.row[p + at.SEQ], w.row[p + at.TRANSMISSION] = (
            w.row[self.f + at.RCV_NXT],
            w.row[self.f + at.LAST_TRANSMISSION],
        )
        w.row[p + at.SEGMENTS_SO_FAR] = w.row[self.f + at.SEGMENTS_RECEIVED]
        acknowledgements.receive_ack(w, self.f, p, self.now_ns)

    def arrive_and_acknowledge(self, *seqs):
        """Let each segment arrive, and its acknowledgement reach the sender."""
        for seq in seqs:
            self.arrive(seq)
            self.acknowledge()

    def state(self):
        """(segments in flight, lost segments, mode)."""
        return tuple(int(self.w.row[self.f + each]) for each in (at.PIPE, at.LOST, at.MODE))
