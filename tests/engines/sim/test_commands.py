"""Effects of a strategy's commands on the traffic."""

from __future__ import annotations

import pytest

from controller.command import Expect, Route, SetBackup

from .rows import places
from .scripted import FIRST, SECOND, WIRE, colliding, goodput, known, request, two

__all__ = ["colliding", "known", "two"]


# Backup


def test_a_backup_sends_nothing_while_another_subflow_works_and_can_be_restored(two):
    simulation = two()
    simulation.run(3)
    request(simulation, SetBackup(FIRST, True))
    simulation.run(2)
    frames = simulation.run(2)
    assert goodput(frames, FIRST) == 0
    assert goodput(frames, SECOND) == pytest.approx(12 * WIRE, rel=0.03)
    assert [frame["sf"]["ue1-1/1"]["backup"] for frame in frames] == [True] * 4
    request(simulation, SetBackup(FIRST, False))
    simulation.run(3)
    assert goodput(simulation.run(2), FIRST) > 0.9 * 20 * WIRE
    (connection,) = simulation.report()["connections"]
    assert 3 <= connection["subflows"][0]["backup_s"] <= 5


def test_a_backup_sends_data_when_no_other_subflow_works(two):
    simulation = two()
    simulation.run(1)
    request(simulation, SetBackup(FIRST, True))
    simulation.run(2)
    simulation.flip("link.path2.up", False)
    simulation.run(3)
    assert goodput(simulation.run(2), FIRST) > 0.9 * 20 * WIRE
    simulation.flip("link.path2.up", True)
    simulation.run(12)
    assert goodput(simulation.run(2), FIRST) == 0


def test_mp_prio_reaches_the_sender_half_a_round_trip_later(two):
    simulation = two()
    simulation.run(1)
    network = simulation.network
    subflow = network.subflow(SECOND)
    rtt_ns = subflow.record.srtt_ns
    assert rtt_ns > 60_000_000
    network.set_backup(subflow, True)
    now_ns = network.now_ns
    network.run(now_ns + rtt_ns // 2 - 1_000_000)
    assert subflow.record.backup == 0
    network.run(now_ns + rtt_ns // 2 + 1_000_000)
    assert subflow.record.backup == 1


def test_segments_in_flight_are_reinjected_when_a_lossy_path_becomes_backup(two):
    simulation = two()
    simulation.run(2)
    simulation.flip("link.path1.loss", 1.0)
    simulation.run(0.05, 0.05)
    request(simulation, SetBackup(FIRST, True))
    rates = [frame["user"]["ue1"]["mbps"] for frame in simulation.run(3)]
    assert places(simulation.network)[0].reinjected > 0
    assert min(rates[1:]) > 0.9 * 12 * WIRE  # within a second, before the RTO of the lossy path


# Expected throughput


@pytest.mark.parametrize("mbps", [1, 8])
def test_a_subflow_is_paced_to_its_expected_rate(two, mbps):
    simulation = two()
    request(simulation, Expect(FIRST, mbps * 1_000_000))
    simulation.run(3)
    frames = simulation.run(3)
    assert goodput(frames, FIRST) == pytest.approx(mbps * WIRE, rel=0.02)
    assert goodput(frames, SECOND) == pytest.approx(12 * WIRE, rel=0.03)
    assert frames[-1]["sf"]["ue1-1/1"]["expected_mbps"] == mbps
    request(simulation, Expect(FIRST, None))
    simulation.run(4)
    frames = simulation.run(2)
    assert goodput(frames, FIRST) > 0.9 * 20 * WIRE
    assert frames[-1]["sf"]["ue1-1/1"]["expected_mbps"] is None


# Routes


def test_a_route_separates_colliding_subflows_without_loss(colliding):
    simulation = colliding()
    simulation.run(2)
    assert (
        simulation.network.subflow(FIRST).path
        == simulation.network.subflow(SECOND).path
        == ("s1", "c2", "s2")
    )
    lost = [each.record.segments_dropped for each in simulation.network.subflows()]
    request(simulation, Route(SECOND, ("s1", "c1", "s2")))
    simulation.run(0.2, 0.1)
    assert [each.record.segments_dropped for each in simulation.network.subflows()] == lost
    simulation.run(4)
    frames = simulation.run(4)
    assert simulation.mbps(frames) > 0.97 * 20 * WIRE
    assert frames[-1]["link"]["up1"]["mbps"] == pytest.approx(10, rel=0.05)
    (connection,) = simulation.report()["connections"]
    assert [each["path"] for each in connection["subflows"]] == [
        ["s1", "c2", "s2"],
        ["s1", "c1", "s2"],
    ]


def test_acknowledgements_return_over_the_same_path(colliding):
    simulation = colliding()
    request(simulation, Route(FIRST, ("s1", "c1", "s2")), Route(SECOND, ("s1", "c1", "s2")))
    simulation.run(1)
    network = simulation.network
    back = network.tables.links["up2", "s1"]
    before = back.in_packets
    simulation.run(1)
    assert back.in_packets == before


def test_subflows_leave_a_broken_link_and_return_when_it_is_up(colliding):
    simulation = colliding()
    simulation.run(2)
    simulation.flip("link.up2.up", False)
    assert simulation.network.subflow(FIRST).path == ("s1", "c1", "s2")
    simulation.run(2)
    assert simulation.mbps(simulation.run(2)) > 0.95 * 10 * WIRE
    simulation.flip("link.up2.up", True)
    assert simulation.network.subflow(FIRST).path == ("s1", "c2", "s2")


def test_a_changed_path_or_expected_rate_is_an_event(colliding):
    simulation = colliding()
    simulation.run(2)
    simulation.flip("link.up2.up", False)
    simulation.run(1)
    request(simulation, Expect(SECOND, 1_000_000))
    simulation.run(2)

    def logged(number):
        return [
            (event["path"], event["expected_mbps"])
            for event in simulation.notes.events
            if event["kind"] == "subflow" and event["subflow"] == number
        ]

    assert [path for path, _ in logged(FIRST[1])] == [["s1", "c2", "s2"], ["s1", "c1", "s2"]]
    assert logged(SECOND[1])[-1][1] == 1.0


def test_a_requested_path_is_left_while_it_is_broken(colliding):
    simulation = colliding()
    request(simulation, Route(SECOND, ("s1", "c1", "s2")))
    simulation.run(2)
    simulation.flip("link.down1.up", False)
    assert simulation.network.subflow(SECOND).path == ("s1", "c2", "s2")
    simulation.flip("link.down1.up", True)
    assert simulation.network.subflow(SECOND).path == ("s1", "c1", "s2")


def test_packets_are_lost_if_no_path_is_left(colliding):
    simulation = colliding()
    simulation.run(2)
    for link in ("up1", "up2"):
        simulation.flip(f"link.{link}.up", False)
    simulation.run(1)
    assert simulation.mbps(simulation.run(1)) == 0
    simulation.flip("link.up1.up", True)
    simulation.run(6)
    assert simulation.mbps(simulation.run(2)) > 0.95 * 10 * WIRE
