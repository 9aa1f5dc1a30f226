"""Streams of changes of a class to browsers, as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from dashboard.classroom.requests import room, slots
from dashboard.stream import HEARTBEAT_S, STREAM_S
from lab.classroom.room import Room

POLL_S = 1.0
Doc = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """What a stream sends.

    `kind` is the name of its events, and `owner` is the seat or role that watches. `make` returns
    the document to send, and `plain` removes what changes with time alone, so that it causes no
    event. There is at most one event in `every_s` seconds.
    """

    kind: str
    owner: str
    make: Callable[[], Doc]
    plain: Callable[[Doc], Any]
    every_s: float


def stream(source: Source) -> Response:
    """Return a response that sends a document at first, after each change, and at least every 15
    s."""
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
    """Wait until the version of what a stream shows is not `version`, and return it.

    After `HEARTBEAT_S`, or when the browser has disconnected, return the present version.
    """
    ends = time.monotonic() + HEARTBEAT_S
    seen = of.news.wait(seat, version, POLL_S)
    while seen == version and not gone() and time.monotonic() < ends:
        seen = of.news.wait(seat, version, POLL_S)
    return seen
