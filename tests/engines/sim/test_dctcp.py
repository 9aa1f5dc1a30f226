"""DCTCP (RFC 8257): what the receiver says, what the sender makes of it, and what comes of both."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from lab.congestion import NEEDS_ECN
from lab.engines import registry
from lab.engines.sim.connections import Connections
from lab.engines.sim.core import (
    acknowledgements,
    congestion,
    links,
    mptcp,
    receiver,
    sender,
    tail_loss_probe,
)
from lab.engines.sim.core import state as at
from lab.engines.sim.core.laws import dctcp, reno
from lab.engines.sim.network import Network
from lab.errors import RequestError
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.schema import Multipath
from lab.topologies.queues import FIFO, Discipline
from lab.topologies.topology import Link, Node, Topology

from .networks import BULK, MS, SECOND, chain
from .rows import Sender, places

MBPS = 1_000_000
FLOW = replace(BULK, cc="dctcp")


def step(packets):
    return Discipline("red", True, mark_packets=packets)


def one_link(discipline=FIFO, rate_bps=5 * MBPS, delay_ns=10 * MS, packets=300):
    """srv1 - s1 - s2 - ue1, of which the second link has the rate and the queue."""
    ends = Node("ue1", "user", "l3"), Node("srv1", "server")
    nodes = (*(Node(name, "switch") for name in ("s1", "s2")), *ends)
    shape = {"rate_bps": rate_bps, "delay_ns": delay_ns, "queue_packets": packets}
    middle = Link("l2", "s1", "s2", discipline=discipline, **shape)
    return Topology("one", nodes, (Link("l1", "srv1", "s1"), middle, Link("l3", "s2", "ue1")))


def started(topology, flow=FLOW, ecn=False):
    network = Network(topology, Multipath(ecn=ecn), [flow], seed=1)
    network.start(flow, flow.cc)
    return network


# --- alpha and the window


class Alpha:
    """The sender's count of marks, fed by hand: a round trip ends when its segments have come."""

    def __init__(self):
        _, self.s = places(started(one_link()))

    def round_trip(self, delivered, marked):
        """Begin a round trip: its first acknowledgement ends the one before, and updates alpha."""
        s = self.s
        s.snd_una = s.dctcp.round_end
        s.snd_nxt = s.snd_una + delivered
        for n in range(delivered):
            dctcp.count(s, 1, int(n < marked))
            s.snd_una += int(n < delivered - 1)
        return s.dctcp.alpha


def test_alpha_follows_the_share_of_marked_segments():
    """Computed by hand, in 1/1024: a - a/16 + 64 x marked / delivered, each rounded down."""
    one = Alpha()
    found = [one.round_trip(10, marked) for marked in (0, 5, 10, 10, 1, 0)]
    # the acknowledgement that begins a round trip tells of the one before
    assert found == [960, 900, 876, 886, 895, 846]
    #        0 of 0 | 0: 960-60 | 5: 900-56+32 | 10: 876-54+64 | 10: 886-55+64 | 1: 895-55+6
    one.s.dctcp.alpha = 15
    assert one.round_trip(10, 0) == 0  # a sixteenth of less than 16 would be nothing


def test_alpha_is_at_most_one():
    one = Alpha()
    assert max(one.round_trip(7, 7) for _ in range(200)) <= dctcp.ALL
    assert one.s.dctcp.alpha > 0.98 * dctcp.ALL


@pytest.mark.parametrize("seed", range(3))
def test_alpha_is_the_exponential_mean_of_the_rfc(seed):
    """RFC 8257, section 3.3: alpha = alpha (1 - g) + g M, g = 1/16. Rounding down costs up to
    two units of 1/1024 a round trip, of which a sixteenth is forgotten each time."""
    one, rng = Alpha(), random.Random(seed)
    expected, before = 1.0, 0.0
    for _ in range(300):
        delivered = rng.randrange(1, 60)
        marked = rng.randrange(delivered + 1)
        expected += (before - expected) / 16
        assert one.round_trip(delivered, marked) / 1024 == pytest.approx(expected, abs=32 / 1024)
        before = marked / delivered


@pytest.mark.parametrize(
    ("window", "alpha", "reduced"),
    [(100.9, 1024, 50), (100, 512, 75), (100, 100, 96), (10, 100, 10), (3, 1024, 2), (2, 1024, 2)],
)
def test_a_mark_reduces_the_window_by_half_of_alpha(window, alpha, reduced):
    """In whole segments, as dctcp_ssthresh."""
    s = Alpha().s
    s.cwnd, s.dctcp.alpha = float(window), alpha
    congestion.on_mark(s, SECOND)
    assert (s.cwnd, s.ssthresh, s.is_cwr_due) == (reduced, reduced, 1)


