"""Fixtures for all tests: a scenario that comes with the lab, recorders in temporary folders, and
runs on the fake engine."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest
from emulation_failures import note_failures
from emulation_time import refuse_late_runs, say_what_was_left_out
from fake_engine import FakeEngine
from hypothesis import settings

from lab.engines.sim import compiler
from lab.run.outcome import Outcome
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides

# No deadline: no test measures time. In CI, hypothesis always draws the same examples; elsewhere it
# looks for new ones.
settings.register_profile("lab", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("lab")


@pytest.hookimpl(trylast=True)  # after the order was drawn
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with whole programs, which take minutes, before all others. So no processor waits at
    the end for the last of them. Tests of the emulation run one by one."""
    slow = {
        item.path
        for item in items
        if item.get_closest_marker("whole") and not item.get_closest_marker("emulation")
    }
    items.sort(key=lambda item: item.path not in slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    refuse_late_runs(item)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    say_what_was_left_out()
    note_failures(session, exitstatus)


@pytest.fixture(scope="session", autouse=True)
def compiled_simulator() -> None:
    """Wait for the compiler, so that no test begins interpreted and goes on compiled. Where nothing
    can be compiled, all tests run interpreted."""
    try:
        compiler.wait()
    except CalledProcessError as error:
        warnings.warn(f"THE SIMULATOR IS TESTED INTERPRETED ONLY: {error}", stacklevel=1)


@pytest.fixture
def load_testbed() -> Callable[..., Any]:
    """Load testbed_wifi_lte with these `--set` values."""
    return lambda *settings: scenario.load("testbed_wifi_lte", Overrides(settings=settings))


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Callable[..., Recorder]]:
    made: list[Recorder] = []

    def make(of: Any, name: str = "run") -> Recorder:
        folder = tmp_path / name
        folder.mkdir()
        made.append(Recorder(folder, of, "fake"))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def go(load_testbed: Any, record: Any) -> Callable[..., tuple[Outcome, FakeEngine]]:
    """Run testbed_wifi_lte for 2 s on the fake engine."""

    def start(*settings: str, engine: FakeEngine | None = None) -> tuple[Outcome, FakeEngine]:
        engine = engine or FakeEngine()
        of = load_testbed("duration_s=2", *settings)
        return run(of, engine, record(of)), engine

    return start
