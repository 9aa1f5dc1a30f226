"""List the engines (emulation and simulator) and what each engine can run.

The table is plain data, so that reading it imports no engine. `lab.engines.create` imports the
class that `Entry.path` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab import extensions, user_file_kind
from lab.congestion import BUILT_IN
from lab.errors import MachineLacks, RequestError, unknown
from lab.scenario.stacks import STACKS


@dataclass(frozen=True)
class Entry:
    """Describe one engine: the import path of its class (`path`), and what the engine can run.

    - `real_time`: the engine follows the wall clock, so its runs cannot be paused or sped up
    - `cc`: the built-in congestion controls that the engine can run
    - `law_suffix`: the file name suffix of a user's own congestion control for this engine
    - `variants`: the allowed values of the keys `balia_decrease` and `olia_metric` of a scenario
    - `stacks`: the allowed values of the key `stack`; every engine runs scenarios without it
    - `schedulers`, `penalisation`: the allowed values of these keys
    - `lacks`: for each key, why the engine allows no other value
    """

    path: str
    cc: tuple[str, ...]
    schedulers: tuple[str, ...]
    lacks: Mapping[str, str]
    real_time: bool = True
    variants: tuple[str, ...] = ("kernel",)
    penalisation: tuple[bool, ...] = (False,)
    law_suffix: str = user_file_kind.C
    stacks: tuple[str, ...] = ("linux",)


KERNEL_LACKS = {
    "cc": "it is neither in the kernel nor among the laws the lab loads into it",
    "scheduler": "the kernel has one packet scheduler",
    "balia_decrease": "eBPF has BALIA as the multipath-tcp.org kernel has it",
    "olia_metric": "eBPF has OLIA as the multipath-tcp.org kernel has it",
    "penalisation": "upstream Linux does not do it",
}
VARIANTS = ("balia_decrease", "olia_metric")
ENGINES: dict[str, Entry] = {
    "sim": Entry(
        "lab.engines.sim.engine:SimEngine",
        tuple(BUILT_IN),
        ("lowest_rtt", "linux", "round_robin", "redundant"),
        {},
        real_time=False,
        variants=("kernel", "draft"),
        penalisation=(False, True),
        law_suffix=user_file_kind.PYTHON,
        stacks=tuple(STACKS),
    ),
    "mininet": Entry(
        "lab.engines.mininet.engine:MininetEngine",
        tuple(BUILT_IN),
        ("linux", "lowest_rtt"),  # both names mean the kernel's scheduler
        KERNEL_LACKS,
    ),
}


def entry(name: str) -> Entry:
    """Return the table entry of the engine `name`. Raise `RequestError`, which lists the known
    engines, if there is no such engine."""
    if name not in ENGINES:
        raise RequestError(f"engine {unknown(name, sorted(ENGINES))}")
    return ENGINES[name]


def congestion_controls(name: str) -> tuple[str, ...]:
    """Return the names of the congestion controls that the engine `name` can run: the built-in
    ones, and those for which a user registered a file for this engine."""
    engine = entry(name)
    return (*engine.cc, *extensions.law_names(engine.law_suffix))


def refuse(name: str, setting: str, value: Any) -> None:
    """Raise an error if the engine `name` does not support `value`; otherwise do nothing.

    `setting` is a key of `multipath` in the scenario. The error is `RequestError` for a stack, and
    if a user's congestion control lacks the file for this engine, else `MachineLacks`.
    """
    engine = entry(name)
    if setting == "cc" and (missing := extensions.missing_half(value, engine.law_suffix)):
        raise RequestError(
            f"cc '{value}' on engine '{name}': {missing} is missing. Write it (docs/extend.md), or "
            "choose another engine"
        )
    if setting == "stack":
        if value not in (None, *engine.stacks):
            raise RequestError(
                f"stack '{value}' on engine '{name}': the emulation has the Multipath TCP of its "
                "kernel. Choose --stack linux, or --engine sim"
            )
        return
    able: tuple[Any, ...] = {
        "cc": congestion_controls(name),
        "scheduler": engine.schedulers,
        "penalisation": engine.penalisation,
    }.get(setting, engine.variants)
    if value not in able:
        requested, *known = (
            str(each).lower() if isinstance(each, bool) else each for each in (value, *able)
        )
        raise MachineLacks(
            f"{setting} '{requested}' on engine '{name}': {engine.lacks[setting]}. "
            f"Choose from: {', '.join(known)}"
        )
