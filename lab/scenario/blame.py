"""Errors about a value name the option that gave it, not the scenario file that it replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol


class Typed(Protocol):
    """The options of a command (`loading.Overrides`)."""

    @property
    def strategy(self) -> str | None: ...
    @property
    def cc(self) -> str | None: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def duration_s(self) -> float | None: ...
    @property
    def settings(self) -> tuple[str, ...]: ...
    @property
    def are_typed(self) -> bool: ...


def blamed(text: str, source: str, overrides: Typed) -> str:
    """Return the message of an error in the scenario `source`, whose lines begin with `source` and
    a key. Where a typed option replaced the key, they begin with the option instead."""
    if not overrides.are_typed:
        return text
    options = list(_options(overrides))
    return "\n".join(_blamed(line, source, options) for line in text.splitlines())


def _blamed(line: str, source: str, options: list[tuple[str, str]]) -> str:
    for option, key in options:
        begin = f"{source}: {key}: "
        problem = line.removeprefix(begin)
        if problem != line and not problem.startswith("is missing"):
            return f"{option}: {problem}"
    return line


def _options(overrides: Typed) -> Iterator[tuple[str, str]]:
    """Yield each option as it was typed, without a value of its own name, and the key that it
    replaces. `--set` is applied last, so it comes first."""
    for setting in reversed(overrides.settings):
        path = setting.partition("=")[0].strip()
        key = re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", path)
        yield f"--set {setting}", key
        yield f"--set {setting}", re.sub(r"^strategy\.(?!params\.)", "strategy.params.", key)
    named = {
        "--strategy": ("strategy.name", overrides.strategy),
        "--cc": ("multipath.cc", overrides.cc),
        "--seed": ("seed", overrides.seed),
        "--duration": ("duration_s", overrides.duration_s),
    }
    yield from ((option, key) for option, (key, value) in named.items() if value is not None)
