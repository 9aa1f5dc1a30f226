"""Define the keys of a worksheet file: names, types, bounds and defaults.

docs/worksheets.md describes them for instructors.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lab.errors import LabError
from lab.worksheets import language
from lab.worksheets.language import Condition

# Check single values of a worksheet file. Each function returns the value or raises ValueError.


def parsed(text: str) -> str:
    """Return a condition in the language of checks after it was parsed."""
    try:
        language.parse(text)
    except LabError as error:
        raise ValueError(str(error)) from error
    return text


def parsed_number(value: float | int | str) -> float | int | str:
    """Return a number, or an expression for a number after it was parsed."""
    try:
        if isinstance(value, str):
            language.parse_number(value)
    except LabError as error:
        raise ValueError(str(error)) from error
    return value


def date_and_time(value: Any) -> Any:
    """Return a text in ISO 8601 as a date with a time; anything else as it is."""
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
    """Set the rules for all parts of a worksheet: no unknown keys, no changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class NumberRange(Part):
    """An answer that is a number: its unit and its bounds.

    With `run` and `path`, the number is drawn as a level over the figure `path` of that run.
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
    """A prediction that is a curve over the time of run `run`: the student draws the
    figure `path` of its samples from 0 to `maximum`."""

    run: Id
    path: Text
    unit: str = ""
    maximum: Annotated[float, Field(gt=0)]


class Predict(Part):
    """Ask for a prediction of exactly one kind: a number, a choice or a curve.

    The prediction cannot be changed once a later run has been started. The points are given for
    having predicted, not for being right.
    """

    id: Id
    ask: Text
    number: NumberRange | None = None
    choice: Annotated[tuple[Text, ...], Field(min_length=2, max_length=12)] | None = None
    curve: Curve | None = None
    points: Points = 1

    @property
    def drawn_over(self) -> tuple[str, str] | None:
        """Return the run and the figure of its samples over which the prediction is drawn, or None
        if it is not drawn."""
        of = self.curve or self.number
        return (of.run, of.path) if of is not None and of.run and of.path else None

    @model_validator(mode="after")
    def is_of_one_kind(self) -> Predict:
        if sum(each is not None for each in (self.number, self.choice, self.curve)) != 1:
            raise ValueError("write exactly one of number, choice and curve")
        return self


class Choosing(Part):
    """Bound what a student may choose for a key of the scenario: a number, or one of `choices`."""

    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] | None = None

    @model_validator(mode="after")
    def is_bounded(self) -> Choosing:
        if (self.choices is None) == (self.minimum is None or self.maximum is None):
            raise ValueError("write either choices, or minimum and maximum")
        return self

    def allows(self, value: Any) -> bool:
        """Return whether a student may choose `value`."""
        if self.choices is not None:
            return value in self.choices
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.minimum <= value <= self.maximum


class Variant(Part):
    """List the values of which each seat gets one."""

    variant: Annotated[tuple[Any, ...], Field(min_length=2, max_length=64)]


class Run(Part):
    """Let the student make a run of `scenario`.

    `settings` replaces keys of the scenario file, as `--set` does; a value `{variant: [...]}` is
    another one for each seat. The student may choose the keys in `choose`, and may change the
    targets in `flips` while the run goes on. A run `by` the instructor is made once and shown to
    all.
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
    """A question whose answer is a number. The right answer is a number, or a figure of
    the student's own runs, written as in a check."""

    answer: Annotated[float | int | str, AfterValidator(parsed_number)]
    tolerance: Annotated[float, Field(ge=0)]
    run: Id | None = None
    unit: str = ""


class Question(Part):
    """Ask a question of exactly one kind: a choice, a number, or a text, which is graded by hand.

    The `answer` to a choice is its text.
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
    """Check the condition `that` on the student's runs. `run` is meant by functions without `of`.

    The student sees `ask` from the beginning, `hint` after the second wrong try, and `why` when the
    check is passed.
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
        """Return the condition that `that` describes."""
        return language.parse(self.that)


class Step(Part):
    """One step of a worksheet: exactly one of the keys, and with `text` the name of a scenario
    whose network is drawn."""

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
        """Return the part that a student does something for, or None for a text."""
        return self.predict or self.run or self.question or self.check


Task = Predict | Run | Question | Check


class Flip(Part):
    """Change `target` to `value` in a run, `at_s` seconds after its start."""

    at_s: Annotated[float, Field(ge=0)]
    target: Text
    value: Any


class Attempt(Part):
    """What a student does: answers by step id, chosen settings and flips by run id."""

    answers: dict[str, Answer] = {}
    choices: dict[str, dict[str, Any]] = {}
    flips: dict[str, tuple[Flip, ...]] = {}


class NamedAttempt(Attempt):
    """What another student does. What it does not name is as in the solution."""

    name: Text


class WrongAttempt(NamedAttempt):
    """A typical mistake.

    `fails` lists the questions and checks that must then not be passed; all others must be.
    """

    fails: Annotated[tuple[Id, ...], Field(min_length=1)]


class Worksheet(Part):
    """A worksheet: what it teaches, its steps, and the attempts that prove its checks.

    Before `results_from`, students see neither points nor whether a check is passed.
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

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Return the parts of all steps that a student does something for, in their order."""
        return tuple(step.task for step in self.steps if step.task is not None)

    @property
    def runs(self) -> dict[str, Run]:
        """Return the run steps by their id, in their order."""
        return {each.id: each for each in self.tasks if isinstance(each, Run)}

    @property
    def numbers(self) -> dict[str, int]:
        """Return the number of each step with a task by its id, as pages show it: from 1, without
        texts."""
        return {each.id: n for n, each in enumerate(self.tasks, 1)}

    @property
    def points(self) -> int:
        """Return the points that can be had."""
        return sum(each.points for each in self.tasks if not isinstance(each, Run))
