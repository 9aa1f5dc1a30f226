"""Server-sent events that tell browsers about changes in a class, and limits on their number.

A stream of events is a response that stays open. Each takes a thread of the server.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flask import Response, current_app

from dashboard.base.requests import event_stream, has_disconnected
from dashboard.classroom.requests import room
from dashboard.stream import HEARTBEAT_S, STREAM_S
from lab.classroom.lesson import TooMuch
from lab.classroom.room import Room

POLL_S = 1.0
Doc = dict[str, Any]


class Slots:
    """Limits the number of open streams: `most_each` for each key, such as a student, and `most` in
    total.

    `on_change` is called whenever a stream was opened or closed.
    """

    def __init__(self, most_each: int, most: int, on_change: Callable[[], None]) -> None:
        self._most_each, self._most, self._on_change = most_each, most, on_change
        self._open: Counter[str] = Counter()
        self._mutex = threading.Lock()

    def open(self) -> frozenset[str]:
        """Return the keys that have an open stream."""
        with self._mutex:
            return frozenset(self._open)

    def hold(self, key: str, stream: Iterator[bytes]) -> Iterator[bytes]:
        """Return `stream`, and count it as open until it ends or is closed.

        Raise `TooMuch` at once if too many streams are open.
        """
        held = self._held(key, stream)
        next(held)  # begins the iterator, because only then `finally` is sure to run
        return held

    def _held(self, key: str, stream: Iterator[bytes]) -> Iterator[bytes]:
        with self._mutex:
            if self._open[key] >= self._most_each:
                raise TooMuch("too many pages of this seat are open: close one")
            if self._open.total() >= self._most:
                raise TooMuch("too many pages of this class are open: close one")
            self._open[key] += 1
        try:
            self._on_change()
            yield b""
            yield from stream
        finally:
            with self._mutex:
                self._open[key] -= 1
                self._open += Counter()  # removes keys without streams
            self._on_change()


def slots() -> Slots:
    found: Slots = current_app.extensions["slots"]
    return found


@dataclass(frozen=True)
class Source:
    """The content of a stream of server-sent events.

    `kind` is the name of its events. `owner` is the id of a student's seat, or the role that
    watches. `make` returns the JSON object to send. `plain` removes the parts that change by time
    alone; they cause no event. There is at most one event in `every_s` seconds.
    """

    kind: str
    owner: str
    make: Callable[[], Doc]
    plain: Callable[[Doc], Any]
    every_s: float


def stream(source: Source) -> Response:
    """Return a response that stays open, and sends the JSON object of `source` as server-sent
    events.

    The object is sent at first, after each change, and at least every `HEARTBEAT_S` seconds.
    """
    return event_stream(slots().hold(source.owner, _messages(room(), source, has_disconnected())))


def _messages(of: Room, source: Source, gone: Callable[[], bool]) -> Iterator[bytes]:
    seat = source.owner if source.owner in of.state.seats else None
    ends, version, sent = time.monotonic() + STREAM_S, -1, None
    yield b"retry: 2000\n\n"
    while time.monotonic() < ends and not gone():
        seen = _next_version(of, seat, version, gone)
        with of.mutex:
            document = source.make()
        if seen == version or source.plain(document) != sent:
            sent = source.plain(document)
            yield f"event: {source.kind}\ndata: {json.dumps(document)}\n\n".encode()
            time.sleep(source.every_s)
        version = seen


def _next_version(of: Room, seat: str | None, version: int, gone: Callable[[], bool]) -> int:
    """Wait until something changes for `seat`. Return the new count of changes.

    Return the old count, `version`, after `HEARTBEAT_S` seconds without a change, or if the browser
    has disconnected.
    """
    ends = time.monotonic() + HEARTBEAT_S
    seen = of.news.wait(seat, version, POLL_S)
    while seen == version and not gone() and time.monotonic() < ends:
        seen = of.news.wait(seat, version, POLL_S)
    return seen
