"""Interfaces of users and servers that are switched off: backups take over, subflows come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation.vm_run import VmRun, mean
from machine import needs_emulation

from lab.scenario import loading, subflows
from lab.topologies.topology import wire

pytestmark = needs_emulation
MBPS = 10
DOWN_S, UP_S, CHANGED_S, END_S = 5, 10, 15, 20
SETTINGS = (
    f"topology.paths=[{{rate_mbps: {MBPS}, delay_ms: 10, queue_packets: 40}}, "
    f"{{rate_mbps: {MBPS}, delay_ms: 20, queue_packets: 40}}]",
    "multipath={cc: cubic, endpoints: [{host: ue1, interface: eth2, flags: [backup]}]}",
    "traffic=[{user: ue1}]",
    "rate_scale=0.5",
    f"events=[{{at_s: {DOWN_S}, target: iface.ue1.eth1.up, value: false}}, "
    f"{{at_s: {UP_S}, target: iface.ue1.eth1.up, value: true}}, "
    f"{{at_s: {CHANGED_S}, target: endpoint.ue1.eth2, value: subflow}}]",
)


@pytest.fixture(scope="module")
def switched(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> VmRun:
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    options += ["--strategy", "none", "--duration", str(END_S)]
    folder = tmp_path_factory.mktemp("switched") / "run"
    run = VmRun(folder, *options, scenario="two_paths")
    run.finish()
    return run


def shares(run: VmRun, start_s: float, end_s: float) -> list[float]:
    """What each path carries, as a share of its rate."""
    return [
        mean(run.samples(), lambda each, path=path: each["link"][path]["mbps"], start_s, end_s)
        / MBPS
        for path in ("path1", "path2")
    ]


def test_a_backup_carries_data_only_while_the_other_interface_is_off(switched: VmRun) -> None:
    first, backup = shares(switched, 2, DOWN_S)
    assert first > 0.8
    assert backup < 0.05
    first, backup = shares(switched, DOWN_S + 2, UP_S)
    assert first < 0.02
    assert backup > 0.8
    first, backup = shares(switched, UP_S + 2, CHANGED_S)
    assert first > 0.8
    assert backup < 0.1


def test_a_backup_becomes_a_subflow(switched: VmRun) -> None:
    assert min(shares(switched, CHANGED_S + 2, END_S)) > 0.7


def test_the_new_subflow_is_the_third_and_each_change_was_applied(switched: VmRun) -> None:
    assert [each["state"] for each in switched.events("flip")] == ["sent", "applied"] * 3
    names = {name for frame in switched.samples() for name in frame["sf"]}
    assert len(names) == 3


BOTH_SIDES = Path(__file__).with_name("both_sides.yaml")
FURTHER_MBPS, TRIES = 3, 3  # of the server's second link


@pytest.fixture(scope="module")
def both_sides(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> VmRun:
    """The run. An overloaded run proves nothing, so it is repeated."""
    folder = tmp_path_factory.mktemp("both")
    for number in range(TRIES):
        run = VmRun(folder / f"run{number}", scenario=str(BOTH_SIDES))
        if not run.finish()["overloaded"]:
            break
    return run


@pytest.mark.parametrize(
    ("start_s", "end_s", "is_used"),
    [(1, 3, True), (4, 5, False), (7, 8, True), (9, 10, False), (12, 13, False)],
)
def test_an_announced_address_has_a_subflow_until_an_end_is_switched_off(
    both_sides: VmRun, start_s: float, end_s: float, is_used: bool
) -> None:
    """The server announces its address once more when it is back. The user's second address opens
    subflows only to addresses in use when it is back, as in the simulator."""
    carried = mean(both_sides.samples(), lambda each: each["link"]["b2"]["mbps"], start_s, end_s)
    assert (carried > 0.6 * FURTHER_MBPS) == is_used, carried


def test_the_subflows_are_those_that_are_planned(both_sides: VmRun) -> None:
    scenario = loading.load(str(BOTH_SIDES))
    plan = subflows.planned(scenario.network, wire(scenario.network), scenario.multipath, "ue1")
    wanted = {(each.server.address, each.address) for each in plan}
    seen = [each for each in both_sides.events("subflow") if each["t"] < 3]
    opened_last = [each["connection"] for each in seen if "ended" not in each][-1]
    found = {
        (each["source"].partition(":")[0], each["destination"].partition(":")[0])
        for each in seen
        if each["connection"] == opened_last
    }
    assert found == wanted
