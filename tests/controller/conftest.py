"""Bridges in user space, built once per file and reset before each test; and a stand-in for POX."""

from __future__ import annotations

import importlib
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pox_stand_in
import pytest
from userspace_network import Network

from controller import strategies
from controller.strategies import from_file


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with Network(tmp_path_factory.mktemp("network")) as network:
        yield network


@pytest.fixture
def network(built: Network) -> Network:
    built.reset()
    return built


@pytest.fixture
def pox(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    """Put modules in the place of POX, and import the parts of the controller that need them."""
    for name, module in pox_stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    ours = ("component", "openflow13_channel", "session", "meters")
    for name in ours:
        monkeypatch.delitem(sys.modules, f"controller.pox_ext.{name}", raising=False)
    made = [importlib.import_module(f"controller.pox_ext.{name}") for name in ours]
    yield types.SimpleNamespace(
        core=sys.modules["pox.core"].core, component=made[0], channel=made[1], session=made[2]
    )
    for name in ours:
        sys.modules.pop(f"controller.pox_ext.{name}", None)


@pytest.fixture
def start(
    pox: types.SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Start a controller (`session_world.Controller`), after the end of an earlier one."""
    pytest.importorskip("os_ken", reason="os-ken is missing: see requirements-emulation.txt")
    import session_world

    known = strategies.STRATEGIES.copy()  # a controller may add one from a file
    monkeypatch.setattr(strategies, "STRATEGIES", known)
    monkeypatch.setattr(from_file, "STRATEGIES", known)
    clock, running = session_world.Clock(), []
    monkeypatch.setattr(time, "monotonic", lambda: clock.now_s)
    monkeypatch.setattr(time, "monotonic_ns", lambda: round(clock.now_s * 1e9))

    def started(strategy: str = "none", **options: Any) -> session_world.Controller:
        end()
        running.append(session_world.Controller(pox, tmp_path, clock, strategy, **options))
        return running[0]

    def end() -> None:
        while running:
            running.pop().end()

    yield started
    end()
