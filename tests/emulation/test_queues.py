"""The kernel's queues and the simulator's drop, or mark, as many packets and keep as few."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from emulation.vm_run import ROOT, VmRun
from machine import needs_emulation

from lab.run.reading import read_samples

pytestmark = needs_emulation
SCENARIO = Path(__file__).with_name("queues.yaml")
PATHS = {"path1": "fifo", "path2": "codel", "path3": "fq_codel", "path4": "red"}
SETTLED_S = 8
TRIES = 3
FRAME_MS = 1514 * 8 / 5000  # of a full frame at the rate of the paths
# the simulator counts the packet in transmission, too, and the kernel none that netem still holds
UNSEEN_MS = 5 * FRAME_MS


def emulated(folder: Path, *arguments: str) -> VmRun:
    """A run in the VM. An overloaded one proves nothing, so it is repeated."""
    for number in range(TRIES):
        run = VmRun(folder / f"run{number}", *arguments, scenario=str(SCENARIO))
        if not run.finish()["overloaded"]:
            break
    return run


def simulated(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "lab", "run", str(SCENARIO), "--engine", "sim", "--quiet"]
    subprocess.run([*command, "--out", str(folder), *arguments], cwd=ROOT, check=True)
    return read_samples(folder)


def carried_mbps(samples: Sequence[dict[str, Any]], path: str) -> float:
    return statistics.mean(each["link"][path]["mbps"] for each in samples if each["t"] > SETTLED_S)


def waiting_ms(samples: Sequence[dict[str, Any]], path: str) -> float:
    """The median time for which a packet has to wait."""
    packets = (each["link"][path]["backlog"] for each in samples if each["t"] > SETTLED_S)
    return FRAME_MS * statistics.median(packets)


def lost(samples: Sequence[dict[str, Any]], path: str) -> float:
    return statistics.mean(each["link"][path]["loss"] for each in samples if each["t"] > SETTLED_S)


def test_each_link_has_the_queue_of_the_scenario(emulation: None, tmp_path: Path) -> None:
    run = emulated(tmp_path, "--duration", "14")
    commands = (run.folder / "commands.sh").read_text()
    for kind in ("pfifo limit 100", "codel limit 1000", "fq_codel limit 1000", "red limit"):
        assert f"handle 10: {kind} " in commands.replace("\n", " \n")
    samples = run.samples()
    for path, kind in PATHS.items():
        assert carried_mbps(samples, path) > 3.5, kind
        if kind != "fifo":
            assert waiting_ms(samples, path) < waiting_ms(samples, "path1") / 2, kind


@pytest.mark.long
@pytest.mark.parametrize("ecn", ["false", "true"])
def test_both_engines_carry_as_much_and_let_as_many_packets_wait(
    emulation: None, tmp_path: Path, ecn: str
) -> None:
    setting = ("--set", f"multipath.ecn={ecn}")
    kernel = emulated(tmp_path, *setting).samples()
    simulator = simulated(tmp_path / "simulated", *setting)
    for path, kind in PATHS.items():
        rates = [carried_mbps(each, path) for each in (kernel, simulator)]
        assert rates[0] == pytest.approx(rates[1], rel=0.1), kind
        times = [waiting_ms(each, path) for each in (kernel, simulator)]
        assert times[0] == pytest.approx(times[1], rel=0.25, abs=UNSEEN_MS), kind
        if kind != "fifo" and ecn == "true":
            assert (lost(kernel, path), lost(simulator, path)) == (0, 0), kind