def test_growth_and_losses_are_those_of_reno():
    assert dctcp.on_ack is reno.on_ack
    s = Alpha().s
    s.cwnd, s.dctcp.alpha = 20.0, 0
    congestion.on_loss(s, SECOND)
    assert (s.cwnd, s.ssthresh) == (10, 10)


def one_sender(cc="dctcp", ecn=False):
    return Sender(started(one_link(), replace(BULK, cc=cc), ecn))


def test_the_window_is_reduced_once_per_round_trip():
    one = one_sender()
    one.s.dctcp.alpha = 512
    one.acknowledge(echo=1)
    alpha, reduced, end = one.s.dctcp.alpha, one.s.ssthresh, one.s.recover
    assert reduced == 20 - 20 * alpha // 2048
    while one.s.snd_una < end:
        one.acknowledge(echo=1)
        assert one.s.ssthresh == reduced
    one.acknowledge()
    assert one.s.mode == at.OPEN
    assert reduced < one.s.cwnd < reduced + 0.1  # the last acknowledgement lets it grow


def test_a_loss_after_a_mark_halves_the_window_once_more():
    """Linux, dctcp_state: other congestion controls do not reduce a second time."""
    for cc, halved in (("dctcp", True), ("reno", False)):
        one = one_sender(cc, ecn=True)
        one.acknowledge(echo=1)
        window, reduced = one.s.cwnd, one.s.ssthresh
        assert one.s.mode == at.REDUCED
        acknowledgements.enter_recovery(one.s, SECOND)
        assert one.s.ssthresh == one.s.reduced_cwnd == (window / 2 if halved else reduced), cc


def test_a_loss_that_a_probe_reveals_counts_as_a_mark():
    """Linux, tcp_process_tlp_ack: it enters CWR, and no recovery."""
    for cc, window in (("dctcp", 20), ("reno", 10)):
        s = one_sender(cc).s
        s.dctcp.alpha = 0
        s.probe_end = s.probe_transmission = s.snd_una = 1
        tail_loss_probe.receive_ack(s, 1, SECOND)
        assert (s.probe_end, s.cwnd) == (0, window), cc


def test_all_packets_are_ecn_capable():
    """Linux, INET_ECN_xmit, unlike RFC 3168: also retransmissions, acknowledgements and SYNs."""
    one = one_sender()
    sender.transmit(one.w, one.s, one.s.snd_una, one.w.now_ns)
    assert one.s.host_line.last.ecn == at.ECT
    for kind in (at.SYN, at.ACK, at.ASK):
        p = links.new_packet(one.w, one.s, kind, one.s.ack_route, 66)
        assert p.ecn == at.ECT
        links.free_packet(one.w, p)
        assert p.ecn == at.NOT_ECT


def test_others_keep_their_ecn():
    one = one_sender("reno")
    assert (one.c.is_ecn, one.c.is_dctcp, one.s.host_line.last.ecn) == (0, 0, at.NOT_ECT)
    one = one_sender("reno", ecn=True)
    assert (one.c.is_ecn, one.c.is_dctcp, one.s.host_line.last.ecn) == (1, 0, at.ECT)
    assert set(NEEDS_ECN) == {"dctcp"}


@pytest.mark.parametrize(
    ("cc", "ecn", "use"),
    [("reno", False, (0, 0)), ("reno", True, (1, 1)), ("dctcp", False, (1, 1))],
)
def test_who_changes_to_dctcp_needs_the_ecn_of_the_beginning(cc, ecn, use):
    network = started(one_link(), replace(BULK, cc=cc), ecn)
    connections = Connections(network)
    connections.add(FLOW, cc)
    connections.set_cc("dctcp")
    c, _ = places(network)
    assert (c.is_ecn, c.is_dctcp) == use
    connections.set_cc("reno")
    assert (c.is_ecn, c.is_dctcp) == (use[0], 0)


# --- the receiver


