"""Handovers that AP agents report: addresses, tiers, meters and flows move to the new access
point."""

from __future__ import annotations

import pytest

from controller.agent_messages import ApReport
from controller.paths import Flow
from controller.pox_ext.counters import Counters
from controller.pox_ext.host_agents import HostReports
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.observer import Handovers, Observer
from controller.pox_ext.router import Router
from controller.pox_ext.tracker import Tracker
from controller.topology import Topology
from lab.topologies import wireless_set
from lab.topologies.topology import as_json, wire

SERVER = "10.0.0.1"


class Meters:
    def __init__(self):
        self.moved = []

    def hand_over(self, addresses, old, new):
        self.moved.append((set(addresses), old, new))

    def tier2_bps(self, ap, addresses):
        return None

    def limit_bps(self, ap):
        return None


class World:
    """The controller's parts for six users that walk among three access points."""

    def __init__(self):
        topology = wireless_set.build(wireless_set.Params(users=6, multipath_percent=100))
        self.network = Topology.model_validate(as_json(topology, wire(topology)))
        hosts = Hosts(self.network)
        self.hosts, self.router = hosts, Router(self.network, hosts)
        self.meters, self.log = Meters(), []
        self.observer = Observer(
            self.network, hosts, self.router, Tracker(), self.meters, Counters(lambda _: {}),
            HostReports(),
        )  # fmt: skip
        self.handovers = Handovers(
            self.observer,
            self.router,
            self.meters,
            lambda flows: len(self.router.changed(flows)),
            self.log.append,
        )
        self.old = next(
            ap for ap, each in self.network.aps.items() if "ue1" in each.stations and ap != "lte1"
        )
        self.new = "wifi3" if self.old != "wifi3" else "wifi1"
        (self.address,) = (
            each.address for each in self.network.hosts["ue1"] if each.switch == self.old
        )

    def report(self, ap, **stations):
        self.handovers.handle(
            ApReport(kind="ap", seq=1, ap=ap, mac_occupancy=0.5, stations=stations)
        )

    def associations(self):
        found = self.observer.observe(1).associations
        return {(each.user, each.ap): each for each in found}


@pytest.fixture
def world():
    return World()


def test_a_flow_moves_to_the_access_point_that_reports_its_user(world):
    flow = Flow(SERVER, world.address, 6, 5001, 40000)
    for each in (flow, flow.back()):
        world.router.route(each)
    assert world.router.path(flow) == ("s1", world.old)
    world.report(world.new, ue1={"rate_mbps": 7.5, "rssi_dbm": -70.0})
    assert world.router.path(flow) == ("s1", world.new)
    assert world.router.routes[flow][-1].port == f"{world.new}-wlan1"
    assert world.router.path(flow.back()) == (world.new, "s1")
    assert world.meters.moved == [({world.address}, world.old, world.new)]
    assert world.log == [
        {"kind": "association", "user": "ue1", "from": world.old, "to": world.new, "flows_moved": 2}
    ]


def test_the_strategy_observes_the_user_at_its_new_access_point(world):
    world.observer.tiers = {("ue1", world.old): 2, ("ue1", "lte1"): 1, ("ue2", "lte1"): 1}
    world.report(world.new, ue1={"rate_mbps": 7.5, "rssi_dbm": -70.0})
    found = world.associations()
    assert ("ue1", world.old) not in found
    here = found["ue1", world.new]
    assert (here.rate_bps, here.rssi_dbm, here.addresses) == (7_500_000, -70.0, (world.address,))
    assert ("ue1", "lte1") in found
    assert world.observer.tiers == {("ue1", world.new): 2, ("ue1", "lte1"): 1, ("ue2", "lte1"): 1}
    arcs = {arc.head: arc for arc in world.observer.arcs.observed() if arc.link == world.new}
    assert arcs[world.address].capacity_bps == 7_500_000


def test_the_strategy_observes_all_addresses_of_multipath_users(world):
    found = world.observer.observe(1).user_addresses
    assert set(found) == set(world.network.multipath)
    for user, addresses in found.items():
        planned = [own for port in world.network.hosts[user] for own in port.addresses]
        assert sorted(addresses) == sorted(planned)
        assert planned


def test_a_report_that_shows_nothing_new_moves_nothing(world):
    world.report(world.old, ue1={"rate_mbps": 7.5})
    world.report(world.new, ue1={"rate_mbps": 7.5, "associated": False})
    world.report(world.new, ue1={"rate_mbps": 7.5})
    world.report(world.new, ue1={"rate_mbps": 7.5})
    assert len(world.log) == 1


def test_a_user_can_come_back(world):
    world.report(world.new, ue1={"rate_mbps": 7.5})
    world.report(world.old, ue1={"rate_mbps": 7.5})
    assert world.hosts.place(world.address).switch == world.old
    assert world.observer.network == world.network


def test_without_a_known_port_nothing_moves(world):
    aps = {
        name: each.model_copy(update={"port": ""})
        for name, each in world.observer.network.aps.items()
    }
    world.observer.network = world.observer.network.model_copy(update={"aps": aps})
    world.report(world.new, ue1={"rate_mbps": 7.5})
    assert world.hosts.place(world.address).switch == world.old
    assert world.log == []
