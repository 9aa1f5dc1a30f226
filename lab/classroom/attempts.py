"""Limit how often somebody may try codes and PINs, so that nobody can guess them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable

from lab.classroom.refusals import TooMuch

MOST_KEYS = 10_000


class Attempts:
    """Count attempts by key, such as the address of a browser. Within `within_s`, each key may make
    `most` of them."""

    def __init__(
        self, most: int, within_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._within_s, self._clock = most, within_s, clock
        self._made: dict[Hashable, deque[float]] = {}
        self._mutex = threading.Lock()

    def check(self, key: Hashable) -> None:
        """Raise `TooMuch` if the key has made all its attempts."""
        with self._mutex:
            made = self._recent(key)
            if len(made) >= self._most:
                wait_s = made[0] + self._within_s - self._clock()
                raise TooMuch(f"too many tries: try again in {wait_s:.0f} s", max(1.0, wait_s))

    def count(self, key: Hashable) -> None:
        """Count one attempt of the key."""
        with self._mutex:
            if len(self._made) >= MOST_KEYS:
                self._made = {
                    each: made for each in list(self._made) if (made := self._recent(each))
                }
            self._made.setdefault(key, deque(maxlen=self._most)).append(self._clock())

    def _recent(self, key: Hashable) -> deque[float]:
        """Return the times of the attempts of a key that still count."""
        made = self._made.get(key, deque())
        while made and made[0] <= self._clock() - self._within_s:
            made.popleft()
        return made
