"""A changed rate or delay of a link acts at once, also on the packets that wait there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.scenario.targets import SetLinkDelay, SetLinkRate
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
    order = sorted(data, key=lambda packet: packet.seq)
    assert [each.departs_ns for each in order] == sorted(each.departs_ns for each in data)
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
