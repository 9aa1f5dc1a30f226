"""What a strategy asks for, and what becomes of it on the wire."""

from __future__ import annotations

import pytest

from controller import strategies
from controller.command import Decision, Expect, Route, SetBackup, subflow_name
from controller.strategies.base import Strategy
from lab.engines.sim.core import layout as at
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides

from .conftest import Simulation
from .rows import places

FIRST, SECOND = ("ue1-1", 1), ("ue1-1", 2)
TWO = {"rate_mbps": 20, "delay_ms": 10}, {"rate_mbps": 12, "delay_ms": 30}
WIRE = 1420 / 1514  # payload in a frame


class Scripted(Strategy):
    """Does what a test has written down, and notes what it sees."""

    name = "scripted"
    wakes_on_subflows = True

    def __init__(self, params):
        super().__init__(params)
        self.seen, self.todo = [], []

    def decide(self, seen):
        self.seen.append(seen)
        known = {each.key for each in seen.subflows}
        now = [command for command in self.todo if command.subflow in known]
        self.todo = [command for command in self.todo if command not in now]
        return [
            Decision(subflow_name(command.subflow), "the test says so", command) for command in now
        ]

    def withdraw(self, seen):
        return []


@pytest.fixture(autouse=True)
def known(monkeypatch):
    monkeypatch.setitem(strategies.STRATEGIES, "scripted", Scripted)


def told(simulation, *commands):
    """Let the strategy ask for these at its next step; returns the strategy."""
    strategy = simulation.engine.brain.control.strategy
    strategy.todo += commands
    return strategy


@pytest.fixture
def two(paths):
    """Two paths of 20 and 12 Mb/s under a scripted strategy that is asked twice a second."""
    return lambda **keys: paths(
        *TWO, strategy={"name": "scripted", "params": {"interval_s": 0.5}}, **keys
    )


@pytest.fixture
def colliding():
    """Two subflows whose hashes choose the same way."""

    def make(*settings, strategy="scripted"):
        settings = ("strategy.params.interval_s=0.5", *settings)
        return Simulation(
            scenario.load(
                "collision_within", Overrides(strategy=strategy, seed=1, settings=settings)
            )
        )

    return make


def carried(frames, subflow):
    return sum(frame["sf"][subflow_name(subflow)]["mbps"] for frame in frames) / len(frames)


# --- backup


def test_a_backup_carries_nothing_while_another_works_and_comes_back(two):
    simulation = two()
    simulation.run(3)
    told(simulation, SetBackup(FIRST, True))
    simulation.run(2)
    frames = simulation.run(2)
    assert carried(frames, FIRST) == 0
    assert carried(frames, SECOND) == pytest.approx(12 * WIRE, rel=0.03)
    assert [frame["sf"]["ue1-1/1"]["backup"] for frame in frames] == [True] * 4
    told(simulation, SetBackup(FIRST, False))
    simulation.run(3)
    assert carried(simulation.run(2), FIRST) > 0.9 * 20 * WIRE
    (connection,) = simulation.report()["connections"]
    assert 3 <= connection["subflows"][0]["backup_s"] <= 5


def test_a_backup_carries_data_when_no_other_works(two):
    simulation = two()
    told(simulation, SetBackup(FIRST, True))
    simulation.run(3)
    simulation.flip("link.path2.up", False)
    simulation.run(3)
    assert carried(simulation.run(2), FIRST) > 0.9 * 20 * WIRE
    simulation.flip("link.path2.up", True)
    simulation.run(8)
    assert carried(simulation.run(2), FIRST) == 0


