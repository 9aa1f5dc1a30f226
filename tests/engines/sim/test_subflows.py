"""Which subflows connections have, by the endpoints of users and servers and by limits."""

from __future__ import annotations

import pytest
import yaml

from lab.engines.mininet.engine import MininetEngine
from lab.engines.mininet.export import script as export
from lab.engines.mininet.network.joins import joins
from lab.engines.sim.core import state as at
from lab.engines.sim.engine import SimEngine
from lab.errors import RequestError
from lab.scenario import loading, subflows, targets
from lab.topologies.topology import wire

MIDDLE = {"id": "middle", "a": "left", "b": "right", "rate_mbps": 2, "delay_ms": 5}


def home(host, n, switch, mbps):
    ends = {"a": switch, "b": host} if host.startswith("ue") else {"a": host, "b": switch}
    return {"id": f"{host}{n}", **ends, "rate_mbps": mbps, "delay_ms": 5}


def both_sides(endpoints=(), limits=None, interfaces=2, **keys):
    """ue1 and srv1 have links to `left` and to `right` in turn, which are linked."""
    switches = ["left", "right"]
    links = [
        home(host, n, switches[(n - 1) % 2], mbps)
        for host, mbps in (("ue1", 6), ("srv1", 5))
        for n in range(1, interfaces + 1)
    ]
    data = {
        "name": "both",
        "title": "Both sides",
        "topology": {
            "kind": "nodes_and_links",
            "users": [{"id": "ue1"}],
            "servers": [{"id": "srv1"}],
            "switches": switches,
            "links": [*links, MIDDLE],
        },
        "traffic": [{"user": "ue1"}],
        "multipath": {"endpoints": list(endpoints), "limits": limits or {}},
    }
    return loading.from_data(data | keys, "both.yaml")


def end(host, n, *flags):
    return {"host": host, "interface": f"eth{n}", "flags": list(flags)}


SIGNAL = end("srv1", 2, "signal")


def pairs(scenario):
    """The numbers of the interfaces of the user and of the server, in the order of subflows."""
    network, wiring = scenario.network, wire(scenario.network)
    return [
        (int(each.user.name[-1]), int(each.server.name[-1]))
        for each in subflows.planned(network, wiring, scenario.multipath, "ue1")
    ]


@pytest.mark.parametrize(
    ("endpoints", "limits", "expected"),
    [
        ([], {}, [(1, 1), (2, 1)]),
        ([SIGNAL], {}, [(1, 1), (1, 2), (2, 1)]),
        ([SIGNAL, end("ue1", 2, "fullmesh")], {}, [(1, 1), (2, 2), (2, 1)]),
        (
            [SIGNAL, end("ue1", 1, "fullmesh"), end("ue1", 2, "subflow", "fullmesh")],
            {},
            [(1, 1), (1, 2), (2, 2), (2, 1)],
        ),
        ([SIGNAL], {"add_addr_accepted": 0}, [(1, 1), (2, 1)]),
        ([SIGNAL], {"subflows": 1}, [(1, 1), (1, 2)]),
        ([SIGNAL], {"subflows": 0}, [(1, 1)]),
    ],
)
def test_the_rules_of_the_kernel_decide_which_subflows_there_are(endpoints, limits, expected):
    assert pairs(both_sides(endpoints, limits)) == expected


def test_limits_count_what_is_open_and_announced_addresses_in_their_order():
    endpoints = [end("srv1", n, "signal") for n in (3, 2)]
    assert pairs(both_sides(endpoints, {"add_addr_accepted": 1}, 3))[1] == (1, 2)
    shut = [end("ue1", 2), SIGNAL]
    assert pairs(both_sides(shut, {"subflows": 2}, 3)) == [(1, 1), (1, 2), (2, 1), (3, 1)]


@pytest.fixture
def simulated(simulation_of):
    return lambda *args, **keys: simulation_of(both_sides(*args, **keys))


def states(simulation):
    found = simulation.network.tables.subflows["ue1-1"]
    return [
        (int(each.ends.user.name[-1]), int(each.ends.server.name[-1]))
        for each in found
        if each.record.state == at.ESTABLISHED
    ]


def test_an_interface_of_a_server_goes_and_comes_back(simulated):
    simulation = simulated([SIGNAL, end("ue1", 2, "fullmesh")])
    simulation.run(2)
    assert sorted(states(simulation)) == [(1, 1), (2, 1), (2, 2)]
    with_both = simulation.mbps(simulation.run(2))
    simulation.flip("iface.srv1.eth2.up", False)
    simulation.run(1)
    assert sorted(states(simulation)) == [(1, 1), (2, 1)]
    assert simulation.mbps(simulation.run(2)) < 0.7 * with_both
    simulation.flip("iface.ue1.eth2.up", False)
    simulation.flip("iface.srv1.eth2.up", True)
    simulation.run(2)
    assert states(simulation) == [(1, 1)]  # the other end of the second one is off
    simulation.flip("iface.ue1.eth2.up", True)
    simulation.run(2)
    assert states(simulation) == [(1, 1), (2, 1)]  # the server's address is not announced anew
    simulation.flip("iface.srv1.eth2.up", False)
    simulation.flip("iface.srv1.eth2.up", True)
    simulation.run(4)
    assert sorted(states(simulation)) == [(1, 1), (2, 1), (2, 2)]
    assert simulation.mbps(simulation.run(3)) == pytest.approx(with_both, rel=0.25)
    assert simulation.report()["mptcp"]["verified"]


