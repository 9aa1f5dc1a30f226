"""Modules in the place of POX's own, for the parts of the controller that run inside POX."""

from __future__ import annotations

import logging
from types import ModuleType, SimpleNamespace
from typing import Any


class Task:
    """Stand in for a task of POX's loop."""

    def start(self) -> None:
        pass


def modules() -> dict[str, ModuleType]:
    """Return modules for `sys.modules`, by name."""
    core = SimpleNamespace(running=True, getLogger=logging.getLogger)
    contents: dict[str, dict[str, Any]] = {
        "pox": {},
        "pox.core": {"core": core},
        "pox.lib": {},
        "pox.lib.recoco": {"Task": Task, "Select": lambda *a: a, "Timer": object},
    }
    made = {name: ModuleType(name) for name in contents}
    for name, content in contents.items():
        vars(made[name]).update(content)
    return made
