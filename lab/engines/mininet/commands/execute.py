"""Run commands inside the hosts of a running emulation: `exec RUN HOST -- CMD` and `cli RUN`.

The caller (exec_caller.py) and the engine communicate by files in `RUN/exec/`, a folder that a VM
shares with its host. The caller writes a request, a JSON file. The engine runs the requested
command, and writes the output into files with the same name and another suffix. At the end it
writes the exit status.

A command can get its own pseudo-terminal. The caller then appends keystrokes to one file, and the
engine appends output to another. So a terminal works even if caller and engine share only a folder,
as with an emulation in a VM.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
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
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from controller.folder_changes import FolderChanges
from lab.engines.mininet.machine import shell
from lab.errors import LabError

ACTIVE_S, IDLE_S = 0.05, 0.3  # between two looks for keystrokes
IDLE_AFTER_S = 20.0
NO_INPUT = subprocess.DEVNULL
CHUNK = 65536
SERVE_S = 0.5  # reading a folder shared with a VM is slow
MACHINE = "machine"  # in place of a host's name: outside all hosts, in the machine or VM
PROMPT = "prompt"  # in place of a host's name: Mininet-WiFi's prompt
RunPrompt = Callable[[Path, Sequence[str] | None], None]
"""A function that runs Mininet-WiFi's prompt in a forked process.

It gets the file for the names of the nodes that shall have a window, and the commands, or None if
they come from the terminal.
"""


@dataclass(frozen=True)
class Request:
    """A command to run in a host. The fields are the keys of the request's JSON file.

    `terminal` is the type of the terminal that the command gets, such as "xterm"; "" means none. If
    `host` is `PROMPT`, Mininet-WiFi's prompt is opened. The prompt reads its commands from the
    terminal. Without a terminal, `argv` lists the commands.
    """

    host: str
    argv: list[str]
    terminal: str = ""


class Executor:
    """Runs the commands that are requested in the folder of a run, in a thread of the engine."""

    def __init__(
        self,
        folder: Path,
        inside: Callable[[str, list[str]], list[str]],
        record: Callable[[int], None],
        prompt: RunPrompt,
    ) -> None:
        """Start the thread, which looks for requests in the subfolder `exec` of `folder`.

        `inside` returns the command line that runs a command inside a host. `record` is called with
        the process ID of every started process. `prompt` runs Mininet-WiFi's prompt.
        """
        self.folder, self._inside, self._record = folder / "exec", inside, record
        self._prompt = prompt
        self._running: dict[Path, Process] = {}
        self._stop = threading.Event()
        self.folder.mkdir(exist_ok=True)
        self._handle = os.open(self.folder, os.O_RDONLY)
        self._changes = FolderChanges(lambda: os.fstat(self._handle).st_mtime_ns)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stop.wait(SERVE_S):
            if self._changes.may_have_changed():
                for file in sorted(self.folder.glob("*.json")):
                    self._start(file)
            for file, process in list(self._running.items()):
                if (status := process.poll()) is not None:
                    file.with_suffix(".status").write_text(str(status))
                    del self._running[file]

    def _start(self, file: Path) -> None:
        """Read a request from its JSON file, delete the file, and start the command."""
        request = Request(**json.loads(file.read_text()))
        file.unlink()
        with file.with_suffix(".out").open("wb") as out, file.with_suffix(".err").open("wb") as err:
            try:
                process = self._process(request, file, out.fileno(), err.fileno())
                self._running[file] = process
                self._record(process.pid)
            except (LabError, OSError) as problem:
                err.write(f"{problem}\n".encode())
                file.with_suffix(".status").write_text("127")

    def _process(self, request: Request, file: Path, out: int, err: int) -> Process:
        """Start the command of a request; `out` and `err` are file descriptors for its output."""
        if request.host == PROMPT:
            windows = file.with_suffix(".windows")

            def run() -> None:
                os.environ["TERM"] = request.terminal or "dumb"
                self._prompt(windows, None if request.terminal else request.argv)

            def prompt(stdin: int, stdout: int) -> Process:
                return Fork(run, stdin, stdout)

            if request.terminal:
                return Terminal(file, lambda slave: prompt(slave, slave))
            return without_input(lambda stdin: prompt(stdin, out))
        argv, doing = self._inside(request.host, request.argv), f"run a command in {request.host}"
        if request.terminal:
            argv = ["env", f"TERM={request.terminal}", *argv]
            return Terminal(file, lambda slave: start_command(argv, doing, slave, slave, slave))
        return start_command(argv, doing, NO_INPUT, out, err)

    def close(self) -> None:
        """End the thread, and kill the commands that are still running."""
        self._stop.set()
        self._thread.join(2)
        os.close(self._handle)
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a shell's children too
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # it may not lead its own group yet
            process.wait()


class Process(Protocol):
    """The methods of `subprocess.Popen` that `Fork` and `Terminal` also have."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...


class Fork:
    """A forked copy of this process, which runs one function and then ends."""

    def __init__(self, function: Callable[[], None], stdin: int, stdout: int) -> None:
        """Start a forked copy of this process, and call `function` in the copy.

        The copy leads a new session. `stdin` and `stdout` are file descriptors; `stdout` is also
        the copy's standard error. If `stdin` is a terminal, it becomes the controlling terminal of
        the session.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        self._status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _run_and_exit(function, stdin, stdout)

    def poll(self) -> int | None:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status

    def wait(self) -> int:
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
    """Start the command `argv` in a new session.

    The last three arguments are the file descriptors of its standard input, output and error.
    If `stdin` is a terminal, it becomes the controlling terminal of the session. Error messages
    begin with `doing`.
    """
    streams = {"stdin": stdin, "stdout": stdout, "stderr": err, "text": False}
    if stdin >= 0 and os.isatty(stdin):
        return shell.spawn(["setsid", "--ctty", *argv], doing, **streams)
    return shell.spawn(argv, doing, start_new_session=True, **streams)


def without_input(start: Callable[[int], Process]) -> Process:
    """Call `start` with the reading end of a pipe into which nothing is ever written.

    The started process waits for input for ever. Mininet's prompt needs this: it polls its input,
    and at an end of file it would poll without pause.
    """
    reading, writing = os.pipe()
    try:
        return start(reading)  # a forked process keeps both ends open
    finally:
        os.close(reading)
        os.close(writing)


class Terminal:
    """A process on a pseudo-terminal whose input and output are files.

    Bytes that are appended to the file `.in` are typed into the terminal. The output of the
    terminal is appended to the file `.out`. The file `.size` has the number of rows and columns,
    which may change at any time.
    """

    def __init__(self, file: Path, start: Callable[[int], Process]) -> None:
        """Make the terminal, and call `start` with its file descriptor to start the process.

        `file` is the JSON file of the request. The terminal's files have the same name with the
        suffixes `.in`, `.out` and `.size`.
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
        """Return the exit status; None while the process runs or output remains to be copied."""
        return None if self._thread.is_alive() else self._process.poll()

    def wait(self) -> int:
        status = self._process.wait()
        self._thread.join()
        return status

    def _serve(self) -> None:
        """Copy keystrokes and output until the process has ended and all its output is copied."""
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
