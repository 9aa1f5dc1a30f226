"""Endpoints of a user that open backups, or no subflows, from the start or from a change on."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import state as at
from lab.errors import RequestError
from lab.scenario import loading

PATHS = {"rate_mbps": 20, "delay_ms": 10}, {"rate_mbps": 12, "delay_ms": 30}
WIRE = 1420 / 1514  # payload in a frame
FIRST, SECOND, BOTH = 20 * WIRE, 12 * WIRE, 32 * WIRE


def endpoint(name, *flags, host="ue1"):
    return {"host": host, "interface": name, "flags": list(flags)}


@pytest.mark.parametrize("scheduler", ["lowest_rtt", "linux", "round_robin"])
@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_backup_takes_over_and_gives_back(paths, scheduler, direction):
    simulation = paths(
        *PATHS,
        traffic={"direction": direction},
        multipath={"scheduler": scheduler, "endpoints": [endpoint("eth2", "backup")]},
    )
    frames = simulation.run(6)
    assert simulation.mbps(frames[4:]) == pytest.approx(FIRST, rel=0.05)
    assert {frame["sf"].get("ue1-1/2", {"mbps": 0})["mbps"] for frame in frames} == {0}
    simulation.flip("iface.ue1.eth1.up", False)
    simulation.run(3)
    assert simulation.mbps(simulation.run(2)) == pytest.approx(SECOND, rel=0.05)
    simulation.flip("iface.ue1.eth1.up", True)
    simulation.run(4)
    frames = simulation.run(2)
    assert simulation.mbps(frames) == pytest.approx(FIRST, rel=0.05)
    assert frames[-1]["sf"]["ue1-1/2"]["backup"] is True


@pytest.mark.parametrize("name", ["eth1", "eth2"])
def test_an_endpoint_becomes_a_backup_and_a_subflow_again(paths, name):
    other = {"eth1": SECOND, "eth2": FIRST}[name]
    simulation = paths(*PATHS)
    simulation.run(3)
    for role, mbps in (("backup", other), ("subflow", BOTH)):
        simulation.flip(f"endpoint.ue1.{name}", role)
        simulation.run(4)
        assert simulation.mbps(simulation.run(2)) == pytest.approx(mbps, rel=0.06), role
    (connection,) = simulation.report()["connections"]
    assert len(connection["subflows"]) == 2


def test_a_removed_endpoint_ends_its_subflow_and_a_new_one_joins(paths):
    simulation = paths(*PATHS)
    simulation.run(3)
    hop = simulation.network.tables.links["access2", "ue1"]
    simulation.flip("endpoint.ue1.eth2", "none")
    simulation.run(2)
    assert simulation.network.subflow(("ue1-1", 2)).record.state == at.CLOSED
    assert hop.is_up == 1  # the address is still there
    simulation.flip("endpoint.ue1.eth2", "backup")
    simulation.run(2)
    frames = simulation.run(2)
    assert simulation.mbps(frames) == pytest.approx(FIRST, rel=0.05)
    assert frames[-1]["sf"]["ue1-1/3"]["backup"] is True


def test_later_connections_open_what_the_endpoint_says_then(paths):
    flows = [{"user": "ue1", "start_s": start_s} for start_s in (0, 2, 4)]
    simulation = paths(*PATHS, traffic=flows, multipath={"endpoints": [endpoint("eth2")]})
    simulation.run(1)
    simulation.flip("endpoint.ue1.eth2", "backup")
    simulation.run(2)
    simulation.flip("endpoint.ue1.eth2", "subflow")
    found = simulation.run(4)[-1]["sf"]
    further = {name: row["backup"] for name, row in found.items() if not name.endswith("/1")}
    assert {*further} >= {"ue1-2/2", "ue1-3/2"}
    assert not any(further.values())


def test_a_change_while_the_interface_is_down_holds_when_it_is_back(paths):
    simulation = paths(*PATHS)
    simulation.run(2)
    simulation.flip("iface.ue1.eth2.up", False)
    simulation.run(1)
    simulation.flip("endpoint.ue1.eth2", "none")
    simulation.flip("iface.ue1.eth2.up", True)
    simulation.run(1)
    assert simulation.mbps(simulation.run(2)) == pytest.approx(FIRST, rel=0.05)
    simulation.flip("endpoint.ue1.eth2", "subflow")
    simulation.run(3)
    assert simulation.mbps(simulation.run(2)) == pytest.approx(BOTH, rel=0.06)


# What is refused before the start


def load(endpoints, *events, **keys):
    data = {"name": "mine", "title": "T", "topology": {"kind": "parallel_paths", "paths": PATHS}}
    rows = [{"at_s": n, "target": target, "value": value} for n, (target, value) in events]
    more = {"traffic": [{"user": "ue1"}], "multipath": {"endpoints": endpoints}, "events": rows}
    return loading.from_data(data | more | keys, "mine.yaml")


@pytest.mark.parametrize(
    ("endpoints", "events", "wrong"),
    [
        ([endpoint("eth3", "backup")], [], "endpoints[1].interface 'eth3' is unknown"),
        ([endpoint("eth2", "backup", host="srv1")], [], "These are: ue1"),
        ([endpoint("eth2", "backup")] * 2, [], "endpoints[2]: there is an entry"),
        ([endpoint("eth1")], [], "ue1 opens its connections over eth1: choose subflow or backup"),
        ([endpoint("eth2", "mesh")], [], "choose from subflow, backup, signal, fullmesh"),
        ([endpoint("eth2", "signal")], [], "signal is for servers"),
        ([], [(1, ("endpoint.ue1.eth1", "none"))], "choose subflow or backup"),
        ([], [(1, ("endpoint.ue1.eth2", "signal"))], "choose from subflow, backup, none"),
        ([endpoint("eth2")], [(1, ("iface.ue1.eth1.up", False))], "no other interface that opens"),
        (
            [],
            [(1, ("iface.ue1.eth1.up", False)), (2, ("endpoint.ue1.eth2", "none"))],
            "events[2]: endpoint.ue1.eth2: ue1 has no other interface that opens",
        ),
    ],
)
def test_what_cannot_be_is_refused(endpoints, events, wrong):
    with pytest.raises(RequestError) as error:
        load(endpoints, *events)
    assert wrong in str(error.value)


def test_a_run_without_endpoints_is_the_same_experiment_as_before_the_key(monkeypatch):
    hashed = []
    monkeypatch.setattr(loading.json, "dumps", lambda what, **_: hashed.append(what) or "{}")
    for endpoints in ([], [endpoint("eth2", "backup")]):
        loading.experiment(load(endpoints), "sim")
    assert ["endpoints" in each["multipath"] for each in hashed] == [False, True]
