"""A frame is put together from the readings of several sources, which are fakes here."""

import json
from dataclasses import fields
from types import SimpleNamespace

import pytest

from lab.engines.mininet import telemetry
from lab.engines.mininet.controller_client import read_line
from lab.engines.mininet.emulated_network import Stations
from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.kernel.netlink import Queue
from lab.engines.mininet.kernel.shaping import NETEM, PFIFO
from lab.engines.mininet.telemetry import Telemetry
from lab.engines.mininet.traffic.sampler import OpenedFlow
from lab.frame import LinkSample
from lab.topologies.topology import wire


class Scheduler:
    """Devices are numbered in the order in which they are first asked for."""

    numbers, read = {}, {}

    def index(self, device):
        return self.numbers.setdefault(device, len(self.numbers) + 1)

    def queues(self, wanted):
        return {each: self.read[each] for each in wanted if each in self.read}

    def close(self):
        pass


class Sockets:
    closed = False

    def close(self):
        self.closed = True

    def sockets(self):
        return []


class Network:
    def pid(self, host):
        return 1


class TrafficProcesses:
    hosts = ("ue1", "ue2", "ue3", "ue4", "srv1")
    bytes = 0

    def send_all(self, requests):
        assert all(request == {"do": "status"} for request in requests.values())
        receiver = {"flows": {"ue1-1": {"bytes": self.bytes, "sends": False, "mptcp": False}}}
        sender = {"flows": {"ue1-1": {"bytes": 99, "sends": True}}}
        return {
            host: receiver if host == "ue1" else sender if host == "srv1" else {"flows": {}}
            for host in requests
        }


class Links:
    cells = {"wifi1": None}

    def lag_ms(self, queues, radios):
        assert set(radios) == {"wifi1"}
        return 0.0


class ApAgent:
    def occupancy(self, tiers):
        self.tiers = tiers
        return {"wifi1": 0.97123}


@pytest.fixture
def made(load_testbed, tmp_path, monkeypatch):
    monkeypatch.setattr(netlink, "inside", lambda pid, make: Sockets())
    monkeypatch.setattr(netlink, "Scheduler", Scheduler)
    Scheduler.numbers, Scheduler.read, clock = {}, {}, [10.0]
    monkeypatch.setattr(telemetry.time, "monotonic", lambda: clock[0])
    topology = load_testbed().network
    emulated = SimpleNamespace(
        topology=topology,
        wiring=wire(topology),
        network=Network(),
        programs=TrafficProcesses(),
        links=Links(),
        expected=None,
        misleading=[],
        stations=Stations(topology, wire(topology), Links()),
    )
    made = Telemetry(emulated, 0.5)
    made.clock = clock
    made.watchdog.sample = lambda t, late_s, lag_ms: ["slow"] if late_s > 1 else []
    made.begin(zero_s=10.0)
    return made


def write(made, **line):
    made.heard([read_line(json.dumps({"at": 1.0} | line).encode())])


def frame(made, t, late_s=0.0, elapsed_s=0.5):
    made.clock[0] += elapsed_s
    frame, wrong = made.frame(t, late_s)
    return frame.to_json(), wrong


def test_a_users_rate_is_counted_where_it_is_received(made):
    made.sampler.open(OpenedFlow("ue1-1", "ue1", ("10.1.0.1", 4000), "down", False))
    frame(made, 0.5)
    made.programs.bytes = 125_000
    assert frame(made, 1.0)[0]["user"]["ue1"]["mbps"] == 2.0


def test_the_first_interval_begins_when_the_flows_begin(made):
    """They begin some time after the commands that start them."""
    made.sampler.open(OpenedFlow("ue1-1", "ue1", ("10.1.0.1", 4000), "down", False))
    made.begin(zero_s=10.4)
    made.programs.bytes = 125_000
    first, _ = frame(made, 0.5, elapsed_s=0.9)
    assert first["user"]["ue1"]["mbps"] == 2.0
    assert first["interval_s"] == 0.5


def test_an_access_point_shows_the_meter_and_the_tiers_that_pox_decided(made):
    made.ap_agent = ApAgent()
    shown = {
        "tier1_mbps": 0.0,
        "tier2_mbps": 0.0,
        "mac_occupancy": 0.9712,
        "meter_mbps": None,
        "stations": 3,
    }
    ap = frame(made, 0.5)[0]["ap"]["wifi1"]
    assert ap == ap | shown
    write(made, kind="observation", aps={"wifi1": {"meter_mbps": 0.4}}, tiers={"ue3": {"wifi1": 2}})
    write(made, kind="decision", ap="wifi1", meter_mbps=0.2)
    assert frame(made, 1.0)[0]["ap"]["wifi1"]["meter_mbps"] == 0.1  # 0.2 in scenario units
    assert made.ap_agent.tiers == {"ue3": {"wifi1": 2}}
    write(made, kind="decision", ap="wifi1", meter_mbps=None)
    assert frame(made, 1.5)[0]["ap"]["wifi1"]["meter_mbps"] is None


def test_without_an_agent_the_occupancy_is_unknown(made):
    assert frame(made, 0.5)[0]["ap"]["lte1"]["mac_occupancy"] is None


NOTHING = Queue(0, 0, 0, 0)


def test_a_link_shows_what_left_it_and_what_it_lost(made):
    unknown = {"mbps": None} | dict.fromkeys(each.name for each in fields(LinkSample))
    down, up = made._device["s1-eth2"], made._device["wifi1-eth1"]
    Scheduler.read = {(port, kind): NOTHING for port in (down, up) for kind in (NETEM, PFIFO)}
    assert frame(made, 0.5)[0]["link"]["wifi"] == unknown  # there is no earlier reading
    delayed = 20  # packets that netem delays; they do not wait for the rate
    Scheduler.read = {
        (down, NETEM): Queue(7 + delayed, 10, 250_000, 90),
        (down, PFIFO): Queue(7, 6, 250_000, 90),
        (up, NETEM): Queue(1 + delayed, 0, 12_500, 90),
        (up, PFIFO): Queue(1, 0, 12_500, 90),
    }
    row = frame(made, 1.0)[0]["link"]
    assert set(row) == {each.id for each in made.topology.sampled_links} == {"wifi", "lte"}
    shown = {"mbps": 4.0, "mbps_ab": 4.0, "mbps_ba": 0.2, "backlog": 7, "loss": 0.1}
    assert row["wifi"] == row["wifi"] | shown
    assert row["lte"] == unknown
    Scheduler.read[up, NETEM] = Queue(3 + delayed, 0, 1_012_500, 190)
    Scheduler.read[up, PFIFO] = Queue(3, 0, 1_012_500, 190)
    row = frame(made, 1.5)[0]["link"]["wifi"]
    assert (row["mbps"], row["backlog"], row["loss"]) == (16.0, 3, 0.0)  # of the busier direction


def test_reasons_for_overload_come_with_a_frame(made):
    assert frame(made, 0.5)[1] == []
    assert frame(made, 1.0, late_s=2)[1] == ["slow"]
    assert frame(made, 1.5)[0]["t"] == 1.5


def test_closing_releases_every_namespace(made):
    made.close()
    assert all(each.closed for each in made._diagnoses.values())
