"""Send changes of a class to browsers as server-sent events."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from dashboard.classroom.requests import room, slots
from dashboard.stream import HEARTBEAT_S, STREAM_S
from lab.classroom.refusals import TooMuch
from lab.classroom.room import Room

# Count the open streams of each seat, and limit them.
#
# A stream is an answer of server-sent events that stays open; each takes a thread of the server.


class Slots:
    """Allow `most_each` streams for each key, such as a seat, and `most` in all. `on_change` is
    called after a stream was opened or closed."""

    def __init__(self, most_each: int, most: int, on_change: Callable[[], None]) -> None:
        self._most_each, self._most, self._on_change = most_each, most, on_change
        self._open: Counter[str] = Counter()
        self._mutex = threading.Lock()

    def open(self) -> frozenset[str]:
        """Return the keys that have a stream open."""
        with self._mutex:
            return frozenset(self._open)

    def hold(self, key: str, stream: Iterator[bytes]) -> Iterator[bytes]:
        """Return the stream, which takes a slot until it ends or is closed. Raise `TooMuch` if all
        slots are taken."""
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


POLL_S = 1.0
Doc = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """Describe a stream: the name of its events, who watches, and what is sent.

    `owner` is a seat, or a role. `make` returns the document to send, and `plain` returns it
    without what changes by time alone. There is at most one event in `every_s` seconds.
    """

    kind: str
    owner: str
    make: Callable[[], Doc]
    plain: Callable[[Doc], Any]
    every_s: float


def stream(source: Source) -> Response:
    """Return an answer that sends a document: at first, after each change, and at least every
    15 s."""
    gone = request.environ.get("waitress.client_disconnected", lambda: False)
    messages = slots().hold(source.owner, _messages(room(), source, gone))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(messages, mimetype="text/event-stream", headers=headers)


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
    """Return the version of what a stream shows when it is not `version` any more, after
    `HEARTBEAT_S`, or when the browser has gone."""
    ends = time.monotonic() + HEARTBEAT_S
    seen = of.news.wait(seat, version, POLL_S)
    while seen == version and not gone() and time.monotonic() < ends:
        seen = of.news.wait(seat, version, POLL_S)
    return seen
