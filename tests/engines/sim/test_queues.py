"""Queues that drop before they are full: CoDel (RFC 8289), FQ-CoDel (RFC 8290) and RED."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lab.engines.sim.core import links, queues
from lab.engines.sim.core import state as at
from lab.engines.sim.core.red import admits_early
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.scenario.targets import SetLinkDelay, SetLinkRate
from lab.topologies.queues import Discipline, Red, red
from lab.topologies.topology import Link, Node, Topology

from .networks import MS, SECOND
from .rows import free, on_links, places

MBPS = 1_000_000
FRAME_BITS = 1514 * 8
TARGET, INTERVAL = 5 * MS, 100 * MS


def behind_a_switch(kind, users=("ue1",), rate_bps=5 * MBPS, packets=1000, **shape):
    """srv1 - s1 = access = s2 - users"""
    return topology_of(Discipline(kind, is_marking=True), users, rate_bps, packets, **shape)


def topology_of(discipline, users=("ue1",), rate_bps=5 * MBPS, packets=1000, **shape):
    nodes = (
        *(Node(each, "user", f"to-{each}") for each in users),
        *(Node(each, "switch") for each in ("s1", "s2")),
        Node("srv1", "server"),
    )
    access = Link(
        "access", "s1", "s2", rate_bps, queue_packets=packets, discipline=discipline, **shape
    )
    links = (access, Link("far", "s1", "srv1"), *(Link(f"to-{each}", "s2", each) for each in users))
    return Topology("one", nodes, links)


def udp(mbps, user="ue1"):
    return Flow(f"{user}-1", user, "down", "reno", round(mbps * MBPS), None, "udp")


def tcp(user="ue1"):
    return Flow(f"{user}-1", user, "down", "reno", None, None, warm=True)


def started(topology, *flows, seed=1):
    network = Network(topology, Multipath(), flows, seed)
    for flow in flows:
        network.start(flow, flow.cc)
    return network


def access(network):
    return network.tables.links["access", "s2"]


class Standing:
    """The queue of a link whose packets arrive faster than they leave, without a network: each
    packet that leaves has waited for the times of `waits`."""

    def __init__(self, packets=100_000, rate_bps=10 * MBPS):
        self.network = started(behind_a_switch("codel", rate_bps=rate_bps, packets=packets))
        self.hop = access(self.network)
        self.q, self.f = self.hop.managed, self.hop.managed.flows[0]

    def late(self, at_ns, waited_ns, others=10):
        """Whether a packet that leaves now, after `waited_ns`, may be dropped."""
        self.q.size_bytes = others * 1514
        p = self.network.w.free_packet
        p.queued_ns = at_ns - waited_ns
        return queues.is_late(self.network.w, self.q, self.f, p, at_ns)


def test_a_packet_is_late_when_all_of_an_interval_waited_too_long():
    queue = Standing()
    assert not queue.late(SECOND, TARGET)
    assert not queue.late(SECOND + INTERVAL - 1, TARGET)
    assert queue.late(SECOND + INTERVAL, TARGET)
    assert not queue.late(SECOND + INTERVAL + 1, TARGET - 1)  # one waited less: begin again
    assert not queue.late(SECOND + 2 * INTERVAL, TARGET)
    assert queue.late(SECOND + 3 * INTERVAL, TARGET)
    assert not queue.late(SECOND + 4 * INTERVAL, TARGET, others=1)  # a frame at most waits


def test_the_control_law_divides_the_interval_by_the_root_of_the_drops():
    """RFC 8289, section 3.3: the second drop comes 71 ms after the first, the third 58 ms later."""
    queue = Standing()
    queues.begin_dropping(queue.q, queue.f, SECOND)
    times = [SECOND, queue.f.drop_next_ns]
    for _ in range(5):
        queue.f.signals += 1
        times.append(queues.next_signal_ns(queue.q, queue.f, times[-1]))
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps == [int(INTERVAL / math.sqrt(n)) for n in range(1, 7)]
    assert gaps[1] == 70_710_678


@pytest.mark.parametrize(
    ("signals", "last", "since", "expected"),
    [
        (9, 2, 15.9, 7),  # soon after: begin with the drops of the last time
        (9, 2, 16, 1),
        (9, 8, 1, 1),  # a single drop was enough
        (1, 1, 0, 1),
    ],
)
def test_dropping_begins_again_where_it_ended(signals, last, since, expected):
    queue = Standing()
    f = queue.f
    f.signals, f.last_signals, f.drop_next_ns = signals, last, SECOND
    now_ns = SECOND + int(since * INTERVAL)
    queues.begin_dropping(queue.q, f, now_ns)
    assert (f.signals, f.last_signals, f.is_dropping) == (expected, expected, 1)
    assert f.drop_next_ns == now_ns + int(INTERVAL / math.sqrt(expected))


def test_a_flow_that_does_not_slow_down_loses_by_the_control_law():
    """Twice the rate of the link: the first drop comes an interval after the wait exceeds the
    target; drop n then comes within interval / sqrt(n)."""
    network = started(behind_a_switch("codel", packets=10_000), udp(10))
    drops, times = 0, []
    for ms in range(1000):
        network.run(ms * MS)
        times += [ms] * (access(network).drops - drops)
        drops = access(network).drops
    first = 5 * 2 + 100  # half of the packets leave: the wait is half of the time
    assert times[0] == pytest.approx(first, abs=4)
    expected = [times[0]]
    while expected[-1] < 990:
        expected.append(expected[-1] + 100 / math.sqrt(len(expected)))
    assert len(times) == pytest.approx(len(expected), abs=2)
    assert times[:20] == pytest.approx(expected[:20], abs=4)


@pytest.mark.parametrize("kind", ["codel", "fq_codel"])
def test_tcp_keeps_most_of_the_rate_with_a_short_queue(kind):
    """Reno halves a window that hardly exceeds the capacity of the path."""
    network = started(behind_a_switch(kind, delay_ns=20 * MS), tcp())
    network.run(3 * SECOND)
    before, waits = access(network).out_bytes, []
    for n in range(700):
        network.run(3 * SECOND + n * 10 * MS)
        waits.append(network.queued(access(network)) * FRAME_BITS / 5 / 1000)
    assert (access(network).out_bytes - before) * 8 / 7 > 0.8 * 5 * MBPS
    assert sorted(waits)[350] < 20  # ms; a fifo of 1000 packets would hold 2.4 s
    assert access(network).drops > 3


def shares(kind, *flows, seconds=8):
    network = started(behind_a_switch(kind, users=("ue1", "ue2"), delay_ns=10 * MS), *flows)
    network.run(seconds * SECOND)
    received = {}
    for flow in flows:
        _, s = places(network, flow.id)
        received[flow.user] = s.segments_received * FRAME_BITS / seconds / MBPS
    return network, received


def test_fq_codel_gives_equal_shares_and_a_sparse_flow_all_it_asks_for():
    """A flow that never slows down pushes TCP out of a queue that is shared, not out of its own."""
    _, fair = shares("fq_codel", udp(20, "ue1"), tcp("ue2"))
    assert fair["ue2"] == pytest.approx(2.5, rel=0.1)
    _, pushed = shares("codel", udp(20, "ue1"), tcp("ue2"))
    assert pushed["ue2"] < 0.5
    network, sparse = shares("fq_codel", tcp("ue1"), udp(0.5, "ue2"))
    _, s = places(network, "ue2-1")
    assert s.segments_dropped == 0
    assert sparse["ue2"] == pytest.approx(0.5, rel=0.05)


def test_a_sparse_flow_passes_the_packets_that_wait():
    """RFC 8290, section 4.2: the packet of a new flow is sent before those of the old ones."""
    network = started(
        behind_a_switch("fq_codel", users=("ue1", "ue2")), udp(20, "ue1"), udp(0.2, "ue2")
    )
    network.run(2 * SECOND)
    _, s = places(network, "ue2-1")
    frame_ns = FRAME_BITS * SECOND // (5 * MBPS)
    assert s.segments_sent - s.segments_received <= 1
    q = access(network).managed
    assert q.count * frame_ns > 100 * MS  # of the other flow
    assert q.flows[s.flow_hash].count <= 1


def test_a_full_fq_codel_drops_from_the_flow_that_has_most():
    topology = behind_a_switch("fq_codel", users=("ue1", "ue2"), packets=60)
    network = started(topology, udp(30, "ue1"), udp(2, "ue2"))
    network.run(3 * SECOND)
    assert places(network, "ue2-1")[1].segments_dropped == 0
    assert places(network, "ue1-1")[1].segments_dropped > 1000
    assert access(network).managed.count <= 60


class ByHand:
    """The queue of an fq_codel link that is busy, which packets enter and leave by hand."""

    def __init__(self, packets=1000):
        users = ("ue1", "ue2", "ue3")
        flows = [udp(0.1, each) for each in users]
        self.network = started(behind_a_switch("fq_codel", users=users, packets=packets), *flows)
        self.w, self.hop = self.network.w, access(self.network)
        self.q = self.hop.managed
        self.q.sent.first = self.w.free_packet  # any packet: a transmission goes on
        self.s = {user: places(self.network, f"{user}-1")[1] for user in users}

    def flow(self, user):
        return self.q.flows[self.s[user].flow_hash]

    def enter(self, user, count=1, size=1514):
        s = self.s[user]
        for _ in range(count):
            p = links.new_packet(self.w, s, at.DATAGRAM, s.data_route, size)
            queues.enter(self.w, self.hop, p, 1)

    def leave(self, count):
        """The users of the packets that leave next."""
        taken = [queues.take_in_turn(self.w, self.hop, self.q, 2) for _ in range(count)]
        return [next(user for user, s in self.s.items() if s == p.subflow) for p in taken]


def test_flows_take_turns_by_bytes():
    """RFC 8290, section 4.2: two packets of half the size count as one."""
    queue = ByHand()
    queue.enter("ue1", 20)
    queue.enter("ue2", 40, size=757)
    left = queue.leave(30)
    assert left.count("ue1") == 10
    assert queue.leave(3) in (["ue1", "ue2", "ue2"], ["ue2", "ue2", "ue1"], ["ue2", "ue1", "ue2"])


def test_a_new_flow_is_sent_before_an_old_one_that_could_go_on():
    queue = ByHand()
    queue.enter("ue1", 30, size=100)
    assert queue.leave(17) == ["ue1"] * 17  # more than one turn, so its flow is an old one
    queue.enter("ue2")
    assert queue.leave(2) == ["ue2", "ue1"]


def test_a_new_flow_that_is_empty_becomes_an_old_one():
    """Otherwise a packet now and then would always go first."""
    queue = ByHand()
    queue.enter("ue1", 30, size=100)
    queue.leave(17)  # its flow is an old one, and may go on
    queue.enter("ue2", size=100)
    assert queue.leave(2) == ["ue2", "ue1"]
    queue.enter("ue2", size=100)
    assert queue.leave(2) == ["ue1", "ue1"]


def test_a_full_queue_drops_half_of_the_longest_flow_and_codel_counts_it():
    queue = ByHand(packets=13)
    queue.enter("ue2", 3)
    queue.enter("ue1", 11)
    assert (queue.flow("ue1").count, queue.flow("ue2").count, queue.q.count) == (5, 3, 8)
    assert (queue.hop.drops, queue.flow("ue1").signals) == (6, 6)


def waiting(network, q):
    """The packets that wait in a queue or are in transmission."""
    held = [q.sent.first] if q.sent.first != network.w.no_packet else []
    for n in range(queues.FLOWS if q.kind == at.FQ_CODEL else 1):
        f = q.flows[n]
        p, sizes = f.first, []
        for _ in range(f.count):
            held.append(p)
            sizes.append(p.size)
            p = p.next
        assert (sum(sizes), len(sizes)) == (f.size_bytes, f.count)
    assert len(held) == queues.waiting(network.w, q)
    return held


def check_conservation(network, flows):
    hops = [network.tables.links["access", end] for end in ("s1", "s2")]
    held = [p for hop in hops for p in waiting(network, hop.managed)]
    flying = on_links(network)
    assert len(flying) + len(held) + len(free(network)) == network.w.heap_size
    everywhere = [*flying, *held]
    for flow in flows:
        _, s = places(network, flow.id)
        own = sum(each.subflow == s and each.kind != at.ACK for each in everywhere)
        assert s.segments_sent == s.segments_received + s.segments_dropped + own
        if flow.protocol == "udp":
            assert s.segments_out_of_order == 0


@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    kind=st.sampled_from(["codel", "fq_codel", "red"]),
    seed=st.integers(0, 1000),
    changes=st.lists(
        st.tuples(st.integers(1, 300), st.integers(100_000, 25 * MBPS), st.integers(0, 60)),
        max_size=6,
    ),
    packets=st.integers(1, 300),
    jitter_ms=st.sampled_from([0, 5]),
    rates=st.tuples(st.floats(0.1, 20), st.floats(0.1, 20)),
)
def test_packets_are_neither_lost_nor_reordered(kind, seed, changes, packets, jitter_ms, rates):
    shape = {"delay_ns": 30 * MS, "jitter_ns": jitter_ms * MS}
    shape["packets"] = max(packets, 24) if kind == "red" else packets
    topology = behind_a_switch(kind, users=("ue1", "ue2", "ue3"), **shape)
    flows = [udp(rates[0], "ue1"), udp(rates[1], "ue2"), tcp("ue3")]
    network = started(topology, *flows, seed=seed)
    now_ns = 0
    for milliseconds, rate_bps, delay_ms in changes:
        now_ns += milliseconds * MS
        network.run(now_ns)
        check_conservation(network, flows)
        network.set_link(SetLinkRate("access", rate_bps))
        network.set_link(SetLinkDelay("access", delay_ms * MS))
    network.run(now_ns + 200 * MS)
    check_conservation(network, flows)


@settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    kind=st.sampled_from(["codel", "fq_codel", "red"]),
    rates=st.lists(
        st.tuples(st.integers(20, 300), st.integers(300_000, 20 * MBPS)), min_size=1, max_size=6
    ),
)
def test_a_link_that_is_never_idle_carries_the_integral_of_its_rate(kind, rates):
    network = started(behind_a_switch(kind), udp(40))
    now_ns, bits = 50 * MS, 5 * MBPS * 0.05
    network.run(now_ns)
    for milliseconds, rate_bps in rates:
        network.set_link(SetLinkRate("access", rate_bps))
        now_ns += milliseconds * MS
        network.run(now_ns)
        bits += rate_bps * milliseconds / 1000
    assert abs(access(network).out_bytes * 8 - bits) < 3 * FRAME_BITS


# --- RED


def red_queue(packets=100, rate_bps=5 * MBPS, is_marking=False, **keys):
    discipline = Discipline("red", is_marking, **keys)
    network = started(topology_of(discipline, rate_bps=rate_bps, packets=packets))
    hop = access(network)
    return network, hop, hop.managed


def arrives(network, hop, backlog, now_ns=0, ecn=at.NOT_ECT):
    """Whether RED lets a packet into a queue that holds `backlog` full packets."""
    q, p = hop.managed, network.w.free_packet
    q.size_bytes, p.size, p.ecn = backlog * 1514, 1514, ecn
    admitted = admits_early(hop, q, p, now_ns)
    was, p.ecn = p.ecn, at.NOT_ECT
    return admitted, was


def test_the_weight_is_that_of_tc():
    """`limit 400000 min 30000 max 90000 avpkt 1000 burst 55` is shown as `ewma 5`."""
    assert Red(30, 90, 55).weight_log == 5
    found = red(Discipline("red"), 100)
    assert (found.min_packets, found.max_packets, found.burst) == (8, 25, 14)
    for least, most in ((2, 5), (5, 15), (20, 60), (100, 110), (2, 500)):
        own = red(Discipline("red", min_packets=least, max_packets=most), 1000)
        reached = [(1 - (1 - 0.5**log) ** own.burst) * 2**log for log in range(1, 32)]
        wanted = own.burst + 1 - least
        assert reached[own.weight_log - 2] < wanted <= reached[own.weight_log - 1]


@pytest.mark.parametrize("seed", range(4))
def test_the_average_is_the_exponential_mean(seed):
    network, hop, q = red_queue()
    rng, mean = random.Random(seed), 0.0
    backlogs = [rng.randrange(90) for _ in range(300)]
    for each in backlogs:
        arrives(network, hop, each)
        mean += (each * 1514 - mean) / 2**q.weight_log
        assert q.scaled_average / 2**q.weight_log == pytest.approx(mean, abs=len(backlogs) + 1)


def test_the_average_of_an_idle_queue_falls_as_if_frames_had_found_it_empty():
    network, hop, q = red_queue()
    frame_ns = 1514 * 8 * SECOND // (5 * MBPS)
    q.scaled_average = 30 * 1514 << q.weight_log
    q.idle_since_ns = SECOND
    arrives(network, hop, 0, SECOND + 20 * frame_ns + MS)
    expected = 30 * 1514 * (1 - 0.5**q.weight_log) ** 20
    assert q.scaled_average / 2**q.weight_log == pytest.approx(expected, rel=0.01)
    assert q.idle_since_ns == 0


def test_packets_are_dropped_with_the_probability_of_the_average():
    """Between the thresholds the gap between two drops is uniform: on average half of
    (max - min) / (probability x (average - min)), and never longer than all of it."""
    network, hop, q = red_queue(200, min_packets=20, max_packets=60, probability=0.1)
    for backlog in (19, 30, 50, 59):
        q.scaled_average = backlog * 1514 << q.weight_log
        gaps, since = [], 0
        for _ in range(20_000):
            since += 1
            if not arrives(network, hop, backlog)[0]:
                gaps.append(since)
                since = 0
        if backlog < 20:
            assert not gaps
            continue
        longest = (60 - 20) / 0.1 / (backlog - 20)
        assert sum(gaps) / len(gaps) == pytest.approx(longest / 2 + 0.5, rel=0.1)
        assert max(gaps[1:]) <= longest + 1
    q.scaled_average = 61 * 1514 << q.weight_log
    assert not any(arrives(network, hop, 61)[0] for _ in range(100))


def test_red_marks_packets_of_senders_with_ecn():
    network, hop, q = red_queue(200, is_marking=True, min_packets=20, max_packets=60)
    q.scaled_average = 70 * 1514 << q.weight_log
    assert arrives(network, hop, 70, ecn=at.ECT) == (True, at.CE)
    assert arrives(network, hop, 70) == (False, at.NOT_ECT)
    assert arrives(network, hop, 200, ecn=at.ECT)[0] is False  # it is full
    assert arrives(network, hop, 5, ecn=at.ECT)[0]


def test_a_step_marks_every_packet_while_so_many_wait():
    network, hop, q = red_queue(40, is_marking=True, mark_packets=20)
    assert (q.weight_log, q.min_bytes, q.max_bytes) == (1, 20 * 1514, 20 * 1514)
    assert [arrives(network, hop, each, ecn=at.ECT)[1] for each in (19, 19, 20, 21)] == [at.ECT] * 4
    assert arrives(network, hop, 22, ecn=at.ECT) == (True, at.CE)  # 20.5 on average
    assert arrives(network, hop, 22) == (False, at.NOT_ECT)
    assert arrives(network, hop, 40, ecn=at.ECT)[0] is False  # it is full


@pytest.mark.parametrize("step", [1, 2, 3, 50, 10_000])
def test_a_packet_counts_half_of_the_average_of_a_step(step):
    assert red(Discipline("red", True, mark_packets=step), 10_000).weight_log == 1


def test_red_keeps_the_average_between_its_thresholds():
    discipline = Discipline("red", True, min_packets=10, max_packets=30, probability=0.1)
    network = started(topology_of(discipline, packets=200, delay_ns=20 * MS), tcp())
    network.run(3 * SECOND)
    before, waits = access(network).out_bytes, []
    for n in range(700):
        network.run(3 * SECOND + n * 10 * MS)
        waits.append(network.queued(access(network)))
    assert (access(network).out_bytes - before) * 8 / 7 > 0.9 * 5 * MBPS
    assert 3 < sorted(waits)[350] < 30
