"""Modules in the place of POX's own, for the parts of the controller that run inside POX."""

from __future__ import annotations

import logging
import select
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any


class Core:
    """Stand in for POX's `core`, its loop and its timers. The test turns the loop."""

    def __init__(self) -> None:
        self.running = True
        self.getLogger = logging.getLogger
        self.openflow: Any = None
        self.listeners: dict[str, Callable[[Any], None]] = {}
        self.timers: list[Timer] = []
        self.waiting: list[
            tuple[Any, tuple[Any, ...]]
        ] = []  # tasks, and what each waits for: read, write, -, seconds

    def addListenerByName(self, event: str, handle: Callable[[Any], None]) -> None:
        self.listeners[event] = handle

    def start(self, task: Any) -> None:
        self.waiting.append((task, next(task)))

    def turn(self) -> bool:
        """Let each task go on that can read or write; return whether there was one."""
        went_on = False
        for number, (task, waits) in enumerate(self.waiting):
            ready = select.select(*waits[:3], 0)
            if any(ready):
                self.waiting[number] = (task, task.send(ready))
                went_on = True
        return went_on


@dataclass
class Timer:
    every_s: float
    call: Callable[[], None]
    recurring: bool = False


def modules() -> dict[str, ModuleType]:
    """Return modules for `sys.modules`, by name."""
    core = Core()

    class Task:
        def __init__(self) -> None:
            self._run = self.run()

        def start(self) -> None:
            core.start(self._run)

    def timer(*arguments: Any, **options: Any) -> None:
        core.timers.append(Timer(*arguments, **options))

    recoco = {"Task": Task, "Select": lambda *waits: waits, "Timer": timer}
    contents: dict[str, dict[str, Any]] = {
        "pox": {},
        "pox.core": {"core": core},
        "pox.lib": {},
        "pox.lib.recoco": recoco,
    }
    made = {name: ModuleType(name) for name in contents}
    for name, content in contents.items():
        vars(made[name]).update(content)
    return made
