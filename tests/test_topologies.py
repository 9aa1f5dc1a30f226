"""The kinds of networks, and the names of hosts, servers and ports."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from controller.paths import shortest
from lab.errors import RequestError
from lab.topologies import campus, collision, fat_tree, pooling
from lab.topologies.checks import checked
from lab.topologies.topology import Link, Node, Topology, wire

TABLE_2 = {"ue1": ("1 2 3", "4 5 6"), "ue2": ("7 5 8", "9 10 11"), "ue3": ("12 10 13", "14 15 16")}
CAMPUS = campus.Params(
    users=(
        {"id": "ue1", "near": "wifi", "wifi_mbps": 40},
        {"id": "ue2", "near": "lte", "lte_mbps": 40},
    )
)  # type: ignore[arg-type]


def links_of_paths(topology: Topology, user: str) -> list[list[list[str]]]:
    """For each interface of a user: the links of each shortest path from its server."""
    links = {frozenset((link.a, link.b)): link.id for link in topology.links}
    near: dict[str, set[str]] = {node.id: set() for node in topology.nodes}
    for link in topology.links:
        near[link.a].add(link.b)
        near[link.b].add(link.a)
    near |= {other: set() for other in topology.users}
    server, found = topology.server_of(user), []
    for interface in wire(topology).of(user):
        paths = shortest(near, server, interface.switch)
        found.append(
            [
                [*(links[frozenset(ends)] for ends in pairwise(path)), interface.link]
                for path in paths
            ]
        )
    return found


@pytest.mark.parametrize("user", TABLE_2)
def test_pooling_has_the_paths_of_table_2(user):
    topology = checked(pooling.build(pooling.Params()))
    for interface, numbers in zip(links_of_paths(topology, user), TABLE_2[user], strict=True):
        assert [path[1:] for path in interface] == [
            [f"link{n}" for n in numbers.split()]
        ]  # exactly one path


def test_pooling_divides_the_delay_of_a_path_and_limits_its_middle():
    links = {
        each.id: each
        for each in pooling.build(
            pooling.Params(path_delay_ms=30, middle_mbps=(8, 9, 10, 11)), 0.5
        ).links
    }
    assert [links[f"link{n}"].rate_bps for n in (1, 2, 5, 10, 15)] == [
        5_000_000,
        4_000_000,
        4_500_000,
        5_000_000,
        5_500_000,
    ]
    assert {links[f"link{n}"].delay_ns for n in range(1, 17)} == {10_000_000}


def test_subflows_of_one_connection_can_collide():
    topology = checked(collision.build(collision.Params(among="subflows")))
    for n, interface in enumerate(links_of_paths(topology, "ue1"), 1):
        assert interface == [
            [f"server1 up{way} down{way} access{n}".split()[i] for i in range(4)] for way in (1, 2)
        ]


def test_two_connections_can_collide_but_subflows_of_one_cannot():
    topology = checked(collision.build(collision.Params(among="connections")))
    (first, second), (other, _) = links_of_paths(topology, "ue1"), links_of_paths(topology, "ue2")
    ups = [
        {link for path in interface for link in path if link.startswith("up")}
        for interface in (first, second, other)
    ]
    assert ups == [{"up1", "up2"}, {"up3", "up4"}, {"up1", "up2"}]


@pytest.mark.parametrize(
    ("k", "vertices", "links"), [(4, 36, 48), (8, 208, 384), (16, 1344, 3072), (32, 9472, 24576)]
)
def test_fat_trees_are_as_large_as_in_table_4(k, vertices, links):
    topology = fat_tree.build(fat_tree.Params(k=k))
    assert (len(topology.nodes), len(topology.links)) == (vertices, links)
    degree = Counter(end for link in topology.links for end in (link.a, link.b))
    assert {degree[switch] for switch in topology.switches} == {k}


def test_a_fat_tree_leads_between_pods_by_every_core_switch():
    topology = checked(fat_tree.build(fat_tree.Params()))
    (only,) = links_of_paths(topology, "ue6")
    assert topology.server_of("ue6") == "srv6"
    assert {link.split("-")[0] for path in only for link in path if link.startswith("c")} == {
        "c1",
        "c2",
        "c3",
        "c4",
    }
    interface = wire(topology).of("ue6")[0]
    assert (interface.address, interface.further) == ("10.16.0.6", ("10.16.0.14",))


def test_an_odd_fat_tree_is_refused():
    with pytest.raises(
        ValueError, match="5 is odd: half of a switch's ports lead up, so write 4 or 6"
    ):
        fat_tree.Params(k=5)


def test_a_fat_tree_with_more_users_than_addresses_is_refused():
    with pytest.raises(RequestError, match="250 addresses"):
        checked(fat_tree.build(fat_tree.Params(k=16)))


def test_the_campus_has_radios_cables_and_two_servers():
    topology = checked(campus.build(CAMPUS))
    wiring = wire(topology)
    assert [each.switch for each in wiring.of("ue5")] == ["e1x2", "e2x2"]
    assert [each.name for each in wiring.of("ue5")] == ["ue5-eth1", "ue5-eth2"]
    assert [topology.server_of(user) for user in topology.users] == ["srv1", "srv2", "srv1", "srv2"]
    assert {wiring.of(user)[0].link for user in topology.users} == {
        "wifi1",
        "lte1",
        "e1x2-ue5",
        "e1x2-ue6",
    }
    assert all(len(interface) == 4 for interface in links_of_paths(topology, "ue5"))


def test_a_name_used_twice_on_the_campus_is_refused():
    with pytest.raises(ValueError, match="two users are called 'ue1'"):
        campus.Params(users=CAMPUS.users, wired=("ue1",))


# Names of hosts and ports

SMALL = Topology(
    "small",
    (
        Node("ue1", "user", server="srv2"),
        Node("ue2", "user"),
        Node("s1", "switch"),
        Node("srv1", "server"),
        Node("srv2", "server"),
    ),
    tuple(Link(f"l{n}", "s1", host) for n, host in enumerate(("ue1", "ue2", "srv1", "srv2"))),
)


def test_a_user_talks_to_its_server_or_to_the_first():
    checked(SMALL)
    assert (SMALL.server_of("ue1"), SMALL.server_of("ue2")) == ("srv2", "srv1")
    assert [each.address for each in wire(SMALL).interfaces] == [
        "10.16.0.1",
        "10.16.0.2",
        "10.0.0.1",
        "10.0.0.2",
    ]


def test_every_port_has_its_own_name_and_every_interface_its_own_address():
    for topology in (
        SMALL,
        campus.build(CAMPUS),
        fat_tree.build(fat_tree.Params()),
        pooling.build(pooling.Params()),
    ):
        wiring = wire(topology)
        ports = [port for each in wiring.trunks for port in (each.a_port, each.b_port)]
        ports += [each.port for each in wiring.interfaces if not each.port.endswith("wlan1")]
        addresses = [
            address for each in wiring.interfaces for address in (each.address, *each.further)
        ]
        assert len(ports) == len(set(ports))
        assert len(addresses) == len(set(addresses))


def test_an_unknown_server_is_refused():
    nodes = (replace(SMALL.nodes[0], server="srv3"), *SMALL.nodes[1:])
    with pytest.raises(
        RequestError,
        match="user 'ue1' talks to 'srv3', which is not a server: choose from srv1, srv2",
    ):
        checked(replace(SMALL, nodes=nodes))


@pytest.mark.parametrize(
    "links",
    [SMALL.links[:-1], (*SMALL.links, *(Link(f"further{n}", "s1", "srv2") for n in range(9)))],
)
def test_a_server_has_up_to_nine_links(links):
    with pytest.raises(RequestError, match=r"server 'srv2' has (0|10) links: give it 1 to 9"):
        checked(replace(SMALL, links=links))


def test_each_link_of_a_server_has_an_address():
    topology = checked(replace(SMALL, links=(*SMALL.links, Link("further", "s1", "srv2"))))
    assert [each.address for each in wire(topology).of("srv2")] == ["10.0.0.2", "10.0.1.2"]


def test_all_users_of_a_fat_tree_may_talk_to_one_server():
    for k in (2, 4, 6):
        made = fat_tree.build(fat_tree.Params(k=k, one_server=True))
        assert {made.server_of(user) for user in made.users} == {"srv1"}
        own = fat_tree.build(fat_tree.Params(k=k))
        assert made.links == own.links
        assert len({own.server_of(user) for user in own.users}) == len(own.users)
