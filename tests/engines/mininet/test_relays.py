"""Relays of a topology, and hosts with two radios, without a network."""

from dataclasses import replace

import pytest

from lab.engines.mininet import agents
from lab.engines.mininet.network import wifi
from lab.errors import RequestError
from lab.topologies import rat_setup
from lab.topologies.topology import Link, Node, wire


def test_a_relay_with_one_host_is_accepted():
    wifi.check_relays(rat_setup.build(rat_setup.Params(setup=3)))


def test_a_relay_with_two_hosts_is_refused_because_its_radio_has_one_mac_address():
    topology = rat_setup.build(rat_setup.Params(pairs=1))
    crowded = replace(
        topology,
        nodes=(*topology.nodes, Node("srv9", "server")),
        links=(*topology.links, Link("more", "n1", "srv9")),
    )
    with pytest.raises(RequestError, match=r"relay 'n1' has 2 hosts.*Choose --engine sim"):
        wifi.check_relays(crowded)


def test_neither_radio_of_a_host_gets_a_qdisc_for_pacing():
    topology = rat_setup.build(rat_setup.Params(setup=2, pairs=1))
    assert agents.pacing_lines(topology, wire(topology).of("ue1")) == []
    topology = rat_setup.build(rat_setup.Params(setup=1, pairs=1))
    (line,) = agents.pacing_lines(topology, wire(topology).of("ue1"))
    assert "dev ue1-lte0 root" in line
