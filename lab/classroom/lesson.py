"""Look-up of students, worksheets, steps and runs of a class, and of what is allowed at present.

Times are in seconds since 1970. Nothing here changes the class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.classroom.folder import ClassFolder
from lab.classroom.state import ClassRun, ClassState, SeatState, StepWork, Work
from lab.errors import LabError, show
from lab.worksheets.marking import runs_looked_at
from lab.worksheets.planning import Seat
from lab.worksheets.schema import Predict, Run, Task, Worksheet

HINT_AFTER = 2  # wrong tries
WAIT_AFTER = 3  # wrong tries
FIRST_WAIT_S, LONGEST_WAIT_S = 15.0, 960.0


@dataclass(frozen=True)
class Place:
    """One step of one worksheet, as worked on by one student or pair. `seat` is the id of the
    student or pair."""

    seat: str
    worksheet: str
    step: str


@dataclass
class Lesson:
    """A class: its folder and its state. The folder is another object when a worksheet was
    added."""

    folder: ClassFolder
    state: ClassState

    def seat(self, seat: str) -> SeatState:
        """Return the student or pair with the id `seat`. Raise `Unknown` if there is none."""
        if seat not in self.state.seats:
            raise Unknown(f"seat {show(seat)} is unknown")
        return self.state.seats[seat]

    def check_taken(self, seat: str) -> None:
        """Raise `Unknown` if there is no seat with this id, `NotNow` if it was freed."""
        if self.seat(seat).left:
            raise NotNow(f"seat '{seat}' was freed by the instructor: join again")

    def worksheet(self, name: str) -> Worksheet:
        """Return the worksheet `name` of the class. Raise `Unknown` if the class has none of this
        name."""
        if name not in self.folder.worksheets:
            raise Unknown(f"worksheet {show(name)} is not part of this class")
        return self.folder.worksheets[name]

    def task(self, worksheet: str, step: str) -> Task:
        """Return a step of a worksheet by its id. Raise `Unknown` if the worksheet has no step with
        this id."""
        for each in self.worksheet(worksheet).tasks:
            if each.id == step:
                return each
        raise Unknown(f"worksheet '{worksheet}' has no step {show(step)}")

    def work(self, seat: str, worksheet: str) -> Work:
        """Return the work of a student on a worksheet. Raise `NotNow` if the student has not opened
        it."""
        self.worksheet(worksheet)
        work = self.seat(seat).work.get(worksheet)
        if work is None:
            raise NotNow(f"worksheet '{worksheet}' is not open: open it first")
        return work

    def variant(self, seat: str, worksheet: str) -> Seat:
        """Return the object that gives a student a random seed and a variant for this worksheet.

        They are those of the seat that opened it, also after that seat was merged into another one.
        """
        known = self.state.seats.get(seat)
        work = known.work.get(worksheet) if known else None
        return self.folder.variant_of((work.opened_by if work else "") or seat, worksheet)

    def step(self, at: Place) -> StepWork:
        """Return the work of a student on one step of a worksheet. It is empty if nothing was done
        yet."""
        return self.work(at.seat, at.worksheet).step(at.step)

    # --- times

    def left_s(self, seat: str, worksheet: str, now: float) -> float:
        """Return the seconds that a student has left for an opened worksheet. Negative after the
        end."""
        return self.state.left_s(seat, worksheet, self.worksheet(worksheet).minutes, now)

    def hidden(self, worksheet: str, now: float) -> bool:
        """Return whether the marks of a worksheet are still hidden from the students."""
        date = self.worksheet(worksheet).results_from
        return date is not None and now < date.timestamp()

    def check_may_work(self, seat: str, worksheet: str, now: float) -> None:
        """Raise `NotNow` if a student may not work on a worksheet now.

        Reasons are that the student has not opened it, the instructor has stopped the class, the
        time is over, or the right answers have been published.
        """
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
        """Return why a student cannot start the run of this step now, as a sentence. Return None if
        the run can be started."""
        if self.worksheet(worksheet).runs[run].by == "instructor":
            return "The instructor makes this run, for all."
        work = self.work(seat, worksheet)
        for each in self._before(worksheet, run):
            if isinstance(each, Predict) and work.step(each.id).answer is None:
                return f"Predict first: {each.ask}"
        return None

    def sealed(self, at: Place) -> bool:
        """Return whether a prediction can no longer be changed.

        This is so once a run has been requested in a later step of the worksheet.
        """
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
        """Return the seconds until the student may try this step again; 0 if a try is allowed now.

        The third wrong try starts a wait of 15 s. Each further wrong try doubles the wait, up to
        960 s.
        """
        step = self.step(at)
        if step.wrong < WAIT_AFTER or step.passed or self.hidden(at.worksheet, now):
            return 0.0
        wait_s: float = min(FIRST_WAIT_S * 2 ** (step.wrong - WAIT_AFTER), LONGEST_WAIT_S)
        return max(0.0, step.wrong_at + wait_s - now)

    def hint_earned(self, at: Place, now: float) -> bool:
        """Return whether a student may see the hint of a step. This is so after two wrong tries."""
        return self.step(at).wrong >= HINT_AFTER and not self.hidden(at.worksheet, now)

    # --- runs

    def runs_shown(self, at: Place) -> list[ClassRun]:
        """Return the runs that a student sees at this step of a worksheet, the latest last.

        These are the student's own runs. If the instructor makes the run of this step for all,
        these are the instructor's runs.
        """
        by = self.worksheet(at.worksheet).runs[at.step].by
        return self.state.runs_of(None if by == "instructor" else at.seat, at.worksheet, at.step)

    def evidence(self, at: Place) -> dict[str, str]:
        """Return the runs whose results decide the mark of the step `at`.

        These runs are made in other steps. The result maps the id of each of these other steps to
        the id of its latest complete run. Steps without a complete run are left out.
        """
        found = {}
        for name in sorted(runs_looked_at(self.task(at.worksheet, at.step))):
            runs = self.runs_shown(Place(at.seat, at.worksheet, name))
            complete = [each.id for each in runs if each.status == "complete"]
            if complete:
                found[name] = complete[-1]
        return found

    def is_shared(self, run: ClassRun) -> bool:
        """Return whether all students may see this run now.

        This is so if the instructor requested the run, or shows it on all screens at present.
        """
        return run.seat is None or self.state.look.run == run.id

    def run(self, run: str, seat: str | None) -> ClassRun:
        """Return the run with the id `run`, if the student at `seat` may see it.

        If `seat` is None, the instructor asks, who may see all runs. Raise `Unknown` if there is no
        such run, or if the student may not see it.
        """
        found = self.state.runs.get(run)
        if found is None or not (seat in (None, found.seat) or self.is_shared(found)):
            raise Unknown(f"run {show(run)} is unknown, or it is not yours")
        return found

    def run_step(self, run: ClassRun) -> Run:
        """Return the step of a worksheet from which `run` was made."""
        return self.worksheet(run.worksheet).runs[run.step]


# Reasons to refuse a request. One that is not valid is a `RequestError`, as everywhere.


class Unknown(LabError):
    """Raised if a student, worksheet, step or run does not exist, or may not be seen."""


class NotNow(LabError):
    """Raised for a request that is not possible in the present state of the class."""


class TooMuch(LabError):
    """Raised for a request over a limit. The request is allowed again in `wait_s` seconds."""

    def __init__(self, text: str, wait_s: float = 5.0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class Forbidden(LabError):
    """Raised for a wrong code, PIN or key, or for an attempt to change a run of somebody else."""
