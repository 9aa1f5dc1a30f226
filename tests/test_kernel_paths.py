"""The paths that a program emulates for the machine's own kernel: rate, queue, delay and
counters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from emulation import kernel_witness
from emulation.kernel_paths import Direction, changes, frame

from lab.run.manifest import ROOT
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides
from papers import crosscheck
from papers.studies import TWO_PATHS, Measured


@pytest.fixture
def direction():
    """1 Mb/s: a full frame of 1514 bytes takes 12.112 ms. Two packets may wait behind the one that
    is sent; the delay is 20 ms."""
    return Direction(0, 1, rate_bps=1e6, delay_s=0.02, queue_packets=2)


def test_a_packet_takes_its_time_on_the_wire_and_then_the_delay(direction):
    assert direction.arrival_s(1.0, 1500, 1.0) == pytest.approx(1.032112)
    assert direction.arrival_s(1.0, 1500, 1.0) == pytest.approx(1.044224)


def test_a_full_queue_loses_what_comes_and_has_room_again_later(direction):
    assert [direction.arrival_s(1.0, 1500, 1.0) is None for _ in range(4)] == [
        False,
        False,
        False,
        True,
    ]
    assert direction.arrival_s(1.0122, 1500, 1.0) is not None


def test_a_lossy_path_drops_packets_at_random(direction):
    direction.loss = 0.05
    assert direction.arrival_s(1.0, 1500, 0.049) is None
    assert direction.arrival_s(1.0, 1500, 0.051) is not None


def test_a_sample_is_the_rate_since_the_last_one():
    before, now = (
        {"whole": 1_000_000, "ue1-1/1": 500_000},
        {"whole": 1_250_000, "ue1-1/1": 625_000, "ue1-1/2": 125_000},
    )
    assert frame(3.0, 2.0, before, now) == {
        "t": 3.0,
        "user": {"ue1": {"mbps": 1.0}},
        "sf": {"ue1-1/1": {"mbps": 0.5}, "ue1-1/2": {"mbps": 0.5}},
    }


def test_a_lossy_path_becomes_a_backup_and_comes_back():
    case = next(case for case in TWO_PATHS.cases if case.name == "backup")
    loaded = scenario.load(TWO_PATHS.scenario, Overrides(case.strategy, None, 1, 25, case.settings))
    assert changes(loaded) == [
        (8, 2, 0.05, ""),
        (9.5, 2, None, "backup"),
        (16, 2, 0, ""),
        (17.5, 2, None, "nobackup"),
    ]


def test_the_page_judges_the_simulator_by_the_kernel():
    measured = Measured(
        {
            "status": "complete",
            "overloaded": False,
            "seed": 1,
            "connections": [{"completion_s": 2.0}],
        }
    )
    found = {
        (engine, case.name): [measured]
        for engine in ("kernel", "sim")
        for case in kernel_witness.STUDY.cases
    }
    page = crosscheck.section(kernel_witness.STUDY, found, "Made here.")
    assert page.startswith("## two_paths_kernel")
    assert (
        "| file_1_mb | time to complete [s] | 2.00 | 2.00 | +0 % | 15 %: met, open, add 4 | "
        in page
    )
    assert "sim against kernel" in page


@pytest.mark.whole
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and tun devices need root")
@pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="this kernel has no tun")
@pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp/enabled").exists(), reason="this kernel has no Multipath TCP"
)
def test_the_kernel_sends_over_both_paths(tmp_path):
    """Both subflows carry data at the same time; a busy machine may carry less than 10 Mb/s."""
    environment = {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }
    command = [sys.executable, "-m", "emulation.kernel_paths", "file_1_mb", "1", "measured.json"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    measured = json.loads((tmp_path / "measured.json").read_text())
    assert measured["status"] == "complete"
    assert measured["connections"][0]["completion_s"] > 0.4  # 8 Mbit at 20 Mb/s
    assert any(
        all(subflow["mbps"] > 0.3 for subflow in frame["sf"].values())
        for frame in measured["frames"]
        if len(frame["sf"]) == 2
    )
