"""Define the events of a class. Each is one line of its journal; docs/class_mode.md lists them.

`n` counts the events from 1, and `at` is the time in seconds since 1970. Both are set when the
event is written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from lab.worksheets.schema import Answer


class Part(BaseModel):
    """Set the rules for all parts of an event: no unknown keys, no changes after it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Person(Part):
    """Describe a person on a seat: the nickname, and a hash of the PIN if there is one."""

    name: str
    pin: str | None = None


class Event(Part):
    """Hold what all events have."""

    n: int = 0
    at: float = 0.0


class Joined(Event):
    """Record a new seat and its people. `browser` is the hash of the browser's cookie."""

    kind: Literal["join"] = "join"
    seat: str
    people: tuple[Person, ...]
    browser: str


class Returned(Event):
    """Record that a seat is used from another browser too."""

    kind: Literal["browser"] = "browser"
    seat: str
    browser: str


class PinSet(Event):
    """Record a new PIN for the first person of a seat."""

    kind: Literal["pin"] = "pin"
    seat: str
    pin: str


class Opened(Event):
    """Record that a seat opened a worksheet for the first time: its clock starts."""

    kind: Literal["open"] = "open"
    seat: str
    worksheet: str


class Answered(Event):
    """Record an answer. `passed` is None for a prediction, and for a text, which a person grades.

    `runs` are the runs from which the right answer was measured, if it was. `checker` is the
    version of the lab that marked it.
    """

    kind: Literal["answer"] = "answer"
    seat: str
    worksheet: str
    step: str
    value: Answer
    passed: bool | None
    points: int
    runs: dict[str, str] = {}
    checker: str = ""


class Figure(Part):
    """Hold a figure that a check looked at: its text in the language of checks, and its value."""

    text: str
    value: float

    @property
    def is_of_events(self) -> bool:
        """Return whether the figure is a time or a number of events: its text names them."""
        return self.text.startswith(("time(", "count("))


class Checked(Event):
    """Record that a check was evaluated on the runs `runs`: the id of a run for each run step.

    `problem` says why the check could not be evaluated; it is empty if it could. `checker` is the
    version of the lab that marked it.
    """

    kind: Literal["check"] = "check"
    seat: str
    worksheet: str
    step: str
    runs: dict[str, str]
    passed: bool
    points: int
    figures: tuple[Figure, ...] = ()
    problem: str = ""
    checker: str = ""


class Requested(Event):
    """Record that a run was put into the queue. `seat` is None if the instructor requested it."""

    kind: Literal["run"] = "run"
    run: str
    seat: str | None
    worksheet: str
    step: str
    chosen: dict[str, Any] = {}
    engine: str


class Ended(Event):
    """Record how a run ended, and the digest of its files; the digest is empty if it never
    began."""

    kind: Literal["ended"] = "ended"
    run: str
    status: str
    digest: str = ""
    error: str = ""


class Flipped(Event):
    """Record that a student changed a target of a running run."""

    kind: Literal["flip"] = "flip"
    run: str
    target: str
    value: Any


class Looked(Event):
    """Record what the instructor shows to all: a run, a step of a worksheet, or nothing."""

    kind: Literal["look"] = "look"
    run: str | None = None
    worksheet: str | None = None
    step: str | None = None


class Froze(Event):
    """Record that the instructor froze the class, or let it go on."""

    kind: Literal["freeze"] = "freeze"
    frozen: bool


class Extended(Event):
    """Record more time for a worksheet, in minutes; for all seats if `seat` is None."""

    kind: Literal["extend"] = "extend"
    worksheet: str
    seat: str | None = None
    minutes: float


class Graded(Event):
    """Record the points that a person gave for a text."""

    kind: Literal["grade"] = "grade"
    seat: str
    worksheet: str
    step: str
    points: int
    comment: str = ""


AnyEvent = (
    Joined
    | Returned
    | PinSet
    | Opened
    | Answered
    | Checked
    | Requested
    | Ended
    | Flipped
    | Looked
    | Froze
    | Extended
    | Graded
)
LINE: TypeAdapter[AnyEvent] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="kind")])
