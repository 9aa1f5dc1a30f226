"""Fixtures for runs in VMs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from emulation.vm_run import VmRun
from emulation.vm_shell import Queued, VmShell
from machine import emulation

__all__ = ["emulation"]


@pytest.fixture(scope="session")
def start(
    emulation: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., VmRun]]:
    """Start runs, each in a VM of its own."""
    base: Path = tmp_path_factory.mktemp("runs")
    runs: list[VmRun] = []

    def starting(name: str, *arguments: str) -> VmRun:
        runs.append(VmRun(base / f"{name}-{len(runs)}", *arguments))
        return runs[-1]

    yield starting
    for run in runs:
        run.kill()


@pytest.fixture(scope="module")
def vm(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VmShell]:
    machine = VmShell(tmp_path_factory.mktemp("vm"))
    yield machine
    machine.close()


@pytest.fixture(scope="module")
def runs(vm: VmShell) -> Callable[..., Queued]:
    """`runs(SCENARIO, ...)` makes a run only once per module."""
    made: dict[tuple[str, ...], Queued] = {}

    def run(*arguments: str) -> Queued:
        if arguments not in made:
            made[arguments] = vm.run(*arguments)
        return made[arguments]

    return run
