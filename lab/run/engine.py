"""Define what every engine does: bring a scenario's network to life, and report what it measured.

    open(scenario, recorder) -> advance(until_s)* with apply(change) in between -> close() -> Report

The runner calls these in that order from one thread. It calls `close` whatever happened, even if
`open` failed half-way. Engines work with rates on the wire and know nothing of `rate_scale`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from lab.run.frame import Frame
from lab.run.recorder import Recorder
from lab.run.report import Report
from lab.scenario.changes import Change
from lab.scenario.schema import Scenario


@dataclass(frozen=True)
class Options:
    """Hold what the command line asks of a run beside the scenario.

    `speed` is 0 for as fast as possible, else a multiple of real time. With `wait`, an emulation
    waits until the one that is running on this machine has ended.
    """

    speed: float = 1.0
    pcap: bool = False
    wait: bool = False


class Engine(ABC):
    """Run one network. Whatever `close` undoes is registered before it is done.

    `real_time` engines follow the wall clock; for the others the runner keeps the pace that
    `options.speed` asks for, and may pause. `started_at` is the wall-clock time (s since 1970) of
    t = 0 where an engine knows it.
    """

    options = Options()  # replaced before `open`
    real_time = True  # replaced before `open`
    started_at: float | None = None

    def ready(self, scenario: Scenario) -> None:  # noqa: B027 - most engines need nothing
        """Raise `MachineLacks`, with what to type, if this machine cannot run the scenario."""

    @abstractmethod
    def open(self, scenario: Scenario, recorder: Recorder) -> None:
        """Build the network and start the traffic; t = 0 is when this returns, or `started_at`."""

    @abstractmethod
    def advance(self, until_s: float) -> list[Frame]:
        """Run until t = `until_s`; return the frames that became due, with rates on the wire."""

    @abstractmethod
    def apply(self, change: Change) -> None:
        """Carry out one change now.

        A `LabError` says why it could not be done; the run goes on.
        """

    @abstractmethod
    def close(self) -> Report | None:
        """Undo everything; return the report with rates on the wire, or None if nothing ran."""
