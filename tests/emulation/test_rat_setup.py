"""Files over two radio hops: senders behind relays, receivers with two interfaces (RAT study)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from emulation.vm_shell import Queued, VmShell
from machine import needs_emulation

pytestmark = needs_emulation
CONNECTIONS = {f"ue{pair}-{n}" for pair in (1, 2) for n in (1, 2)}
SMALL = (
    *("--duration", "20", "--set", "topology.pairs=2", "--set", "traffic_parallel=2"),
    *("--set", "traffic_volume_mb=20", "--set", "rate_scale=0.02"),
)
CC = {1: "olia", 2: "cubic", 3: "lia"}
SECOND = {1: "lte1", 2: "wifi3", 3: "wifi3"}  # the cell of a receiver's second interface


@pytest.fixture(scope="module")
def measured(vm: VmShell) -> Any:
    done: dict[int, tuple[Queued, dict[str, Any]]] = {}

    def of(setup: int) -> tuple[Queued, dict[str, Any]]:
        if setup not in done:
            run = vm.run(f"rat_setup_{setup}", "--cc", CC[setup], *SMALL)
            done[setup] = run, run.finish()
        return done[setup]

    return of


@pytest.fixture(
    params=[pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long), 3]
)
def setup(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_every_file_arrives_over_two_verified_subflows(measured, setup):
    _, result = measured(setup)
    assert result["mptcp"]["verified"], result["mptcp"]
    assert {each["id"] for each in result["connections"]} == CONNECTIONS
    for each in result["connections"]:
        assert 1 < each["completion_s"] < 20
        cells = {subflow["path"][-1] for subflow in each["subflows"]}
        assert cells == {"wifi2", SECOND[setup]}
        assert all(subflow["throughput_mbps"] > 0 for subflow in each["subflows"])


def test_the_congestion_control_is_read_back_from_the_kernel(measured, setup):
    _, result = measured(setup)
    subflows = [subflow for each in result["connections"] for subflow in each["subflows"]]
    wanted = CC[setup] if CC[setup] == "cubic" else f"bpf_{CC[setup]}"
    assert {subflow["cc"] for subflow in subflows} == {wanted}


def test_each_path_has_the_rate_and_the_delay_of_its_cells(measured, setup):
    run, _ = measured(setup)
    links = json.loads((run.folder / "manifest.json").read_text())["links_measured"]
    assert len(links) == 4
    for link in links.values():
        asked, got = link["asked"], link["measured"]
        assert got["rate_mbps"] == pytest.approx(asked["rate_mbps"], rel=0.25)
        assert asked["rtt_ms"] - 1 < got["rtt_ms"] < 1.25 * asked["rtt_ms"] + 5


def test_traffic_crosses_the_cells_of_both_ends(measured, setup):
    _, result = measured(setup)
    mbps = {ap: each["throughput_mbps"] for ap, each in result["aps"].items()}
    assert mbps["wifi1"] == pytest.approx(mbps["wifi2"], rel=0.01)
    assert mbps["lte1"] == pytest.approx(mbps[SECOND[setup]], rel=0.01)
    assert min(mbps.values()) > 0