def test_the_sender_hears_of_a_backup_half_a_round_trip_later(two):
    simulation = two()
    simulation.run(1)
    network = simulation.network
    subflow = network.subflow(SECOND)
    rtt_ns = int(network.w.row[subflow.place + at.SRTT_NS])
    assert rtt_ns > 60_000_000
    network.set_backup(subflow, True)
    now_ns = network.now_ns
    network.run(now_ns + rtt_ns // 2 - 1_000_000)
    assert network.w.row[subflow.place + at.BACKUP] == 0
    network.run(now_ns + rtt_ns // 2 + 1_000_000)
    assert network.w.row[subflow.place + at.BACKUP] == 1


def test_what_a_lossy_path_has_under_way_goes_over_the_other_when_it_becomes_backup(two):
    simulation = two()
    simulation.run(2)
    simulation.flip("link.path1.loss", 1.0)
    simulation.run(0.05, 0.05)
    told(simulation, SetBackup(FIRST, True))
    rates = [frame["user"]["ue1"]["mbps"] for frame in simulation.run(3)]
    assert simulation.network.w.row[places(simulation.network)[0] + at.REINJECTED] > 0
    assert (
        min(rates[1:]) > 0.9 * 12 * WIRE
    )  # within a second, before the lossy path's timer could be of help


# --- expected throughput


@pytest.mark.parametrize("mbps", [1, 8])
def test_a_subflow_is_held_to_what_is_expected_of_it(two, mbps):
    simulation = two()
    told(simulation, Expect(FIRST, mbps * 1_000_000))
    simulation.run(3)
    frames = simulation.run(3)
    assert carried(frames, FIRST) == pytest.approx(mbps * WIRE, rel=0.02)
    assert carried(frames, SECOND) == pytest.approx(12 * WIRE, rel=0.03)
    assert frames[-1]["sf"]["ue1-1/1"]["expected_mbps"] == mbps
    told(simulation, Expect(FIRST, None))
    simulation.run(4)
    frames = simulation.run(2)
    assert carried(frames, FIRST) > 0.9 * 20 * WIRE
    assert frames[-1]["sf"]["ue1-1/1"]["expected_mbps"] is None


# --- routes


def test_a_route_separates_colliding_subflows_and_loses_nothing_on_the_way(colliding):
    simulation = colliding()
    simulation.run(2)
    assert (
        simulation.network.subflow(FIRST).way
        == simulation.network.subflow(SECOND).way
        == ("s1", "c2", "s2")
    )
    lost = [
        int(simulation.network.w.row[each.place + at.SEGMENTS_DROPPED])
        for each in simulation.network.subflows()
    ]
    told(simulation, Route(SECOND, ("s1", "c1", "s2")))
    simulation.run(0.2, 0.1)
    assert [
        int(simulation.network.w.row[each.place + at.SEGMENTS_DROPPED])
        for each in simulation.network.subflows()
    ] == lost
    simulation.run(4)
    frames = simulation.run(4)
    assert simulation.mbps(frames) > 0.97 * 20 * WIRE
    assert frames[-1]["link"]["up1"]["mbps"] == pytest.approx(10, rel=0.05)
    (connection,) = simulation.report()["connections"]
    assert [each["path"] for each in connection["subflows"]] == [
        ["s1", "c2", "s2"],
        ["s1", "c1", "s2"],
    ]


def test_acknowledgements_take_the_same_way_back(colliding):
    simulation = colliding()
    told(simulation, Route(FIRST, ("s1", "c1", "s2")), Route(SECOND, ("s1", "c1", "s2")))
    simulation.run(1)
    network = simulation.network
    back = network.tables.links["up2", "s1"]
    before = network.hop(back, at.IN_PACKETS)
    simulation.run(1)
    assert network.hop(back, at.IN_PACKETS) == before


def test_a_link_that_goes_down_sends_subflows_another_way_and_back_when_it_returns(colliding):
    simulation = colliding()
    simulation.run(2)
    simulation.flip("link.up2.up", False)
    assert simulation.network.subflow(FIRST).way == ("s1", "c1", "s2")
    simulation.run(2)
    assert simulation.mbps(simulation.run(2)) > 0.95 * 10 * WIRE
    simulation.flip("link.up2.up", True)
    assert simulation.network.subflow(FIRST).way == ("s1", "c2", "s2")


def test_a_way_that_was_asked_for_is_left_while_it_is_broken(colliding):
    simulation = colliding()
    told(simulation, Route(SECOND, ("s1", "c1", "s2")))
    simulation.run(2)
    simulation.flip("link.down1.up", False)
    assert simulation.network.subflow(SECOND).way == ("s1", "c2", "s2")
    simulation.flip("link.down1.up", True)
    assert simulation.network.subflow(SECOND).way == ("s1", "c1", "s2")


def test_where_no_way_is_left_packets_are_lost(colliding):
    simulation = colliding()
    simulation.run(2)
    for link in ("up1", "up2"):
        simulation.flip(f"link.{link}.up", False)
    simulation.run(1)
    assert simulation.mbps(simulation.run(1)) == 0
    simulation.flip("link.up1.up", True)
    simulation.run(6)
    assert simulation.mbps(simulation.run(2)) > 0.95 * 10 * WIRE


# --- what is seen


def test_subflows_are_seen_with_their_ends_ways_and_counters(two):
    simulation = two()
    simulation.flip("link.path1.loss", 0.02)
    strategy = told(simulation)
    simulation.run(6)
    first, second = strategy.seen[-1].subflows
    assert (first.key, first.user, first.ap, first.path) == (FIRST, "ue1", "p1", ("s1", "p1"))
    assert first.ends == ("10.0.0.1", "10.16.0.1")
    assert second.ends == ("10.0.0.1", "10.17.0.1")
    assert first.source.endswith(":5001")
    assert first.device_loss == pytest.approx(0.02)
    assert second.device_loss == 0
    assert first.lost_packets == pytest.approx(0.02 * first.sent_packets, rel=0.5)
    assert first.retransmitted_packets >= first.lost_packets - 20
    assert second.rate_bps == pytest.approx(12e6, rel=0.1)


def test_arcs_are_seen_as_they_are_now(two):
    simulation = two()
    strategy = told(simulation)
    simulation.run(3)
    before = {(arc.tail, arc.head): arc for arc in strategy.seen[-1].arcs}
    simulation.flip("link.path1.rate_mbps", 5)
    simulation.flip("link.path2.up", False)
    simulation.run(2)
    after = {(arc.tail, arc.head): arc for arc in strategy.seen[-1].arcs}
    assert before["s1", "p1"].used_bps == pytest.approx(20e6, rel=0.1)
    assert before["p1", "10.16.0.1"].used_bps == pytest.approx(20e6, rel=0.1)
    assert after["s1", "p1"].capacity_bps == 5_000_000
    assert ("s1", "p2") in before
    assert ("s1", "p2") not in after


def test_the_air_is_seen_as_one_arc_of_all_stations(testbed):
    simulation = testbed(strategy="scripted")
    strategy = told(simulation)
    simulation.run(6)
    arcs = {(arc.tail, arc.head): arc for arc in strategy.seen[-1].arcs}
    stations = [arcs["wifi1~air", f"10.1.0.{n}"].used_bps for n in (1, 2, 3)]
    assert arcs["wifi1", "wifi1~air"].used_bps == pytest.approx(sum(stations), abs=3)
    assert arcs["wifi1~air", "wifi1"].used_bps < arcs["wifi1", "wifi1~air"].used_bps / 10


def test_a_strategy_that_wants_to_know_is_asked_when_subflows_come_and_go(paths):
    traffic = [
        {"user": "ue1", "start_s": 2},
        {"user": "ue1", "kind": "file", "volume_mb": 1, "start_s": 4},
    ]
    simulation = paths(
        *TWO, traffic=traffic, strategy={"name": "scripted", "params": {"interval_s": 60}}
    )
    strategy = told(simulation)
    simulation.run(8)
    counts = [(seen.now_ns // 1_000_000_000, len(seen.subflows)) for seen in strategy.seen]
    assert counts[0] == (0, 0)
    assert counts[1][0] == 2
    assert max(count for _, count in counts) == 4
    assert counts[-1][1] == 2
    assert len(counts) <= 7


def test_a_users_data_comes_from_its_own_server():
    simulation = Simulation(scenario.load("collision_between", Overrides()))
    simulation.run(3)
    network = simulation.network
    sent = [network.hop(network.tables.links[f"server{n}", f"e{n}"], at.OUT_BYTES) for n in (1, 2)]
    assert min(sent) > 1_000_000
    assert {each.ends.flow.source for each in network.tables.subflows["ue2-1"]} == {"10.0.0.2"}
