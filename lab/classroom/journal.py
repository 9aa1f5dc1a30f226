"""Write the journal of a class: one line of JSON for each event, on the disk before anybody is
told that it is saved.

A line that was cut off by a crash belongs to a request that was never answered. It is removed when
the journal is opened.
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

# Define the events of a class. Each is one line of its journal; docs/class_mode.md lists them.
#
# `n` counts the events from 1, and `at` is the time in seconds since 1970. Both are set when the
# event is written.


class Part(BaseModel):
    """Set the rules for all parts of an event: no unknown keys, no changes after it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Person(Part):
    """A person on a seat: the nickname, and a hash of the PIN if there is one."""

    name: str
    pin: str | None = None


class Event(Part):
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
    """A figure that a check looked at: its text in the language of checks, and its value."""

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


One = TypeVar("One", bound=Event)


def read(path: Path) -> tuple[AnyEvent, ...]:
    """Return the events in a journal, without a last line that was cut off.

    Raise `RequestError` if the file is missing or another line is damaged.
    """
    try:
        content = plain_file.read(path)
    except OSError as error:
        raise plain_file.failure(path, error) from error
    return _events(path, content[: _whole(content)])


def _whole(content: bytes) -> int:
    """Return the length in bytes of the complete lines of a journal."""
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
    """Append events to a journal. Several threads may do so at the same time.

    `events` are those that were in the file when it was opened.
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

        Raise `LabError` if it cannot be written; then nothing was written.
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
        """Close the file, unless it is closed. Later events are refused."""
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
    """Write the entries of a folder to the disk, so that a new file in it is found after a power
    cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
