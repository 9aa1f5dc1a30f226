"""A changed rate, delay or queue of a link acts at once, also on the packets that wait there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.scenario.targets import SetLinkDelay, SetLinkQueue, SetLinkRate
from lab.topologies.queues import Discipline
from lab.topologies.topology import Link, Node, Topology

from .networks import MS, SECOND, started
from .rows import free, numbers, on_links, places

FRAME_BITS = 1514 * 8
MBPS = 1_000_000
CHANGE = st.tuples(st.integers(20, 400), st.integers(100_000, 25 * MBPS), st.integers(0, 80))


def behind_a_switch(**shape: int) -> Topology:
    """srv1 - s1 -access- ue1, where only the access link has a shape."""
    nodes = (Node("ue1", "user", "access"), Node("s1", "switch"), Node("srv1", "server"))
    return Topology("one", nodes, (Link("access", "s1", "ue1", **shape), Link("far", "srv1", "s1")))


def udp(rate_bps: int, user: str = "ue1") -> Flow:
    return Flow(f"{user}-1", user, "down", "reno", rate_bps, None, "udp")


def received(network: Network, until_ns: int, user: str = "ue1") -> int:
    network.run(until_ns)
    return places(network, f"{user}-1")[1].segments_received


def test_a_queue_of_many_seconds_is_gone_when_the_rate_is_back():
    """Two seconds at 0.1 Mb/s fill the queue with 12 s of packets, which 10 Mb/s carry at once."""
    network = started(
        behind_a_switch(rate_bps=10 * MBPS, delay_ns=MS, queue_packets=100), udp(9 * MBPS)
    )
    network.run(2 * SECOND)
    network.set_link(SetLinkRate("access", MBPS // 10))
    slow = -received(network, 2 * SECOND + 10 * MS) + received(network, 4 * SECOND)
    network.set_link(SetLinkRate("access", 10 * MBPS))
    fast = -received(network, 4 * SECOND) + received(network, 5 * SECOND)
    assert slow * FRAME_BITS / 2 == pytest.approx(0.1 * MBPS, rel=0.1)
    assert 9 * MBPS < fast * FRAME_BITS <= 10 * MBPS


@settings(max_examples=12, deadline=None)
@given(rates=st.lists(CHANGE, min_size=1, max_size=8), queue_packets=st.integers(2, 300))
def test_a_full_link_carries_the_integral_of_its_rate(rates, queue_packets):
    """Packets leave one after another, and the queue of this flow is never empty."""
    shape = {"rate_bps": 5 * MBPS, "delay_ns": MS, "queue_packets": queue_packets}
    network = started(behind_a_switch(**shape), udp(40 * MBPS))
    now_ns, bits = 50 * MS, 5 * MBPS * 0.049
    network.run(now_ns)
    for milliseconds, rate_bps, _ in rates:
        network.set_link(SetLinkRate("access", rate_bps))
        now_ns += milliseconds * MS
        network.run(now_ns)
        bits += rate_bps * milliseconds / 1000
    network.set_link(SetLinkRate("access", 5 * MBPS))
    carried = received(network, now_ns + MS) * FRAME_BITS  # the cable holds what left within 1 ms
    assert abs(carried - bits) < 3 * FRAME_BITS


@settings(max_examples=12, deadline=None)
@given(
    changes=st.lists(CHANGE, max_size=8),
    jitter_ns=st.sampled_from([0, 3 * MS, 30 * MS]),
    queue_packets=st.integers(1, 200),
)
def test_changes_neither_lose_nor_reorder_packets(changes, jitter_ns, queue_packets):
    shape = {"delay_ns": 30 * MS, "jitter_ns": jitter_ns, "queue_packets": queue_packets}
    network = started(behind_a_switch(rate_bps=5 * MBPS, **shape), udp(8 * MBPS))
    now_ns = 0
    for milliseconds, rate_bps, delay_ms in changes:
        now_ns += milliseconds * MS
        network.run(now_ns)
        network.set_link(SetLinkRate("access", rate_bps))
        network.set_link(SetLinkDelay("access", delay_ms * MS))
    network.run(now_ns + 100 * MS)
    c, s = places(network)
    flying = on_links(network)
    assert len(flying) + len(free(network)) == network.w.heap_size
    data = [packet for packet in flying if packet.kind != 1]
    assert s.segments_sent == s.segments_received + s.segments_dropped + len(data)
    assert s.segments_out_of_order == 0
    changed = [packet for packet in data if packet.departs_ns > 0]  # others are on the first link
    order = sorted(changed, key=lambda packet: packet.seq)
    assert [each.departs_ns for each in order] == sorted(each.departs_ns for each in changed)
    assert c.is_datagrams


def test_a_changed_delay_is_for_packets_that_wait_not_for_those_on_the_cable():
    shape = {"rate_bps": MBPS, "delay_ns": 500 * MS, "queue_packets": 50}
    network = started(behind_a_switch(**shape), udp(2 * MBPS))
    network.run(300 * MS)
    network.set_link(SetLinkDelay("access", 900 * MS))
    before = received(network, 799 * MS)
    assert before == int(0.299 * MBPS / FRAME_BITS)
    assert received(network, 1190 * MS) - before <= 1
    assert received(network, 1400 * MS) - before >= int(0.19 * MBPS / FRAME_BITS)


def test_packets_that_overtake_behind_the_link_are_moved_too():
    """The far user's packets wait in the same queue, and arrive in another order than they left."""
    nodes = (
        *(Node("ue1", "user", "near"), Node("ue2", "user", "distant"), Node("srv1", "server")),
        *(Node("s1", "switch"), Node("s2", "switch")),
    )
    links = (
        Link("shared", "s1", "s2", rate_bps=20 * MBPS, queue_packets=400),
        Link("near", "s2", "ue1", delay_ns=MS),
        Link("distant", "s2", "ue2", delay_ns=700 * MS),
        Link("far", "srv1", "s1"),
    )
    flows = [udp(20 * MBPS), udp(20 * MBPS, "ue2")]
    network = Network(Topology("two", nodes, links), Multipath(), flows, seed=1)
    for flow in flows:
        network.start(flow, flow.cc)
    network.run(300 * MS)
    network.set_link(SetLinkRate("shared", MBPS))
    near = received(network, 310 * MS)
    assert received(network, 1310 * MS) - near == pytest.approx(MBPS / FRAME_BITS / 2, abs=20)
    assert len(on_links(network)) + len(free(network)) == network.w.heap_size
    events = [network.w.heap[n] for n in range(network.w.heap_count)]
    times = [(each.at_ns, each.order) for each in events]
    assert all(times[(n - 1) // 2] < times[n] for n in range(1, len(times)))


def test_a_change_to_the_same_value_changes_nothing():
    ends = []
    for repeated in (False, True):
        network = started(behind_a_switch(rate_bps=5 * MBPS, delay_ns=20 * MS, queue_packets=50))
        network.run(SECOND)
        if repeated:
            network.set_link(SetLinkRate("access", 5 * MBPS))
            network.set_link(SetLinkDelay("access", 20 * MS))
        network.run(3 * SECOND)
        c, s = places(network)
        ends.append((numbers(c, "Connection"), numbers(s, "Subflow"), network.w.events_scheduled))
    assert ends[0] == ends[1]


KINDS = ["fifo", "codel", "fq_codel", "red"]
QUEUES = st.lists(
    st.tuples(st.integers(1, 300), st.sampled_from(KINDS), st.integers(24, 120)), max_size=6
)


def behind_two_switches(**shape: Any) -> Topology:
    """srv1 - s1 -access- s2 - ue1, where only the middle link has a shape."""
    nodes = (
        *(Node("ue1", "user", "near"), Node("srv1", "server")),
        *(Node("s1", "switch"), Node("s2", "switch")),
    )
    ends = Link("near", "s2", "ue1", delay_ns=2 * MS), Link("far", "srv1", "s1")
    return Topology("one", nodes, (Link("access", "s1", "s2", **shape), *ends))


def all_packets(network: Network) -> int:
    """How many packets are free, on a link, or in the managed queues of links."""
    hops = {hop.random.first: hop for hop in network.tables.links.values()}.values()
    waiting = sum(network.queued(hop) for hop in hops if hop.kind == at.MANAGED)
    return waiting + len(on_links(network)) + len(free(network))


@settings(max_examples=25, deadline=None)
@given(changes=QUEUES, kind=st.sampled_from(KINDS), jitter_ns=st.sampled_from([0, 3 * MS]))
def test_another_queue_loses_no_packet_that_it_does_not_count(changes, kind, jitter_ns):
    shape = {"delay_ns": 30 * MS, "jitter_ns": jitter_ns, "discipline": Discipline(kind)}
    network = started(behind_two_switches(rate_bps=5 * MBPS, **shape), udp(8 * MBPS))
    now_ns = 0
    for milliseconds, kind, packets in changes:
        now_ns += milliseconds * MS
        network.run(now_ns)
        network.set_link(SetLinkQueue("access", packets, kind))
        assert all_packets(network) == network.w.heap_size
    network.run(now_ns + 400 * MS)
    hop = network.tables.links["access", "s2"]
    _, s = places(network)
    assert all_packets(network) == network.w.heap_size
    assert hop.in_packets == network.sent(hop)[1] + hop.drops + network.queued(hop)
    assert s.segments_out_of_order == 0
    carried = s.segments_received * FRAME_BITS * SECOND / max(1, now_ns + 400 * MS - 32 * MS)
    assert carried == pytest.approx(5 * MBPS, rel=0.05)  # the link was always busy


def dropped_at_once(kind: str, new: SetLinkQueue) -> tuple[int, int]:
    """How many of 60 packets in a queue are dropped when it changes, and how many stay."""
    patient = Discipline(kind, False, 5000, 9000, min_packets=98, max_packets=99)
    shape = {"queue_packets": 100, "discipline": patient}
    network = started(behind_two_switches(rate_bps=MBPS, **shape), udp(2 * MBPS))
    hop, sent_ns = network.tables.links["access", "s2"], 0
    while network.queued(hop) < 61:
        network.run(sent_ns := sent_ns + MS)
    before = hop.drops
    network.set_link(new)
    return hop.drops - before, network.queued(hop) - 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("new", KINDS)
def test_packets_wait_on_in_a_queue_of_the_same_kind_only(kind, new):
    stays = kind == new != "red"
    bigger = SetLinkQueue("access", 200, new)
    assert dropped_at_once(kind, bigger) == ((0, 60) if stays else (60, 0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_smaller_codel_drops_what_it_cannot_hold_and_a_fifo_waits(kind):
    known = {"fifo": (24, 0, 60), "red": (99, 60, 0)}
    packets, *outcome = known.get(kind, (24, 36, 24))
    assert dropped_at_once(kind, SetLinkQueue("access", packets)) == tuple(outcome)


def test_a_queue_of_one_direction_drops_nothing_in_the_other():
    shape = {"queue_packets": 100}
    network = started(behind_two_switches(rate_bps=MBPS, **shape), udp(2 * MBPS))
    network.run(300 * MS)
    hop = network.tables.links["access", "s2"]
    before = network.queued(hop)
    (away,) = {"ab", "ba"} - {side for side, way in network._ways("access").items() if way == hop}
    network.set_link(SetLinkQueue("access", kind="red", sides=frozenset((away,))))
    assert (network.queued(hop), hop.kind) == (before, at.WIRE)
    assert network.tables.links["access", "s1"].kind == at.MANAGED


def test_a_first_in_first_out_queue_that_was_changed_holds_as_many_packets_as_before():
    """Also the one in transmission counts. A change to the same size changes nothing at all."""
    found = []
    for packets in (None, 20):
        shape = {"queue_packets": 20, "delay_ns": 9 * MS}
        network = started(behind_two_switches(rate_bps=MBPS, **shape), udp(2 * MBPS))
        network.run(20 * MS)
        if packets:
            network.set_link(SetLinkQueue("access", packets))
        network.run(3 * SECOND)
        hop, (_, s) = network.tables.links["access", "s2"], places(network)
        found.append((network.queued(hop), hop.drops, s.segments_received))
    assert found[0] == found[1]
    assert found[0][0] == 20
