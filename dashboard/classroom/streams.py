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
from dashboard.classroom import guard
from dashboard.classroom.requests import room
from dashboard.stream import HEARTBEAT_S, STREAM_S
from lab.classroom.lesson import TooMuch
from lab.classroom.room import Room

POLL_S = 1.0
STREAMS = 280  # each takes a thread of the server
STREAMS_PER_STAFF = 8
KEPT = 3 * STREAMS_PER_STAFF  # for the instructor's grid, runs that staff watch, and projectors
STREAMS_PER_SEAT = 4
STREAMS_PER_ADDRESS = 160  # forty seats with 4 pages each may share an address
Doc = dict[str, Any]


class Slots:
    """Limits how many streams are open for one seat or role, for one address, and for all students.
    So nobody can take all streams, and some are always left for the instructor.

    `on_change` is called whenever a stream was opened or closed.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._open: Counter[str] = Counter()
        self._of_students: Counter[str] = Counter()  # by their address
        self._mutex = threading.Lock()

    def open(self) -> frozenset[str]:
        """Return the seats and roles that have an open stream."""
        with self._mutex:
            return frozenset(self._open)

    def hold(self, owner: str, address: str | None, stream: Iterator[bytes]) -> Iterator[bytes]:
        """Return the stream, which takes a slot until it ends or is closed.

        `owner` is a seat or a role. `address` is the network address of a student's browser; it is
        None for the instructor and the projector. Raise `TooMuch` at once if no slot is free.
        """
        held = self._held(owner, address, stream)
        next(held)  # begins the iterator, because only then `finally` is sure to run
        return held

    def _held(self, owner: str, address: str | None, stream: Iterator[bytes]) -> Iterator[bytes]:
        with self._mutex:
            self._check_free(owner, address)
            self._open[owner] += 1
            if address is not None:
                self._of_students[address] += 1
        try:
            self._on_change()
            yield b""
            yield from stream
        finally:
            with self._mutex:
                self._open -= Counter([owner])  # removes keys without streams
                if address is not None:
                    self._of_students -= Counter([address])
            self._on_change()

    def _check_free(self, owner: str, address: str | None) -> None:
        if self._open[owner] >= (STREAMS_PER_STAFF if address is None else STREAMS_PER_SEAT):
            raise TooMuch("too many pages of this seat are open: close one")
        if address is not None and self._of_students[address] >= STREAMS_PER_ADDRESS:
            raise TooMuch("too many pages are open at this network address: close one")
        if address is not None and self._of_students.total() >= STREAMS - KEPT:
            raise TooMuch("too many pages of this class are open: close one")


def slots() -> Slots:
    found: Slots = current_app.extensions["slots"]
    return found


def hold(owner: str, stream: Iterator[bytes]) -> Iterator[bytes]:
    """Let a stream for the browser of this request take a slot, as `Slots.hold` does."""
    address = guard.address() if owner in room().state.seats else None
    return slots().hold(owner, address, stream)


@dataclass(frozen=True)
class Source:
    """The content of a stream of server-sent events.

    `kind` is the name of its events. `owner` is the id of a student's seat, or the role that
    watches. `make` returns the JSON object to send. `plain` removes the fields that change by time
    alone, because such changes cause no event. There is at most one event in `every_s` seconds.
    """

    kind: str
    owner: str
    make: Callable[[], Doc]
    plain: Callable[[Doc], Any]
    every_s: float


def stream(source: Source) -> Response:
    """Return a response that sends a document at the start, after each change, and at least every
    `HEARTBEAT_S` seconds."""
    return event_stream(hold(source.owner, _messages(room(), source, has_disconnected())))


def _messages(of: Room, source: Source, gone: Callable[[], bool]) -> Iterator[bytes]:
    seat = source.owner if source.owner in of.state.seats else None
    ends, version, sent = time.monotonic() + STREAM_S, -1, None
    yield b"retry: 2000\n\n"
    while time.monotonic() < ends and not gone():
        seen = _next_version(of, seat, version, gone)
        with of.mutex:
            if seat and of.state.seats[seat].left:
                return
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
