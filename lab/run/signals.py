"""Stop a run on SIGINT and SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(BaseException):
    """Signal that the user (Ctrl-C) or the system wants the run to end."""


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[threading.Event]:
    """Call `stop` on SIGINT and SIGTERM while the context is open.

    A signal also raises `Interrupted` in the main thread, until the yielded event is set. The first
    signal sets this event. Outside of the main thread, signals are not handled.
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
