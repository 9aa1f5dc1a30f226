"""Interfaces of a user that are switched off and on while connections are open."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import state as at
from lab.engines.sim.tables import JOINS
from lab.errors import LabError, RequestError
from lab.scenario import loading
from lab.scenario.loading import Overrides

from .conftest import Simulation

PATHS = {"rate_mbps": 20, "delay_ms": 10}, {"rate_mbps": 12, "delay_ms": 30}
WIRE = 1420 / 1514  # payload in a frame
MBPS = {"eth1": 20 * WIRE, "eth2": 12 * WIRE}
OTHER = {"eth1": "eth2", "eth2": "eth1"}
NUMBER = {"eth1": 1, "eth2": 2}


def mbps(frames, number):
    rates = [frame["sf"].get(f"ue1-1/{number}", {"mbps": 0.0})["mbps"] for frame in frames]
    return sum(rates) / len(rates)


@pytest.mark.parametrize(("name", "direction"), [("eth1", "down"), ("eth2", "up")])
@pytest.mark.parametrize("scheduler", ["lowest_rtt", "linux", "round_robin", "redundant"])
def test_the_other_subflow_carries_all_and_a_new_one_is_opened(paths, name, direction, scheduler):
    simulation = paths(*PATHS, traffic={"direction": direction}, multipath={"scheduler": scheduler})
    simulation.run(3)
    simulation.flip(f"iface.ue1.{name}.up", False)
    simulation.run(2)  # Linux sends all again that is not acknowledged, up to two send buffers
    frames = simulation.run(2)
    assert simulation.mbps(frames) == pytest.approx(MBPS[OTHER[name]], rel=0.03)
    assert mbps(frames, NUMBER[name]) == 0
    assert simulation.network.subflow(("ue1-1", NUMBER[name])).record.state == at.CLOSED
    simulation.flip(f"iface.ue1.{name}.up", True)
    simulation.run(3)
    frames = simulation.run(2)
    assert mbps(frames, 3) == pytest.approx(MBPS[name], rel=0.05)
    assert mbps(frames, NUMBER[OTHER[name]]) == pytest.approx(MBPS[OTHER[name]], rel=0.05)
    (connection,) = simulation.report()["connections"]
    assert [each["id"] for each in connection["subflows"]] == [f"ue1-1/{n}" for n in (1, 2, 3)]


def test_a_file_arrives_whole_over_an_interface_that_comes_and_goes(paths):
    traffic = {"kind": "file", "volume_mb": 8}
    simulation = paths(*PATHS, traffic=traffic, seed=3)
    for _ in range(3):
        simulation.run(0.7)
        simulation.flip("iface.ue1.eth1.up", False)
        simulation.run(0.3)
        simulation.flip("iface.ue1.eth1.up", True)
    simulation.run(8)
    (connection,) = simulation.report()["connections"]
    assert 8e6 * 8 / 32e6 < connection["completion_s"] < 8e6 * 8 / 12e6


def test_the_server_hears_of_it_half_a_round_trip_later(paths):
    simulation = paths(*PATHS)
    simulation.run(3)
    network = simulation.network
    first, second = (network.subflow(("ue1-1", n)).record for n in (1, 2))
    heard_ns = network.now_ns + second.srtt_ns // 2
    simulation.flip("iface.ue1.eth1.up", False)
    network.run(heard_ns - 1_000_000)
    assert first.state == at.ESTABLISHED
    network.run(heard_ns + 1_000_000)
    assert first.state == at.CLOSED


def test_the_user_closes_its_own_end_at_once(paths):
    simulation = paths(*PATHS, traffic={"direction": "up"})
    simulation.run(3)
    network = simulation.network
    simulation.flip("iface.ue1.eth1.up", False)
    network.run(network.now_ns + 1)
    assert network.subflow(("ue1-1", 1)).record.state == at.CLOSED


def test_nothing_passes_an_interface_that_is_down_also_after_its_link_was_repaired(paths):
    simulation = paths(*PATHS)
    hops = [simulation.network.tables.links["access1", end] for end in ("p1", "ue1")]
    for target, value, is_up in (
        ("iface.ue1.eth1.up", False, 0),
        ("link.access1.up", False, 0),
        ("link.access1.up", True, 0),
        ("iface.ue1.eth1.up", True, 1),
        ("link.access1.up", False, 0),
        ("iface.ue1.eth1.up", False, 0),
        ("iface.ue1.eth1.up", True, 0),
        ("link.access1.up", True, 1),
    ):
        simulation.flip(target, value)
        assert [hop.is_up for hop in hops] == [is_up, is_up], (target, value)


def test_a_further_subflow_that_has_not_begun_begins_when_its_interface_is_back(paths):
    simulation = paths({"rate_mbps": 20, "delay_ms": 100}, PATHS[1])
    simulation.run(0.1)
    simulation.flip("iface.ue1.eth2.up", False)
    simulation.run(4)
    assert mbps(simulation.run(1), 2) == 0
    simulation.flip("iface.ue1.eth2.up", True)
    simulation.run(3)
    assert mbps(simulation.run(1), 3) == pytest.approx(MBPS["eth2"], rel=0.05)


def test_a_connection_that_opens_meanwhile_uses_the_other_interface_alone(paths):
    flows = [{"user": "ue1"}, {"user": "ue1", "start_s": 2}]
    simulation = paths(*PATHS, traffic=flows)
    simulation.run(1)
    simulation.flip("iface.ue1.eth2.up", False)
    simulation.run(3)
    frames = simulation.run(1)
    assert {name for name in frames[-1]["sf"] if name.startswith("ue1-2")} == {"ue1-2/1"}
    simulation.flip("iface.ue1.eth2.up", True)
    simulation.run(3)
    assert {"ue1-1/3", "ue1-2/3"} <= set(simulation.run(1)[-1]["sf"])


def test_the_last_interface_stays(paths):
    simulation = paths(*PATHS)
    simulation.run(1)
    simulation.flip("iface.ue1.eth1.up", False)
    with pytest.raises(RequestError, match="ue1 has no other interface that opens subflows"):
        simulation.flip("iface.ue1.eth2.up", False)
    simulation.flip("iface.ue1.eth1.up", False)  # it is down already
    simulation.flip("iface.ue1.eth1.up", True)
    simulation.flip("iface.ue1.eth2.up", False)


def test_connections_can_be_opened_anew_many_times_but_not_endlessly(paths):
    simulation = paths(*PATHS)
    simulation.run(1)
    for _ in range(JOINS):
        simulation.flip("iface.ue1.eth2.up", False)
        simulation.run(0.2)
        simulation.flip("iface.ue1.eth2.up", True)
        simulation.run(0.3)
    simulation.flip("iface.ue1.eth2.up", False)
    with pytest.raises(LabError, match=f"it has opened {JOINS} subflows anew"):
        simulation.flip("iface.ue1.eth2.up", True)
    assert simulation.mbps(simulation.run(1)) == pytest.approx(MBPS["eth1"], rel=0.05)


@pytest.mark.parametrize("name", ["testbed_wifi_lte", "thirty_users", "campus", "two_paths"])
def test_with_every_topology_and_seed_the_rest_goes_on(name):
    for seed in (1, 2):
        scenario = loading.load(
            name, Overrides(strategy="none", seed=seed, settings=("events=[]",))
        )
        user = scenario.network.multipath[0]
        simulation = Simulation(scenario)
        targets = loading.targets.targets(scenario)
        (first, *_) = [each for each in targets if each.startswith(f"iface.{user}.")]
        simulation.run(2)
        simulation.flip(first, False)
        simulation.run(2)
        assert simulation.mbps(simulation.run(2), user) > 0
        simulation.flip(first, True)
        simulation.run(4)
        frames = simulation.run(1)
        assert {f"{user}-1/2", f"{user}-1/3"} <= set(frames[-1]["sf"])


# Which interfaces, and when


def events(*rows):
    return [
        {"at_s": at_s, "target": f"iface.ue1.{name}.up", "value": up} for at_s, name, up in rows
    ]


def load(*rows, **keys):
    data = {"name": "mine", "title": "T", "topology": {"kind": "parallel_paths", "paths": PATHS}}
    return loading.from_data(
        data | {"traffic": [{"user": "ue1"}], "events": events(*rows)} | keys, "mine.yaml"
    )


@pytest.mark.parametrize(
    ("rows", "keys", "wrong"),
    [
        ([(1, "eth1", False), (2, "eth2", False)], {}, "events[2]: iface.ue1.eth2.up: ue1 has no"),
        ([(1, "eth3", False)], {}, "'iface.ue1.eth3.up' is unknown"),
        ([(1, "eth1", 0)], {}, "0 is neither true nor false"),
        (
            [(1, "eth1", False)],
            {"traffic": [{"user": "ue1", "start_s": 5}]},
            "ue1 opens its connections over eth1, the next one at 5 s",
        ),
        (
            [(1, "eth1", False)],
            {"topology": {"kind": "parallel_paths", "paths": PATHS[:1]}},
            "'iface.ue1.eth1.up' is unknown",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_the_start(rows, keys, wrong):
    with pytest.raises(RequestError) as error:
        load(*rows, **keys)
    assert wrong in str(error.value)


def test_interfaces_may_go_down_in_turn_and_before_traffic_if_they_are_back():
    load((1, "eth1", False), (2, "eth1", True), (3, "eth2", False))
    load((1, "eth1", False), (2, "eth1", True), traffic=[{"user": "ue1", "start_s": 3}])
    load((1, "eth2", False), traffic=[{"user": "ue1", "start_s": 3}])


def test_users_that_walk_have_no_such_targets():
    walking = loading.load("moving_users")
    assert not [each for each in loading.targets.targets(walking) if each.startswith("iface.")]
    standing = loading.load("thirty_users")
    assert [each for each in loading.targets.targets(standing) if each.startswith("iface.")]
