"""Results that theory gives: shares and windows in equilibrium, fairness, goodput, airtime of
acknowledgements."""

from __future__ import annotations

import pytest

from lab import summaries
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN
from lab.radio.cell import Cell, Station
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

pytestmark = pytest.mark.whole

COUPLED = ["lia", "olia", "balia"]
PAYLOAD, MPTCP_PAYLOAD, FRAME, ACK = 1448, 1420, 1514, 66


def window(frames, number):
    """Mean of a subflow's rate times its RTT, in segments."""
    rows = [frame["sf"][f"ue1-1/{number}"] for frame in frames]
    return sum(row["mbps"] * row["rtt_ms"] for row in rows) * 1e3 / 8 / MPTCP_PAYLOAD / len(rows)


def goodput(paths, law, count, seed):
    """Mb/s of a connection over `count` paths that lose one packet in a hundred."""
    path = {"rate_mbps": 1000, "delay_ms": 25, "loss": 0.01}
    simulation = paths(*[path] * count, traffic={"cc": law}, seed=seed)
    simulation.run(5)
    return simulation.mbps(simulation.run(60, step_s=5))


@pytest.mark.parametrize(("law", "flows"), [("reno", 2), *((law, 1) for law in COUPLED)])
def test_two_subflows_in_equilibrium(paths, law, flows):
    """At equal loss and RTT coupled laws get as much as one Reno flow, uncoupled ones twice that
    (means of three seeds)."""
    one = sum(goodput(paths, "reno", 1, seed) for seed in (1, 2, 3))
    two = sum(goodput(paths, law, 2, seed) for seed in (1, 2, 3))
    assert two / one == pytest.approx(flows, rel=0.15)


@pytest.mark.parametrize(("law", "share"), [("reno", 2 / 3), *((law, 1 / 2) for law in COUPLED)])
def test_two_subflows_beside_a_reno_flow(shared, law, share):
    """On one link the connection gets a half if it is coupled, else two thirds (means of three
    seeds)."""
    got = []
    for seed in (1, 2, 3):
        users = [{"id": "mp", "subflows": 2}, {"id": "sp"}]
        traffic = [{"user": "mp", "cc": law}, {"user": "sp", "cc": "reno"}]
        simulation = shared(users, traffic, seed=seed)
        simulation.run(10)
        frames = simulation.run(60, step_s=5)
        both = simulation.mbps(frames, "mp"), simulation.mbps(frames, "sp")
        assert sum(both) > 0.97 * 20 * MPTCP_PAYLOAD / FRAME
        got.append(both[0] / sum(both))
    assert sum(got) / 3 == pytest.approx(share, abs=0.08)


def test_olia_keeps_the_smallest_window_on_the_path_with_more_loss(paths):
    """Two paths lose 0.1 and 0.5 %. LIA's windows are proportional to 1 / p (Wischik et al., NSDI
    2011, section 2.3), OLIA's differ more."""
    good, bad = ({"rate_mbps": 1000, "delay_ms": 25, "loss": loss} for loss in (0.001, 0.005))
    kept = {}
    for law in COUPLED:
        simulation = paths(good, bad, traffic={"cc": law})
        simulation.run(10)
        frames = simulation.run(60)
        kept[law] = window(frames, 2) / window(frames, 1)
    assert kept["lia"] == pytest.approx(0.001 / 0.005, rel=0.25)
    assert kept["olia"] < 0.75 * min(kept["lia"], kept["balia"])


@pytest.mark.parametrize("count", [2, 5, 10])
def test_equal_flows_share_a_link_fairly_and_fill_it(shared, count):
    names = [f"u{n}" for n in range(1, count + 1)]
    simulation = shared([{"id": name} for name in names], [{"user": name} for name in names])
    simulation.run(20)
    frames = simulation.run(60, step_s=5)
    rates = [simulation.mbps(frames, name) for name in names]
    assert summaries.jain(rates) > 0.95
    assert sum(rates) == pytest.approx(20 * PAYLOAD / FRAME, rel=0.01)


def test_multipath_goodput_is_1420_of_1514_bytes(paths):
    simulation = paths({"rate_mbps": 20, "delay_ms": 5}, {"rate_mbps": 10, "delay_ms": 5})
    simulation.run(3)
    assert simulation.mbps(simulation.run(10)) == pytest.approx(
        30 * MPTCP_PAYLOAD / FRAME, rel=0.01
    )


@pytest.mark.parametrize("overhead", [0.0, 0.5])
def test_acknowledgements_take_their_share_of_the_air(overhead):
    """For two full frames, one of 66 bytes is sent up; it takes the full airtime that does not
    depend on length."""
    nodes = (Node("ue1", "user", "wifi1"), Node("wifi1", "wifi"), Node("srv1", "server"))
    cell = Cell(
        "wifi1", "wifi", (Station("ue1", 10_000_000, overhead=overhead),), delay_ns=2_000_000
    )
    flow = Flow("ue1-1", "ue1", "down", "reno", None, None)
    network = Network(
        Topology("one", nodes, (Link("server", "wifi1", "srv1"),), (cell,)),
        Multipath(),
        [flow],
        seed=1,
    )
    network.start(flow, "reno")
    network.run(3_000_000_000)
    before = network.tables.stations["wifi1", "ue1", DOWN].out_packets
    network.run(13_000_000_000)
    frames_per_s = (network.tables.stations["wifi1", "ue1", DOWN].out_packets - before) / 10
    acknowledgement = overhead + (1 - overhead) * ACK / FRAME
    assert frames_per_s == pytest.approx(10e6 / 8 / FRAME * 2 / (2 + acknowledgement), rel=0.02)
