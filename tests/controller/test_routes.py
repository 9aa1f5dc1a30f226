"""Shortest paths, paths set by strategies, and where hosts are."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from controller import paths, topology
from controller.errors import TopologyRefused
from controller.paths import Flow
from controller.pox_ext import router as router_module
from controller.pox_ext.hosts import Hosts, Place
from controller.pox_ext.router import Hop, Router


def line(a: str, b: str) -> dict[str, str]:
    return {"link": f"{a}{b}", "a": a, "a_port": f"{a}-{b}", "b": b, "b_port": f"{b}-{a}"}


def host(
    switch: str, address: str | None = None, mac: str | None = None, port: str | None = None
) -> dict[str, object]:
    return {
        "name": "eth",
        "switch": switch,
        "port": port or f"{switch}-host",
        "address": address,
        "mac": mac,
    }


SQUARE = {
    "switches": {
        name: {"dpid": number}
        for number, name in enumerate(("s1", "up", "low", "wifi1", "wifi2", "lte1"), 1)
    },
    "hosts": {
        "srv1": [host("s1", "10.0.0.1", "02:00:00:00:00:01")],
        "ue1": [host("wifi1", "10.1.0.1", "02:00:00:00:00:02"), host("lte1", "10.2.0.1")],
        "ue2": [host("lte1", port="lte1-ue2")],
    },
    "trunks": [
        line("s1", "up"),
        line("s1", "low"),
        line("up", "wifi1"),
        line("low", "wifi1"),
        line("up", "wifi2"),
        line("s1", "lte1"),
    ],
    "aps": {
        name: {"kind": name[:-1], "capacity_mbps": 10, "stations": {"ue1": {"rate_mbps": 10}}}
        for name in ("wifi1", "wifi2", "lte1")
    },
    "multipath": ["ue1"],
}


def made(changes: dict[str, object] | None = None) -> tuple[topology.Topology, Hosts, Router]:
    network = topology.read(json.dumps({**SQUARE, **(changes or {})}))
    hosts = Hosts(network)
    return network, hosts, Router(network, hosts)


def flow(port: int = 40000) -> Flow:
    return Flow("10.0.0.1", "10.1.0.1", 6, 5001, port)


def test_all_shortest_paths_are_found_and_no_longer_ones():
    near = {"a": ["b", "c"], "b": ["a", "d"], "c": ["a", "d"], "d": ["b", "c", "e"], "e": ["d"]}
    assert paths.shortest(near, "a", "e") == [("a", "b", "d", "e"), ("a", "c", "d", "e")]
    assert paths.shortest(near, "a", "a") == [("a",)]
    assert paths.shortest({"a": [], "b": []}, "a", "b") == []


def test_a_route_names_ports_and_writes_the_mac_at_the_last_switch():
    _, _, router = made()
    route = router.route(flow())
    assert route[0].switch == "s1"
    assert route[-1] == Hop("wifi1", "wifi1-host", "02:00:00:00:00:02")
    assert {hop.mac for hop in route[:-1]} == {None}


def test_a_flow_without_ports_is_named_with_its_protocol():
    assert str(Flow("10.0.0.1", "10.1.0.1", 1)) == "10.0.0.1 to 10.1.0.1 (protocol 1)"
    assert str(flow(7)) == "10.0.0.1:5001 to 10.1.0.1:7"
    assert str(flow(0)) == "10.0.0.1:5001 to 10.1.0.1:0"


def test_both_directions_take_the_same_switches():
    _, _, router = made()
    for port in range(200):
        assert router.path(flow(port)) == router.path(flow(port).back())[::-1]


def test_flows_spread_over_equal_paths_and_a_new_router_chooses_the_same():
    _, _, router = made()
    taken = Counter(router.path(flow(port)) for port in range(400))
    assert sorted(path[1] for path in taken) == ["low", "up"]
    assert min(taken.values()) > 150
    _, _, again = made()
    assert [again.path(flow(port)) for port in range(50)] == [
        router.path(flow(port)) for port in range(50)
    ]


def test_a_link_that_goes_down_moves_its_flows_and_no_others():
    _, _, router = made()
    before = {port: router.path(flow(port)) for port in range(100)}
    assert router.set_link("s1up", up=False)
    assert not router.set_link("s1up", up=False)
    moved = {each.destination_port for each, _, _ in router.changed()}
    assert moved == {port for port, path in before.items() if "up" in path}
    assert all(router.path(flow(port))[1] == "low" for port in range(100))
    router.set_link("s1up", up=True)
    router.changed()
    assert {port: router.path(flow(port)) for port in range(100)} == before


def test_a_chosen_path_is_used_while_its_links_are_up_and_it_joins_the_places():
    _, _, router = made()
    other = "low" if "up" in router.path(flow()) else "up"
    router.pin(flow(), ("s1", other, "wifi1"))
    assert [
        switches
        for _, _, route in router.changed()
        if (switches := tuple(hop.switch for hop in route))
    ] == [("s1", other, "wifi1")]
    assert router.path(flow().back()) == ("wifi1", other, "s1")
    assert router.is_pinned(flow().back())
    router.set_link(f"s1{other}", up=False)
    router.changed()
    assert other not in router.path(flow())
    router.set_link(f"s1{other}", up=True)
    router.changed()
    assert other in router.path(flow())
    router.pin(flow(), ("s1", "lte1"))  # this path ends at another switch
    router.changed()
    assert router.path(flow())[-1] == "wifi1"
    router.forget(flow())
    assert not router.is_pinned(flow())


def test_without_a_path_there_is_no_route():
    _, _, router = made()
    router.route(flow())
    for link in ("s1up", "s1low"):
        router.set_link(link, up=False)
    assert router.changed() == []
    assert router.routes == {}
    assert router.route(Flow("10.0.0.1", "10.9.9.9", 1)) is None


def test_a_station_moves_between_access_points_of_one_kind_only():
    _, hosts, router = made()
    assert not hosts.learn("10.1.0.1", "02:00:00:00:00:02", "lte1", "lte1-host")
    assert hosts.place("10.1.0.1").switch == "wifi1"
    assert hosts.learn("10.1.0.1", "02:00:00:00:00:02", "wifi2", "wifi2-host")
    assert router.path(flow()) == ("s1", "up", "wifi2")
    assert hosts.at("ue1", "wifi2") == ("10.1.0.1",)
    assert hosts.at("ue1", "wifi1") == ()


def test_a_host_without_an_address_is_found_by_its_port():
    _, hosts, _ = made()
    assert not hosts.learn("10.2.0.2", "02:00:00:00:00:09", "lte1", "lte1-ue2")
    assert hosts.owner("10.2.0.2") == "ue2"
    assert hosts.place("10.2.0.2") == Place("lte1", "lte1-ue2", "02:00:00:00:00:09")


def test_nothing_is_learned_from_a_link_between_switches():
    _, hosts, _ = made()
    assert not hosts.learn("10.7.0.1", "02:00:00:00:00:09", "s1", "s1-up")
    assert hosts.place("10.7.0.1") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"multipath": ["ue9"]},
            "multipath names 'ue9', which is unknown: choose from srv1, ue1, ue2",
        ),
        ({"aps": {"ap9": {"kind": "wifi", "capacity_mbps": 1}}}, "aps names 'ap9'"),
        ({"trunks": [line("s1", "s9")]}, "trunk 's1s9' ends at 's9'"),
        ({"hosts": {"srv1": [host("s9")]}, "multipath": [], "aps": {}}, "host srv1 ends at 's9'"),
        ({"swiches": {}}, "swiches: Extra inputs"),
        ({"switches": {"s1": {"dpid": 0}}}, r"switches\.s1\.dpid"),
    ],
)
def test_an_invalid_topology_file_is_refused_with_its_key(change, message):
    with pytest.raises(TopologyRefused, match=message):
        made(change)


def test_the_routes_of_the_latest_flows_are_kept(monkeypatch):
    monkeypatch.setattr(router_module, "MOST_ROUTES", 3)
    _, _, router = made()
    for port in range(5):
        router.route(flow(port))
    assert [each.destination_port for each in router.routes] == [2, 3, 4]
