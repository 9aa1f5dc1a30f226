"""Run a scenario on an engine (the emulation or the simulator), record the samples, and write the
result.

1) open the engine, which builds the network
2) until the end of the run: advance by one sample interval, make the changes that the scenario
   file schedules in it at their times, and record the samples; in a simulated run with a speed,
   wait until real time has caught up; make the changes in the folder inbox/
3) close the engine in any case; write result.json with the status complete, interrupted or failed
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from controller.folder_changes import FolderChanges
from lab import extensions, inputs, metrics
from lab.errors import LabError, RequestError
from lab.frame import Frame
from lab.run import inbox
from lab.run.engine import Answer, Engine
from lab.run.flipping import Flipping
from lab.run.lanes import Lanes, turn
from lab.run.outcome import Outcome, Progress, conclude
from lab.run.pace import CONTROLS, Pace
from lab.run.recorder import Recorder
from lab.run.replay import Message, Replay, WithoutWaiting
from lab.run.report import Report
from lab.run.traces import TracedChanges
from lab.scenario.cautions import cautions
from lab.scenario.schema import Event, Scenario
from lab.topologies import nodes_and_links

# Signals


class Interrupted(BaseException):
    """Raised in the main thread on Ctrl-C or SIGTERM, to end the run."""


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[threading.Event]:
    """Call `stop` on every SIGINT and SIGTERM inside the `with` block.

    The first signal also raises `Interrupted` in the main thread, unless the caller has set the
    yielded event. If the `with` block runs in another thread, signals are not handled at all.
    """
    quiet = threading.Event()

    def handle(number: int, _: Any) -> None:
        stop()
        if not quiet.is_set():
            quiet.set()
            raise Interrupted(signal.Signals(number).name)

    if threading.current_thread() is not threading.main_thread():
        yield quiet
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield quiet
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


STRATEGY_FAILED = "failed"  # the kind of an event
POLL_INBOX_EVERY_S = 0.05  # while waiting


def run(
    scenario: Scenario,
    engine: Engine,
    recorder: Recorder,
    on_progress: Callable[[Progress], None] = lambda _: None,
    replay: Replay | None = None,
) -> Outcome:
    """Run a scenario and return how the run ended. A failure is in the outcome; nothing is raised.

    The caller must have checked with `Engine.ready` that the engine can run the scenario.
    `on_progress` is called before, during and after the run. With `replay`, a simulated run takes
    its messages from `replay` instead of from its inbox, and never waits for real time.
    """
    return _Run(scenario, engine, recorder, on_progress, replay).outcome()


class _Run:
    def __init__(
        self,
        scenario: Scenario,
        engine: Engine,
        recorder: Recorder,
        on_progress: Callable[[Progress], None],
        replay: Replay | None = None,
    ) -> None:
        self.scenario, self.engine, self.recorder, self.on_progress = (
            scenario,
            engine,
            recorder,
            on_progress,
        )
        self.replay = replay
        self.lanes = Lanes(recorder.folder, recorder.lanes)
        self.now = 0.0
        self.stop_requested = False
        self.error: LabError | None = None
        self.flips = Flipping(scenario, engine, recorder)
        self.due = sorted(scenario.events, key=lambda event: event.at_s)
        self.traced = TracedChanges(scenario)
        self.started = time.time()
        pace = WithoutWaiting if replay else Pace
        self.pace = None if engine.real_time else pace(engine.options.speed)
        if self.pace:
            engine.options = replace(
                engine.options, speed=0.0
            )  # this class waits, and reads flips meanwhile
        self.inbox_handle = os.open(recorder.folder / "inbox", os.O_RDONLY)
        self.inbox_changes = FolderChanges(lambda: os.fstat(self.inbox_handle).st_mtime_ns)

    def outcome(self) -> Outcome:
        interrupted, report = False, None
        with stop_on_signals(self._request_stop) as quiet, inputs.collected() as read:
            try:
                self._progress("starting")
                for note in nodes_and_links.notes(self.scenario.topology.params):
                    self.recorder.log(f"network: {note}")
                if self.pace:
                    self.recorder.describe(speed=self.pace.speed)
                self.recorder.on_log = self._progress
                self.engine.open(self.scenario, self.recorder)
                quiet.set()  # from here on a signal ends the loop instead of interrupting a step
                self.recorder.on_log = lambda _: None
                self.started = self.engine.started_at or time.time()
                self._loop()
                interrupted = self.stop_requested
            except Interrupted:
                interrupted = True
            except Exception as error:  # noqa: BLE001 - whatever an engine raises, the run is kept and marked
                interrupted = (
                    self.stop_requested
                )  # a Ctrl-C also reaches the engine's child processes
                if not interrupted:
                    self._fail("run", error)
            quiet.set()
            try:
                self._progress("stopping")
                self._follow_engine()  # later lines of POX are about the end of the network
                report = self.engine.close()
                if report:
                    report = report.in_scenario_units(self.scenario.rate_scale)
            except Exception as error:  # noqa: BLE001
                self._fail("stop", error)
            os.close(self.inbox_handle)
            self.recorder.inputs |= read
            return self._finish(interrupted, report)

    def _loop(self) -> None:
        scenario, steps = self.scenario, 0
        began = time.monotonic()
        for text in cautions(scenario):
            self._note("warning", text=text)
        self._apply_due()
        while self.now < scenario.duration_s and not self.stop_requested and not self.error:
            steps = max(steps, self._steps_gone(time.monotonic() - began)) + 1
            until = min(round(steps * scenario.sample_interval_s, 9), scenario.duration_s)
            self._make_changes_before(until)
            scale = scenario.rate_scale
            frames = [
                metrics.with_computed(frame.in_scenario_units(scale))
                for frame in self.engine.advance(until)
            ]
            with turn(self.lanes.folders):
                for frame in frames:
                    self.recorder.sample(frame)
                self.now = until
            self._wait_until_due()
            self._follow_engine()
            left = (scenario.duration_s - until) * (time.monotonic() - began) / until
            self._progress("running", frames[-1] if frames else None, left)

    def _steps_gone(self, elapsed_s: float) -> int:
        """Return the number of sample intervals that are over after `elapsed_s`, minus one.

        An emulation that is late skips to the next interval, so that later samples have the right
        time `t`. A simulation skips none: the result is 0.
        """
        return int(elapsed_s / self.scenario.sample_interval_s) - 1 if self.engine.real_time else 0

    def _make_changes_before(self, until_s: float) -> None:
        """Make the scenario's changes that are due before the next sample, each at its time."""
        while (at_s := self._next_change_s()) < until_s and not self.stop_requested:
            self.now = at_s
            self._make_due(self.engine.run_until(at_s))

    def _next_change_s(self) -> float:
        return min(self.traced.next_s, self.due[0].at_s if self.due else math.inf)

    def _make_due(self, t: float) -> None:
        for change in self.traced.take(self.now):
            self.engine.apply(change)
        while self.due and self.due[0].at_s <= self.now:
            event: Event = self.due.pop(0)
            self.flips.from_scenario(t, event.target, event.value)

    def _wait_until_due(self) -> None:
        """Wait until real time has caught up with the simulated time, and the other lanes of a race
        with this one. Apply messages while waiting."""
        self._apply_due()
        while self.pace and not self.stop_requested and (wait_s := self._wait_s(self.pace)) > 0:
            time.sleep(min(wait_s, POLL_INBOX_EVERY_S))
            self._apply_due()

    def _wait_s(self, pace: Pace) -> float:
        return pace.wait_s(self.now) or self.lanes.wait_s(self.now)

    def _apply_due(self) -> None:
        """Make the changes of the scenario that are due, then those in the inbox."""
        if self.now < self.scenario.duration_s:
            self._make_due(self.now)
        for seq, message, problem in self._messages():
            if problem:
                self.flips.unreadable(self.now, seq, problem)
            elif "control" in message:
                self._control(message, seq)
            else:
                target, value = str(message["target"]), message.get("value")
                self.flips.from_inbox(self.now, target, value, seq)

    def _messages(self) -> Iterable[Message]:
        if self.replay:
            return self.replay.messages(self.now)
        if self.lanes.folders:
            return inbox.receive(self.recorder.folder, self.now)
        waiting = self.inbox_changes.may_have_changed()
        return inbox.receive(self.recorder.folder) if waiting else ()

    def _control(self, message: dict[str, Any], seq: str) -> None:
        """Carry out "stop" or, in a simulated run, "pause", "resume" or "speed".

        The message is recorded. If it is refused, the reason is recorded too.
        """
        fields = {key: value for key, value in message.items() if key in ("control", "value")}
        try:
            if message["control"] == "stop":
                self.stop_requested = True
            elif self.pace:
                self.pace.control(message["control"], message.get("value"), self.now)
            else:
                why = (
                    "it runs in real time"
                    if message["control"] in CONTROLS
                    else "there is no such control"
                )
                raise RequestError(
                    f"'{message['control']}' is not possible on engine '{self.recorder.engine}':"
                    f" {why}: choose stop"
                )
        except RequestError as error:
            self._note("control", ok=False, seq=seq, **fields, error=str(error))
            return
        self._note("control", ok=True, seq=seq, **fields)

    def _note(self, kind: str, **fields: Any) -> None:
        self.recorder.event(self.now, kind, **fields)

    def _follow_engine(self) -> None:
        """Record the events and answers that the engine's programs have reported since the previous
        call.

        If the strategy in the controller POX has raised an exception, the run is marked as failed.
        """
        reports = self.engine.news()
        self.started = self.engine.started_at or self.started  # the clock may have been set
        events = [each for each in reports if not isinstance(each, Answer)]
        if events:
            self.recorder.events(
                (each.at - self.started, each.kind, each.fields) for each in events
            )
        for each in reports:
            if isinstance(each, Answer):
                self.flips.answered(each, each.at - self.started)
        for event in events:
            if event.kind == STRATEGY_FAILED:
                text = str(event.fields["text"])
                self._fail("run", LabError(f"run '{self.scenario.name}': {text}"))

    def _progress(self, phase: str, frame: Frame | None = None, eta_s: float | None = None) -> None:
        self.on_progress(Progress(phase, self.now, self.scenario.duration_s, frame, eta_s))

    def _request_stop(self) -> None:
        self.stop_requested = True

    def _fail(self, doing: str, error: Exception) -> None:
        """Record a failure in log.txt, with the traceback, and in events.jsonl.

        The first failure becomes the error of the run.
        """
        if not isinstance(error, LabError):
            details = self.recorder.folder / "log.txt"
            text = f"{doing} '{self.scenario.name}': {extensions.described(error)}"
            error = LabError(f"{text}. Details: {details}")
        self.error = self.error or error
        if not self.recorder.broken:
            try:
                if sys.exc_info()[0]:
                    self.recorder.trace(traceback.format_exc())
                self._note("error", error=str(error))
            except LabError as broken:
                self.error = broken

    def _finish(self, interrupted: bool, report: Report | None) -> Outcome:
        return conclude(self.recorder.scenario, self.recorder, report, self.error, interrupted)
