"""A fat tree of twenty switches: real POX, Open vSwitch in user space, the kernel's Multipath
TCP."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from userspace_bridges import eventually
from userspace_network import missing
from userspace_traffic import mbps, start
from userspace_tree import CORES, FatTree

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.long,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
FLOW = re.compile(r"tcp,nw_src=([\d.]+),nw_dst=([\d.]+),tp_src=(\d+),tp_dst=(\d+)")
USERS = ("ue1", "ue2", "ue5", "ue6")
Way = tuple[str, str]


class Tree(FatTree):
    users = USERS
    first: dict[Way, dict[str, Any]]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    with Tree(tmp_path_factory.mktemp("tree")) as tree:
        tree.start_agents()
        start(tree, "expected_throughput")
        tree.progress = {user: tree.download(user) for user in USERS}
        eventually(
            lambda: (
                len(subflows(tree)) == 8 and all(decided(line) for line in subflows(tree).values())
            ),
            "decide",
        )
        # Checked before all tests, which break a link and kill POX in any order.
        clean = "delete the entries of the paths before"
        eventually(lambda: through_cores(tree) == core_of(tree), clean)
        tree.first = subflows(tree)
        yield tree


def subflows(tree: Tree) -> dict[Way, dict[str, Any]]:
    """Latest line about each subflow."""
    return {(line["source"], line["destination"]): line for line in tree.lines("subflow")}


def decided(line: dict[str, Any]) -> bool:
    return line["backup"] or line["expected_mbps"] is not None


def core_of(tree: Tree) -> dict[Way, set[str]]:
    """Core switch of each subflow, according to POX."""
    return {way: {line["path"][2]} for way, line in subflows(tree).items()}


def through_cores(tree: Tree) -> dict[Way, set[str]]:
    """Core switches that have an entry for each subflow."""
    found: dict[Way, set[str]] = {}
    for core in CORES:
        for a, b, source, destination in FLOW.findall(tree.ofctl("dump-flows", core, "table=1")):
            if source == "5001":
                found.setdefault((f"{a}:{source}", f"{b}:{destination}"), set()).add(core)
    return found


def core_link(tree: Tree, user: str, number: int) -> str:
    """Link between core and aggregation on the way down to a user."""
    path = next(
        line["path"]
        for line in subflows(tree).values()
        if (line["user"], line["subflow"]) == (user, number)
    )
    return f"{path[2]}-{path[3]}"


def crossing(tree: Tree, link: str) -> list[Way]:
    return [
        way
        for way, line in subflows(tree).items()
        if link in {f"{a}-{b}" for a, b in pairwise(line["path"])}
    ]


def test_two_subflows_of_one_connection_pass_different_core_switches(tree):
    for user in USERS:
        assert len({line["path"][2] for line in tree.first.values() if line["user"] == user}) == 2


def test_arp_requests_are_answered_and_not_forwarded(tree):
    for user, server in tree.pairs.items():
        mac = "02:00:" + ":".join(f"{int(part):02x}" for part in tree.address(server).split("."))
        assert f"{tree.address(server)} dev eth lladdr {mac}" in tree.inside(
            user, "ip", "neigh", "show"
        )
    for core in CORES:
        entry = tree.ofctl("dump-flows", core, "table=1,arp")
        assert re.findall(r"n_packets=(\d+)", entry) == ["0"]


def test_subflows_on_a_broken_core_link_move_and_none_ends(tree):
    link = core_link(tree, "ue1", 2)
    before = set(subflows(tree))
    assert crossing(tree, link)
    tree.break_link(link, 1)
    eventually(lambda: not crossing(tree, link), "find a way round")
    time.sleep(2)  # TCP retransmits
    assert mbps(tree.progress["ue1"], 4) > 0.5
    assert set(subflows(tree)) == before
    assert not [line for line in tree.lines("subflow") if line.get("ended")]


def test_forwarding_continues_without_pox_and_a_restarted_pox_decides(tree):
    before = {way: (line["connection"], line["subflow"]) for way, line in subflows(tree).items()}
    tree.stop_pox(signal.SIGKILL)
    assert all(mbps(progress, 2) > 0.5 for progress in tree.progress.values())
    known = len(tree.lines("ready"))
    tree.start_pox("expected_throughput", interval_s=0.5)
    eventually(lambda: len(tree.lines("ready")) > known, "connect again")
    link = core_link(tree, "ue5", 2)
    assert crossing(tree, link)
    tree.break_link(link, 2)
    eventually(lambda: not crossing(tree, link), "find a way round")
    assert {
        way: (line["connection"], line["subflow"]) for way, line in subflows(tree).items()
    } == before
    time.sleep(2)
    assert mbps(tree.progress["ue5"], 4) > 0.5
