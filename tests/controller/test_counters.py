"""Counters of ports and flows, and the arcs that are observed from them."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from controller import topology
from controller.agent_messages import LinkState
from controller.observation import Arc
from controller.paths import Flow, digest
from controller.pox_ext import counters as module
from controller.pox_ext.counters import FRAME_BITS, LOSS_WINDOW_S, Counters, EntryCounter, PathDelay
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.observer import Arcs, Stations, StationState
from controller.pox_ext.openflow13_messages import FlowCount
from controller.pox_ext.router import Router

DOWN = Flow("10.0.0.1", "10.1.0.1", 6, 5001, 40000)
SECOND_NS = 1_000_000_000
NETWORK = {
    "switches": {"s1": {"dpid": 1}, "wifi1": {"dpid": 2}, "lte1": {"dpid": 3}},
    "hosts": {
        "srv1": [
            {
                "name": "eth",
                "switch": "s1",
                "port": "s1-srv",
                "address": "10.0.0.1",
                "link": "server",
            }
        ],
        "ue1": [
            {
                "name": "w",
                "switch": "wifi1",
                "port": "wifi1-wlan1",
                "address": "10.1.0.1",
                "link": "wifi1",
            },
            {
                "name": "l",
                "switch": "lte1",
                "port": "lte1-ue1",
                "address": "10.2.0.1",
                "link": "lte1",
            },
        ],
        "ue2": [
            {
                "name": "w",
                "switch": "wifi1",
                "port": "wifi1-wlan1",
                "address": "10.1.0.2",
                "link": "wifi1",
            }
        ],
    },
    "trunks": [
        {
            "link": "wifi",
            "a": "s1",
            "a_port": "s1-wifi1",
            "b": "wifi1",
            "b_port": "wifi1-s1",
            "delay_ms": 5,
            "loss": 0.01,
            "loss_back": 0.02,
            "rate_mbps": 20,
        },
        {
            "link": "lte",
            "a": "s1",
            "a_port": "s1-lte1",
            "b": "lte1",
            "b_port": "lte1-s1",
            "delay_ms": 20,
        },
    ],
    "aps": {
        "wifi1": {
            "kind": "wifi",
            "capacity_mbps": 10,
            "stations": {"ue1": {"rate_mbps": 10}, "ue2": {"rate_mbps": 5}},
        },
        "lte1": {"kind": "lte", "capacity_mbps": 8, "stations": {"ue1": {"rate_mbps": 8}}},
    },
}
NUMBERS = {
    "s1": ["s1-srv", "s1-wifi1", "s1-lte1"],
    "wifi1": ["wifi1-s1", "wifi1-wlan1"],
    "lte1": ["lte1-s1", "lte1-ue1"],
}


class World:
    """Counters on a clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: self.now_ns)
        network = topology.read(json.dumps(NETWORK))
        self.router = Router(network, Hosts(network))
        self.counters = Counters(
            lambda switch: {name: n for n, name in enumerate(NUMBERS[switch], 1)}
        )
        self.stations = Stations()
        self.arcs = Arcs(network, self.router, self.counters, self.stations)

    def entries(self, switch: str, **packets: int) -> None:
        """Set the packets in the path entries of a switch: `down` and `up`."""
        flows = {"down": DOWN, "up": DOWN.back()}
        self.counters.take_flows(
            switch,
            [FlowCount(digest(flows[way]), count, count * 1514) for way, count in packets.items()],
        )

    def arc(self, tail: str, head: str) -> Arc:
        return next(arc for arc in self.arcs.observed() if (arc.tail, arc.head) == (tail, head))


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def test_a_count_continues_when_the_counters_are_reset():
    counter = EntryCounter()
    for packets in (10, 30, 5):
        counter.add_reading(packets, packets * 100)
    assert (counter.packets, counter.bytes) == (35, 3500)


def counted(world: World, readings: list[tuple[int, int]], delay_s: float = 0.0):
    """Add one reading a second: packets that entered at s1 and that left at wifi1, so far."""
    for second, (entered, came_out) in enumerate(readings):
        world.now_ns = second * SECOND_NS
        world.entries("s1", down=entered)
        world.entries("wifi1", down=came_out)
        world.counters.update({DOWN: PathDelay(("s1", "wifi1"), delay_s)}, float(second))
    return world.counters.data(DOWN)


def test_packets_that_stay_missing_are_lost(world):
    way = counted(world, [(1000 * n, 1000 * n - 10 * n - 40 * (n % 2)) for n in range(10)])
    assert way.sent == 9000
    assert way.rate_bps == 1000 * FRAME_BITS
    assert 50 <= way.lost <= 90  # of 90; packets that were in flight only sometimes are not counted


def test_packets_that_wait_in_a_queue_are_not_lost(world):
    assert counted(world, [(1000 * n, 1000 * n - 150 * (n % 2)) for n in range(10)]).lost == 0


def test_packets_in_flight_are_not_lost(world):
    assert (
        counted(world, [(1000 * n, max(0, 1000 * n - 100)) for n in range(10)], delay_s=0.1).lost
        == 0
    )


