"""A frame put together from fakes that can be questioned."""

import json

import pytest

from lab.engines.mininet import telemetry
from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.kernel.netlink import Queue
from lab.engines.mininet.kernel.shaping import NETEM
from lab.engines.mininet.sampler import Opened
from lab.engines.mininet.telemetry import Telemetry
from lab.topologies.topology import wire


class Scheduler:
    """Devices are numbered in the order in which they are asked for."""

    numbers, read = {}, {}

    def index(self, device):
        return self.numbers.setdefault(device, len(self.numbers) + 1)

    def queues(self, wanted):
        return {each: self.read[each] for each in wanted if each in self.read}

    def close(self):
        pass


class Sockets:
    """No host has any."""

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


class Agents:
    def occupancy(self, tiers):
        self.tiers = tiers
        return {"wifi1": 0.97123}


@pytest.fixture
def seen(load, tmp_path, monkeypatch):
    monkeypatch.setattr(netlink, "inside", lambda pid, make: Sockets())
    monkeypatch.setattr(netlink, "Scheduler", Scheduler)
    Scheduler.numbers, Scheduler.read, clock = {}, {}, [10.0]
    monkeypatch.setattr(telemetry.time, "monotonic", lambda: clock[0])
    topology = load().network
    made = Telemetry(
        topology,
        wire(topology),
        Network(),
        TrafficProcesses(),
        Links(),
        tmp_path / "decisions.jsonl",
        0.5,
    )
    made.clock, made.decisions = clock, tmp_path / "decisions.jsonl"
    made.watchdog.look = lambda t, late_s, lag_ms: ["slow"] if late_s > 1 else []
    made.begin()
    return made


def say(seen, **line):
    with seen.decisions.open("a") as file:
        file.write(json.dumps(line) + "\n")


def frame(seen, t, late_s=0.0, elapsed_s=0.5):
    seen.clock[0] += elapsed_s
    frame, wrong = seen.frame(t, late_s)
    return frame.to_json(), wrong


def test_a_users_rate_is_counted_where_it_is_received(seen):
    seen.sampler.open(Opened("ue1-1", "ue1", ("10.1.0.1", 4000), "down", False))
    frame(seen, 0.5)
    seen.programs.bytes = 125_000
    assert frame(seen, 1.0)[0]["user"] == {"ue1": {"mbps": 2.0}}


def test_an_access_point_shows_the_meter_and_the_tiers_that_pox_decided(seen):
    seen.agents = Agents()
    assert frame(seen, 0.5)[0]["ap"]["wifi1"] == {
        "tier1_mbps": 0.0,
        "tier2_mbps": 0.0,
        "mac_occupancy": 0.9712,
        "meter_mbps": None,
        "stations": 3,
    }
    say(seen, kind="observation", aps={"wifi1": {"meter_mbps": 0.4}}, tiers={"ue3": {"wifi1": 2}})
    say(seen, kind="decision", ap="wifi1", meter_mbps=0.2)
    assert frame(seen, 1.0)[0]["ap"]["wifi1"]["meter_mbps"] == 0.1  # 0.2 in scenario units
    assert seen.agents.tiers == {"ue3": {"wifi1": 2}}
    say(seen, kind="decision", ap="wifi1", meter_mbps=None)
    assert frame(seen, 1.5)[0]["ap"]["wifi1"]["meter_mbps"] is None


def test_without_agents_nothing_is_made_up(seen):
    assert frame(seen, 0.5)[0]["ap"]["lte1"]["mac_occupancy"] is None


def test_a_trunk_shows_what_left_it_and_what_it_lost(seen):
    unknown = dict.fromkeys(("mbps", "mbps_ab", "mbps_ba", "backlog", "loss"))
    down, up = seen._device["s1-eth2"], seen._device["wifi1-eth1"]
    Scheduler.read = {(port, NETEM): Queue(0, 0, 0, 0) for port in (down, up)}
    assert frame(seen, 0.5)[0]["link"]["wifi"] == unknown  # nothing to compare with
    Scheduler.read = {
        (down, NETEM): Queue(7, 10, 250_000, 90),
        (up, NETEM): Queue(1, 0, 12_500, 90),
    }
    row = frame(seen, 1.0)[0]["link"]
    assert row["wifi"] == {"mbps": 4.0, "mbps_ab": 4.0, "mbps_ba": 0.2, "backlog": 7, "loss": 0.1}
    assert row["lte"] == unknown
    Scheduler.read[up, NETEM] = Queue(3, 0, 1_012_500, 190)
    row = frame(seen, 1.5)[0]["link"]["wifi"]
    assert (row["mbps"], row["backlog"], row["loss"]) == (16.0, 3, 0.0)  # of the busier direction


def test_what_is_wrong_with_the_machine_comes_along(seen):
    assert frame(seen, 0.5)[1] == []
    assert frame(seen, 1.0, late_s=2)[1] == ["slow"]
    assert frame(seen, 1.5)[0]["t"] == 1.5


def test_no_namespace_is_held_when_it_is_closed(seen):
    seen.close()
    assert all(each.closed for each in seen._diagnoses.values())
