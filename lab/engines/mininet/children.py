"""Start the child processes that carry out `exec` and `cli`: commands, and forks of this process.

`exec` runs a command in a host of a running emulation, and `cli` opens its prompt (execute.py). A
child process may get its own pseudo-terminal. The caller of `exec` then appends keystrokes to one
file, and the output is appended to another file. So a terminal works even if the emulation runs in
a VM that shares only a folder with the caller.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from lab.engines.mininet.machine import shell

ACTIVE_S, IDLE_S = 0.05, 0.3  # between two looks for keystrokes
IDLE_AFTER_S = 20.0
NO_INPUT = subprocess.DEVNULL
CHUNK = 65536


class Process(Protocol):
    """Name the methods that this module needs of a process; `subprocess.Popen` has all of them."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""

    def wait(self) -> int:
        """Wait for the end of the process and return its exit status."""


class Fork:
    """Hold a forked copy of this process, which runs one function and then ends."""

    def __init__(self, function: Callable[[], None], stdin: int, stdout: int) -> None:
        """Start a forked copy of this process, and call `function` in the child.

        The child leads a new session. Its standard input is the file descriptor `stdin`; its
        standard output and standard error go to the file descriptor `stdout`. If `stdin` is a
        terminal, it becomes the controlling terminal of the session.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        self._status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _run_and_exit(function, stdin, stdout)

    def poll(self) -> int | None:
        """Return the exit status of the child, or None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status

    def wait(self) -> int:
        """Wait for the end of the child and return its exit status."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


def _run_and_exit(function: Callable[[], None], stdin: int, stdout: int) -> None:
    status = 1
    try:
        os.setsid()
        for number, fd in enumerate((stdin, stdout, stdout)):
            os.dup2(fd, number)
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        shell.forget_journals()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, buffering=1, closefd=False)  # noqa: SIM115
            for number, mode in enumerate(("r", "w", "w"))
        )
        function()
        status = 0
    except Exception:  # noqa: BLE001 - the copy has no other reader of its errors
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # the copy must not clean up what its parent owns


def start_command(argv: Sequence[str], doing: str, stdin: int, stdout: int, err: int) -> Process:
    """Start the command `argv` with these three file descriptors, and return its process.

    The process leads a new session. If `stdin` is a terminal, it becomes the controlling terminal
    of the session. `doing` describes the purpose of the command, for error messages.
    """
    streams = {"stdin": stdin, "stdout": stdout, "stderr": err, "text": False}
    if stdin >= 0 and os.isatty(stdin):
        return shell.spawn(["setsid", "--ctty", *argv], doing, **streams)
    return shell.spawn(argv, doing, start_new_session=True, **streams)


def without_input(start: Callable[[int], Process]) -> Process:
    """Call `start` with the reading end of a pipe into which nothing is written; return its result.

    The process that `start` starts thus waits for input forever. This is for Mininet's prompt,
    which polls its input: at an end of file it would never pause.
    """
    reading, writing = os.pipe()
    try:
        return start(reading)  # a forked process keeps both ends open
    finally:
        os.close(reading)
        os.close(writing)


class Terminal:
    """Run a process on a pseudo-terminal whose input and output are files.

    A thread copies between the terminal and the files. What is appended to the file `.in` is typed
    into the terminal, and the output of the terminal is appended to `.out`. The file `.size` holds
    the number of rows and columns; it is read once more whenever it changes.
    """

    def __init__(self, file: Path, start: Callable[[int], Process]) -> None:
        """Make the terminal; call `start` with its file descriptor, to start the process.

        `file` is the JSON file of the request (execute.py). The terminal's files have the same name
        with the suffixes `.in`, `.out` and `.size`.
        """
        self._file, self._size, self._position = file, "", 0
        self._master, slave = os.openpty()
        try:
            self._resize()
            self._process = start(slave)
        except BaseException:
            os.close(self._master)
            raise
        finally:
            os.close(slave)
        self.pid = self._process.pid
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs or output remains to be copied."""
        return None if self._thread.is_alive() else self._process.poll()

    def wait(self) -> int:
        """Wait for the end of the process and return its exit status."""
        status = self._process.wait()
        self._thread.join()
        return status

    def _serve(self) -> None:
        """Copy keystrokes and output until the process has ended; then copy the last output."""
        idle_s = 0.0
        with self._file.with_suffix(".in").open("rb") as keys:
            while self._process.poll() is None:
                pause_s = ACTIVE_S if idle_s < IDLE_AFTER_S else IDLE_S
                moved = self._copy_output(pause_s) | self._copy_keys(keys.fileno())
                idle_s = 0.0 if moved else idle_s + pause_s
                self._resize()
        while self._copy_output(0):
            pass
        os.close(self._master)

    def _copy_output(self, wait_s: float) -> bool:
        if not select.select([self._master], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._master, CHUNK)
        except OSError:  # the process has closed the terminal
            time.sleep(wait_s)
            return False
        with self._file.with_suffix(".out").open("ab") as out:
            out.write(data)
        return bool(data)

    def _copy_keys(self, keys: int) -> bool:
        data = os.pread(keys, CHUNK, self._position)
        self._position += len(data)
        if data:
            os.write(self._master, data)
        return bool(data)

    def _resize(self) -> None:
        try:
            size = self._file.with_suffix(".size").read_text()
        except FileNotFoundError:  # the caller is replacing it
            return
        if size != self._size:
            self._size = size
            rows, columns = map(int, size.split())
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
