"""Stop a run on SIGINT and SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(BaseException):
    """Report that the user or the system has requested the end of the run."""


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[threading.Event]:
    """Call `stop` on SIGINT and SIGTERM.

    Until the yielded event is set they also raise `Interrupted` where they arrive.
    """
    quiet = threading.Event()

    def handle(number: int, _: Any) -> None:
        stop()
        if not quiet.is_set():
            quiet.set()
            raise Interrupted(signal.Signals(number).name)

    if threading.current_thread() is not threading.main_thread():
        yield quiet
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield quiet
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
