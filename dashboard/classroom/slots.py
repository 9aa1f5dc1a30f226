"""Limits on the open streams of each seat.

A stream is a response of server-sent events that stays open; each takes a thread of the server.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator

from lab.classroom.lesson import TooMuch


class Slots:
    """Limits open streams to `most_each` for each key, such as a seat, and `most` in all.
    `on_change` is called after a stream was opened or closed."""

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