class Receiver:
    """A receiver, past quick mode, that gets segments in order. `sent` has its acknowledgements:
    what is expected next, and ECE."""

    def __init__(self):
        self.network = started(one_link())
        self.w = self.network.w
        _, self.s = places(self.network)
        self.sent = []
        self.get(at.ECT)
        self.s.quick_acks = 0
        self.sent.clear()

    def get(self, ecn, seq=None, cwr=0):
        s = self.s
        p = links.new_packet(self.w, s, at.SEGMENT, self.w.end, 1514)
        p.seq = p.dsn = p.transmission = s.rcv_nxt if seq is None else seq
        p.ecn, p.echo = ecn, cwr
        self.taken(mptcp.receive(self.w, p, MS))
        line = s.ack_line
        while line.first != self.w.no_packet:
            following = line.first.next
            self.taken(line.first)
            line.first = following

    def taken(self, ack):
        if ack != self.w.no_packet:
            assert (ack.kind, ack.ecn) == (at.ACK, at.ECT)
            self.sent.append((ack.seq, ack.echo))

    def late(self):
        """Let the timer of a delayed acknowledgement expire."""
        assert self.s.delack.expires_ns > 0
        self.taken(receiver.send_ack(self.w, self.s, MS))


def test_two_segments_alike_are_acknowledged_together():
    one = Receiver()
    for ecn in (at.ECT, at.ECT):
        one.get(ecn)
    assert one.sent == [(3, 0)]
    one.get(at.CE)  # another: at once
    assert one.sent == [(3, 0), (4, 1)]
    for ecn in (at.CE, at.CE):
        one.get(ecn)
    assert one.sent == [(3, 0), (4, 1), (6, 1)]
    one.get(at.CE)
    one.late()
    assert one.sent[-1] == (7, 1)


def test_an_acknowledgement_that_waits_is_sent_before_one_with_another_mark():
    one = Receiver()
    one.get(at.ECT)
    assert one.sent == []
    one.get(at.CE)
    assert one.sent == [(2, 0), (3, 1)]
    one.get(at.CE)
    one.get(at.ECT)
    assert one.sent[2:] == [(4, 1), (5, 0)]


def test_no_cwr_ends_the_echo():
    """The segment with CWR is acknowledged at once, because the sender's window may be small."""
    one = Receiver()
    one.get(at.CE)
    one.get(at.CE, cwr=1)
    assert one.sent == [(2, 1), (3, 1)]
    one.get(at.CE)  # and only this one
    assert one.sent == [(2, 1), (3, 1)]
    one.get(at.CE)
    one.get(at.CE, seq=0)  # it has arrived before: its mark says nothing new
    one.get(at.ECT, seq=0)
    assert one.sent[2:] == [(5, 1), (5, 1), (5, 1)]


def test_segments_out_of_order_are_acknowledged_with_their_marks():
    one = Receiver()
    one.get(at.CE, seq=2)
    one.get(at.ECT, seq=1)
    assert one.sent == [(1, 1), (3, 0)]


@pytest.mark.parametrize("seed", range(5))
def test_the_echo_of_all_segments_is_exact(seed):
    """RFC 8257, section 3.2: the sender learns of each segment whether it was marked."""
    one, rng, marks = Receiver(), random.Random(seed), []
    for _ in range(400):
        ecn = at.CE if rng.random() < (0.1, 0.5, 0.9)[seed % 3] else at.ECT
        one.get(ecn, cwr=int(rng.random() < 0.05))
        marks.append(int(ecn == at.CE))
        if one.s.delack.expires_ns > 0 and rng.random() < 0.1:
            one.late()
    if one.s.delack.expires_ns > 0:
        one.late()
    echoed, expected = [], 1
    for seq, echo in one.sent:
        echoed += [echo] * (seq - expected)
        expected = seq
    assert echoed == marks
    assert len(one.sent) < len(marks) or seed % 3 == 1  # some are acknowledged together


def test_both_acknowledgements_arrive_in_their_order():
    """Over a network nothing seems lost or out of order."""
    network = started(one_link(step(10)))
    network.run(5 * SECOND)
    _, s = places(network)
    marked = network.tables.links["l2", "s2"].managed.marked
    assert marked > 20
    assert (s.is_reordering, s.segments_retransmitted, s.timeouts) == (0, 0, 0)


# --- on links


@pytest.mark.parametrize(
    ("rate_mbps", "delay_ms", "k"), [(10, 10, 10), (20, 20, 20), (50, 5, 20), (100, 5, 30)]
)
def test_a_long_flow_fills_the_link_and_keeps_the_queue_at_the_threshold(rate_mbps, delay_ms, k):
    """A threshold above a seventh of the BDP costs no throughput (Alizadeh et al., SIGCOMM 2010,
    section 3.4)."""
    assert k > rate_mbps * 1000 * 2 * delay_ms / (1514 * 8) / 7
    network = started(one_link(step(k), rate_mbps * MBPS, delay_ms * MS))
    network.run(3 * SECOND)
    hop, (_, s) = network.tables.links["l2", "s2"], places(network)
    before, queued = hop.out_bytes, []
    for n in range(500):
        network.run(3 * SECOND + n * 10 * MS)
        queued.append(network.queued(hop))
    assert (hop.out_bytes - before) * 8 / 5 > 0.98 * rate_mbps * MBPS
    assert 0.5 * k < sum(queued) / len(queued) < 1.3 * k
    assert max(queued) < 2 * k
    assert s.segments_lost == 0


