"""Both engines treat uploads alike: the queues of LTE bearers, and what a meter limits.

Only the simulator's tables, and the emulation's code that shapes bearers and describes the network
to the controller, are run.
"""

from __future__ import annotations

import json
import re

import pytest

from controller.topology import read
from lab.engines.mininet.machine import shell
from lab.engines.mininet.network import links
from lab.engines.sim.network import Network
from lab.engines.sim.wireless import Wireless
from lab.radio import lte
from lab.scenario import flows as traffic
from lab.scenario import loading
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario
from lab.topologies.topology import as_json, wire

DIRECTIONS = ("down", "up")


def loaded(*settings: str) -> Scenario:
    return loading.load("testbed_wifi_lte", Overrides(settings=settings))


class Simulated:
    def __init__(self, scenario: Scenario) -> None:
        acts = traffic.schedule(
            traffic.scaled_traffic(scenario), scenario.seed, scenario.duration_s
        )
        flows = {act.flow.id: act.flow for act in acts}.values()
        self.network = Network(scenario.network, scenario.multipath, flows, scenario.seed)

    def bearer(self, user: str, direction: str) -> tuple[int, int]:
        """Rate [bit/s] and queue length of a bearer at lte1."""
        hop = self.network.tables.stations["lte1", user, direction]
        row = (getattr(hop, each) for each in FIELDS)
        return tuple(row)

    def metered(self, user: str) -> set[str]:
        """Directions in which a meter at lte1 limits a user."""
        Wireless(self.network).set_meter("lte1", [user], 100_000)
        return {
            direction
            for direction in DIRECTIONS
            if self.network.tables.stations["lte1", user, direction].metered
        }


FIELDS = ("rate_bps", "queue_size")


class Emulated:
    def __init__(self, scenario: Scenario) -> None:
        topology = scenario.network
        self.wiring = wire(topology)
        (cell,) = (each for each in topology.cells if each.ap == "lte1")
        self.lines = links.make_lte_queues(cell, topology, self.wiring, self)
        text = json.dumps(as_json(topology, self.wiring, flows=scenario.data_flows))
        self.network = read(text)

    def record(self, kind: str, **what: str) -> None:
        """This object is also the ledger, which keeps nothing."""

    def bearer(self, user: str, direction: str) -> tuple[int, int]:
        port = self.wiring.at(user, "lte1").port
        device = links.uplink_device(port) if direction == "up" else port
        own = " ".join(line for line in self.lines if f" dev {device} " in line)
        rate, limit = re.search(r"rate (\d+)bit", own), re.search(r"pfifo limit (\d+)", own)
        return lte.on_air_bps(int(rate.group(1))), int(limit.group(1))

    def metered(self, user: str) -> set[str]:
        return set(self.network.data_directions(user))


@pytest.fixture(params=[Simulated, Emulated])
def make(request, monkeypatch):
    monkeypatch.setattr(shell, "run", lambda *_arguments, **_options: None)
    return request.param


@pytest.mark.parametrize("traffic_direction", DIRECTIONS)
def test_a_bearer_has_the_same_queue_in_both_directions(make, traffic_direction):
    engine = make(loaded(f"traffic_direction={traffic_direction}"))
    for user, mbps in (("ue2", 32.9), ("ue3", 46), ("ue4", 46)):
        expected = (lte.on_air_bps(round(mbps * 1e6)), 200)
        assert [engine.bearer(user, each) for each in DIRECTIONS] == [expected, expected]


@pytest.mark.parametrize(
    ("flows", "metered"),
    [
        ("[{user: all}]", {"down"}),
        ("[{user: all, direction: up}]", {"up"}),
        ("[{user: all}, {user: ue2, direction: up}]", {"down", "up"}),
    ],
)
def test_a_meter_limits_the_directions_of_a_users_data(make, flows, metered):
    assert make(loaded(f"traffic={flows}")).metered("ue2") == metered
