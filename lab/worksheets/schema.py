"""The schema of a worksheet file. docs/worksheets.md describes its keys for instructors."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lab.errors import LabError
from lab.worksheets import language
from lab.worksheets.language import Condition

# Validators of single values. Each returns the value or raises ValueError.


def parsed(text: str) -> str:
    """Return `text` unchanged. Raise ValueError if it is not a condition in the language of
    checks."""
    try:
        language.parse(text)
    except LabError as error:
        raise ValueError(str(error)) from error
    return text


def parsed_number(value: float | int | str) -> float | int | str:
    """Return `value` unchanged. Raise ValueError if it is a text but no expression for a number."""
    try:
        if isinstance(value, str):
            language.parse_number(value)
    except LabError as error:
        raise ValueError(str(error)) from error
    return value


def date_and_time(value: Any) -> Any:
    """Convert a text in ISO 8601 to a datetime. Return other values unchanged; pydantic checks them
    later."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError("write a date and a time, such as '2027-01-31T18:00+01:00'") from error


Id = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Points = Annotated[int, Field(ge=0, le=100)]
Answer = float | int | str | tuple[tuple[float, float], ...]


class Part(BaseModel):
    """Base of all models in this file: unknown keys are errors, and objects cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class NumberRange(Part):
    """The unit and the bounds of a prediction that is a number.

    If `run` and `path` are given, the student predicts by drawing a horizontal line in a chart. The
    chart shows the quantity `path` of the run in step `run`.
    """

    unit: str = ""
    minimum: float = 0
    maximum: float = 1_000_000
    run: Id | None = None
    path: Text | None = None

    @model_validator(mode="after")
    def is_drawn_or_not(self) -> NumberRange:
        if (self.run is None) != (self.path is None):
            raise ValueError("write run and path together, or neither of them")
        return self


class Curve(Part):
    """A prediction that is a curve over time. Its values are from 0 to `maximum`.

    The student draws the expected course of the quantity `path` in the samples of the run in step
    `run`.
    """

    run: Id
    path: Text
    unit: str = ""
    maximum: Annotated[float, Field(gt=0)]


class Predict(Part):
    """A step that asks for a prediction: exactly one of a number, a choice and a curve.

    The prediction cannot be changed once a later run has been requested. The points are given for
    making a prediction, right or wrong.
    """

    id: Id
    ask: Text
    number: NumberRange | None = None
    choice: Annotated[tuple[Text, ...], Field(min_length=2, max_length=12)] | None = None
    curve: Curve | None = None
    points: Points = 1

    @property
    def drawn_over(self) -> tuple[str, str] | None:
        """The run and the quantity in whose chart the student draws the prediction. None if nothing
        is drawn."""
        of = self.curve or self.number
        return (of.run, of.path) if of is not None and of.run and of.path else None

    @model_validator(mode="after")
    def is_of_one_kind(self) -> Predict:
        if sum(each is not None for each in (self.number, self.choice, self.curve)) != 1:
            raise ValueError("write exactly one of number, choice and curve")
        return self


class Choosing(Part):
    """The values that a student may choose for a key of the scenario.

    These are the numbers from `minimum` to `maximum`, or the values in `choices`.
    """

    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] | None = None

    @model_validator(mode="after")
    def is_bounded(self) -> Choosing:
        if (self.choices is None) == (self.minimum is None or self.maximum is None):
            raise ValueError("write either choices, or minimum and maximum")
        return self

    def allows(self, value: Any) -> bool:
        if self.choices is not None:
            return value in self.choices
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.minimum <= value <= self.maximum


class Variant(Part):
    """A list of values of which each student gets one, so that neighbours have different
    exercises."""

    variant: Annotated[tuple[Any, ...], Field(min_length=2, max_length=64)]


class Run(Part):
    """A step in which the student makes a run of `scenario`.

    `settings` replaces keys of the scenario file, as `--set` does. If a value is `{variant:
    [...]}`, each student gets one value of the list. `choose` has the keys whose values the student
    may choose. `flips` names the values that the student may change while the run goes on. With
    `by: instructor`, the instructor makes the run once, for all students.
    """

    id: Id
    scenario: Text
    strategy: str | None = None
    engine: Literal["sim", "mininet"] = "sim"
    duration_s: Annotated[float, Field(gt=0, le=3600)]
    settings: dict[str, Any] = {}
    choose: dict[str, Choosing] = {}
    flips: tuple[Text, ...] = ()
    by: Literal["student", "instructor"] = "student"


class NumberAnswer(Part):
    """The right answer to a question that asks for a number.

    `answer` is a number, or an expression on the results of the student's own runs, written as in a
    check. `run` is the default run of the expression.
    """

    answer: Annotated[float | int | str, AfterValidator(parsed_number)]
    tolerance: Annotated[float, Field(ge=0)]
    run: Id | None = None
    unit: str = ""


class Question(Part):
    """A step that asks a question of exactly one kind: a choice, a number, or a text that a person
    grades.

    `answer` is the right one of the texts in `choice`.
    """

    id: Id
    ask: Text
    choice: Annotated[tuple[Text, ...], Field(min_length=2, max_length=12)] | None = None
    answer: str | None = None
    number: NumberAnswer | None = None
    text: bool = False
    points: Points = 1
    hint: str = ""
    why: str = ""

    @model_validator(mode="after")
    def is_of_one_kind(self) -> Question:
        if (self.choice is not None) + (self.number is not None) + self.text != 1:
            raise ValueError("write exactly one of choice, number and text: true")
        if (self.choice is None) != (self.answer is None):
            raise ValueError("write answer with choice, and only with it")
        if self.choice is not None and self.answer not in self.choice:
            raise ValueError(f"answer '{self.answer}' is not one of the choices")
        return self


class Check(Part):
    """A step that is passed if the results of the student's runs fulfil the condition `that`.

    Functions in the condition that have no `of RUN` refer to the run of the step `run`. The student
    sees `ask` from the beginning, `hint` after the second wrong try, and `why` when the check is
    passed.
    """

    id: Id
    ask: Text = "Do your runs show it?"
    run: Id | None = None
    that: Annotated[str, AfterValidator(parsed)]
    points: Points = 1
    hint: Text
    why: Text

    @property
    def condition(self) -> Condition:
        return language.parse(self.that)


class Step(Part):
    """One step of a worksheet, with exactly one of text, predict, run, question and check.

    `drawing` may accompany a text. It is the name of a scenario whose network is drawn.
    """

    text: Text | None = None
    drawing: str | None = None
    predict: Predict | None = None
    run: Run | None = None
    question: Question | None = None
    check: Check | None = None

    @model_validator(mode="after")
    def is_of_one_kind(self) -> Step:
        if len([each for each in self._kinds if each is not None]) != 1:
            raise ValueError("write exactly one of text, predict, run, question and check")
        if self.drawing is not None and self.text is None:
            raise ValueError("drawing belongs to text")
        return self

    @property
    def _kinds(self) -> tuple[str | Task | None, ...]:
        return (self.text, self.predict, self.run, self.question, self.check)

    @property
    def task(self) -> Task | None:
        """The part of the step that the student must act on. None if the step is only a text."""
        return self.predict or self.run or self.question or self.check


Task = Predict | Run | Question | Check


class Flip(Part):
    """A change of a value while a run goes on, `at_s` seconds after its start.

    `target` names the value, such as `link.path1.loss`.
    """

    at_s: Annotated[float, Field(ge=0)]
    target: Text
    value: Any


class Attempt(Part):
    """Everything that a student enters in a worksheet.

    `answers` has the answers by the id of the step. `choices` has the chosen settings, and `flips`
    the changes during the run, both by the id of the step with the run.
    """

    answers: dict[str, Answer] = {}
    choices: dict[str, dict[str, Any]] = {}
    flips: dict[str, tuple[Flip, ...]] = {}


class NamedAttempt(Attempt):
    """The work of an imagined student, to test the worksheet. Answers, settings and changes that
    are missing are taken from the solution."""

    name: Text


class WrongAttempt(NamedAttempt):
    """The work of an imagined student who makes a typical mistake.

    This work must fail the questions and checks in `fails`, and pass all others.
    """

    fails: Annotated[tuple[Id, ...], Field(min_length=1)]


MOST_CHECKED = 400  # scenarios that a worksheet is checked with


def _count(setting: Any) -> int:
    values = setting.get("variant") if isinstance(setting, dict) else None
    return len(values) if isinstance(values, list | tuple) else 1


class Worksheet(Part):
    """A whole worksheet, with example attempts that test its questions and checks.

    Before `results_from`, students see neither points nor whether they have passed a check.
    """

    title: Text
    goals: Annotated[tuple[Text, ...], Field(min_length=1, max_length=6)]
    minutes: Annotated[int, Field(ge=1, le=240)]
    results_from: Annotated[datetime | None, BeforeValidator(date_and_time)] = None
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=100)]
    solution: Attempt
    also_right: tuple[NamedAttempt, ...] = ()
    wrong: Annotated[tuple[WrongAttempt, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def ids_are_unique(self) -> Worksheet:
        ids = [task.id for task in self.tasks]
        if twice := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"the id '{twice[0]}' is used by two steps: give each its own")
        return self

    @model_validator(mode="after")
    def is_quick_to_check(self) -> Worksheet:
        """Refuse a worksheet for whose check the lab would load too many scenarios: one for each
        value of each setting, and one for each run of each example attempt."""
        values = 0
        for run in self.runs.values():
            values += sum(map(_count, run.settings.values()))
            values += sum(len(each.choices or "ab") for each in run.choose.values())
        attempts = 1 + len(self.also_right) + len(self.wrong)
        count = values + attempts * len(self.runs)
        if count > MOST_CHECKED:
            raise ValueError(
                f"its runs have {values} values of settings and {attempts} example attempts, which "
                f"makes {count} scenarios to check: at most {MOST_CHECKED} are possible"
            )
        return self

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The steps on which the student must act, in order. Steps with only a text are left
        out."""
        return tuple(step.task for step in self.steps if step.task is not None)

    @property
    def runs(self) -> dict[str, Run]:
        """The steps in which a run is made, in order, by their ids."""
        return {each.id: each for each in self.tasks if isinstance(each, Run)}

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each step by its id. Pages count steps from 1, without steps that are only
        a text."""
        return {each.id: n for n, each in enumerate(self.tasks, 1)}

    @property
    def points(self) -> int:
        """The largest number of points that a student can reach."""
        return sum(each.points for each in self.tasks if not isinstance(each, Run))
