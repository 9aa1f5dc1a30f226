"""The kernel's DCTCP: who uses it, that ECN was agreed, and that the queue marks for it.

Near the end, the user of reno changes to dctcp, too, on a connection without ECN.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from emulation.vm_run import VmRun
from machine import needs_emulation

pytestmark = needs_emulation
SCENARIO = Path(__file__).with_name("dctcp.yaml")
ALPHA = re.compile(r"dctcp:\(ce_state:?\d,?\s?alpha:?(\d+)")  # as old and new versions of ss say it
MARKED = re.compile(r"marked (\d+)")


@pytest.fixture(scope="module")
def run(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> VmRun:
    """A run, with what the kernel says of its queues and sockets meanwhile (`said`)."""
    run = VmRun(tmp_path_factory.mktemp("dctcp") / "run", scenario=str(SCENARIO))
    run.until(9)
    run.said = {
        "queues": run.execute("machine", "tc -s qdisc show"),
        **{host: run.execute(host, "ss -tiHO state established") for host in ("srv1", "ue2")},
    }
    run.flip("cc", "dctcp")
    run.finish()
    return run


def test_each_subflow_used_the_congestion_control_of_its_user(run: VmRun) -> None:
    """The kernel calls DCTCP without ECN `dctcp-reno`."""
    used = {
        each["user"]: [one["cc"] for one in each["subflows"]]
        for each in run.finish()["connections"]
    }
    assert used == {"ue1": ["dctcp", "dctcp"], "ue2": ["dctcp"], "ue3": ["dctcp-reno"]}
    assert any("its DCTCP is Reno" in each["text"] for each in run.events("warning"))


def test_the_senders_count_the_marks(run: VmRun) -> None:
    """Alpha begins at 1024, and falls to nothing without marks."""
    for host, senders in (("srv1", 2), ("ue2", 1)):
        alphas = [int(each) for each in ALPHA.findall(run.said[host])]
        assert sum(0 < each < 1024 for each in alphas) >= senders, run.said[host]


def test_the_queue_marks_and_drops_only_what_has_no_ecn(run: VmRun) -> None:
    assert max(map(int, MARKED.findall(run.said["queues"]))) > 50
    lost = {
        each["user"]: sum(one["retransmitted_segments"] for one in each["subflows"])
        for each in run.finish()["connections"]
    }
    assert max(lost["ue1"], lost["ue2"]) < 4, lost  # a probe now and then, in a slow VM
    assert lost["ue3"] > 20, lost
