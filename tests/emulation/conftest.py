"""Runs in a VM of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from emulation.vm_run import VmRun
from emulation.vm_shell import VmShell
from machine import emulation

__all__ = ["emulation"]


@pytest.fixture(scope="session")
def start(
    emulation: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., VmRun]]:
    """Start a run in the VM; one that a test left running is ended."""
    base: Path = tmp_path_factory.mktemp("runs")
    made: list[VmRun] = []

    def starting(name: str, *arguments: str) -> VmRun:
        made.append(VmRun(base / f"{name}-{len(made)}", *arguments))
        return made[-1]

    yield starting
    for run in made:
        run.kill()


@pytest.fixture(scope="module")
def vm(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VmShell]:
    """One VM for the runs of a module, one after the other."""
    machine = VmShell(tmp_path_factory.mktemp("vm"))
    yield machine
    machine.close()