def test_a_counted_loss_stays(world):
    lossy = [(1000 * n, 990 * n) for n in range(10)]
    idle = [(9000, 8910)] * int(LOSS_WINDOW_S + 2)
    assert counted(world, lossy + idle).lost == 90
    assert all(before <= after for before, after in pairwise([0, 90]))


def test_a_flow_that_comes_back_after_it_was_forgotten_is_counted_from_its_start(world):
    counted(world, [(1000, 1000), (2000, 2000)])
    for switch in ("s1", "wifi1"):
        world.counters.take_flows(switch, [])
    world.counters.update({}, 2.0)
    world.now_ns = 20 * SECOND_NS
    world.entries("s1", down=500)
    assert world.counters.flow_bps("s1", DOWN) == 0  # nobody knows since when
    world.now_ns += SECOND_NS
    world.entries("s1", down=600)
    assert world.counters.flow_bps("s1", DOWN) == 100 * FRAME_BITS


def test_uploads_are_counted_too(world):
    for second in range(2):
        world.now_ns = second * SECOND_NS
        for switch in ("s1", "wifi1"):
            world.entries(switch, down=10 * second, up=1000 * second)
        world.counters.update(
            {DOWN: PathDelay(("s1", "wifi1")), DOWN.back(): PathDelay(("wifi1", "s1"))},
            float(second),
        )
    assert world.counters.data(DOWN).sent == 1000
    assert world.counters.data(Flow("10.0.0.1", "10.1.0.9", 6, 1, 1)) is None


def test_links_are_arcs_in_both_directions_with_their_use(world):
    for flow in (DOWN, DOWN.back()):
        world.router.route(flow)
    for second in range(2):
        world.now_ns = second * SECOND_NS
        world.entries("s1", down=110 * second, up=9 * second)
        world.entries("wifi1", down=100 * second, up=10 * second)
    assert world.arc("s1", "wifi1") == Arc(
        "wifi", "s1", "wifi1", 20_000_000, 100 * FRAME_BITS, 0.005, 0.0, 0.01
    )
    assert world.arc("wifi1", "s1") == Arc(
        "wifi", "wifi1", "s1", 20_000_000, 9 * FRAME_BITS, 0.005, 0.0, 0.02
    )
    assert world.arc("s1", "10.0.0.1").used_bps == 9 * FRAME_BITS
    assert world.arc("s1", "lte1").used_bps == 0
    assert world.arcs.delay_s(("s1", "wifi1")) == 0.005


def test_the_use_of_the_air_is_the_sum_of_its_stations(world):
    other = Flow("10.0.0.1", "10.1.0.2", 6, 5001, 40001)
    for flow in (DOWN, DOWN.back(), other):
        world.router.route(flow)
    for second in range(2):
        world.now_ns = second * SECOND_NS
        flows = {DOWN: 100, DOWN.back(): 7, other: 30}
        entries = [
            FlowCount(digest(flow), n * second, n * second * 1514) for flow, n in flows.items()
        ]
        world.counters.take_flows("wifi1", entries)
    assert world.arc("wifi1", "wifi1~air").used_bps == 130 * FRAME_BITS
    assert world.arc("wifi1~air", "10.1.0.1").used_bps == 100 * FRAME_BITS
    assert world.arc("wifi1~air", "10.1.0.2").used_bps == 30 * FRAME_BITS
    assert (
        world.arc("10.1.0.1", "wifi1~air").used_bps
        == world.arc("wifi1~air", "wifi1").used_bps
        == 7 * FRAME_BITS
    )
    assert world.arc("lte1", "lte1~air").used_bps == world.arc("lte1~air", "10.2.0.1").used_bps == 0


def test_a_station_that_moves_away_has_a_slower_arc(world):
    assert world.arc("wifi1~air", "10.1.0.1").capacity_bps == 10_000_000
    world.stations.states["ue1", "wifi1"] = StationState(rate_bps=2_000_000)
    world.stations.states["ue2", "wifi1"] = StationState(rate_bps=4_000_000)
    assert world.arc("wifi1~air", "10.1.0.1").capacity_bps == 2_000_000
    assert world.arc("wifi1", "wifi1~air").capacity_bps == 4_000_000


def test_a_changed_link_is_observed_as_it_is_now(world):
    world.arcs.change_link(LinkState(link="wifi", rate_mbps=5, delay_ms=50))
    world.arcs.change_link(LinkState(link="wifi", loss=0.1))
    down, up = world.arc("s1", "wifi1"), world.arc("wifi1", "s1")
    assert (down.capacity_bps, down.delay_s, down.loss) == (5_000_000, 0.05, 0.1)
    assert (up.capacity_bps, up.loss) == (5_000_000, 0.02)
    assert world.arcs.documents() == [
        {"link": "wifi", "rate_mbps": 5.0, "delay_ms": 50.0, "loss": 0.1}
    ]


def test_a_link_that_is_down_is_no_arc(world):
    world.router.set_link("wifi", up=False)
    assert not [arc for arc in world.arcs.observed() if arc.link == "wifi"]
    world.arcs.change_link(LinkState(link="server", up=False))
    assert not [arc for arc in world.arcs.observed() if arc.link == "server"]
