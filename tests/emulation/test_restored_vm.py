"""Runs in a VM restored from its snapshot: seeds, the lab's sources, and a killed POX."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from emulation.vm_run import POX, ROOT, WITHIN_S, VmRun, signalled
from machine import emulation, needs_emulation

from lab.engines.mininet.machine import vm_kernel
from vm import accelerator, snapshot

__all__ = ["emulation"]
pytestmark = needs_emulation
SEEDS = """
cat /proc/sys/kernel/random/uuid
python -c 'import random; print(random.random())'
ovs-vsctl --bare get Open_vSwitch . external_ids:system-id
date +%s.%N
"""
BACK_WITHIN_S = 15  # it takes 3 s on two quiet processors
SOURCE = ROOT / "lab" / "errors.py"


@pytest.fixture(scope="module", autouse=True)
def snapshots(emulation: None) -> None:
    """Make the snapshot; skip where VMs are booted: with KVM, or if boots are requested."""
    if not snapshot.wanted() or accelerator.kvm_works(vm_kernel.require()):
        pytest.skip("VMs are booted here, with KVM or by request")
    in_vm("true")


@pytest.fixture(scope="module")
def changed_source(snapshots: None) -> Iterator[None]:
    """Touch one of the lab's sources after the snapshot; its time is restored at the end."""
    times = SOURCE.stat()
    os.utime(SOURCE)
    yield
    os.utime(SOURCE, ns=(times.st_atime_ns, times.st_mtime_ns))


def in_vm(script: str) -> list[str]:
    """Words that a script prints in a new VM."""
    argv = [sys.executable, "-m", "lab", "vm", "--", "sh", "-c", script]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_must_differ_between_two_vms_of_one_snapshot_does() -> None:
    wait = "sleep 3; test -e /run/warm/ready && "
    first, second = (in_vm(f"{wait}{{ {SEEDS} }}") for _ in range(2))
    assert len(first) == len(second) == 4
    assert [a != b for a, b in zip(first, second, strict=True)] == [True] * 4
    assert float(second[3]) - float(first[3]) > 3


@pytest.fixture(scope="module")
def run(changed_source: None, start: Callable[..., VmRun]) -> dict[str, Any]:
    """Make one run whose sources differ from the snapshot's; kill POX, and wait until the new one
    decides.

    Return the run, the outputs of commands in it, and how long POX was missing.
    """
    options = ("--set", "rate_scale=0.1", "--set", "sample_interval_s=1")
    run = start("restored", "--strategy", "meter_throttling", "--duration", "90", *options)
    run.wait_for("first sample", run.samples)
    found: dict[str, Any] = {"run": run}
    found["warm"] = run.execute("machine", "cat /run/warm/log.txt")
    found["processes"] = run.execute("machine", "ps -eo args")
    run.wait_for("a decision", lambda: run.events("decision"))
    run.until(run.now() + 4)
    run.execute("machine", signalled(POX, "KILL"))
    killed = run.now()
    run.wait_for("a restart", lambda: pox_restarts(run))
    restarted = pox_restarts(run)[0]["t"]
    run.wait_for(
        "a decision of the new POX",
        lambda: any(each["t"] > restarted for each in run.events("decision")),
    )
    decided = next(each["t"] for each in run.events("decision") if each["t"] > restarted)
    found["missing_s"] = decided - killed
    run.kill()
    return found


def pox_restarts(run: VmRun) -> list[dict[str, Any]]:
    return [each for each in run.events("warning") if "POX had ended" in each.get("text", "")]


def test_changed_sources_are_imported_in_the_restored_vm(run: dict[str, Any]) -> None:
    assert "the sources have changed" in run["warm"]


def test_the_runner_and_pox_are_forks_that_show_their_command_lines(run: dict[str, Any]) -> None:
    lines = run["processes"].splitlines()
    assert any(" -m lab run " in line for line in lines)
    assert any(" pox.py --unthreaded-sh " in line for line in lines)


def test_a_killed_pox_decides_soon(run: dict[str, Any]) -> None:
    print(f"POX was missing for {run['missing_s']:.1f} s")
    assert run["missing_s"] < BACK_WITHIN_S
