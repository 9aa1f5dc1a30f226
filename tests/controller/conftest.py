"""Bridges in user space, built once per file and reset before each test; and a stand-in for POX."""

from __future__ import annotations

import importlib
import logging
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from userspace_network import Network


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with Network(tmp_path_factory.mktemp("network")) as network:
        yield network


@pytest.fixture
def network(built: Network) -> Network:
    built.reset()
    return built


class Task:
    """In place of a task of POX's loop."""

    def start(self) -> None:
        pass


@pytest.fixture
def pox(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    """Replace POX's modules, and import the parts of the controller that need them."""
    core = types.SimpleNamespace(running=True, getLogger=logging.getLogger)
    stands_in: dict[str, dict[str, Any]] = {
        "pox": {},
        "pox.core": {"core": core},
        "pox.lib": {},
        "pox.lib.recoco": {"Task": Task, "Select": lambda *a: a, "Timer": object},
    }
    for name, content in stands_in.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    ours = ("component", "openflow13_channel", "session", "meters")
    for name in ours:
        monkeypatch.delitem(sys.modules, f"controller.pox_ext.{name}", raising=False)
    made = [importlib.import_module(f"controller.pox_ext.{name}") for name in ours]
    yield types.SimpleNamespace(core=core, component=made[0], channel=made[1], session=made[2])
    for name in ours:
        sys.modules.pop(f"controller.pox_ext.{name}", None)
