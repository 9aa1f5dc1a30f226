"""Engines bring a topology to life: one small seam, and a table of who implements it.

    open(topology, scenario, recorder) -> advance(until_s)* with apply(change) in between -> close() -> report

The runner calls these in that order, from one thread, and calls `close` whatever happened, even when `open` failed half-way.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.errors import LabError, MachineLacks, RequestError
from lab.scenario.congestion import BY_DELAY
from lab.scenario.engine_table import ENGINES, VARIANTS, Entry, entry

__all__ = ["ENGINES", "Change", "Engine", "Entry", "Options", "admit", "create", "entry", "refuse"]

if TYPE_CHECKING:
    from lab.run.recorder import Recorder
    from lab.scenario.schema import Scenario
    from lab.topologies.topology import Topology


@dataclass(frozen=True)
class Change:
    """A checked change of one target (`lab.scenario.targets`) while the run goes on.

    `value` is what the scenario file would say; `scaled` is the same with rates multiplied by the scenario's
    `rate_scale`: engines use `scaled`. A `strategy` is {"name", "params"} with every parameter present.
    """

    target: str
    value: Any
    scaled: Any


@dataclass(frozen=True)
class Options:
    """What the command line asks of a run beside the scenario. `speed`: 0 as fast as possible, else times real time.

    `wait`: if this machine's one emulation is taken, wait for it.
    """

    speed: float = 1.0
    pcap: bool = False
    wait: bool = False


class Engine(ABC):
    """A network that runs. Everything it undoes in `close`, it registered before it did it."""

    options = Options()  # replaced before `open`
    real_time = True  # replaced before `open`; False: the runner keeps the pace that `options.speed` asks for, and may pause
    started_at: float | None = (
        None  # wall-clock time (s since 1970) of t = 0, for engines that run in real time
    )

    def ready(self, scenario: Scenario) -> None:  # noqa: B027 - an engine that needs nothing special says nothing
        """Raise `MachineLacks`, ending with what to type, if this machine cannot run the scenario; start nothing."""

    @abstractmethod
    def open(self, topology: Topology, scenario: Scenario, recorder: Recorder) -> None:
        """Build the network and start the traffic; t = 0 is when this returns, unless `started_at` says otherwise."""

    @abstractmethod
    def advance(self, until_s: float) -> list[dict[str, Any]]:
        """Go on until t = `until_s` and return the frames that became due, each the means of the interval ending at `t`."""

    @abstractmethod
    def apply(self, change: Change) -> None:
        """Carry out one change now; a `LabError` says why it could not be done, and the run goes on."""

    @abstractmethod
    def close(self) -> dict[str, Any] | None:
        """Undo everything; return {"connections", "mptcp", "cc", "overload"}, or None if nothing was running."""


def create(name: str, options: Options) -> Engine:
    """An engine that has not been opened."""
    module, _, attribute = entry(name).path.partition(":")
    try:
        cls: type[Engine] = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise MachineLacks(f"load engine '{name}': {error}. Try: ./run_lab.sh doctor") from error
    if not issubclass(cls, Engine):
        raise LabError(f"load engine '{name}': {attribute} is not an Engine")
    engine = cls()
    engine.options, engine.real_time = options, entry(name).real_time
    return engine


def refuse(name: str, setting: str, value: Any) -> None:
    """Refuse a setting of `multipath`, or a kind of `traffic`, that the engine cannot run."""
    engine = entry(name)
    able: tuple[Any, ...] = {
        "cc": engine.cc,
        "scheduler": engine.schedulers,
        "expected_by": engine.expected_by,
        "penalisation": engine.penalisation,
        "traffic": engine.traffic,
    }.get(setting, engine.variants)
    if value not in able:
        asked, *known = (
            str(each).lower() if isinstance(each, bool) else each for each in (value, *able)
        )
        raise MachineLacks(
            f"{setting} '{asked}' on engine '{name}': {engine.lacks[setting]}. Choose from: {', '.join(known)}"
        )


def admit(name: str, scenario: Scenario, options: Options) -> None:
    """Refuse a whole scenario that the engine cannot run, before anything starts."""
    if entry(name).real_time and options.speed != 1.0:
        raise RequestError(f"--speed on engine '{name}': it runs in real time. Leave out --speed")
    kind = scenario.topology.kind
    if kind in entry(name).topologies:
        raise RequestError(
            f"topology '{kind}' on engine '{name}': {entry(name).topologies[kind]}. Choose --engine sim"
        )
    for setting in ("scheduler", "expected_by", "penalisation", *VARIANTS):
        refuse(name, setting, getattr(scenario.multipath, setting))
    for flow in scenario.traffic:
        refuse(name, "traffic", flow.kind)
    for cc in congestion_controls(scenario):
        refuse(name, "cc", cc)
        if cc in BY_DELAY and scenario.multipath.expected_by == "window":
            raise RequestError(
                f"cc '{cc}' with multipath.expected_by 'window': it goes by delay. Write expected_by: pacing"
            )


def congestion_controls(scenario: Scenario) -> list[str]:
    """Every congestion control a scenario names, in order."""
    named = [scenario.multipath.cc, *(flow.cc for flow in scenario.traffic if flow.cc)]
    named += [event.value for event in scenario.events if event.target == "cc"]
    return list(dict.fromkeys(named))
