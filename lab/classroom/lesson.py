"""Seats, worksheets, steps and runs of a class by name, and what its rules allow now.

Times are in seconds since 1970. Nothing here changes the class.
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
    """One step of one worksheet, as one seat works on it."""

    seat: str
    worksheet: str
    step: str


@dataclass(frozen=True)
class Lesson:
    """A class: its folder, which is constant, and its state, which changes."""

    folder: ClassFolder
    state: ClassState

    def seat(self, seat: str) -> SeatState:
        """Raise `Unknown` if there is no seat with this id."""
        if seat not in self.state.seats:
            raise Unknown(f"seat {show(seat)} is unknown")
        return self.state.seats[seat]

    def check_taken(self, seat: str) -> None:
        """Raise `Unknown` if there is no seat with this id, `NotNow` if it was freed."""
        if self.seat(seat).left:
            raise NotNow(f"seat '{seat}' was freed by the instructor: join again")

    def worksheet(self, name: str) -> Worksheet:
        """Raise `Unknown` if the class has no worksheet of this name."""
        if name not in self.folder.worksheets:
            raise Unknown(f"worksheet {show(name)} is not part of this class")
        return self.folder.worksheets[name]

    def task(self, worksheet: str, step: str) -> Task:
        """The task of a step. Raise `Unknown` if the worksheet has no step of this id."""
        for each in self.worksheet(worksheet).tasks:
            if each.id == step:
                return each
        raise Unknown(f"worksheet '{worksheet}' has no step {show(step)}")

    def work(self, seat: str, worksheet: str) -> Work:
        """The work of a seat in a worksheet. Raise `NotNow` if the seat has not opened it."""
        self.worksheet(worksheet)
        work = self.seat(seat).work.get(worksheet)
        if work is None:
            raise NotNow(f"worksheet '{worksheet}' is not open: open it first")
        return work

    def step(self, at: Place) -> StepWork:
        """The work of a seat in a step; empty if there is none yet."""
        return self.work(at.seat, at.worksheet).step(at.step)

    # --- times

    def left_s(self, seat: str, worksheet: str, now: float) -> float:
        """Seconds that a seat has left for a worksheet it has opened; negative after the end."""
        return self.state.left_s(seat, worksheet, self.worksheet(worksheet).minutes, now)

    def hidden(self, worksheet: str, now: float) -> bool:
        """Whether the results are still secret, so students do not see which answers are right."""
        date = self.worksheet(worksheet).results_from
        return date is not None and now < date.timestamp()

    def check_may_work(self, seat: str, worksheet: str, now: float) -> None:
        """Raise `NotNow` if a seat may not work on a worksheet now."""
        self.work(seat, worksheet)
        self.check_taken(seat)
        if self.state.frozen:
            raise NotNow("the instructor has stopped the class for a moment: wait")
        if self.left_s(seat, worksheet, now) < 0:
            raise NotNow(f"the time for worksheet '{worksheet}' is over: ask the instructor")
        date = self.worksheet(worksheet).results_from
        if date is not None and now >= date.timestamp():
            raise NotNow(f"the results of worksheet '{worksheet}' are out: it cannot be changed")

    # --- predict, then run

    def locked(self, seat: str, worksheet: str, run: str) -> str | None:
        """Why a seat cannot start a run now, as a sentence; None if it can."""
        if self.worksheet(worksheet).runs[run].by == "instructor":
            return "The instructor makes this run, for all."
        work = self.work(seat, worksheet)
        for each in self._before(worksheet, run):
            if isinstance(each, Predict) and work.step(each.id).answer is None:
                return f"Predict first: {each.ask}"
        return None

    def sealed(self, at: Place) -> bool:
        """Whether a prediction can no longer be changed: it was made, and a run that follows it in
        the worksheet was requested."""
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
        """Seconds until the next try in a step is allowed; 0 if it is allowed now.

        There is a wait from the third wrong try on. It doubles with each further one.
        """
        step = self.step(at)
        if step.wrong < WAIT_AFTER or step.passed or self.hidden(at.worksheet, now):
            return 0.0
        wait_s: float = min(FIRST_WAIT_S * 2 ** (step.wrong - WAIT_AFTER), LONGEST_WAIT_S)
        return max(0.0, step.wrong_at + wait_s - now)

    def hint_earned(self, at: Place, now: float) -> bool:
        """Whether a seat may see the hint of a step: after two wrong tries."""
        return self.step(at).wrong >= HINT_AFTER and not self.hidden(at.worksheet, now)

    # --- runs

    def runs_shown(self, at: Place) -> list[ClassRun]:
        """The runs that a seat sees at a run step, the latest last.

        They are its own, or the instructor's if the instructor makes this run for all.
        """
        by = self.worksheet(at.worksheet).runs[at.step].by
        return self.state.runs_of(None if by == "instructor" else at.seat, at.worksheet, at.step)

    def evidence(self, at: Place) -> dict[str, str]:
        """The runs by which a step is marked now: `{run step: id of its latest complete run}`.

        Run steps without a complete run are left out.
        """
        found = {}
        for name in sorted(runs_looked_at(self.task(at.worksheet, at.step))):
            runs = self.runs_shown(Place(at.seat, at.worksheet, name))
            complete = [each.id for each in runs if each.status == "complete"]
            if complete:
                found[name] = complete[-1]
        return found

    def is_shared(self, run: ClassRun) -> bool:
        """Whether all students may see a run now."""
        return run.seat is None or self.state.look.run == run.id

    def run(self, run: str, seat: str | None) -> ClassRun:
        """Return a run that `seat` may see; None as `seat` is the instructor, who may see all.

        Raise `Unknown` if there is no such run, or the seat may not see it.
        """
        found = self.state.runs.get(run)
        if found is None or not (seat in (None, found.seat) or self.is_shared(found)):
            raise Unknown(f"run {show(run)} is unknown, or it is not yours")
        return found

    def run_step(self, run: ClassRun) -> Run:
        """The step of a worksheet from which a run was made."""
        return self.worksheet(run.worksheet).runs[run.step]


# Reasons to refuse a request. One that is not valid is a `RequestError`, as everywhere.


class Unknown(LabError):
    """Raised if a seat, worksheet, step or run does not exist, or may not be seen."""


class NotNow(LabError):
    """Raised for a request that is not possible in the present state of the class."""


class TooMuch(LabError):
    """Raised for a request over a limit. It is allowed in `wait_s` seconds."""

    def __init__(self, text: str, wait_s: float = 5.0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class Forbidden(LabError):
    """Raised for a wrong code, PIN or key, or for a run of somebody else."""
