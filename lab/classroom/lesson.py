"""Find seats, worksheets, steps and runs of a class, and say what the rules allow now.

All times are in seconds since 1970. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.classroom.folder import ClassFolder
from lab.classroom.state import ClassRun, ClassState, SeatState, StepWork, Work
from lab.errors import LabError, show
from lab.worksheets.marking import runs_looked_at
from lab.worksheets.schema import Predict, Run, Task, Worksheet

HINT_AFTER = 2  # wrong tries
WAIT_AFTER = 3  # wrong tries
FIRST_WAIT_S, LONGEST_WAIT_S = 15.0, 960.0


@dataclass(frozen=True)
class Place:
    """Name one step in one worksheet of one seat."""

    seat: str
    worksheet: str
    step: str


@dataclass(frozen=True)
class Lesson:
    """A class: its folder, and its state, which changes."""

    folder: ClassFolder
    state: ClassState

    def seat(self, seat: str) -> SeatState:
        """Return a seat. Raise `Unknown` if there is none with this id."""
        if seat not in self.state.seats:
            raise Unknown(f"seat {show(seat)} is unknown")
        return self.state.seats[seat]

    def worksheet(self, name: str) -> Worksheet:
        """Return a worksheet of the class. Raise `Unknown` if it has none of this name."""
        if name not in self.folder.worksheets:
            raise Unknown(f"worksheet {show(name)} is not part of this class")
        return self.folder.worksheets[name]

    def task(self, worksheet: str, step: str) -> Task:
        """Return the task of a step. Raise `Unknown` if the worksheet has no step of this id."""
        for each in self.worksheet(worksheet).tasks:
            if each.id == step:
                return each
        raise Unknown(f"worksheet '{worksheet}' has no step {show(step)}")

    def work(self, seat: str, worksheet: str) -> Work:
        """Return the work of a seat in a worksheet. Raise `NotNow` if it was not opened."""
        self.worksheet(worksheet)
        work = self.seat(seat).work.get(worksheet)
        if work is None:
            raise NotNow(f"worksheet '{worksheet}' is not open: open it first")
        return work

    def step(self, at: Place) -> StepWork:
        """Return the work of a seat in a step; empty if there is none yet."""
        return self.work(at.seat, at.worksheet).step(at.step)

    # --- times

    def left_s(self, seat: str, worksheet: str, now: float) -> float:
        """Return the time in s that a seat has left for a worksheet that it has opened."""
        return self.state.left_s(seat, worksheet, self.worksheet(worksheet).minutes, now)

    def hidden(self, worksheet: str, now: float) -> bool:
        """Return whether students do not see yet which of their answers are right."""
        date = self.worksheet(worksheet).results_from
        return date is not None and now < date.timestamp()

    def check_may_work(self, seat: str, worksheet: str, now: float) -> None:
        """Raise `NotNow` if a seat may not work on a worksheet now."""
        self.work(seat, worksheet)
        if self.state.frozen:
            raise NotNow("the instructor has stopped the class for a moment: wait")
        if self.left_s(seat, worksheet, now) < 0:
            raise NotNow(f"the time for worksheet '{worksheet}' is over: ask the instructor")
        date = self.worksheet(worksheet).results_from
        if date is not None and now >= date.timestamp():
            raise NotNow(f"the results of worksheet '{worksheet}' are out: it cannot be changed")

    # --- predict, then run

    def locked(self, seat: str, worksheet: str, run: str) -> str | None:
        """Return why a seat cannot start a run now, or None if it can."""
        if self.worksheet(worksheet).runs[run].by == "instructor":
            return "The instructor makes this run, for all."
        work = self.work(seat, worksheet)
        for each in self._before(worksheet, run):
            if isinstance(each, Predict) and work.step(each.id).answer is None:
                return f"Predict first: {each.ask}"
        return None

    def sealed(self, at: Place) -> bool:
        """Return whether a prediction can no longer be changed: it was made, and a later run was
        requested."""
        if self.step(at).answer is None:
            return False
        later = [
            each.id
            for each in self.worksheet(at.worksheet).runs.values()
            if at.step in {before.id for before in self._before(at.worksheet, each.id)}
        ]
        return any(self.runs_shown(Place(at.seat, at.worksheet, run)) for run in later)

    def _before(self, worksheet: str, step: str) -> Iterator[Task]:
        for each in self.worksheet(worksheet).tasks:
            if each.id == step:
                return
            yield each

    # --- tries

    def wait_s(self, at: Place, now: float) -> float:
        """Return the time in s until the next try in a step is allowed; 0 if it is now."""
        step = self.step(at)
        if step.wrong < WAIT_AFTER or step.passed or self.hidden(at.worksheet, now):
            return 0.0
        wait_s: float = min(FIRST_WAIT_S * 2 ** (step.wrong - WAIT_AFTER), LONGEST_WAIT_S)
        return max(0.0, step.wrong_at + wait_s - now)

    def hint_earned(self, at: Place, now: float) -> bool:
        """Return whether a seat may see the hint of a step."""
        return self.step(at).wrong >= HINT_AFTER and not self.hidden(at.worksheet, now)

    # --- runs

    def runs_shown(self, at: Place) -> list[ClassRun]:
        """Return the runs of a run step that a seat sees there, the latest last: its own, or those
        of the instructor if the step is the instructor's."""
        by = self.worksheet(at.worksheet).runs[at.step].by
        return self.state.runs_of(None if by == "instructor" else at.seat, at.worksheet, at.step)

    def evidence(self, at: Place) -> dict[str, str]:
        """Return the id of the latest complete run for each run step that marks the step `at`."""
        found = {}
        for name in sorted(runs_looked_at(self.task(at.worksheet, at.step))):
            runs = self.runs_shown(Place(at.seat, at.worksheet, name))
            complete = [each.id for each in runs if each.status == "complete"]
            if complete:
                found[name] = complete[-1]
        return found

    def is_shared(self, run: ClassRun) -> bool:
        """Return whether all students may see a run now."""
        return run.seat is None or self.state.look.run == run.id

    def run(self, run: str, seat: str | None) -> ClassRun:
        """Return a run that `seat` may see; with None, the instructor asks. Raise `Unknown` if
        there is no such run, or it is not to be seen."""
        found = self.state.runs.get(run)
        if found is None or not (seat in (None, found.seat) or self.is_shared(found)):
            raise Unknown(f"run {show(run)} is unknown, or it is not yours")
        return found

    def run_step(self, run: ClassRun) -> Run:
        """Return the step of a worksheet from which a run was made."""
        return self.worksheet(run.worksheet).runs[run.step]


# Why a class refuses a request. One that makes no sense is a `RequestError`, as everywhere.


class Unknown(LabError):
    """Report that there is no such seat, worksheet, step or run, or none that may be seen."""


class NotNow(LabError):
    """Report a request that is not possible in the present state of the class."""


class TooMuch(LabError):
    """Report a request over a limit. `wait_s` says after how many seconds it is allowed."""

    def __init__(self, text: str, wait_s: float = 5.0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class Forbidden(LabError):
    """Report a wrong code, PIN or key."""