@pytest.mark.parametrize(("meshed", "back"), [((1, 2), [(2, 1), (2, 2)]), ((2,), [(2, 1)])])
def test_an_address_that_is_back_opens_subflows_to_addresses_in_use(simulated, meshed, back):
    simulation = simulated([SIGNAL, *(end("ue1", n, "fullmesh") for n in meshed)])
    simulation.run(2)
    simulation.flip("iface.ue1.eth2.up", False)
    simulation.run(1)
    assert not [pair for pair in states(simulation) if pair[0] == 2]
    simulation.flip("iface.ue1.eth2.up", True)
    simulation.run(2)
    assert sorted(pair for pair in states(simulation) if pair[0] == 2) == back


@pytest.mark.parametrize("direction", ["down", "up"])
def test_an_announced_backup_is_used_when_nothing_else_is_left(simulated, direction):
    ends = [end("srv1", 2, "signal", "backup"), end("ue1", 2, "fullmesh")]
    traffic = [{"user": "ue1", "direction": direction}]
    simulation = simulated(ends, {"subflows": 1}, traffic=traffic)
    before = simulation.run(3)
    assert {frame["sf"].get("ue1-1/2", {"mbps": 0})["mbps"] for frame in before} == {0}
    simulation.flip("iface.ue1.eth1.up", False)
    simulation.run(2)
    assert simulation.mbps(simulation.run(2)) > 4


@pytest.mark.parametrize(
    ("endpoints", "message"),
    [
        ([end("srv1", 1, "signal")], r"endpoints\[1\].interface 'eth1' is unknown"),
        ([end("srv1", 2, "subflow")], "srv1 is a server, which opens no subflows: choose signal"),
        ([end("srv1", 2, "backup")], "choose signal, with backup"),
        ([end("srv1", 2, "signal", "fullmesh")], "srv1 is a server, which opens no subflows"),
        ([end("srv1", 2)], "srv1 is a server, which opens no subflows"),
        ([end("ue1", 2, "signal")], "signal is for servers"),
    ],
)
def test_flags_of_the_wrong_end_are_refused(endpoints, message):
    with pytest.raises(RequestError, match=message):
        both_sides(endpoints)


def test_servers_have_no_targets_but_their_further_interfaces():
    names = {each for each in targets.targets(both_sides([SIGNAL])) if "srv1" in each.split(".")}
    assert names == {"iface.srv1.eth2.up"}


def test_a_mesh_that_the_kernel_cannot_open_is_admitted_by_both_engines():
    mesh = [end("ue1", n, "fullmesh") for n in (1, 2, 3, 4)]
    ends = [*mesh, *(end("srv1", n, "signal") for n in (2, 3, 4))]
    scenario = both_sides(ends, interfaces=4)
    for engine in (SimEngine, MininetEngine):
        engine.check(scenario)
    wiring = wire(scenario.network)
    opened = joins(scenario.network, wiring, scenario.multipath, "ue1")
    plan = subflows.planned(scenario.network, wiring, scenario.multipath, "ue1")
    assert [(each.address, each.server) for each in opened] == [
        (each.address, each.server.address) for each in plan
    ]
    assert len(opened) == 16


def test_limits_are_part_of_the_experiment_only_if_they_are_written():
    plain, same, other = (
        both_sides([SIGNAL], each) for each in ({}, {"add_addr_accepted": 8}, {"subflows": 1})
    )
    assert loading.experiment(plain, "sim") == loading.experiment(same, "sim")
    assert loading.experiment(plain, "sim") != loading.experiment(other, "sim")


def test_a_script_for_mininet_has_no_servers_with_several_interfaces():
    with pytest.raises(RequestError, match="a server has several interfaces"):
        export.script(both_sides([SIGNAL]))


def test_a_path_between_all_interfaces_is_needed():
    data = yaml.safe_load("{kind: nodes_and_links, users: [{id: ue1}], servers: [{id: srv1}]}")
    links = [home("ue1", 1, "a", 5), home("srv1", 1, "a", 5), home("srv1", 2, "b", 5)]
    topology = data | {"switches": ["a", "b"], "links": links}
    with pytest.raises(RequestError, match="no path leads from 'ue1'"):
        both_sides(topology=topology)
