"""Mark a student's answers and runs. The same function marks attempts of the worksheet's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.worksheets import language
from lab.worksheets.evaluation import RunFiles, Verdict, evaluate, evaluate_number
from lab.worksheets.language import Expression, parts
from lab.worksheets.schema import Answer, Check, Predict, Question, Task, Worksheet


@dataclass(frozen=True)
class Mark:
    """The mark of one step.

    `passed` is None while it is open: nothing was answered, or a person grades the text.
    `points` are those given, `of` those that can be had.
    """

    step: str
    passed: bool | None
    points: int
    of: int
    verdict: Verdict = field(default_factory=lambda: Verdict(False))


def mark(
    worksheet: Worksheet, answers: Mapping[str, Answer], runs: Mapping[str, RunFiles]
) -> tuple[Mark, ...]:
    """Return the marks of all steps that give points, in their order.

    `answers` holds the student's answers by step, `runs` the files of the student's runs by the id
    of the run step.
    """
    marked = (mark_task(each, answers.get(each.id), runs) for each in worksheet.tasks)
    return tuple(each for each in marked if each is not None)


def mark_task(task: Task, answer: Answer | None, runs: Mapping[str, RunFiles]) -> Mark | None:
    """Return the mark of one step, or None if the step gives no points."""
    match task:
        case Predict():
            passed = None if answer is None else True
            return Mark(task.id, passed, task.points if passed else 0, task.points)
        case Question():
            return _question(task, answer, runs)
        case Check():
            verdict = evaluate(task.condition, _with_own(runs, task.run))
            points = task.points if verdict.passed else 0
            return Mark(task.id, verdict.passed, points, task.points, verdict)
        case _:
            return None


def looked_at(task: Task) -> tuple[Expression | None, str | None]:
    """Return the expression that marks a step, and the run that it means without `of`."""
    if isinstance(task, Check):
        return task.condition, task.run
    if isinstance(task, Question) and task.number:
        return language.parse_number(str(task.number.answer)), task.number.run
    return None, None


def runs_looked_at(task: Task) -> frozenset[str]:
    """Return the ids of the run steps that a step is marked by."""
    tree, own = looked_at(task)
    leaves = () if tree is None else parts(tree)
    named = [getattr(leaf, "run", None) for leaf in leaves]
    return frozenset(each or own or "" for each in named if each is not None)


def _question(question: Question, answer: Answer | None, runs: Mapping[str, RunFiles]) -> Mark:
    if answer is None or question.text:
        return Mark(question.id, None, 0, question.points)
    verdict = _number_verdict(question, answer, runs) if question.number else None
    verdict = verdict or Verdict(answer == question.answer)
    points = question.points if verdict.passed else 0
    return Mark(question.id, verdict.passed, points, question.points, verdict)


def _number_verdict(
    question: Question, answer: Answer, runs: Mapping[str, RunFiles]
) -> Verdict | None:
    """Return whether `answer` is as near to the right one as the question's tolerance asks."""
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
    """Return the runs by their id, and the run `own` as "" too."""
    return {**runs, **({"": runs[own]} if own in runs and own else {})}
