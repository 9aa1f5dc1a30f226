"""Runs in the VM take minutes, so each is made once and questioned by many tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from emulation.vm_run import VmRun
from machine import emulation

__all__ = ["emulation"]
TRIES = 3


@pytest.fixture(scope="session")
def start(emulation: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., VmRun]]:
    """Start a run in the VM; one that a test left running is ended."""
    base: Path = tmp_path_factory.mktemp("runs")
    made: list[VmRun] = []

    def starting(name: str, *arguments: str) -> VmRun:
        made.append(VmRun(base / f"{name}-{len(made)}", *arguments))
        return made[-1]

    yield starting
    for run in made:
        run.kill()


@pytest.fixture(scope="session")
def measured(start: Callable[..., VmRun]) -> Callable[..., tuple[VmRun, dict[str, Any]]]:
    """A finished run that did not overload the machine: an overloaded one is evidence of nothing, and is made again."""
    done: dict[str, tuple[VmRun, dict[str, Any]]] = {}

    def measure(name: str, *arguments: str) -> tuple[VmRun, dict[str, Any]]:
        for _ in range(TRIES):
            if name in done:
                break
            run = start(name, *arguments)
            result = run.finish()
            if not result["overloaded"]:
                done[name] = (run, result)
        assert name in done, f"this machine was overloaded in each of {TRIES} runs: {result['overload']}"
        return done[name]

    return measure
