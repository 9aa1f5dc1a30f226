"""The rules of a class: each function turns a request into the event to record, or refuses it with
an error.

Nothing is changed or started here. The caller writes the event to the event log. The parameter
`now` is the time in seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lab.classroom import journal
from lab.classroom.journal import Answered, Checked, Flipped, Requested
from lab.classroom.lesson import Forbidden, Lesson, NotNow, Place, TooMuch, Unknown
from lab.classroom.state import ClassRun
from lab.errors import RequestError, show, unknown
from lab.run.manifest import present
from lab.worksheets import planning
from lab.worksheets.consistency import check_answer
from lab.worksheets.evaluation import RunFiles
from lab.worksheets.marking import Mark, mark_task
from lab.worksheets.schema import Answer, Check, Predict, Question, Run

MOST_UNFINISHED = 3  # runs of a seat that run or wait
MOST_RUNS = 20  # runs of a seat in one step
MOST_FLIPS = 200  # changes in one run
MOST_BYTES = 256 * 2**20  # size of the runs of a seat
MOST_TEXT, MOST_CURVE_POINTS = 5000, 500
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)
ReadRun = Callable[[str], RunFiles]  # returns the files of a run that has ended, by its id


def opened(lesson: Lesson, seat: str, worksheet: str) -> journal.Opened | None:
    """Return the event that opens a worksheet for a student. Return None if it is open already."""
    lesson.worksheet(worksheet)
    lesson.check_taken(seat)
    known = worksheet in lesson.seat(seat).work
    return None if known else journal.Opened(seat=seat, worksheet=worksheet)


def answered(lesson: Lesson, at: Place, value: Any, now: float, read: ReadRun) -> Answered:
    """Return the event for a student's answer to a question or prediction.

    `read` returns the files of a run by its id. Raise `RequestError` if `value` is no valid answer.
    Raise `NotNow`, `TooMuch` or `Unknown` if the step takes no answer now.
    """
    task = lesson.task(at.worksheet, at.step)
    if not isinstance(task, Predict | Question):
        raise Unknown(f"step '{at.step}' of worksheet '{at.worksheet}' takes no answer")
    _check_may_try(lesson, at, now)
    checked = _checked_value(lesson, at, task, value)
    if isinstance(task, Predict):
        if lesson.sealed(at):
            raise NotNow(f"prediction '{at.step}': the run was started, so it is sealed")
        return _answer(at, checked, True, task.points, {})
    runs = lesson.evidence(at)
    wrong = lesson.step(at).wrong_seen(lesson.worksheet(at.worksheet))
    mark = _mark(task, checked, runs, read, wrong)
    if mark.verdict.problem:
        raise NotNow(f"answer '{at.step}': it is compared with a run that is not complete yet")
    return _answer(at, checked, mark.passed, mark.points, runs)


def _answer(
    at: Place, value: Answer, passed: bool | None, points: int, runs: dict[str, str]
) -> Answered:
    return Answered(
        seat=at.seat,
        worksheet=at.worksheet,
        step=at.step,
        value=value,
        passed=passed,
        points=points,
        runs=runs,
        checker=present(),
    )


def checked(lesson: Lesson, at: Place, now: float, read: ReadRun) -> Checked | None:
    """Evaluate a check, which is a condition on a student's latest complete runs, and return its
    event.

    Return None if the check was evaluated on the same runs before. `read` returns the files of a
    run by its id.
    """
    task = lesson.task(at.worksheet, at.step)
    if not isinstance(task, Check):
        raise Unknown(f"step '{at.step}' of worksheet '{at.worksheet}' is no check")
    runs, before = lesson.evidence(at), lesson.step(at)
    if before.passed is not None and runs == before.runs:
        lesson.check_may_work(at.seat, at.worksheet, now)
        return None
    _check_may_try(lesson, at, now)
    mark = _mark(task, None, runs, read)
    return Checked(
        seat=at.seat,
        worksheet=at.worksheet,
        step=at.step,
        runs=runs,
        passed=bool(mark.passed),
        points=mark.points,
        figures=tuple(
            journal.Figure(text=name, value=value) for name, value in mark.verdict.figures
        ),
        problem=mark.verdict.problem,
        checker=present(),
    )


def requested(
    lesson: Lesson, at: Place, chosen: Mapping[str, Any], now: float, used_bytes: int
) -> Requested:
    """Return the event that puts a run of a student into the queue.

    `chosen` maps keys of the scenario to the student's values. `used_bytes` is the size of all runs
    of the student so far. Raise `NotNow`, `TooMuch` or `RequestError` if the run is not allowed.
    """
    step = run_step(lesson, at.worksheet, at.step)
    lesson.check_may_work(at.seat, at.worksheet, now)
    if locked := lesson.locked(at.seat, at.worksheet, at.step):
        raise NotNow(f"run '{at.step}': {locked}")
    unfinished = [each for each in lesson.state.unfinished() if each.seat == at.seat]
    if len(unfinished) >= MOST_UNFINISHED:
        raise TooMuch(
            f"run '{at.step}': {len(unfinished)} of your runs wait or run already. Wait for one, "
            "or stop one"
        )
    made = len(lesson.state.runs_of(at.seat, at.worksheet, at.step))
    if made >= MOST_RUNS:
        raise TooMuch(f"run '{at.step}': you have made it {made} times. Ask the instructor", 60)
    if used_bytes > MOST_BYTES:
        raise TooMuch(f"run '{at.step}': your runs fill the space of your seat", 60)
    planning.check_choices(step, chosen)
    return _request(at.seat, at, step.engine, made, chosen)


def requested_for_all(lesson: Lesson, worksheet: str, step: str, engine: str | None) -> Requested:
    """Return the event that puts a run of the instructor into the queue.

    `engine` is None for the engine in the worksheet; only "sim" may replace it.
    """
    run = run_step(lesson, worksheet, step)
    if run.by != "instructor":
        raise NotNow(f"run '{step}': each student makes it. Start one that is by the instructor")
    if any(each.seat is None for each in lesson.state.unfinished()):
        raise NotNow(f"run '{step}': another run of the instructor has not ended yet")
    made = len(lesson.state.runs_of(None, worksheet, step))
    if engine not in (None, "sim", run.engine):
        raise RequestError(f"engine {unknown(engine, dict.fromkeys(('sim', run.engine)))}")
    return _request(None, Place("class", worksheet, step), engine or run.engine, made, {})


def flipped(
    lesson: Lesson, run: ClassRun, target: str, value: Any, by: str | None, now: float
) -> Flipped:
    """Return the event that changes one value of a run in progress.

    `target` names the value, such as `link.up1.up`. `by` is the seat of the student who asks, or
    None for the instructor, who may change every run. Raise `Forbidden` if the run belongs to
    somebody else. Raise `RequestError` if the worksheet does not let students change this value.
    """
    if by is not None and run.seat != by:
        raise Forbidden(f"change run '{run.id}': it is not yours")
    if by is not None:
        lesson.check_may_work(by, run.worksheet, now)
        allowed = lesson.run_step(run).flips
        if target not in allowed:
            known = unknown(target, allowed) if allowed else f"{show(target)} stays as it is here"
            raise RequestError(f"run '{run.step}': {known}")
    if run.flips >= MOST_FLIPS:
        raise TooMuch(f"run '{run.step}': {run.flips} changes were made already", 60)
    return Flipped(run=run.id, target=target, value=value)


def graded(lesson: Lesson, at: Place, points: int, comment: str) -> journal.Graded:
    """Return the event for the points that a person gives for a text that a student wrote."""
    task = lesson.task(at.worksheet, at.step)
    if not (isinstance(task, Question) and task.text):
        raise RequestError(f"step '{at.step}' is marked by the lab: only texts are graded by hand")
    if lesson.step(at).answer is None:
        raise NotNow(f"step '{at.step}': seat {at.seat} has not answered it")
    if not 0 <= points <= task.points:
        raise RequestError(f"step '{at.step}': give 0 to {task.points} points")
    return journal.Graded(
        seat=at.seat, worksheet=at.worksheet, step=at.step, points=points, comment=comment
    )


def run_step(lesson: Lesson, worksheet: str, step: str) -> Run:
    """Return the step `step` of a worksheet, in which students make a run.

    Raise `Unknown` if there is no such step, or if it is not for a run.
    """
    task = lesson.task(worksheet, step)
    if not isinstance(task, Run):
        raise Unknown(f"step '{step}' of worksheet '{worksheet}' is no run")
    return task


def _request(
    seat: str | None, at: Place, engine: str, made: int, chosen: Mapping[str, Any]
) -> Requested:
    name = f"{at.seat}-{at.worksheet}-{at.step}-{made + 1}"
    return Requested(
        run=name,
        seat=seat,
        worksheet=at.worksheet,
        step=at.step,
        chosen=dict(chosen),
        engine=engine,
    )


def _check_may_try(lesson: Lesson, at: Place, now: float) -> None:
    """Raise `NotNow` or `TooMuch` if a student may not answer or check this step now."""
    lesson.check_may_work(at.seat, at.worksheet, now)
    step, hidden = lesson.step(at), lesson.hidden(at.worksheet, now)
    task = lesson.task(at.worksheet, at.step)
    if step.graded is not None:
        raise NotNow(f"step '{at.step}' was graded: it cannot be changed")
    if step.passed and not hidden and not isinstance(task, Predict):
        raise NotNow(f"step '{at.step}' is passed already")
    if wait_s := lesson.wait_s(at, now):
        raise TooMuch(
            f"step '{at.step}': {step.wrong} tries were wrong. Think, and try again in "
            f"{wait_s:.0f} s",
            wait_s,
        )


def _checked_value(lesson: Lesson, at: Place, task: Predict | Question, value: Any) -> Answer:
    """Convert a JSON value to an answer. Raise `RequestError` if it does not have the form that
    `task` requires."""
    try:
        if isinstance(value, bool):
            raise RequestError(f"'{at.step}': true and false are no answers")
        answer = ANSWER.validate_python(value)
    except ValidationError as error:
        raise RequestError(
            f"'{at.step}': {show(value)} is no answer: write a number, a text, or a curve"
        ) from error
    if isinstance(answer, str) and not 1 <= len(answer.strip()) <= MOST_TEXT:
        raise RequestError(f"'{at.step}': a text has 1 to {MOST_TEXT} characters")
    if isinstance(task, Predict) and task.curve and isinstance(answer, tuple):
        longest = run_step(lesson, at.worksheet, task.curve.run).duration_s
        if len(answer) > MOST_CURVE_POINTS or not all(0 <= t <= longest for t, _ in answer):
            raise RequestError(
                f"'{at.step}': a curve has at most {MOST_CURVE_POINTS} points, at times from 0 to "
                f"{longest:g} s"
            )
    check_answer(task, answer)
    return answer


def _mark(
    task: Question | Check,
    answer: Answer | None,
    runs: dict[str, str],
    read: ReadRun,
    wrong: int = 0,
) -> Mark:
    mark = mark_task(task, answer, {step: read(run) for step, run in runs.items()}, wrong)
    assert mark is not None
    return mark
