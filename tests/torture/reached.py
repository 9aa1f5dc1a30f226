"""Note which lines of the product run: `FILE:NUMBER` once for each, in the file that MUTATE_FILE
names.

A copy of this file with the name sitecustomize.py is imported by each Python that starts with its
folder in PYTHONPATH, before any other module: it imports little, so that a test can set traps.
"""

from __future__ import annotations

import os
import sys
import threading

FILE = "MUTATE_FILE"
FOLDERS = ("controller", "lab", "dashboard")
NOT = "lab/engines/sim/core"  # it takes most of the time, and is compiled


def _add_traced(hook, add=sys.addaudithook):
    hook.__cantrace__ = True  # Python traces no other hook
    add(hook)


class Recorder:
    def __init__(self, root: str) -> None:
        """`root` is the folder of the lab."""
        self._start = f"{root}/"
        self._short: dict[str, str] = {}
        self._seen: set[tuple[str, int]] = set()
        self._file = -1

    def begin(self, path: str) -> None:
        """Write into the file `path` from now on, also in new threads and in audit hooks."""
        sys.addaudithook = _add_traced
        if self._file >= 0:
            os.close(self._file)
        self._seen = set()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.environ[FILE] = path
        threading.settrace(self._called)
        sys.settrace(self._called)

    def _called(self, frame, _event, _argument):
        name = frame.f_code.co_filename
        short = self._short.get(name)
        if short is None:
            short = name.removeprefix(self._start)
            wanted = short != name and short.startswith(FOLDERS) and not short.startswith(NOT)
            short = self._short[name] = short if wanted else ""
        if not short:
            return None

        def line(frame, event, _argument):
            at = (short, frame.f_lineno)
            if event == "line" and at not in self._seen:
                self._seen.add(at)
                try:  # noqa: SIM105 - contextlib is not imported here
                    os.write(self._file, f"{short}:{frame.f_lineno}\n".encode())
                except OSError:  # of a process that has closed all its files
                    pass
            return line

        return line


if __name__ == "sitecustomize" and FILE in os.environ:
    Recorder(os.path.dirname(os.path.abspath(__file__))).begin(os.environ[FILE])
