"""The sender and the receiver of one subflow, driven by hand: there are no links, and the test sets
the time."""

from __future__ import annotations

from lab.engines.sim.core import acknowledgements, links, receiver, sender
from lab.engines.sim.core import state as at

from .networks import MS, chain, started
from .rows import places


class Ends:
    """The sender starts in congestion avoidance with a window of ten segments."""

    def __init__(self):
        network = started(chain(2, delay_ns=10 * MS))
        self.w, (_, self.s) = network.w, places(network)
        self.now_ns = 1000 * MS
        self.s.state = at.ESTABLISHED
        self.set_window(10.0)

    def set_window(self, cwnd, ssthresh=1.0):
        self.s.cwnd, self.s.ssthresh = cwnd, ssthresh

    def write(self, segments):
        """Give the sender more segments, and let it send."""
        for _ in range(segments):
            sender.queue_segment(self.s, self.s.write_seq)
        self.send()

    def send(self):
        """Let the sender send; return the sequence numbers of what it transmits."""
        before = self.s.transmissions
        sender.send(self.w, self.s, 64, self.now_ns)
        return [int(at.transmission(self.s, n).seq) for n in range(before, self.s.transmissions)]

    def arrive(self, *seqs):
        """Let the last transmission of each segment arrive, without an acknowledgement."""
        for seq in seqs:
            self.arrive_as(seq, at.segment(self.s, seq).transmission)

    def arrive_as(self, seq, transmission):
        """Let this transmission of a segment arrive; true if it is acknowledged at once."""
        p = links.new_packet(self.w, self.s, at.SEGMENT, self.w.end, 1514)
        p.seq, p.transmission = seq, transmission
        return receiver.receive_segment(self.s, p, self.now_ns)

    def acknowledge(self):
        """Let an acknowledgement of the receiver reach the sender."""
        p, w = links.new_packet(self.w, self.s, at.SEGMENT, self.w.end, 1514), self.w
        p.seq, p.transmission = (
            self.s.rcv_nxt,
            self.s.last_transmission,
        )
        p.segments_so_far = self.s.segments_received
        acknowledgements.receive_ack(w, self.s, p, self.now_ns)

    def arrive_and_acknowledge(self, *seqs):
        """Let each segment arrive, and its acknowledgement reach the sender."""
        for seq in seqs:
            self.arrive(seq)
            self.acknowledge()

    def state(self):
        """(segments in flight, lost segments, mode)."""
        return self.s.pipe, self.s.lost, self.s.mode
