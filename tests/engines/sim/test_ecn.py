"""Explicit congestion notification (RFC 3168): marks instead of drops, one reduction a round trip."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import ecn, sender
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.queues import FIFO, Discipline
from lab.topologies.topology import Link, Node, Topology

from .networks import MS, SECOND, started
from .rows import Sender, places

MBPS = 1_000_000


def path(discipline=FIFO, **shape):
    nodes = (
        Node("ue1", "user", "to-ue1"),
        *(Node(each, "switch") for each in ("s1", "s2")),
        Node("srv1", "server"),
    )
    shaped = Link("access", "s1", "s2", 5 * MBPS, 10 * MS, discipline=discipline, **shape)
    return Topology("one", nodes, (shaped, Link("far", "s1", "srv1"), Link("to-ue1", "s2", "ue1")))


def running(discipline=FIFO, seconds=6, is_ecn=True, cc="reno", **shape):
    flow = Flow("ue1-1", "ue1", "down", cc, None, None, warm=True)
    network = Network(path(discipline, **shape), Multipath(ecn=is_ecn), [flow], seed=1)
    network.start(flow, cc)
    network.run(seconds * SECOND)
    return network


def marked(network):
    return network.tables.links["access", "s2"].managed.marked


@pytest.mark.parametrize("kind", ["codel", "fq_codel"])
def test_a_queue_marks_packets_of_senders_with_ecn_and_drops_those_of_others(kind):
    size = {"queue_packets": 1000}
    network = running(Discipline(kind, is_marking=True), **size)
    _, s = places(network)
    assert marked(network) > 3
    assert (s.segments_dropped, s.segments_retransmitted, s.timeouts) == (0, 0, 0)
    for discipline, is_ecn in (
        (Discipline(kind, is_marking=True), False),
        (Discipline(kind, is_marking=False), True),
    ):
        network = running(discipline, is_ecn=is_ecn, **size)
        assert marked(network) == 0
        assert places(network)[1].segments_dropped > 3


@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_marks_slow_a_sender_as_drops_do(cc):
    """The rate is about the same, and the queue stays as short."""
    rates, waiting = [], []
    for is_ecn in (False, True):
        network = running(Discipline("codel", True), is_ecn=is_ecn, cc=cc, queue_packets=1000)
        before, queued = places(network)[1].segments_received, []
        for n in range(600):
            network.run(6 * SECOND + n * 10 * MS)
            queued.append(network.queued(network.tables.links["access", "s2"]))
        rates.append((places(network)[1].segments_received - before) * 1514 * 8 / 6 / MBPS)
        waiting.append(sum(queued) / len(queued))
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    assert max(waiting) < 25  # a queue of 1000 packets would be full


def test_a_fifo_queue_drops_with_ecn_as_without():
    packets = [places(running(FIFO, is_ecn=each))[1].segments_received for each in (False, True)]
    assert packets[0] == packets[1]


def one_sender(is_ecn=True):
    network = started(path())
    places(network)[0].is_ecn = int(is_ecn)
    return Sender(network)


def test_a_sender_reduces_its_window_once_per_round_trip():
    one = one_sender()
    before = one.s.cwnd
    end, number = one.s.snd_nxt, one.s.transmissions
    one.acknowledge(echo=1)
    reduced = one.s.ssthresh
    assert reduced == pytest.approx(before / 2, abs=1)
    assert (one.s.mode, one.s.recover) == (at.REDUCED, end)
    while one.s.snd_una < end:
        one.acknowledge(echo=1)
        assert one.s.ssthresh == reduced  # neither smaller nor larger
    assert one.s.transmissions - number == pytest.approx(reduced, abs=1)  # one for two (RFC 9937)
    assert one.s.mode == at.REDUCED  # the segment with CWR is still on its way
    one.acknowledge(echo=0)
    assert one.s.mode == at.OPEN
    assert one.s.cwnd == pytest.approx(reduced, abs=0.2)
    one.acknowledge(echo=1)
    assert one.s.ssthresh == pytest.approx(reduced / 2, abs=1)


def test_a_sender_without_marks_does_not_reduce():
    one = one_sender()
    before = one.s.cwnd
    one.acknowledge(count=2)
    assert one.s.cwnd >= before
    assert one.s.mode == at.OPEN


def new_segment(one):
    one.s.cwnd = one.s.pipe + 1.0
    one.fill()
    return one.s.host_line.last


def test_the_next_new_segment_says_that_the_window_was_reduced():
    one = one_sender()
    assert (new_segment(one).ecn, new_segment(one).echo) == (at.ECT, 0)
    one.acknowledge(echo=1)  # and it sends the next one
    first = one.s.host_line.last
    assert (first.ecn, first.echo) == (at.ECT, 1)
    assert new_segment(one).echo == 0


def test_retransmissions_are_not_ecn_capable():
    """RFC 3168, section 6.1.5."""
    one = one_sender()
    sender.transmit(one.w, one.s, one.s.snd_una, one.w.now_ns)
    assert one.s.host_line.last.ecn == at.NOT_ECT


def test_a_connection_without_ecn_sends_nothing_of_it():
    one = one_sender(is_ecn=False)
    assert (new_segment(one).ecn, one.s.is_cwr_due) == (at.NOT_ECT, 0)


def test_a_receiver_echoes_a_mark_until_the_sender_has_reduced():
    one = one_sender()
    p, echoes = one.w.free_packet, []
    for mark, echo in ((at.ECT, 0), (at.CE, 0), (at.ECT, 0), (at.ECT, 1), (at.CE, 1), (at.ECT, 0)):
        p.ecn, p.echo = mark, echo
        ecn.receive(one.s, p)
        echoes.append(one.s.is_echoing)
    p.ecn = p.echo = 0
    assert echoes == [0, 1, 1, 0, 1, 1]
