"""Wait for a command in a VM: collect Ctrl-C meanwhile, and copy the command's output."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def interrupts() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM while the `with` block runs, so that they do not end this process.

    Yields a list, to which the number of each received signal is appended. Signals can be caught
    only in the main thread; in another thread the list stays empty.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {
        number: signal.signal(number, lambda number, _frame: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Follower:
    """Copy a growing text file to an output stream."""

    def __init__(self, path: Path, to: IO[str]) -> None:
        self._path, self._to, self._at = path, to, 0

    def copy(self) -> None:
        """Write to the output what was appended to the file since the last call."""
        with self._path.open("rb") as source:
            source.seek(self._at)
            new = source.read()
        self._at += len(new)
        if new:
            self._to.write(new.decode(errors="replace"))
            self._to.flush()