def test_reno_with_ecn_loses_throughput_where_dctcp_does_not():
    """The same threshold, a seventh of the BDP: halving the window empties the queue."""
    sent = []
    for cc in ("reno", "dctcp"):
        network = started(one_link(step(12), 20 * MBPS, 25 * MS), replace(BULK, cc=cc), ecn=True)
        network.run(12 * SECOND)
        sent.append(places(network)[1].segments_received)
    assert sent[0] < 0.95 * sent[1]


def test_without_marks_it_is_reno():
    received = []
    for cc in ("reno", "dctcp"):
        network = started(chain(2, rate_bps=5 * MBPS, queue_packets=20), replace(BULK, cc=cc))
        network.run(10 * SECOND)
        _, s = places(network)
        assert s.segments_lost > 0
        received.append((s.segments_received, s.segments_lost))
    assert received[0] == received[1]


def results(folder, topology, traffic, **keys):
    """The users of a result, and its connections."""
    raw = {"name": "one", "title": "One", "duration_s": 20, "seed": 1}
    scenario = loading.from_data(raw | {"topology": topology, "traffic": traffic} | keys, "test")
    done = run(
        scenario, registry.create("sim", Options(speed=0.0)), Recorder(folder, scenario, "sim")
    )
    assert not done.error, done.error
    rates = {user: each["throughput_mbps"] for user, each in done.result["users"].items()}
    return rates, done.result["connections"]


def shared(users, k=20):
    queue = {"kind": "red", "packets": 200, "mark_packets": k}
    shape = {"rate_mbps": 20, "delay_ms": 10, "queue": queue}
    return {"kind": "shared_bottleneck", **shape, "users": [{"id": user} for user in users]}


def test_two_flows_share_a_link(tmp_path):
    traffic = [{"user": "ue1", "cc": "dctcp"}, {"user": "ue2", "cc": "dctcp", "start_s": 2}]
    rates, connections = results(tmp_path, shared(("ue1", "ue2")), traffic, duration_s=30)
    assert sum(rates.values()) > 0.93 * 20
    assert max(rates.values()) < 1.4 * min(rates.values())
    assert [each["subflows"][0]["lost_segments"] for each in connections] == [0, 0]


def test_a_user_without_ecn_loses_packets_beside_dctcp(tmp_path):
    traffic = [{"user": "ue1", "cc": "dctcp"}, {"user": "ue2", "cc": "reno"}]
    _, (marked, dropped) = results(tmp_path, shared(("ue1", "ue2")), traffic)
    assert (marked["subflows"][0]["cc"], dropped["subflows"][0]["cc"]) == ("dctcp", "reno")
    assert marked["subflows"][0]["lost_segments"] == 0
    assert dropped["subflows"][0]["lost_segments"] > 5


@pytest.mark.parametrize("direction", ["down", "up"])
def test_two_subflows_of_multipath_tcp_fill_both_paths(tmp_path, direction):
    queue = {"kind": "red", "packets": 200, "mark_packets": 20}
    paths = [{"rate_mbps": 10, "delay_ms": 10, "queue": queue}]
    paths.append({"rate_mbps": 5, "delay_ms": 20, "queue": queue})
    topology = {"kind": "parallel_paths", "paths": paths}
    traffic = [{"user": "ue1", "direction": direction}]
    rates, (one,) = results(tmp_path, topology, traffic, multipath={"cc": "dctcp"})
    assert rates["ue1"] > 0.9 * 15
    assert [each["cc"] for each in one["subflows"]] == ["dctcp", "dctcp"]
    assert sum(each["lost_segments"] for each in one["subflows"]) == 0


def test_windows_cannot_be_limited():
    raw = {"name": "one", "title": "One", "traffic": [{"user": "ue1", "cc": "dctcp"}]}
    raw |= {"topology": shared(("ue1",)), "multipath": {"expected_by": "window"}}
    scenario = loading.from_data(raw, "test")
    with pytest.raises(RequestError, match=r"cc 'dctcp' with multipath\.expected_by 'window'"):
        registry.admit("sim", scenario, Options())
