"""A strategy's observation does not depend on the order in which connections of one moment open."""

from __future__ import annotations

import itertools

import pytest

from controller.paths import Flow
from controller.pox_ext.counters import Counters
from controller.pox_ext.host_agents import HostReports
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.observer import Observer
from controller.pox_ext.router import Router
from controller.pox_ext.tracker import Joined, Tracker
from controller.topology import Topology
from lab.topologies import wireless_set
from lab.topologies.topology import as_json, wire

SERVER = "10.0.0.1"


class NoMeters:
    def tier2_bps(self, ap, addresses):
        return None

    def limit_bps(self, ap):
        return None


class World:
    def __init__(self):
        topology = wireless_set.build(wireless_set.Params(users=10, multipath_percent=100))
        self.network = Topology.model_validate(as_json(topology, wire(topology)))
        hosts, self.tracker = Hosts(self.network), Tracker()
        router = Router(self.network, hosts)
        self.observer = Observer(
            self.network,
            hosts,
            router,
            self.tracker,
            NoMeters(),
            Counters(lambda _: {}),
            HostReports(),
        )

    def open(self, user, connection, number=1):
        address = self.network.hosts[user][number - 1].address
        port = 5000 + sum(map(ord, connection))
        flow = Flow(address, SERVER, 6, port, 5001)
        self.tracker.restore(Joined(connection, number, flow))

    def observed(self):
        return [
            (each.user, each.connection, each.number) for each in self.observer.observe(1).subflows
        ]


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("order", list(itertools.permutations(("ue1", "ue2", "ue10"))))
def test_connections_that_are_observed_first_together_are_sorted_by_user(order, world):
    for user in order:
        world.open(user, f"of {user}")
    for user in reversed(order):
        world.open(user, f"of {user}", 2)
    expected = [(user, f"of {user}", n) for user in ("ue1", "ue2", "ue10") for n in (1, 2)]
    assert world.observed() == expected
    assert world.observed() == expected


def test_connections_that_open_later_follow_and_those_of_one_user_keep_their_order(world):
    world.open("ue5", "b")
    world.open("ue5", "a")
    assert [name for _, name, _ in world.observed()] == ["b", "a"]
    world.open("ue2", "c")
    assert [name for _, name, _ in world.observed()] == ["b", "a", "c"]
    for joined in [each for each in world.tracker.subflows() if each.connection == "b"]:
        world.tracker.remove(joined)
    assert [name for _, name, _ in world.observed()] == ["a", "c"]
    world.open("ue1", "b")  # the earlier one has ended, so this is a new connection
    assert [name for _, name, _ in world.observed()] == ["a", "c", "b"]
