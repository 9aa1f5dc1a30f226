"""Stop a run on SIGINT and SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(BaseException):
    """Signal that a run must end, because the user pressed Ctrl-C or the process received
    SIGTERM."""


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[threading.Event]:
    """Call `stop` on every SIGINT and SIGTERM while the context is open.

    As long as the yielded event is not set, a signal also sets the event and raises `Interrupted`
    in the main thread. The caller can set the event to turn these exceptions off. In a thread other
    than the main thread, signals are not handled at all.
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
