"""The kernel's DCTCP: who uses it, that ECN was agreed, and that the queue marks for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from emulation.vm_run import VmRun
from machine import needs_emulation

pytestmark = needs_emulation
SCENARIO = Path(__file__).with_name("dctcp.yaml")
ALPHA = re.compile(
    r"dctcp:\(ce_state:?\d,?\s?alpha:?(\d+)"
)  # the words of different versions of ss
MARKED = re.compile(r"marked (\d+) early (\d+)")


@pytest.fixture(scope="module")
def run(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> VmRun:
    """A run, with what the kernel says of its queues and sockets meanwhile (`said`)."""
    run = VmRun(tmp_path_factory.mktemp("dctcp") / "run", scenario=str(SCENARIO))
    run.until(9)
    run.said = {
        "queues": run.execute("machine", "tc -s qdisc show"),
        **{host: run.execute(host, "ss -tiHO state established") for host in ("srv1", "ue2")},
    }
    run.finish()
    return run


def test_each_subflow_used_the_congestion_control_of_its_user(run: VmRun) -> None:
    """A socket whose ECN was refused would say `dctcp-reno`."""
    used = {
        each["user"]: [one["cc"] for one in each["subflows"]]
        for each in run.finish()["connections"]
    }
    assert used == {"ue1": ["dctcp", "dctcp"], "ue2": ["dctcp"], "ue3": ["reno"]}


def test_the_senders_count_the_marks(run: VmRun) -> None:
    """Alpha begins at 1024, and falls to nothing without marks."""
    for host, senders in (("srv1", 2), ("ue2", 1)):
        alphas = [int(each) for each in ALPHA.findall(run.said[host])]
        assert sum(0 < each < 1024 for each in alphas) >= senders, run.said[host]


def test_the_queue_marks_and_drops_only_what_has_no_ecn(run: VmRun) -> None:
    assert max(int(marked) for marked, _early in MARKED.findall(run.said["queues"])) > 50
    lost = {
        each["user"]: sum(one["retransmitted_segments"] for one in each["subflows"])
        for each in run.finish()["connections"]
    }
    assert (lost["ue1"], lost["ue2"]) == (0, 0)
    assert lost["ue3"] > 3
