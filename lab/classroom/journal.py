"""The event log of a class: a file with one line of JSON for each event.

An event is on the disk before the browser is told that it is saved. If a crash cut off the last
line, that line was never confirmed to anybody. It is removed when the log is opened. Each line
names the line before by its digest (`lab.classroom.chain`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller.bounded_json import JsonRefused, parse_object
from lab import plain_file
from lab.classroom import chain
from lab.classroom.chain import Fault
from lab.errors import LabError, RequestError
from lab.worksheets.schema import Answer

# Events of a class (docs/class_mode.md)
#
# `n` counts the events from 1, and `at` is the time in seconds since 1970. Both are set when the
# event is written.


class Part(BaseModel):
    """Base of the models in this file: unknown keys are errors, and no field can be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Person(Part):
    """One student. `pin` is the hash of the PIN, or None if the student has none."""

    name: str
    pin: str | None = None


class Event(Part):
    n: int = 0
    at: float = 0.0


class Joined(Event):
    """The event that one or two people joined the class and share one place, `seat`.

    `browser` is the hash of their browser's cookie.
    """

    kind: Literal["join"] = "join"
    seat: str
    people: Annotated[tuple[Person, ...], Field(min_length=1)]
    browser: str


class Returned(Event):
    """The event that a student continues in another browser. `browser` is the hash of its
    cookie."""

    kind: Literal["browser"] = "browser"
    seat: str
    browser: str


class PinSet(Event):
    """The event that a student got a new PIN. `pin` is the hash of the PIN. In a pair, only the
    first person gets the new PIN."""

    kind: Literal["pin"] = "pin"
    seat: str
    pin: str


class Freed(Event):
    """The event that the instructor freed a seat. Its cookies are void, and its people can join
    again."""

    kind: Literal["free"] = "free"
    seat: str


class Removed(Event):
    """The event that the instructor removed a seat: it is freed, and neither the table nor the
    grades show it or its work."""

    kind: Literal["remove"] = "remove"
    seat: str


class Merged(Event):
    """The event that the instructor merged a seat into another one, `into`.

    Its people and browsers are there from now on, and its work on worksheets that `into` has not
    opened. Its other work does not count.
    """

    kind: Literal["merge"] = "merge"
    seat: str
    into: str


class WorksheetAdded(Event):
    """The event that a worksheet was added during the class. `sha256` is the digest of its copy."""

    kind: Literal["worksheet"] = "worksheet"
    worksheet: str
    sha256: str


class Opened(Event):
    """The event that a student opened a worksheet for the first time. The time limit starts
    here."""

    kind: Literal["open"] = "open"
    seat: str
    worksheet: str


class Answered(Event):
    """The event that a student answered a question or made a prediction.

    `passed` is None for a text, because a person grades it. It is True for every prediction. If the
    right answer was calculated from runs, `runs` maps the id of each step in which such a run was
    made to the id of the run. `checker` is the version of the lab that marked the answer.
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
    """A measured number that decided a check.

    `text` is the expression for the number in the worksheet.
    """

    text: str
    value: float

    @property
    def is_of_events(self) -> bool:
        """Whether the number is a time or a count of events. Then `text` names these events."""
        return self.text.startswith(("time(", "count("))


class Checked(Event):
    """The event that the lab evaluated a check, which is a condition on the results of a student's
    runs.

    `runs` maps the id of each step in which a run is made to the id of the run that was used.
    `problem` says why the check could not be evaluated; it is empty if it could. `checker` is the
    version of the lab that evaluated the check.
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
    """The event that a run was put into the queue. `seat` is None if the instructor requested the
    run.

    `chosen` maps keys of the scenario to the values that the student chose.
    """

    kind: Literal["run"] = "run"
    run: str
    seat: str | None
    worksheet: str
    step: str
    chosen: dict[str, Any] = {}
    engine: str


class Ended(Event):
    """The event that a run ended. `digest` is the digest of its files; it is empty if the run never
    began."""

    kind: Literal["ended"] = "ended"
    run: str
    status: str
    digest: str = ""
    error: str = ""


class Flipped(Event):
    """The event that somebody changed a value while a run went on. `target` names the value, such
    as `link.up1.up`."""

    kind: Literal["flip"] = "flip"
    run: str
    target: str
    value: Any


class Looked(Event):
    """The event that the instructor shows something on all screens: a run, a worksheet or one of
    its steps.

    With `predictions`, the projector shows what all students predicted in this step. If no field
    has a value, nothing is shown any longer.
    """

    kind: Literal["look"] = "look"
    run: str | None = None
    worksheet: str | None = None
    step: str | None = None
    predictions: bool = False


class Froze(Event):
    """The event that the instructor stopped the work of all students, or let it continue."""

    kind: Literal["freeze"] = "freeze"
    frozen: bool


class Extended(Event):
    """The event that the instructor gave more time for a worksheet. `seat` is None if the time is
    for all."""

    kind: Literal["extend"] = "extend"
    worksheet: str
    seat: str | None = None
    minutes: float


