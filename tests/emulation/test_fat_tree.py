"""A run on a fat tree of twenty switches and sixteen hosts: paths, a link that fails, a killed
POX."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from emulation.subflow_entries import Ends, subflows, tables
from emulation.vm_run import POX, mean
from emulation.vm_shell import Queued, VmShell
from machine import emulation, needs_emulation

__all__ = ["emulation"]
pytestmark = [*needs_emulation, pytest.mark.long]
IN_THE_TREE = (
    "ue1",
    "ue2",
    "ue5",
    "ue6",
)  # two in either pod, as many as software emulation carries
SOME_OF_THE_TREE = (
    "--seed",
    "1",
    "--set",
    "rate_scale=0.1",
    "--set",
    f"traffic=[{', '.join(f'{{user: {each}, kind: bulk}}' for each in IN_THE_TREE)}]",
)
CORES = ["c1", "c2", "c3", "c4"]
RESOLVE = (
    "ip neigh del {address} dev ue4-eth1; bash -c 'echo >/dev/udp/{address}/9'; sleep 2; "
    "ip neigh show {address}"
)


@pytest.fixture(scope="module")
def tree(vm: VmShell) -> dict[str, Any]:
    """Make the run; return what was done to it and what was read.

    Only tables of core switches are read, because reading them is slow.
    """
    started = time.monotonic()
    run = vm.run(
        "fat_tree", *SOME_OF_THE_TREE, "--strategy", "expected_throughput", "--duration", "240"
    )
    run.wait_for("first sample", run.samples)
    found: dict[str, Any] = {"run": run, "first_sample_s": time.monotonic() - started}
    run.wait_for(
        "rates for all",
        lambda: [decided(line) for line in subflows(run).values()] == [True] * 2 * len(IN_THE_TREE),
    )
    run.until(run.now() + 5)
    found["settled"], found["subflows"], found["tables"] = (
        run.now(),
        subflows(run),
        tables(run, CORES),
    )

    found["resolved"] = run.execute("ue4", RESOLVE.format(address="10.0.0.4"))
    found["arp"] = run.execute(
        "machine", "; ".join(f"ovs-ofctl dump-flows {each} table=1,arp" for each in CORES)
    )

    found["broken"] = broken = core_link(found["subflows"], "ue1")
    run.flip(f"link.{broken}.up", False)
    found["down"] = run.now()
    run.wait_for(
        "a path without it",
        lambda: not any(crosses(line["path"], broken) for line in subflows(run).values()),
    )
    run.until(run.now() + 12)
    found["rerouted"], found["rerouted_tables"] = subflows(run), tables(run, CORES)

    found["killed"], ready = run.now(), readiness(run)
    run.execute("machine", f"kill -9 $(pgrep -f '^[^ ]*{POX}' | head -1)")
    run.wait_for("POX back", lambda: readiness(run) > ready)
    found["back"] = run.now()
    run.until(found["back"] + 5)
    found["after_the_kill"] = subflows(run)
    second = core_link(found["after_the_kill"], "ue5")
    run.flip(f"link.{second}.up", False)
    run.wait_for(
        "a path without it",
        lambda: not any(crosses(line["path"], second) for line in subflows(run).values()),
    )
    run.stop()
    found["result"] = run.finish()
    return found


def decided(line: dict[str, Any]) -> bool:
    return line["backup"] or line["expected_mbps"] is not None


def readiness(run: Queued) -> int:
    return sum(line["kind"] == "ready" for line in run.decisions())


def core_link(lines: dict[Ends, dict[str, Any]], user: str) -> str:
    """Link between core and aggregation on the path of a user's second subflow."""
    path = next(
        line["path"] for line in lines.values() if line["user"] == user and line["subflow"] == 2
    )
    return f"{path[2]}-{path[3]}"


def crosses(path: list[str], link: str) -> bool:
    return any(link in (f"{a}-{b}", f"{b}-{a}") for a, b in pairwise(path))


def user_mbps(run: Queued, user: str, start: float, end: float) -> float:
    return mean(run.samples(), lambda frame: frame["user"][user]["mbps"], start, end)


def all_mbps(run: Queued, start: float, end: float) -> float:
    return sum(user_mbps(run, user, start, end) for user in IN_THE_TREE)


def core_of(lines: dict[Ends, dict[str, Any]]) -> dict[Ends, set[str]]:
    """Core switch of each subflow, according to POX."""
    return {ends: {line["path"][2]} for ends, line in lines.items()}


def through(tables: dict[str, set[Ends]], subflows: Iterable[Ends]) -> dict[Ends, set[str]]:
    """Core switches that have an entry for each subflow."""
    return {
        ends: {switch for switch, flows in tables.items() if ends in flows} for ends in subflows
    }


def test_twenty_switches_and_sixteen_hosts_fit(tree):
    print(
        f"fat tree: first sample {tree['first_sample_s']:.0f} s after the command, "
        f"{tree['result']['throughput_mbps']} Mb/s"
    )
    described = json.loads((tree["run"].folder / "pox" / "topology.json").read_text())
    assert (len(described["switches"]), len(described["hosts"])) == (20, 16)
    assert len(tree["subflows"]) == 2 * len(IN_THE_TREE)
    assert tree["result"]["mptcp"]["verified"] is True


def test_two_subflows_of_one_connection_pass_different_core_switches(tree):
    found = through(tree["tables"], tree["subflows"])
    assert found == core_of(tree["subflows"])
    for user in IN_THE_TREE:
        assert (
            len(
                set().union(
                    *(
                        found[ends]
                        for ends, line in tree["subflows"].items()
                        if line["user"] == user
                    )
                )
            )
            == 2
        )


def test_arp_is_answered_at_the_edge_and_no_request_crosses_the_core(tree):
    assert "lladdr 02:00:0a:00:00:04" in tree["resolved"]
    entries = re.findall(r"n_packets=(\d+).*?,arp ", tree["arp"])
    assert entries == ["0"] * len(CORES)


def test_a_core_link_that_fails_moves_its_subflows_and_none_ends(tree):
    run, broken = tree["run"], tree["broken"]
    assert [ends for ends, line in tree["subflows"].items() if crosses(line["path"], broken)]
    assert not [ends for ends, line in tree["rerouted"].items() if crosses(line["path"], broken)]
    found = through(tree["rerouted_tables"], tree["rerouted"])
    assert all(
        core <= found[ends] for ends, core in core_of(tree["rerouted"]).items()
    )  # an old entry remains for seconds
    assert set(tree["rerouted"]) == set(tree["subflows"])
    assert user_mbps(run, "ue1", tree["down"] + 4, tree["killed"]) > 0.5 * user_mbps(
        run, "ue1", 5, tree["down"]
    )


def test_a_killed_pox_is_restarted_and_continues(tree):
    run = tree["run"]
    assert all_mbps(run, tree["killed"], tree["back"]) > 0.5 * all_mbps(
        run, tree["down"] + 4, tree["killed"]
    )
    numbers = {
        ends: (line["connection"], line["subflow"]) for ends, line in tree["rerouted"].items()
    }
    assert {
        ends: (line["connection"], line["subflow"]) for ends, line in tree["after_the_kill"].items()
    } == numbers
    assert any("POX had ended" in event.get("text", "") for event in run.events("warning"))
    assert [
        each for each in run.events("reroute") if each["t"] > tree["back"] and each["flows_moved"]
    ]  # moved by the restarted POX
