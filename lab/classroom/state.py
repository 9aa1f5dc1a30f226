"""The state of a class, rebuilt from the events in its event log.

A seat is the place of one student, or of two who work together. Times are in seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.classroom import journal
from lab.classroom.chain import Fault
from lab.classroom.journal import Event, Log, Person
from lab.classroom.roster import folded
from lab.errors import show
from lab.worksheets.schema import Answer, Worksheet

OVER = ("complete", "interrupted", "failed", "cut", "changed")


@dataclass
class StepWork:
    """The work of a student on one step of a worksheet.

    `tries` counts all tries and `wrong` the wrong ones; `wrong_at` is the time of the last wrong
    one. `passed` is None until something was marked. `runs` maps the steps in which runs are made
    to the runs that were used for the last marking. `checker` is the version of the lab that marked
    the answer. If a person graded the answer, `graded` has the points and `comment` a text.
    """

    answer: Answer | None = None
    tries: int = 0
    wrong: int = 0
    wrong_at: float = 0.0
    passed: bool | None = None
    points: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    figures: tuple[journal.Figure, ...] = ()
    problem: str = ""
    graded: int | None = None
    comment: str = ""
    checker: str = ""

    def wrong_seen(self, worksheet: Worksheet) -> int:
        """Return how many wrong tries the student saw were wrong: none while results are hidden,
        which is as long as the student can work."""
        return 0 if worksheet.results_from else self.wrong

    @property
    def recorded(self) -> int:
        """The points in the event log: those given by a person replace those given by the lab."""
        return self.points if self.graded is None else self.graded

    def counted(self, of: int) -> int:
        """Return the recorded points, or 0 if a step with `of` points cannot give them."""
        return self.recorded if 0 <= self.recorded <= of else 0


@dataclass
class ClassRun:
    """One run in a class. `seat` is None if the instructor requested it. All students see such a
    run.

    `chosen` maps keys of the scenario to the student's values. `at` is the time of the request.
    `status` is "waiting", "running", or one of `OVER`. `digest` is the digest of the files after
    the end. `flips` counts the changes that were made while the run went on.
    """

    id: str
    seat: str | None
    worksheet: str
    step: str
    chosen: dict[str, Any]
    engine: str
    at: float
    status: str = "waiting"
    digest: str = ""
    error: str = ""
    flips: int = 0

    @classmethod
    def of(cls, event: journal.Requested) -> ClassRun:
        return cls(
            event.run,
            event.seat,
            event.worksheet,
            event.step,
            event.chosen,
            event.engine,
            event.at,
        )

    @property
    def over(self) -> bool:
        return self.status in OVER


@dataclass
class Work:
    """The work of one student or pair on a worksheet.

    `opened_at` is the time when the worksheet was opened. `done_at` is the time of the last answer
    that was not wrong, or of the last event of a run if that is later. `runs` counts the runs that
    were requested. `opened_by` is the seat that opened it: after a merger, its random seed and its
    variants stay.
    """

    opened_at: float
    done_at: float
    opened_by: str = ""
    steps: dict[str, StepWork] = field(default_factory=dict)
    runs: int = 0

    def step(self, name: str) -> StepWork:
        """Return the work on one step. It is empty if nothing was done yet."""
        return self.steps.get(name) or StepWork()


@dataclass
class SeatState:
    """The place of one student or pair in the class.

    The keys of `work` are the names of worksheets. `left` is True if the instructor has freed the
    seat, `removed` if it was removed or merged into another one.
    """

    id: str
    people: tuple[Person, ...]
    work: dict[str, Work] = field(default_factory=dict)
    left: bool = False
    removed: bool = False

    @property
    def has_work(self) -> bool:
        """Whether a step was answered or checked, or a run was requested. Opening a worksheet does
        not count as work."""
        return any(each.steps or each.runs for each in self.work.values())

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.people]


def replay(log: Log) -> tuple[ClassState, tuple[Fault, ...]]:
    """Return the state after the events of a log, and what is wrong with its lines.

    An event that does not fit the ones before it is left out, and is a fault, too.
    """
    state, faults = ClassState(), list(log.faults)
    for event in log.events:
        try:
            state.apply(event)
        except LookupError as error:
            text = f"it is of {show(error.args[0])}, which no line before it has made"
            faults.append(Fault(event.n, text))
    return state, tuple(sorted(faults, key=lambda each: each.line))


class ClassState:
    """The state of a class after the events in `happened`.

    Only `apply` changes the state, with one exception: `Room` sets the status of a run to "waiting"
    or "running".
    """

    def __init__(self, happened: Iterable[Event] = ()) -> None:
        self.seats: dict[str, SeatState] = {}  # freed ones, too
        self.runs: dict[str, ClassRun] = {}
        self._runs_of: dict[tuple[str | None, str, str], list[ClassRun]] = {}
        self.browsers: dict[str, str] = {}  # the seat, by the hash of a cookie
        self.look = journal.Looked()
        self._pauses: list[tuple[float, float]] = []
        self._frozen_at: float | None = None
        self._extended: list[journal.Extended] = []
        for event in happened:
            self.apply(event)

    @property
    def frozen(self) -> bool:
        """Whether the instructor has stopped the work of all students."""
        return self._frozen_at is not None

    def taken(self) -> list[SeatState]:
        """The seats that were not freed."""
        return [each for each in list(self.seats.values()) if not each.left]

    def listed(self) -> list[SeatState]:
        """The seats to show in the instructor's table and in the grades. A freed seat is shown only
        if work was done at it, a removed one never."""
        seats = [each for each in list(self.seats.values()) if not each.removed]
        return [each for each in seats if not each.left or each.has_work]

    def seat_of_person(self, name: str) -> SeatState | None:
        """The seat of a person; None if nobody of this name has joined, or the seat was freed."""
        wanted = folded(name)
        for seat in self.taken():
            if any(folded(each) == wanted for each in seat.names):
                return seat
        return None

    def runs_of(self, seat: str | None, worksheet: str, step: str) -> list[ClassRun]:
        """Return the runs that a student requested in one step of a worksheet, the latest last.

        If `seat` is None, return the runs of the instructor.
        """
        return list(self._runs_of.get((seat, worksheet, step), ()))

    def unfinished(self) -> Iterator[ClassRun]:
        """Return the waiting and running runs, in the order in which they were requested."""
        return (each for each in self.runs.values() if not each.over)

    def left_s(self, seat: str, worksheet: str, minutes: float, now: float) -> float:
        """Return the seconds that a student has left for an opened worksheet. Negative after the
        end.

        `minutes` is the time that the worksheet gives. The time starts when the student opens the
        worksheet. It stands still while the instructor has stopped the class. The instructor can
        add time.
        """
        work = self.seats[seat].work[worksheet]
        minutes += sum(
            each.minutes
            for each in self._extended
            if each.worksheet == worksheet and each.seat in (None, seat, work.opened_by)
        )
        pauses = self._pauses + ([] if self._frozen_at is None else [(self._frozen_at, now)])
        still_s = sum(max(0.0, end - max(start, work.opened_at)) for start, end in pauses)
        return work.opened_at + minutes * 60 + still_s - now

    def apply(self, event: Event) -> None:
        match event:
            case journal.Joined(seat=seat, people=people, browser=browser):
                self.seats[seat] = SeatState(seat, people)
                self.browsers[browser] = seat
            case journal.Returned(seat=seat, browser=browser):
                self.browsers[browser] = seat
            case journal.Freed(seat=seat) | journal.Removed(seat=seat):
                self.seats[seat].left = True
                self.seats[seat].removed = isinstance(event, journal.Removed)
                self.browsers = {key: of for key, of in self.browsers.items() if of != seat}
            case journal.Merged(seat=seat, into=into):
                self._merge(self.seats[seat], self.seats[into])
            case journal.PinSet(seat=seat, pin=pin):
                first, *others = self.seats[seat].people
                self.seats[seat].people = (first.model_copy(update={"pin": pin}), *others)
            case journal.Opened(seat=seat, worksheet=worksheet, at=at):
                self.seats[seat].work[worksheet] = Work(at, at, seat)
            case journal.Answered() | journal.Checked() | journal.Graded():
                self._work(event)
            case journal.Requested() | journal.Ended() | journal.Flipped():
                self._run(event)
            case _:
                self._class(event)

    def _merge(self, seat: SeatState, into: SeatState) -> None:
        into.people += seat.people
        seat.left = seat.removed = True
        for browser in [key for key, of in self.browsers.items() if of == seat.id]:
            self.browsers[browser] = into.id
        for name in [each for each in seat.work if each not in into.work]:
            into.work[name] = seat.work.pop(name)
            for of, worksheet, step in list(self._runs_of):
                if (of, worksheet) == (seat.id, name):
                    moved = self._runs_of.pop((of, worksheet, step))
                    self._runs_of[into.id, worksheet, step] = moved
                    for run in moved:
                        run.seat = into.id

    def _work(self, event: journal.Answered | journal.Checked | journal.Graded) -> None:
        work = self.seats[event.seat].work[event.worksheet]
        step = work.steps.setdefault(event.step, StepWork())
        match event:
            case journal.Graded(points=points, comment=comment):
                step.graded, step.comment = points, comment
                return
            case journal.Answered(value=value, runs=runs):
                step.answer, step.runs = value, runs
            case journal.Checked(runs=runs, figures=figures, problem=problem):
                step.runs, step.figures, step.problem = runs, figures, problem
                if problem:
                    return
        step.tries += 1
        step.passed, step.points, step.checker = event.passed, event.points, event.checker
        if event.passed is False:
            step.wrong += 1
            step.wrong_at = event.at
        else:
            work.done_at = event.at

    def _run(self, event: journal.Requested | journal.Ended | journal.Flipped) -> None:
        match event:
            case journal.Requested():
                run = self.runs[event.run] = ClassRun.of(event)
                place = (run.seat, run.worksheet, run.step)
                self._runs_of.setdefault(place, []).append(run)
            case journal.Ended(run=id, status=status, digest=digest, error=error):
                run = self.runs[id]
                run.status, run.digest, run.error = status, digest, error
            case journal.Flipped(run=id):
                run = self.runs[id]
                run.flips += 1
        if run.seat is not None and (work := self.seats[run.seat].work.get(run.worksheet)):
            work.done_at = event.at
            work.runs += isinstance(event, journal.Requested)

    def _class(self, event: Event) -> None:
        match event:
            case journal.Looked():
                self.look = event
            case journal.Froze(frozen=True, at=at):
                self._frozen_at = at if self._frozen_at is None else self._frozen_at
            case journal.Froze(frozen=False, at=at) if self._frozen_at is not None:
                self._pauses.append((self._frozen_at, at))
                self._frozen_at = None
            case journal.Extended():
                self._extended.append(event)
