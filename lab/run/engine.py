"""The interface of an engine (the emulation or the simulator). An engine builds the network of a
scenario, runs it, and reports what it measured.

    open(scenario, recorder)
        -> advance(until_s)* with run_until(until_s), apply(change) and news() in between
        -> close() -> Report

`lab.run.runner` makes these calls in this order from one thread. It calls `close` in any case, even
if `open` failed half-way. Engines work with rates on the wire, that is, the scenario's rates
multiplied by its `rate_scale`. Only `lab.run.runner` converts rates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.frame import Frame
from lab.run.reading import Line
from lab.run.recorder import Recorder
from lab.run.report import Report
from lab.scenario.schema import Scenario
from lab.scenario.targets import Change


@dataclass(frozen=True)
class Options:
    """Options of a run that come from the command line, not from the scenario.

    `speed` is a multiple of real time; 0 means as fast as possible. `pcap` turns packet capture on.
    Only one emulation can run on a machine at a time: with `wait`, a second one starts when the
    first has ended; without `wait`, it is refused.
    """

    speed: float = 1.0
    pcap: bool = False
    wait: bool = False


@dataclass(frozen=True)
class Answer:
    """The outcome of a change for which `Engine.apply` returned `number`.

    `at` is in s since 1970. `refused` is the reason if the change was refused, and "" if it was
    applied.
    """

    number: int
    at: float
    refused: str = ""


@dataclass(frozen=True)
class Reported:
    """An event that a program of the engine reports, such as the controller POX.

    `at` is in s since 1970. Rates in `fields` are those of the scenario file, not those on the
    wire.
    """

    at: float
    kind: str
    fields: Line


class Engine(ABC):
    """Builds and runs one network.

    Before each step of building, an engine registers how to undo the step, so that `close` can undo
    everything. `real_time` is True if the engine follows the wall clock, as the emulation does. If
    it is False, the caller (`lab.run.runner`) waits between calls of `advance` to keep
    `options.speed`, and can pause the run. `started_at` is the wall-clock time of t = 0 in s since
    1970; it is None if the engine does not set it.
    """

    @classmethod  # noqa: B027 - an engine may refuse nothing more
    def check(cls, scenario: Scenario) -> None:
        """Raise an error if this engine cannot run the scenario.

        The error is `RequestError` if no machine could run it, and `MachineLacks` if this machine
        lacks something. `lab.scenario.engine_table` checks the settings of Multipath TCP.
        """

    @classmethod  # noqa: B027 - an engine may know no laws
    def load_law(cls, path: Path, source: bytes) -> None:
        """Load a user's congestion control.

        `source` is the content of the file `path` when it was registered. Raise `RequestError` if
        it contains an error; the message names the line.
        """

    @classmethod
    def is_slow(cls, in_vm: bool) -> bool:
        """Return whether scenarios must use their `slow_machine_rate_scale`, because the engine
        runs in real time and the machine is too slow. With `in_vm`, the machine is the VM that this
        process will start.
        """
        return False

    def __init__(self, options: Options | None = None, *, real_time: bool = True) -> None:
        self.options = options or Options()
        self.real_time = real_time
        self.started_at: float | None = None

    def ready(self, scenario: Scenario) -> None:  # noqa: B027 - most engines need nothing
        """Raise `MachineLacks` if this machine cannot run the scenario. The message names a command
        that helps."""

    @abstractmethod
    def open(self, scenario: Scenario, recorder: Recorder) -> None:
        """Build the network and start the traffic. t = 0 is when this method returns, or
        `started_at` if the engine sets it."""

    @abstractmethod
    def run_until(self, until_s: float) -> float:
        """Run the network until t = `until_s`, without a sample: a change is due then. Return t,
        which is later if the machine is late."""

    @abstractmethod
    def advance(self, until_s: float) -> list[Frame]:
        """Run the network until t = `until_s`. Return the samples since the previous call.

        Their rates are those on the wire.
        """

    @abstractmethod
    def apply(self, change: Change) -> int | None:
        """Apply one change to the running network.

        Return None if the change has taken effect. Otherwise, the change was passed on to a program
        of the engine, and the result is a number; `news` returns the `Answer` with this number
        later. Raise `LabError` with the reason if the change cannot be applied; the run goes on.
        """

    def news(self) -> Sequence[Answer | Reported]:
        """Return what the engine's programs have reported since the previous call, in order.

        It is called after each `advance`, and once before `close`, even if `open` has failed.
        """
        return ()

    @abstractmethod
    def close(self) -> Report | None:
        """Undo everything that was built.

        Return the report, whose rates are those on the wire, or None if the network never ran.
        """