class Graded(Event):
    """The event that a person gave points for a text that a student wrote."""

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
    | Removed
    | Merged
    | WorksheetAdded
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


@dataclass(frozen=True)
class Log:
    """What an event log says.

    `events` are those to believe, and `faults` says what is wrong with the other lines. The first
    `older` lines were written without digests by an older version. `count` counts all whole lines.
    `head` is the digest of the last line. `heads` are the digests that were `head` once, as far as
    lines that are believed say so.
    """

    events: tuple[AnyEvent, ...]
    faults: tuple[Fault, ...]
    older: int
    count: int
    head: str
    heads: frozenset[str]

    def check(self, path: Path) -> None:
        """Raise `RequestError` if something is wrong with a line. `path` is the file."""
        if self.faults:
            more = f", and {len(self.faults) - 1} more" if len(self.faults) > 1 else ""
            raise RequestError(
                f"read {path}: {self.faults[0]}{more}. Put back a copy of the file from before. "
                f"What the other lines say: ./run_lab.sh grade {path.parent.name}"
            )


def read(path: Path, may_be_older: bool = True) -> Log:
    """Read an event log. A last line that was cut off is ignored.

    `may_be_older` says that its first lines may lack digests, as those of older versions do. Raise
    `RequestError` if the file cannot be read.
    """
    try:
        return _log(plain_file.read(path), may_be_older)
    except OSError as error:
        raise plain_file.failure(path, error) from error


def _log(content: bytes, may_be_older: bool) -> Log:
    lines = chain.read(content, may_be_older)
    events: list[AnyEvent] = []
    faults, before = list(lines.faults), 0
    for line in lines.lines:
        try:
            event = LINE.validate_python(parse_object(line.body))
        except (JsonRefused, ValidationError):
            faults.append(Fault(line.number, "it is damaged: it is no event of a class"))
            continue
        if not line.digest and event.n != before + 1:
            text = f"it has the number {event.n}: lines were removed or moved"
            faults.append(Fault(line.number, text))
            continue
        before = event.n
        events.append(event)
    heads = {digest for each in lines.lines for digest in (each.before, each.digest)} - {""}
    found = tuple(sorted(faults, key=lambda each: each.line))
    return Log(tuple(events), found, lines.older, lines.count, lines.head, frozenset(heads))


class Journal:
    """Appends events to the event log of a class. Several threads may use the same object.

    `log` is what was in the file when it was opened; `may_be_older` is as in `read`. `count` is the
    number of lines now, and `head` the digest of the last one. Raise `LabError` if the file cannot
    be opened, and `RequestError` if something is wrong with a line.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, may_be_older: bool = True
    ) -> None:
        self.path, self._clock = path, clock
        self._mutex = threading.Lock()
        self._broken = ""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(path, flags, 0o600)
            content = plain_file.read(path)
            self.log = self._checked(content, may_be_older)
            self._length = content.rfind(b"\n") + 1
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, 0, os.SEEK_END)
            _sync_folder(path.parent)
        except OSError as error:
            raise LabError(f"open {path}: {error.strerror or error}") from error
        self.count, self.head = self.log.count, self.log.head

    def append(self, event: One) -> One:
        """Write an event to the disk. Return it with its number and its time.

        Raise `LabError` if the event cannot be written. The event log is then unchanged.
        """
        with self._mutex:
            if self._broken:
                raise LabError(self._broken)
            made = event.model_copy(update={"n": self.count + 1, "at": round(self._clock(), 3)})
            line, head = chain.sealed(made.model_dump_json().encode(), self.head)
            try:
                self._write(line + b"\n")
            except OSError as error:
                self._undo()
                raise LabError(
                    f"write {self.path}: {error.strerror or error}. Nothing was saved. "
                    "Free space on the disk of the class"
                ) from error
            self.count, self.head = self.count + 1, head
            self._length += len(line) + 1
            return made

    def close(self) -> None:
        """Close the file. From then on, `append` raises `LabError`."""
        with self._mutex:
            if self._file >= 0:
                os.close(self._file)
            self._file, self._broken = -1, "the class has ended"

    def _checked(self, content: bytes, may_be_older: bool) -> Log:
        found = _log(content, may_be_older)
        try:
            found.check(self.path)
        except RequestError:
            os.close(self._file)
            raise
        return found

    def _write(self, line: bytes) -> None:
        left = line
        while left:
            left = left[os.write(self._file, left) :]
        os.fdatasync(self._file) if hasattr(os, "fdatasync") else os.fsync(self._file)

    def _undo(self) -> None:
        """Remove an incompletely written line. If that fails, refuse all later events."""
        try:
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            self._broken = f"write {self.path}: {error.strerror or error}. Start the class again"


def _sync_folder(folder: Path) -> None:
    """Write the directory entries of a folder to the disk, so that a new file survives a power
    cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
