"""Records of a simulated network, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from lab.engines.sim.core import acknowledgements, sender
from lab.engines.sim.core import state as at
from lab.engines.sim.core.jit import RECORDS
from lab.engines.sim.network import Network

MS = 1_000_000  # ns


def places(network: Network, flow: str = "ue1-1") -> tuple[at.Connection, at.Subflow]:
    """A connection and its first subflow."""
    return network.tables.connections[flow], network.tables.subflows[flow][0].record


def numbers(record: object, kind: str) -> dict[str, float]:
    """All fields of a record that are numbers; `kind` is its class, such as "Subflow"."""
    names = (each.name for each in fields(RECORDS[kind]) if each.type in ("int", "float"))
    return {name: getattr(record, name) for name in names}


def free(network: Network) -> list[at.Packet]:
    """Free packets, in the order in which they will be taken."""
    w, found = network.w, []
    p = w.free_packet
    while p != w.no_packet:
        found.append(p)
        p = p.next
    return found


def on_links(network: Network) -> list[at.Packet]:
    """Packets whose arrival is scheduled; in a wired network these are all packets in flight."""
    w = network.w
    scheduled = [w.heap[n].event for n in range(w.heap_count)]
    return [packet for event in scheduled for packet in _arriving(w, event)]


def _arriving(w: at.World, event: at.Event) -> Iterator[at.Packet]:
    """The packets whose arrival an event stands for: one, or all of a line."""
    if event.kind == at.ARRIVAL:
        yield event.first
    p = event.first if event.kind == at.LINE else w.no_packet
    while p != w.no_packet:
        yield p
        p = p.next


class Sender:
    """The sender of a network's only flow, after one second, with a window of 20 segments in
    flight. Its acknowledgements are made by hand."""

    def __init__(self, network: Network) -> None:
        network.run(1)
        self.network, self.w = network, network.w
        self.c, self.s = places(network)
        self.s.cwnd, self.s.ssthresh = 20.0, 10.0
        self.fill()

    def fill(self) -> None:
        while sender.window_has_room(self.w, self.s):
            sender.queue_segment(self.s, self.s.write_seq)
            sender.send(self.w, self.s, 1, self.w.now_ns)

    def acknowledge(self, echo: int = 0, count: int = 1) -> None:
        """`count` further segments have arrived in order."""
        p = self.w.free_packet
        p.seq = self.s.snd_una + count
        p.transmission = p.seq - 1
        p.segments_so_far, p.echo = p.seq, echo
        acknowledgements.receive_ack(self.w, self.s, p, self.w.now_ns + MS)
        p.echo = 0
        self.fill()
