"""The delay of a wired link includes that of an access point at its end."""

from __future__ import annotations

import pytest

from lab.engines.sim import compiled
from lab.engines.sim.tables import Tables
from lab.radio.cell import Cell, Station
from lab.scenario.schema import Multipath
from lab.topologies import rat_setup
from lab.topologies.topology import Link, Node, Topology, as_json, link_delay_ns, wire

MS = 1_000_000
CELLS = (
    Cell("wifi1", "wifi", (Station("ue1", 10**7),), delay_ns=5 * MS),
    Cell("lte1", "lte", (Station("ue1", 10**7),), delay_ns=20 * MS, jitter_ns=2 * MS),
)
LINKS = (
    Link("plain", "s1", "s2", delay_ns=3 * MS, jitter_ns=MS),
    Link("wifi", "s2", "wifi1"),
    Link("lte", "lte1", "s2", 10**7, 4 * MS, MS),
    Link("mesh", "wifi1", "lte1"),
    Link("server", "s1", "srv1"),
)
WANTED = {"plain": (3, 1), "wifi": (5, 0), "lte": (24, 3), "mesh": (25, 2), "server": (0, 0)}
NODES = (
    Node("ue1", "user", "wifi1"),
    *(Node(ap, ap[:-1]) for ap in ("wifi1", "lte1")),  # type: ignore[arg-type]
    *(Node(name, "switch") for name in ("s1", "s2")),
    Node("srv1", "server"),
)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.id)
def test_the_delay_of_an_access_point_is_added_to_each_of_its_links(link):
    assert tuple(each / MS for each in link_delay_ns(link, CELLS)) == WANTED[link.id]


def test_the_simulator_and_the_topology_file_have_the_same_delays():
    topology = Topology("t", NODES, LINKS, CELLS, ("ue1",))
    tables = Tables(topology, Multipath(), [], 1, compiled.records())
    trunks = {each["link"]: each for each in as_json(topology, wire(topology))["trunks"]}
    for link in LINKS[:-1]:
        told = trunks[link.id]
        assert (told["delay_ms"], told["jitter_ms"]) == WANTED[link.id]
        for end in (link.a, link.b):
            hop = tables.links[link.id, end]
            row = [hop.delay_ns / MS, hop.jitter_ns / MS]
            assert tuple(row) == WANTED[link.id]


def test_a_relays_link_is_the_air_and_has_no_delay():
    topology = rat_setup.build(rat_setup.Params())
    links = {link.id: link_delay_ns(link, topology.cells) for link in topology.links}
    assert links["n1wifi1"] == (0, 0)
    assert links["s1wifi1"] == links["s1wifi2"] == (1_250_000, 0)
