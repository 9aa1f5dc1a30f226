"""The grades of a class, read from its event log, and a second marking that verifies them.

The second marking uses the saved answers and the files of the saved runs. It starts no run.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lab.classroom.chain import Fault
from lab.classroom.folder import ClassFolder
from lab.classroom.journal import Log
from lab.classroom.roster import Roster, folded
from lab.classroom.state import ClassRun, ClassState, SeatState, StepWork, replay
from lab.errors import LabError, show
from lab.run.reading import run_digest
from lab.worksheets.evaluation import RunFiles
from lab.worksheets.marking import mark_task
from lab.worksheets.schema import Answer, Check, Predict, Question, Run, Task, Worksheet

READ_RUNS = 64  # runs whose files are kept in memory


@dataclass(frozen=True)
class StepGrade:
    """The answer of a student to one step of a worksheet, and the points for it.

    `points` is the number of points that count, and `of` the largest number possible. `recorded`
    are the points in the event log, which count unless the step cannot give them. `wrong` is the
    number of wrong answers that the student saw were wrong. `runs` maps each
    step in which the student made a run to the id of the run that was used for marking. `by_hand`
    are points that a person gave, or None. `checker` is the version of the lab that marked the
    answer.
    """

    step: str
    points: int
    recorded: int
    of: int
    passed: bool | None
    wrong: int
    answer: Answer | None
    runs: Mapping[str, str]
    by_hand: int | None
    checker: str


@dataclass(frozen=True)
class Submission:
    """The work of one student, or of a pair, on one worksheet: answers and points for each step.

    `seat` is the id of the student or pair in the class.
    """

    seat: str
    people: tuple[str, ...]
    worksheet: str
    steps: tuple[StepGrade, ...]
    digests: Mapping[str, str]  # of the files of each run, by the run's id

    @property
    def points(self) -> int:
        return sum(each.points for each in self.steps)

    @property
    def of(self) -> int:
        """The largest number of points that can be reached."""
        return sum(each.of for each in self.steps)


@dataclass(frozen=True)
class Difference:
    """A difference between the recorded grade and a second marking of the same work.

    The points differ or are impossible, or a run was changed or lost or is of somebody else. `step`
    is the id of a step of the worksheet, or several ids separated by commas.
    """

    submission: Submission
    step: str
    text: str


@dataclass(frozen=True)
class Record:
    """The event log of a class, the state after its events, and what is wrong with its lines."""

    log: Log
    state: ClassState
    faults: tuple[Fault, ...]


def read_record(folder: ClassFolder) -> Record:
    """Read the event log of a class. Lines with a fault are left out. Raise `RequestError` if the
    file cannot be read."""
    log = folder.read_journal()
    return Record(log, *replay(log))


def submissions(folder: ClassFolder, state: ClassState) -> list[Submission]:
    """Return one submission for each worksheet that each student or pair has opened."""
    return [
        _submission(seat, name, folder.worksheets[name], state)
        for seat in state.listed()
        for name in folder.worksheets
        if name in seat.work
    ]


def impossible(handed_in: Submission) -> Iterator[Difference]:
    """Yield each step whose recorded points the worksheet cannot give. They count as 0."""
    for each in handed_in.steps:
        if each.points != each.recorded:
            text = f"{each.recorded} points are recorded, of {each.of}: they count as 0"
            yield Difference(handed_in, each.step, text)


def mark_again(
    folder: ClassFolder, state: ClassState, handed_in: Submission
) -> Iterator[Difference]:
    """Mark a submission again from the saved answers and run files, and yield each difference.

    A run whose files are missing or do not match the digest in the event log is reported as a
    difference, too. Files that do not match are still used for marking if they can be read. A run
    that the student did not make in this step is not used. Points that a person gave for a text
    are not verified.
    """
    for run, digest in handed_in.digests.items():
        if problem := _changed(folder.runs / run, digest):
            steps = [each.step for each in handed_in.steps if run in each.runs.values()]
            yield Difference(handed_in, ", ".join(steps), f"run {run}: {problem}")
    worksheet = folder.worksheets[handed_in.worksheet]
    tasks = {each.id: each for each in worksheet.tasks}
    for grade in handed_in.steps:
        task, own = tasks[grade.step], {}
        for step, run in grade.runs.items():
            if problem := _not_own(worksheet, handed_in, step, state.runs.get(run)):
                yield Difference(handed_in, grade.step, f"run {show(run)}: {problem}")
            else:
                own[step] = folder.runs / run
        yield from _differs(handed_in, task, grade, own)


def runs_used(state: ClassState, handed_in: Submission) -> list[ClassRun]:
    """Return the runs that were used to mark a submission, in the order in which they were
    requested."""
    return [each for each in state.runs.values() if each.id in handed_in.digests]


def _submission(seat: SeatState, name: str, worksheet: Worksheet, state: ClassState) -> Submission:
    work = seat.work[name]
    steps = tuple(
        _grade(task, work.step(task.id), worksheet)
        for task in worksheet.tasks
        if not isinstance(task, Run)
    )
    used = sorted({run for each in steps for run in each.runs.values() if run in state.runs})
    digests = {run: state.runs[run].digest for run in used}
    return Submission(seat.id, tuple(seat.names), name, steps, digests)


def _grade(task: Predict | Question | Check, work: StepWork, worksheet: Worksheet) -> StepGrade:
    return StepGrade(
        step=task.id,
        points=work.counted(task.points),
        recorded=work.recorded,
        of=task.points,
        passed=work.passed,
        wrong=work.wrong_seen(worksheet),
        answer=work.answer,
        runs=work.runs,
        by_hand=work.graded,
        checker=work.checker,
    )


def _not_own(worksheet: Worksheet, handed_in: Submission, step: str, run: ClassRun | None) -> str:
    """Return why a run cannot be evidence for a submission, as the run of `step`, or ""."""
    if run is None:
        return "the journal has no such run"
    planned = worksheet.runs.get(step)
    seat = None if planned and planned.by == "instructor" else handed_in.seat
    if not planned or (run.seat, run.worksheet, run.step) != (seat, handed_in.worksheet, step):
        return f"it was not made in step '{step}' by this seat"
    return "" if run.status == "complete" else "it did not complete"


def _differs(
    handed_in: Submission, task: Task, grade: StepGrade, runs: Mapping[str, Path]
) -> Iterator[Difference]:
    """Mark one step again. Yield a difference if the mark is another one than was recorded."""
    by_hand = isinstance(task, Question) and task.text and grade.answer is not None
    if grade.by_hand is not None:
        if not by_hand:
            text = f"{grade.recorded} points by hand, for a step without a text to grade"
            yield Difference(handed_in, grade.step, text)
        return
    if grade.answer is None and grade.passed is None and not grade.recorded:
        return
    passed, points = _mark(task, grade, runs)
    if points != grade.recorded:
        yield Difference(handed_in, grade.step, f"{grade.recorded} points, now {points}")
    elif passed != grade.passed:
        words = {True: "passed", False: "failed", None: "not decided"}
        text = f"recorded as {words[grade.passed]}, now {words[passed]}"
        yield Difference(handed_in, grade.step, text)


def _mark(task: Task, grade: StepGrade, runs: Mapping[str, Path]) -> tuple[bool | None, int]:
    """Mark one step again. Return whether it is passed, and its points.

    `passed` is None for a text, which a person grades. Runs that cannot be read count as missing.
    """
    found = {}
    for step, folder in runs.items():
        try:
            found[step] = _read(folder)
        except LabError:
            continue
    mark = mark_task(task, grade.answer, found, grade.wrong)
    return (mark.passed, mark.points) if mark else (None, 0)


@lru_cache(maxsize=READ_RUNS)
def _read(folder: Path) -> RunFiles:
    return RunFiles.read(folder)


def _changed(folder: Path, digest: str) -> str:
    """Return what is wrong with the files of a run. The text is empty if the files match
    `digest`."""
    if not folder.is_dir():
        return "its folder is missing"
    try:
        same = run_digest(folder) == digest
    except LabError as error:
        return str(error)
    return "" if same else "its files were changed after it had ended"


# Grades as CSV, with the columns that Moodle and Canvas import
#
# Both find a student by a column of the roster. If two people share a seat, each has a row of
# their own with the same points.
#
# - Moodle: First name, Last name, ID number, Email address, one column for each worksheet and one
#   for their sum. Its import asks which column is which.
# - Canvas: Student, ID, SIS User ID, SIS Login ID, Section, one column for each worksheet. The
#   second line has the points that can be had.
#
# The last column has the digest of the event log in each row. It ties the table to the log.


COLUMNS = ("moodle", "canvas")
MOODLE = {  # column: its possible names in a roster
    "First name": ("first name", "firstname", "given name"),
    "Last name": ("last name", "lastname", "surname", "family name"),
    "ID number": ("id number", "idnumber", "student id"),
    "Email address": ("email address", "email", "e-mail", "mail"),
}
CANVAS = {
    "Student": ("student", "name"),
    "ID": ("id", "canvas id"),
    "SIS User ID": ("sis user id", "student id", "id number", "idnumber"),
    "SIS Login ID": ("sis login id", "login", "username", "email", "e-mail", "email address"),
    "Section": ("section", "course"),
}
UNSAFE = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins so is a formula in a spreadsheet


def to_csv(
    columns: str,
    worksheets: Mapping[str, Worksheet],
    handed_in: Sequence[Submission],
    people: Mapping[str, Sequence[str]],
    roster: Roster | None = None,
    head: str = "",
) -> str:
    """Return the grades as a CSV table that Moodle or Canvas can import.

    `columns` is "moodle" or "canvas". `people` maps the id of each student or pair to their names.
    The cell of a worksheet that a student has not opened is empty. `head` is the digest of the last
    line of the event log; without it, there is no column for it.
    """
    known = MOODLE if columns == "moodle" else CANVAS
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    titles = [each.title for each in worksheets.values()]
    totals = ["Total"] if columns == "moodle" else []
    log = ["Journal"] if head else []
    table.writerow(_safe([*known, *titles, *totals, *log]))
    if columns == "canvas":
        most = [str(each.points) for each in worksheets.values()]
        table.writerow(["    Points Possible", *[""] * (len(known) - 1), *most, *[""] * len(log)])
    points = {(each.seat, each.worksheet): each.points for each in handed_in}
    for seat, names in people.items():
        given = [points.get((seat, name)) for name in worksheets]
        cells = ["" if each is None else str(each) for each in given]
        total = [str(sum(each or 0 for each in given))] if totals else []
        for name in names:
            about = _about(known, name, roster)
            table.writerow([*_safe(about), *cells, *total, *[head] * len(log)])
    return out.getvalue()


def _about(known: Mapping[str, Sequence[str]], name: str, roster: Roster | None) -> list[str]:
    """Return the cells that identify a student in the table of grades, one for each key of `known`.

    `known` maps each column of the table to the names that this column may have in `roster`, the
    list of students. If the first two cells would both be empty, the first one is `name`.
    """
    found = {folded(key): value for key, value in _columns(name, roster).items()}
    cells = [
        next((found[folded(word)] for word in words if found.get(folded(word))), "")
        for words in known.values()
    ]
    if not any(cells[:2]):
        cells[0] = name
    return cells


def _columns(name: str, roster: Roster | None) -> Mapping[str, str]:
    entry = roster.find(name) if roster else None
    return {**entry.columns, "name": entry.name} if entry else {}


def _safe(cells: Sequence[str]) -> list[str]:
    """Put an apostrophe before each cell that a spreadsheet would take as a formula."""
    return [f"'{each}" if each.startswith(UNSAFE) else each for each in cells]
