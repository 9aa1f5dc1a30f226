"""Links that lose in bursts, double packets, or let some skip the delay, against closed forms."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.engines.sim.core import links
from lab.engines.sim.core import state as at
from lab.engines.sim.tables import FRAME_BYTES
from lab.scenario.flows import Flow
from lab.scenario.targets import SetLinkDelay, SetLinkLoss, SetLinkRate
from lab.topologies.bursts import Bursts
from lab.topologies.topology import BOTH

from .networks import MS, SECOND, chain, started
from .rows import on_links, places

DATAGRAMS = Flow("ue1-1", "ue1", "down", "reno", 8_000_000, None, protocol="udp")


def in_bursts(p, r, good=0.0, bad=1.0):
    bursts = Bursts(*(round(each * 1e6) for each in (p, r, good, bad)))
    return {"bursts": bursts, "loss_ppm": bursts.mean_ppm}


def hops(network):
    return [hop for hop in network.tables.links.values() if hop.in_packets]


@pytest.mark.parametrize(
    ("p", "r", "good", "bad"),
    [(0.01, 0.25, 0, 1), (0.002, 0.05, 0.001, 0.6), (0.3, 0.3, 0.1, 0.9), (0.05, 1, 0, 1)],
)
def test_bursts_have_the_mean_and_the_length_of_the_model(p, r, good, bad):
    """Of Gilbert and Elliott: the bad state has the share p / (p + r) and lasts 1 / r packets."""
    network = started(chain(2, rate_bps=10_000_000, **in_bursts(p, r, good, bad)))
    hop = next(iter(network.tables.links.values()))
    states, lost, count = [], 0, 60_000
    for _ in range(count):
        states.append(hop.bursts.is_bad)
        lost += links.random_below(hop.random, at.MILLION) < links.next_loss_ppm(hop)
    bad_share = p / (p + r)
    assert sum(states) / count == pytest.approx(bad_share, rel=0.15)
    assert lost / count == pytest.approx((1 - bad_share) * good + bad_share * bad, rel=0.15)
    stays = [len(list(group)) for state, group in groupby(states) if state]
    assert sum(stays) / len(stays) == pytest.approx(1 / r, rel=0.15)


def test_a_new_loss_ends_the_bursts():
    network = started(chain(2, rate_bps=10_000_000, delay_ns=MS, **in_bursts(0.1, 0.1)), DATAGRAMS)
    network.run(2 * SECOND)
    _, s = places(network)
    assert s.segments_dropped > 400
    for link in ("l1", "l2"):
        network.set_link(SetLinkLoss(link, 0))
    before = s.segments_dropped
    network.run(4 * SECOND)
    assert s.segments_dropped == before


@pytest.mark.parametrize("loss_ppm", [0, 100_000])
@pytest.mark.parametrize("duplicate_ppm", [10_000, 300_000])
def test_a_fraction_of_the_packets_arrives_twice(duplicate_ppm, loss_ppm):
    """Over two links. Each copy is lost independently of the other."""
    shape = {"duplicate_ppm": duplicate_ppm, "loss_ppm": loss_ppm, "delay_ns": 5 * MS}
    network = started(chain(2, rate_bps=20_000_000, **shape), DATAGRAMS)
    network.run(30 * SECOND)
    _, s = places(network)
    arrived = ((1 + duplicate_ppm / 1e6) * (1 - loss_ppm / 1e6)) ** 2
    assert s.segments_received / s.segments_sent == pytest.approx(arrived, rel=0.02)


@settings(max_examples=30, deadline=None)
@given(
    rate_bps=st.sampled_from([None, 5_000_000, 20_000_000]),
    delay_ns=st.sampled_from([0, 3 * MS, 30 * MS]),
    jitter_ns=st.sampled_from([0, 2 * MS]),
    reorder_ppm=st.sampled_from([0, 10_000, 500_000]),
    duplicate_ppm=st.sampled_from([0, 100_000, 1_000_000]),
    bursts=st.sampled_from(
        [None, Bursts(10_000, 200_000), Bursts(200_000, 100_000, 1000, 500_000)]
    ),
    flow=st.sampled_from([DATAGRAMS, Flow("ue1-1", "ue1", "up", "cubic", None, None)]),
    change=st.sampled_from(
        [None, SetLinkRate("l1", 2_000_000, BOTH), SetLinkDelay("l1", MS, BOTH)]
    ),
)
def test_what_is_delivered_is_what_was_sent_plus_copies_minus_losses(
    rate_bps, delay_ns, jitter_ns, reorder_ppm, duplicate_ppm, bursts, flow, change
):
    loss_ppm = bursts.mean_ppm if bursts else 0
    impaired = {
        "delay_ns": delay_ns,
        "jitter_ns": min(jitter_ns, delay_ns),
        "reorder_ppm": reorder_ppm,
        "duplicate_ppm": duplicate_ppm,
        "bursts": bursts,
        "loss_ppm": loss_ppm,
    }
    topology = chain(2, rate_bps=rate_bps or 10_000_000, queue_packets=20, **impaired)
    network = started(topology, flow)
    network.run(SECOND // 2)
    if change:
        network.set_link(change)
    network.run(SECOND)
    if change is None:
        assert all(hop.in_packets == hop.out_packets + hop.drops for hop in hops(network))
    network.stop(flow)
    network.run(10 * SECOND)
    assert on_links(network) == []
    assert all(hop.in_packets == hop.out_packets + hop.drops for hop in hops(network))
    assert all(network.queued(hop) == 0 for hop in hops(network))


@pytest.mark.parametrize("reorder_ppm", [20_000, 300_000])
def test_packets_that_skip_the_delay_overtake_the_others(reorder_ppm):
    """A packet is delayed by 20 ms or not at all, and those that are keep their order."""
    network = started(
        chain(2, rate_bps=100_000_000, delay_ns=20 * MS, reorder_ppm=reorder_ppm), DATAGRAMS
    )
    network.run(SECOND)
    arrivals = []  # of packets on the link: (when it left, when it arrives)
    for step in range(200):
        network.run(SECOND + step * 20 * MS)
        arrivals += [(p.departs_ns, p.out_ns) for p in on_links(network) if p.departs_ns]
    delays = {out - departs for departs, out in arrivals}
    assert delays <= {0, 20 * MS}
    late = sorted(each for each in arrivals if each[1] > each[0])
    assert late == sorted(late, key=lambda each: each[1])
    received = places(network)[1].segments_received
    sent = places(network)[1].segments_sent
    assert sent - received < 40 * MS * 8_000_000 / (FRAME_BYTES * 8 * SECOND) + 2


@pytest.mark.parametrize("cc", ["reno", "cubic"])
@pytest.mark.parametrize("reorder", [0.001, 0.02, 0.2])
def test_reordered_data_keeps_its_rate(paths, cc, reorder):
    """The window of RFC 8985 grows to the 20 ms by which packets are early. Without it, each early
    packet makes the earlier ones lost."""
    path = {"rate_mbps": 40, "delay_ms": 20, "queue_packets": 150, "down": {"reorder": reorder}}
    simulation = paths(path, multipath={"cc": cc})
    simulation.run(8)
    assert simulation.mbps(simulation.run(10)) > 0.93 * 40 * 1448 / 1514
    s = simulation.network.tables.subflows["ue1-1"][0].record
    assert s.is_reordering
    assert s.reorder_steps >= 1


def test_duplicates_do_not_look_like_reordering(paths):
    simulation = paths({"rate_mbps": 20, "delay_ms": 20, "duplicate": 0.05})
    simulation.run(8)
    assert simulation.mbps(simulation.run(5)) > 0.9 * 20 * 1448 / 1514 / 1.05
    s = simulation.network.tables.subflows["ue1-1"][0].record
    assert s.duplicates_reported > 100
    assert (s.is_reordering, s.reorder_steps) == (0, 0)
