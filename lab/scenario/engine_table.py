"""List the engines, and what each of them can run.

The table is data, so that no engine is imported here. `lab.engines.create` imports the class that
`path` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab import extensions, user_file_kind
from lab.congestion import BUILT_IN
from lab.errors import MachineLacks, RequestError, unknown


@dataclass(frozen=True)
class Entry:
    """Describe one engine: where its class is (`path`), and what it can run.

    - `real_time`: the engine follows the wall clock, so its runs have neither speed nor pause
    - `topologies`: the kinds of topology that it cannot build, each with the reason
    - `cc`: the built-in congestion controls that it can run
    - `law_suffix`: the suffix of a user's congestion control file for this engine
    - `variants`: the variants of congestion control that it can run, where draft and kernel differ
    - `lacks`: by setting, why the engine cannot run other values
    """

    path: str
    cc: tuple[str, ...]
    schedulers: tuple[str, ...]
    lacks: Mapping[str, str]
    real_time: bool = True
    topologies: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[str, ...] = ("kernel",)
    expected_by: tuple[str, ...] = ("pacing",)
    penalisation: tuple[bool, ...] = (False,)
    traffic: tuple[str, ...] = ("bulk", "file", "rate", "on_off")
    law_suffix: str = user_file_kind.C


KERNEL_LACKS = {
    "cc": "it is neither in the kernel nor among the laws the lab loads into it",
    "scheduler": "the kernel has one packet scheduler",
    "balia_decrease": "eBPF has BALIA as the multipath-tcp.org kernel has it",
    "olia_metric": "eBPF has OLIA as the multipath-tcp.org kernel has it",
    "expected_by": "hosts limit their rate by pacing",
    "penalisation": "upstream Linux does not do it",
    "traffic": "its traffic program speaks TCP only",
}
EMULATION_TOPOLOGIES = {
    "wireless_set": (
        "the emulated radios do not model distance, and one machine cannot run thirty of them"
    ),
    "rat_setup": "its senders use radios of their own, and in the emulation only users have radios",
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
        expected_by=("pacing", "window"),
        penalisation=(False, True),
        traffic=("bulk", "file", "rate", "on_off", "udp"),
        law_suffix=user_file_kind.PYTHON,
    ),
    "mininet": Entry(
        "lab.engines.mininet.engine:MininetEngine",
        ("reno", "cubic", "lia", "olia", "balia"),
        ("linux", "lowest_rtt"),  # both names mean the kernel's scheduler
        KERNEL_LACKS,
        topologies=EMULATION_TOPOLOGIES,
    ),
}


def entry(name: str) -> Entry:
    """Return the entry of the engine `name`. Raise `RequestError`, which lists the known engines,
    if there is none."""
    if name not in ENGINES:
        raise RequestError(f"engine {unknown(name, sorted(ENGINES))}")
    return ENGINES[name]


def congestion_controls(name: str) -> tuple[str, ...]:
    """Return the names of the congestion controls that an engine can run: built-in ones, and users'
    own ones that have a file for this engine."""
    engine = entry(name)
    return (*engine.cc, *extensions.law_names(engine.law_suffix))


def refuse(name: str, setting: str, value: Any) -> None:
    """Raise `RequestError` or `MachineLacks` if an engine cannot run a value of a setting: a key of
    `multipath`, or "traffic" with a kind of traffic. Do nothing if it can."""
    engine = entry(name)
    if setting == "cc" and (missing := extensions.missing_half(value, engine.law_suffix)):
        raise RequestError(
            f"cc '{value}' on engine '{name}': {missing} is missing. Write it (docs/extend.md), or "
            "choose another engine"
        )
    able: tuple[Any, ...] = {
        "cc": congestion_controls(name),
        "scheduler": engine.schedulers,
        "expected_by": engine.expected_by,
        "penalisation": engine.penalisation,
        "traffic": engine.traffic,
    }.get(setting, engine.variants)
    if value not in able:
        requested, *known = (
            str(each).lower() if isinstance(each, bool) else each for each in (value, *able)
        )
        raise MachineLacks(
            f"{setting} '{requested}' on engine '{name}': {engine.lacks[setting]}. "
            f"Choose from: {', '.join(known)}"
        )
