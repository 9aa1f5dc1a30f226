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
from typing import TypeVar

from pydantic import ValidationError

from controller.bounded_json import JsonRefused, parse_object
from lab import plain_file
from lab.classroom.events import LINE, AnyEvent, Event
from lab.errors import LabError, RequestError

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
