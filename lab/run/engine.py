"""Define the interface of an engine, which builds the network of a scenario, runs it, and reports
what it measured.

    open(scenario, recorder) -> advance(until_s)* with apply(change) in between -> close() -> Report

The runner makes these calls in this order from one thread. It calls `close` in any case, even if
`open` failed half-way. Engines work with rates on the wire; only the runner converts rates with
`rate_scale`.
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
    """Hold the options of a run that the command line sets in addition to the scenario.

    `speed` is a multiple of real time, or 0 for as fast as possible. With `pcap`, packets are
    captured. With `wait`, an emulation waits until no other emulation runs on this machine.
    """

    speed: float = 1.0
    pcap: bool = False
    wait: bool = False


class Engine(ABC):
    """Run one network. An engine registers how to undo each step before it takes the step, so that
    `close` can always undo everything.

    An engine with `real_time` follows the wall clock. For another one the runner waits to keep
    `options.speed`, and may pause. `started_at` is the wall-clock time of t = 0, in s since 1970,
    if the engine knows it.
    """

    options = Options()  # replaced before `open`
    real_time = True  # replaced before `open`
    started_at: float | None = None

    def ready(self, scenario: Scenario) -> None:  # noqa: B027 - most engines need nothing
        """Raise `MachineLacks`, with a command that helps, if this machine cannot run the scenario
        on this engine."""

    @abstractmethod
    def open(self, scenario: Scenario, recorder: Recorder) -> None:
        """Build the network and start the traffic. t = 0 is when this returns, or `started_at` if
        the engine sets it."""

    @abstractmethod
    def advance(self, until_s: float) -> list[Frame]:
        """Run until t = `until_s`. Return the frames that are complete since the last call, with
        rates on the wire."""

    @abstractmethod
    def apply(self, change: Change) -> None:
        """Apply one change to the running network.

        Raise `LabError`, which says why, if it cannot be applied; the run continues.
        """

    @abstractmethod
    def close(self) -> Report | None:
        """Undo everything that was built. Return the report, with rates on the wire, or None if the
        network never ran."""
