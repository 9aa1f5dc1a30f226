"""Send changes of a class to browsers as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from flask import Response, request

from dashboard.classroom.requests import room, slots
from dashboard.stream import HEARTBEAT_S, STREAM_S
from lab.classroom.room import Room

POLL_S = 1.0
Doc = dict[str, Any]
Plain = Callable[[Doc], Any]


def stream(kind: str, key: str, make: Callable[[], Doc], plain: Plain, every_s: float) -> Response:
    """Return an answer that sends what `make` returns: at first, after each change, and at least
    every 15 s.

    An event is called `kind`, and there is at most one in `every_s` seconds. `plain` returns a
    document without what changes by time alone. `key` is the owner of the stream: a seat, or a
    role.
    """
    gone = request.environ.get("waitress.client_disconnected", lambda: False)
    messages = slots().hold(key, _messages(room(), kind, make, plain, every_s, gone))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Response(messages, mimetype="text/event-stream", headers=headers)


def _messages(
    of: Room,
    kind: str,
    make: Callable[[], Doc],
    plain: Plain,
    every_s: float,
    gone: Callable[[], bool],
) -> Iterator[bytes]:
    ends, version, sent = time.monotonic() + STREAM_S, -1, None
    yield b"retry: 2000\n\n"
    while time.monotonic() < ends and not gone():
        seen = _news(of, version, gone)
        with of.mutex:
            document = make()
        if seen == version or plain(document) != sent:
            sent = plain(document)
            yield f"event: {kind}\ndata: {json.dumps(document)}\n\n".encode()
            time.sleep(every_s)
        version = seen


def _news(of: Room, version: int, gone: Callable[[], bool]) -> int:
    """Return the present version of a class when it is another one than `version`, after
    `HEARTBEAT_S`, or when the browser has gone."""
    ends = time.monotonic() + HEARTBEAT_S
    seen = of.wait(version, POLL_S)
    while seen == version and not gone() and time.monotonic() < ends:
        seen = of.wait(version, POLL_S)
    return seen
