"""The journal of a class: one line of JSON for each event.

An event is on the disk before anybody is told that it is saved. A line that was cut off by a crash
belongs to a request that was never answered; it is removed when the journal is opened.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller.bounded_json import JsonRefused, parse_object
from lab import plain_file
from lab.errors import LabError, RequestError
from lab.worksheets.schema import Answer

# Events of a class (docs/class_mode.md)
#
# `n` counts the events from 1, and `at` is the time in seconds since 1970. Both are set when the
# event is written.


class Part(BaseModel):
    """Base of events and their parts: unknown keys are errors, and no field can be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Person(Part):
    """One person on a seat. `pin` is the hash of the PIN, or None."""

    name: str
    pin: str | None = None


class Event(Part):
    n: int = 0
    at: float = 0.0


class Joined(Event):
    """A new seat with its people. `browser` is the hash of the browser's cookie."""

    kind: Literal["join"] = "join"
    seat: str
    people: tuple[Person, ...]
    browser: str


class Returned(Event):
    """A seat is used from another browser too. `browser` is the hash of its cookie."""

    kind: Literal["browser"] = "browser"
    seat: str
    browser: str


class PinSet(Event):
    """A new PIN for the first person of a seat; `pin` is its hash."""

    kind: Literal["pin"] = "pin"
    seat: str
    pin: str


class Freed(Event):
    """A seat was freed: its cookies are void, and its names can join again."""

    kind: Literal["free"] = "free"
    seat: str


class Opened(Event):
    """A seat opened a worksheet for the first time, so its time for the worksheet starts."""

    kind: Literal["open"] = "open"
    seat: str
    worksheet: str


class Answered(Event):
    """An answer. `passed` is None for a prediction, and for a text, which a person grades.

    `runs` maps the id of each run step that the right answer was measured in to the id of the run.
    `checker` is the version of the lab that marked the answer.
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
    """A figure that a check compared, as written in the worksheet, and its measured value."""

    text: str
    value: float

    @property
    def is_of_events(self) -> bool:
        """Whether it is a time or a number of events: its text then names the events."""
        return self.text.startswith(("time(", "count("))


class Checked(Event):
    """A check was evaluated. `runs` maps the id of each run step to the id of the run used.

    `problem` says why the check could not be evaluated; it is empty if it could. `checker` is the
    version of the lab that evaluated it.
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
    """A run was put into the queue. `seat` is None if the instructor requested it."""

    kind: Literal["run"] = "run"
    run: str
    seat: str | None
    worksheet: str
    step: str
    chosen: dict[str, Any] = {}
    engine: str


class Ended(Event):
    """The end of a run. `digest` is that of its files, empty if the run never began."""

    kind: Literal["ended"] = "ended"
    run: str
    status: str
    digest: str = ""
    error: str = ""


class Flipped(Event):
    """A value of a running run was changed. `target` is its name, such as `link.up1.up`."""

    kind: Literal["flip"] = "flip"
    run: str
    target: str
    value: Any


class Looked(Event):
    """What the instructor shows to all from now on: a run, a step of a worksheet, or nothing."""

    kind: Literal["look"] = "look"
    run: str | None = None
    worksheet: str | None = None
    step: str | None = None


class Froze(Event):
    """The instructor froze the class, or let it go on."""

    kind: Literal["freeze"] = "freeze"
    frozen: bool


class Extended(Event):
    """More time for a worksheet; for all seats if `seat` is None."""

    kind: Literal["extend"] = "extend"
    worksheet: str
    seat: str | None = None
    minutes: float


class Graded(Event):
    """The points that a person gave for a text."""

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
    | Freed
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


One = TypeVar("One", bound=Event)


def read(path: Path) -> tuple[AnyEvent, ...]:
    """The events in a journal, without a last line that was cut off.

    Raise `RequestError` if the file is missing or another line is damaged.
    """
    try:
        content = plain_file.read(path)
    except OSError as error:
        raise plain_file.failure(path, error) from error
    return _events(path, content[: _whole(content)])


def _whole(content: bytes) -> int:
    """The length in bytes of the complete lines."""
    return content.rfind(b"\n") + 1


def _events(path: Path, content: bytes) -> tuple[AnyEvent, ...]:
    found = []
    for n, line in enumerate(content.splitlines(), 1):
        try:
            event = LINE.validate_python(parse_object(line))
        except (JsonRefused, ValidationError) as error:
            raise RequestError(f"read {path}: line {n} is damaged: {error}") from error
        if event.n != n:
            raise RequestError(f"read {path}: line {n} has the number {event.n}")
        found.append(event)
    return tuple(found)


class Journal:
    """Appends events to a journal file. Threads may share it.

    `events` are those that were in the file when it was opened. Raise `LabError` if the file cannot
    be opened, `RequestError` if a line is damaged.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock = path, clock
        self._mutex = threading.Lock()
        self._broken = ""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(path, flags, 0o600)
            content = plain_file.read(path)
            self._length = _whole(content)
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, 0, os.SEEK_END)
            _sync_folder(path.parent)
        except OSError as error:
            raise LabError(f"open {path}: {error.strerror or error}") from error
        self.events = _events(path, content[: self._length])
        self._n = len(self.events)

    def append(self, event: One) -> One:
        """Write an event to the disk, and return it with its number and its time.

        Raise `LabError` if it cannot be written; then the journal is unchanged.
        """
        with self._mutex:
            if self._broken:
                raise LabError(self._broken)
            made = event.model_copy(update={"n": self._n + 1, "at": round(self._clock(), 3)})
            line = made.model_dump_json().encode() + b"\n"
            try:
                self._write(line)
            except OSError as error:
                self._undo()
                raise LabError(
                    f"write {self.path}: {error.strerror or error}. Nothing was saved. "
                    "Free space on the disk of the class"
                ) from error
            self._n, self._length = self._n + 1, self._length + len(line)
            return made

    def close(self) -> None:
        """Close the file. Later events are refused with `LabError`."""
        with self._mutex:
            if self._file >= 0:
                os.close(self._file)
            self._file, self._broken = -1, "the class has ended"

    def _write(self, line: bytes) -> None:
        left = line
        while left:
            left = left[os.write(self._file, left) :]
        os.fdatasync(self._file) if hasattr(os, "fdatasync") else os.fsync(self._file)

    def _undo(self) -> None:
        """Cut off what was written of a line; if that fails, refuse all later events."""
        try:
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            self._broken = f"write {self.path}: {error.strerror or error}. Start the class again"


def _sync_folder(folder: Path) -> None:
    """Write the entries of a folder to the disk: a new file is then found after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
