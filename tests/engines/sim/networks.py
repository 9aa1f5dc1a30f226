"""Networks and connections for tests of the packet core."""

from __future__ import annotations

from itertools import pairwise

from lab.engines.sim.core import congestion, linux_scheduler, sender
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

from .rows import MS, places

SECOND = 1000 * MS
BULK = Flow("ue1-1", "ue1", "down", "reno", None, None, warm=True)
FAST, SLOW = {"rate_mbps": 20, "delay_ms": 10}, {"rate_mbps": 12, "delay_ms": 37}


def chain(count: int, **shape: int) -> Topology:
    """ue1 - s1 - s2 ... - srv1 over `count` equal links."""
    names = ["ue1", *(f"s{n}" for n in range(1, count)), "srv1"]
    nodes = [
        Node("ue1", "user", "l1"),
        *(Node(name, "switch") for name in names[1:-1]),
        Node("srv1", "server"),
    ]
    links = [Link(f"l{n}", b, a, **shape) for n, (a, b) in enumerate(pairwise(names), 1)]
    return Topology("chain", tuple(nodes), tuple(links))


def started(topology: Topology, flow: Flow = BULK) -> Network:
    network = Network(topology, Multipath(), [flow], seed=1)
    network.start(flow, flow.cc)
    return network


class Connection:
    """Established subflows of one connection in congestion avoidance, one per window [segments].

    `between` has the segments between losses, which OLIA uses.
    """

    def __init__(self, law, windows, rtts_s, between=None, **multipath):
        nodes = (
            Node("ue1", "user", "l2", len(windows)),
            Node("s1", "switch"),
            Node("srv1", "server"),
        )
        links = (Link("l1", "s1", "srv1"), Link("l2", "s1", "ue1"))
        flow = Flow("ue1-1", "ue1", "down", law, None, None, warm=True)
        network = Network(
            Topology("one", nodes, links, multipath=("ue1",)),
            Multipath(**multipath),
            [flow],
            seed=1,
        )
        network.start(flow, law)
        self.w, self.rows = network.w, [each.record for each in network.subflows()]
        self.record, _ = places(network)
        for s, window, rtt_s, segments in zip(
            self.rows, windows, rtts_s, between or [0] * len(windows), strict=True
        ):
            s.state, s.srtt_ns = (
                at.ESTABLISHED,
                round(rtt_s * SECOND),
            )
            s.snd_una = int(segments)
            self.set(s, window)

    def set(self, s, window, ssthresh=1.0):
        s.cwnd, s.ssthresh = float(window), ssthresh

    def windows(self):
        return [float(s.cwnd) for s in self.rows]

    def increases(self):
        """What one acknowledged segment adds to each window while the others stay."""
        found = []
        for s in self.rows:
            before = float(s.cwnd)
            congestion.on_ack(s, 1, SECOND)
            found.append(float(s.cwnd) - before)
            self.set(s, before)
        return found

    def after_loss(self):
        """Each window after a loss while the others stay."""
        found = []
        for s in self.rows:
            before = float(s.cwnd)
            congestion.on_loss(s, SECOND)
            found.append(float(s.cwnd))
            self.set(s, before)
        return found


def two_subflows(windows=(10, 2), rtts_s=(0.1, 0.03), **multipath):
    """A connection of two subflows; none of its 1000 segments is assigned."""
    connection = Connection("reno", windows, rtts_s, **multipath)
    connection.record.total_segments = 1000
    linux_scheduler.grow_buffers(connection.record)
    return connection


def assign(connection, number, segments, first_dsn=0):
    """Give segments to the subflow with this number, counted from 0."""
    c = connection.record
    for dsn in range(first_dsn, first_dsn + segments):
        sender.queue_segment(connection.rows[number], dsn)
    c.data_snd_nxt = max(c.data_snd_nxt, first_dsn + segments)


def queued(connection):
    """Unacknowledged segments of each subflow."""
    return [linux_scheduler.unacknowledged(s) for s in connection.rows]


FEW_USERS = ("topology.users=10", "topology.multipath_percent=50")


def mean(frames, ap, key):
    return sum(frame["ap"][ap][key] for frame in frames) / len(frames)


def both_tiers(frames, ap):
    return mean(frames, ap, "tier1_mbps") + mean(frames, ap, "tier2_mbps")
