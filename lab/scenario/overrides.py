"""Apply the command line options that change the content of a scenario file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.strategy_names import base_name
from lab.errors import RequestError
from lab.scenario.engine_table import with_stack
from lab.scenario.yaml_text import parse


@dataclass(frozen=True)
class Overrides:
    """The command line options that change the content of a scenario file.

    `settings` has the values of all options `--set`; they are applied last. `slow_machine` is True
    if a scenario with `rate_scale: auto` must run at its `slow_machine_rate_scale`.
    """

    strategy: str | None = None
    cc: str | None = None
    seed: int | None = None
    duration_s: float | None = None
    settings: tuple[str, ...] = ()
    slow_machine: bool = False
    stack: str | None = None


def apply(raw: dict[str, Any], overrides: Overrides) -> None:
    if overrides.strategy is not None:
        raw["strategy"] = _chosen(raw.get("strategy"), overrides.strategy)
    if overrides.cc is not None:
        set_value(raw, f"multipath.cc={overrides.cc}")
    if overrides.stack is not None:
        raw["multipath"] = with_stack(overrides.stack, raw.get("multipath"))
    if overrides.seed is not None:
        raw["seed"] = overrides.seed
    if overrides.duration_s is not None:
        raw["duration_s"] = float(overrides.duration_s)
    for setting in overrides.settings:
        set_value(raw, setting)


def _chosen(present: Any, name: str) -> Mapping[str, Any]:
    """Return the value of the key `strategy` for the strategy `name`.

    Parameters in the file are kept if they belong to the same strategy, perhaps in another form.
    """
    if isinstance(present, dict) and base_name(str(present.get("name"))) == base_name(name):
        return present | {"name": name}
    return {"name": name}


def set_value(raw: dict[str, Any], setting: str) -> None:
    """Apply one option `--set key.path=value` to the content of a scenario file. The value has the
    type that YAML gives it.

    An entry of a list is selected by its number, counted from 1, or by its `id`. `strategy.cth` is
    short for `strategy.params.cth`.
    """
    path, equals, text = setting.partition("=")
    steps = path.strip().split(".")
    if not equals or not all(steps):
        raise RequestError(f"--set {setting}: write key.path=value, such as topology.multipath=[]")
    if len(steps) == 2 and steps[0] == "strategy" and steps[1] not in ("name", "params"):
        steps.insert(1, "params")
    here: Any = raw
    for step in steps[:-1]:
        if isinstance(here, list):
            here = here[_position(here, step, setting)]
        elif isinstance(here, dict):
            if here.get(step) is None:
                here[step] = {}
            here = here[step]
        else:
            raise RequestError(f"--set {setting}: '{step}' is inside a plain value")
    value = parse(text, f"--set {path}")
    if isinstance(here, list):
        here[_position(here, steps[-1], setting)] = value
    elif isinstance(here, dict):
        here[steps[-1]] = value
    else:
        raise RequestError(f"--set {setting}: '{steps[-1]}' is inside a plain value")


def _position(entries: list[Any], step: str, setting: str) -> int:
    ids = [
        str(each["id"]) if isinstance(each, dict) and "id" in each else str(n)
        for n, each in enumerate(entries, 1)
    ]
    if step in ids:
        return ids.index(step)
    if step.isascii() and step.isdecimal() and len(step) < 9 and 1 <= int(step) <= len(entries):
        return int(step) - 1
    raise RequestError(
        f"--set {setting}: no entry '{step}': choose from {', '.join(ids) or 'an empty list'}"
    )
