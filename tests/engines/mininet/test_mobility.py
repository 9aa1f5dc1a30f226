"""The thread that moves users: those that are put somewhere, and those that walk."""

from __future__ import annotations

import os
import time
from queue import Queue
from types import SimpleNamespace

import pytest

from lab.engines.mininet.emulated_network import Stations
from lab.engines.mininet.mobility import Mobility
from lab.engines.mininet.network.wifi import Target
from lab.errors import RequestError
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.topologies.topology import wire

AT_MOST_S = 20


class Radio:
    """Associates at once. It is readable, as the netlink socket of a radio is after an answer."""

    def __init__(self):
        self.did, (self._read, self._write) = [], os.pipe()

    def fileno(self):
        return self._read

    def leave(self):
        self.did.append("leave")

    def associate(self, target):
        self.did.append(target.ap)
        os.write(self._write, b".")

    def commands(self, target):
        return [["iw", target.ap]]

    def answer(self):
        os.read(self._read, 1)
        return True

    def close(self):
        os.close(self._read)
        os.close(self._write)


class World:
    """A network whose radios, cells and Mininet-WiFi only record what they are told."""

    def __init__(self, scenario):
        topology = scenario.network
        links = SimpleNamespace(
            set_station=lambda *_: None,
            remove_station=lambda *_: None,
            first_packet_s=lambda ap, address: None,
        )
        self.moves, self.associated, self.radios = Queue(), Queue(), {}
        network = SimpleNamespace(
            target=lambda ap: Target(ap, f"lab-{ap}", 2412, "02:00"),
            move=lambda *where: self.moves.put(where),
            record_association=lambda *pair: self.associated.put(pair),
            inside=lambda user, argv: [user, *argv],
        )
        self.stations = Stations(topology, wire(topology), links)
        emulated = SimpleNamespace(stations=self.stations, network=network, links=links)

        class Faked(Mobility):
            def _radio(_, user, ap):
                return self.radios.setdefault(user, Radio())

        self.mobility = Faked(scenario, emulated)


def of(name, *settings):
    return loading.load(name, Overrides(settings=("topology.users=4", *settings)))


@pytest.fixture
def world():
    made = []

    def make(scenario):
        made.append(World(scenario))
        return made[0]

    yield make
    made[0].mobility.stop()


@pytest.mark.parametrize(("user", "place"), [("ue1", (150.0, 49.0)), ("ue3", (100.0, 152.0))])
def test_a_user_that_is_put_somewhere_gets_its_rates_and_its_access_point(world, user, place):
    made = world(of("thirty_users", "topology.multipath_percent=100"))
    before = dict(made.stations.stations)
    nearest = "wifi3" if place[1] < 100 else "wifi1"
    (old,) = (ap for ap, who in before if who == user and ap != "lte1")
    made.mobility.start(time.monotonic())
    made.mobility.place(user, place)
    assert made.moves.get(timeout=AT_MOST_S) == (user, *place)
    assert made.mobility.places[user] == place
    assert {ap for ap, who in made.stations.stations if who == user} == {nearest, "lte1"}
    assert made.stations.stations["lte1", user] != before["lte1", user]
    if old != nearest:
        assert made.associated.get(timeout=AT_MOST_S) == (user, nearest)
        assert made.radios[user].did == ["leave", nearest]
    assert set(made.radios) <= {user}  # no other was opened
    made.mobility.stop()
    moved, ended = made.mobility.take()
    assert [(each.node, each.link) for each in moved] == [(user, nearest)] * (old != nearest)
    assert [each.new for each in ended] == [nearest] * (old != nearest)


def test_a_user_that_walks_stands_until_it_walks_on(world):
    made = world(of("moving_users", "mobility.speed_min_mps=30", "mobility.speed_max_mps=40"))

    def next_of(user):
        while True:
            who, *place = made.moves.get(timeout=AT_MOST_S)
            if who == user:
                return tuple(place)

    made.mobility.place("ue2", (30.0, 60.0))
    made.mobility.start(time.monotonic())
    while next_of("ue2") != (30.0, 60.0):
        pass
    assert {next_of("ue2") for _ in range(2)} == {(30.0, 60.0)}
    made.mobility.place("ue2", None)
    while next_of("ue2") == (30.0, 60.0):
        pass


def test_a_network_without_places_has_no_thread(world):
    made = world(loading.load("testbed_wifi_lte"))
    made.mobility.start(time.monotonic())
    assert made.mobility._thread is None


def test_a_rate_at_an_access_point_that_a_user_has_left_is_refused(world):
    made = world(of("thirty_users", "topology.multipath_percent=100"))
    old = next(ap for ap, user in made.stations.stations if user == "ue2" and ap != "lte1")
    new = "wifi3" if old != "wifi3" else "wifi1"
    made.stations.hand_over("ue2", old, new, made.stations.stations[old, "ue2"])
    with pytest.raises(RequestError, match="ue2 has moved away from it"):
        made.stations.set_rate(old, "ue2", 1_000_000)
