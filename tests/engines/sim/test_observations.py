"""What a strategy observes."""

from __future__ import annotations

import pytest

from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides

from .conftest import Simulation
from .scripted import FIRST, TWO, known, request, two

__all__ = ["known", "two"]


def test_observed_subflows_have_their_ends_paths_and_counters(two):
    simulation = two()
    simulation.flip("link.path1.loss", 0.02)
    strategy = request(simulation)
    simulation.run(6)
    first, second = strategy.observations[-1].subflows
    assert (first.key, first.user, first.ap, first.path) == (FIRST, "ue1", "p1", ("s1", "p1"))
    assert first.ends == ("10.0.0.1", "10.16.0.1")
    assert second.ends == ("10.0.0.1", "10.17.0.1")
    assert strategy.observations[-1].user_addresses == {"ue1": ("10.16.0.1", "10.17.0.1")}
    assert first.source.endswith(":5001")
    assert first.device_loss == pytest.approx(0.02)
    assert second.device_loss == 0
    assert first.lost_packets == pytest.approx(0.02 * first.sent_packets, rel=0.5)
    assert first.retransmitted_packets >= first.lost_packets - 20
    assert second.rate_bps == pytest.approx(12e6, rel=0.1)


def test_observed_arcs_have_their_current_state(two):
    simulation = two()
    strategy = request(simulation)
    simulation.run(3)
    before = {(arc.tail, arc.head): arc for arc in strategy.observations[-1].arcs}
    simulation.flip("link.path1.rate_mbps", 5)
    simulation.flip("link.path2.up", False)
    simulation.run(2)
    after = {(arc.tail, arc.head): arc for arc in strategy.observations[-1].arcs}
    assert before["s1", "p1"].used_bps == pytest.approx(20e6, rel=0.1)
    assert before["p1", "10.16.0.1"].used_bps == pytest.approx(20e6, rel=0.1)
    assert after["s1", "p1"].capacity_bps == 5_000_000
    assert ("s1", "p2") in before
    assert ("s1", "p2") not in after


def test_the_air_is_observed_as_one_arc_of_all_stations(testbed):
    simulation = testbed(strategy="scripted")
    strategy = request(simulation)
    simulation.run(6)
    arcs = {(arc.tail, arc.head): arc for arc in strategy.observations[-1].arcs}
    stations = [arcs["wifi1~air", f"10.1.0.{n}"].used_bps for n in (1, 2, 3)]
    assert arcs["wifi1", "wifi1~air"].used_bps == pytest.approx(sum(stations), abs=3)
    assert arcs["wifi1~air", "wifi1"].used_bps < arcs["wifi1", "wifi1~air"].used_bps / 10


def test_a_strategy_can_decide_whenever_subflows_begin_and_end(paths):
    traffic = [
        {"user": "ue1", "start_s": 2},
        {"user": "ue1", "kind": "file", "volume_mb": 1, "start_s": 4},
    ]
    simulation = paths(
        *TWO, traffic=traffic, strategy={"name": "scripted", "params": {"interval_s": 60}}
    )
    strategy = request(simulation)
    simulation.run(8)
    counts = [(each.now_ns // 1_000_000_000, len(each.subflows)) for each in strategy.observations]
    assert counts[0] == (0, 0)
    assert counts[1][0] == 2
    assert max(count for _, count in counts) == 4
    assert counts[-1][1] == 2
    assert len(counts) <= 7


def test_a_users_data_come_from_its_own_server():
    simulation = Simulation(scenario.load("collision_between", Overrides()))
    simulation.run(3)
    network = simulation.network
    sent = [network.tables.links[f"server{n}", f"e{n}"].out_bytes for n in (1, 2)]
    assert min(sent) > 1_000_000
    assert {each.ends.flow.source for each in network.tables.subflows["ue2-1"]} == {"10.0.0.2"}
