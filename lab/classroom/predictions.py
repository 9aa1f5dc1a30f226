"""What the students of a class predicted: lines over the measurement of a run, and all predictions
of one step together.

What is shown of all students has no names, and no order by which a student could be found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from lab.classroom.lesson import Lesson
from lab.classroom.state import ClassRun, SeatState
from lab.errors import RequestError
from lab.worksheets import wording
from lab.worksheets.schema import Answer, Predict, Worksheet

Doc = dict[str, Any]
Points = tuple[tuple[float, float], ...]
MOST_BARS = 12  # of a histogram
MEDIAN_POINTS = 41  # of the median of curves
SKETCH_POINTS = 21  # of a curve in a cell of the instructor's table


def about(worksheet: Worksheet, run: str) -> list[Predict]:
    """Return the predictions that are about the run of a step: those that are drawn in its charts,
    and those without a chart that come after the run before."""
    found: list[Predict] = []
    open_: list[Predict] = []
    for task in worksheet.tasks:
        if isinstance(task, Predict) and task.drawn_over:
            found += [task] if task.drawn_over[0] == run else []
        elif isinstance(task, Predict):
            open_.append(task)
        elif task.id in worksheet.runs:
            found += open_ if task.id == run else []
            open_ = []
    return [each for each in worksheet.tasks if isinstance(each, Predict) and each in found]


def lines(lesson: Lesson, run: ClassRun, viewer: str | None) -> list[Doc]:
    """Return the predictions to draw over the charts of a run: `{path, points, name}`.

    They are those of the student who made the run. For a run of the instructor, they are those of
    the student who looks at it, `viewer`; without one, they are the medians of all students.
    """
    by = run.seat or viewer
    sheet, found = lesson.worksheet(run.worksheet), []
    for each in about(sheet, run.step):
        if each.drawn_over is None:
            continue
        drawn = [_points(sheet, each, answer) for answer in _answers(lesson, run, each, by)]
        if drawn:
            step = sheet.numbers[each.id]
            name = f"step {step}, median of {len(drawn)} predictions"
            if by:
                name = "your prediction" if by == viewer else f"predicted in step {step}"
            points = drawn[0] if len(drawn) == 1 else _median(drawn)
            found.append({"path": each.drawn_over[1], "points": points, "name": name})
    return found


def of_class(lesson: Lesson, worksheet: str, step: str) -> Doc:
    """Return the predictions of all students for one step.

    `bars` counts numbers or choices. `curves` has the drawn ones. `seats` is how many have opened
    the worksheet. Raise `RequestError` if the step asks for no prediction.
    """
    asked = lesson.task(worksheet, step)
    if not isinstance(asked, Predict):
        raise RequestError(f"step '{step}' of worksheet '{worksheet}' asks for no prediction")
    sheet = lesson.worksheet(worksheet)
    seats = [each for each in lesson.state.taken() if worksheet in each.work]
    answers = [found for each in seats if (found := _answer(each, worksheet, step)) is not None]
    of = asked.curve or asked.number
    doc: Doc = {
        "worksheet": worksheet,
        "step": step,
        "ask": asked.ask,
        "unit": of.unit if of else "",
        "path": asked.drawn_over[1] if asked.drawn_over else None,
        "label": wording.curve(asked.drawn_over[1]).words if asked.drawn_over else "",
        "answered": len(answers),
        "seats": len(seats),
        "bars": [],
        "curves": [],
    }
    if asked.curve:
        duration_s = sheet.runs[asked.curve.run].duration_s
        return doc | {"curves": sorted(map(_curve, answers)), "duration_s": duration_s}
    return doc | {"bars": _choices(asked.choice, answers) if asked.choice else _histogram(answers)}


def sketch(sheet: Worksheet, asked: Predict, answer: Answer | None) -> list[int] | None:
    """Return a drawn prediction as percentages of its axis, at equal distances in time. None if it
    is not drawn, or not made yet."""
    if asked.curve is None or not isinstance(answer, tuple):
        return None
    length_s = sheet.runs[asked.curve.run].duration_s
    times = [n * length_s / (SKETCH_POINTS - 1) for n in range(SKETCH_POINTS)]
    return [round(100 * _at(answer, t) / asked.curve.maximum) for t in times]


def _answer(seat: SeatState, worksheet: str, step: str) -> Answer | None:
    work = seat.work.get(worksheet)
    return work.step(step).answer if work else None


def _answers(lesson: Lesson, run: ClassRun, asked: Predict, by: str | None) -> Iterator[Answer]:
    """Yield the predictions of the student `by`, or those of all if `by` is None or empty."""
    for seat in [lesson.seat(by)] if by else lesson.state.taken():
        if (found := _answer(seat, run.worksheet, asked.id)) is not None:
            yield found


def _points(sheet: Worksheet, asked: Predict, answer: Answer) -> Points:
    """Return a prediction as a line in the chart of its run. A number is a level."""
    if isinstance(answer, tuple):
        return answer
    assert asked.drawn_over is not None
    assert isinstance(answer, float | int)
    return ((0.0, answer), (sheet.runs[asked.drawn_over[0]].duration_s, answer))


def _curve(answer: Answer) -> Points:
    return answer if isinstance(answer, tuple) else ()


def _median(curves: Sequence[Points]) -> Points:
    """Return the median of curves at each time from the first point to the last one."""
    ends_s = max(t for each in curves for t, _ in each)
    times = [n * ends_s / (MEDIAN_POINTS - 1) for n in range(MEDIAN_POINTS)]
    return tuple((t, median(_at(each, t) for each in curves)) for t in times)


def _at(curve: Points, t: float) -> float:
    """Return the value of a curve at a time, on the line between its points."""
    for (t0, y0), (t1, y1) in pairwise(curve):
        if t0 <= t <= t1:
            return y0 + (y1 - y0) * (t - t0) / (t1 - t0) if t1 > t0 else y1
    return curve[0][1] if t < curve[0][0] else curve[-1][1]


def _choices(choices: Sequence[str], answers: Sequence[Answer]) -> list[Doc]:
    count = Counter(answers)
    return [{"label": each, "count": count[each]} for each in choices]


def _histogram(answers: Sequence[Answer]) -> list[Doc]:
    """Count numbers in equal intervals. A number at the limit of two counts in the upper one."""
    values = [float(each) for each in answers if isinstance(each, float | int)]
    if not values:
        return []
    width = _width(max(values) - min(values), max(map(abs, values)))
    first = math.floor(min(values) / width)
    count = math.floor(max(values) / width) - first + 1
    found = Counter(math.floor(each / width) - first for each in values)
    return [
        {
            "from": _rounded((first + n) * width),
            "to": _rounded((first + n + 1) * width),
            "count": found[n],
        }
        for n in range(count)
    ]


def _width(span: float, largest: float) -> float:
    """Return the width of the bars of a histogram: 1, 2 or 5 times a power of ten."""
    least = max(span / (MOST_BARS - 1), largest / 20, 1e-9)
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= least)


def _rounded(value: float) -> float:
    return float(f"{value:.12g}")
