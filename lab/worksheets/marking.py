"""Marking of answers and runs. The example attempts in a worksheet file are marked like students'
work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.worksheets import language
from lab.worksheets.evaluation import RunFiles, Verdict, evaluate, evaluate_number
from lab.worksheets.language import Expression, parts
from lab.worksheets.schema import Answer, Check, Predict, Question, Task, Worksheet


@dataclass(frozen=True)
class Mark:
    """The mark of one step of a worksheet: `points` out of `of`.

    `passed` is None if nothing is decided: there is no answer yet, or a person must grade the text.
    """

    step: str
    passed: bool | None
    points: int
    of: int
    verdict: Verdict = field(default_factory=lambda: Verdict(False))


def mark(
    worksheet: Worksheet, answers: Mapping[str, Answer], runs: Mapping[str, RunFiles]
) -> tuple[Mark, ...]:
    """Return the marks of all steps that give points, in the order of the worksheet.

    The keys of `answers` are ids of steps. The keys of `runs` are ids of the steps in which the
    runs were made.
    """
    marked = (mark_task(each, answers.get(each.id), runs) for each in worksheet.tasks)
    return tuple(each for each in marked if each is not None)


def mark_task(
    task: Task, answer: Answer | None, runs: Mapping[str, RunFiles], wrong: int = 0
) -> Mark | None:
    """Mark one step of a worksheet. Return None if the step gives no points.

    `wrong` is the number of wrong answers that the student saw were wrong, before this one.
    """
    match task:
        case Predict():
            passed = None if answer is None else True
            return Mark(task.id, passed, task.points if passed else 0, task.points)
        case Question():
            return _question(task, answer, runs, wrong)
        case Check():
            verdict = evaluate(task.condition, _with_own(runs, task.run))
            points = task.points if verdict.passed else 0
            return Mark(task.id, verdict.passed, points, task.points, verdict)
        case _:
            return None


def looked_at(task: Task) -> tuple[Expression | None, str | None]:
    """Return the expression that decides the mark of a step, and the id of its default run.

    The expression uses results of runs. Functions in it without `of RUN` refer to the default run.
    Both values are None if the mark does not depend on runs.
    """
    if isinstance(task, Check):
        return task.condition, task.run
    if isinstance(task, Question) and task.number:
        return language.parse_number(str(task.number.answer)), task.number.run
    return None, None


def runs_looked_at(task: Task) -> frozenset[str]:
    """Return the ids of the steps whose runs decide the mark of this step."""
    tree, own = looked_at(task)
    leaves = () if tree is None else parts(tree)
    named = [getattr(leaf, "run", None) for leaf in leaves]
    return frozenset(each or own or "" for each in named if each is not None)


def _points_left(question: Question, wrong: int) -> int:
    """Return the points of a right answer after `wrong` wrong ones.

    Of n choices, each wrong one takes 1 / (n - 1) of the points, rounded down to whole points, so
    whoever tries all of them gets none.
    """
    if question.choice is None:
        return question.points
    others = len(question.choice) - 1
    return question.points * max(0, others - wrong) // others


def _question(
    question: Question, answer: Answer | None, runs: Mapping[str, RunFiles], wrong: int
) -> Mark:
    if answer is None or question.text:
        return Mark(question.id, None, 0, question.points)
    verdict = _number_verdict(question, answer, runs) if question.number else None
    verdict = verdict or Verdict(answer == question.answer)
    points = _points_left(question, wrong) if verdict.passed else 0
    return Mark(question.id, verdict.passed, points, question.points, verdict)


def _number_verdict(
    question: Question, answer: Answer, runs: Mapping[str, RunFiles]
) -> Verdict | None:
    """Compare an answer with the right number, within the tolerance.

    Return None if the question does not ask for a number.
    """
    expected = question.number
    if expected is None:
        return None
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return Verdict(False, problem="the answer is not a number")
    tree = language.parse_number(str(expected.answer))
    right, verdict = evaluate_number(tree, _with_own(runs, expected.run))
    if right is None:
        return verdict
    return Verdict(abs(answer - right) <= expected.tolerance, verdict.figures)


def _with_own(runs: Mapping[str, RunFiles], own: str | None) -> dict[str, RunFiles]:
    """Return a copy of `runs` in which the run of the step `own` also has the key "", if there is
    one.

    In a check, functions without `of RUN` use the run with the key "".
    """
    return {**runs, **({"": runs[own]} if own in runs and own else {})}
