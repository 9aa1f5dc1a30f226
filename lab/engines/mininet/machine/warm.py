"""Start Python programs, quickly if this is a VM that was restored from a snapshot.

In a VM without KVM, importing the controller and POX takes 15 s, and a fork takes 0.1 s. So the
snapshot contains a process that has imported them, the warm Python (vm/warm_python.py, which also
defines the request files). In a restored VM, a program starts as a fork of this process. On other
machines, it starts as an ordinary process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Protocol

from lab.engines.mininet.machine import shell
from lab.errors import LabError

FOLDER = Path("/run/warm")
FORK_TIMEOUT_S = 20
POLL_S = 0.02
_numbers = count(1)


class Process(Protocol):
    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


def start(
    argv: Sequence[str], doing: str, *, cwd: Path, env: Mapping[str, str], log: Path
) -> Process:
    """Start a Python program in a new session; append its output and errors to the file `log`.

    `argv` begins with the interpreter. Error messages begin with `doing`.
    """
    if (FOLDER / "bell").exists():
        shell.journal_command(argv)
        return _Fork(_request(argv, cwd, env, log), doing)
    with log.open("ab") as output:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "text": False}
        started: Process = shell.spawn(
            argv, doing, cwd=cwd, env=env, start_new_session=True, **streams
        )
        return started


def _request(argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> Path:
    """Ask the warm Python to start a program as its fork; return the path of the request file.

    The warm Python is a process of the VM's snapshot that has imported the controller and POX.
    """
    path = FOLDER / "requests" / f"{os.getpid()}-{next(_numbers)}"
    streams = ("/dev/null", str(log), str(log))
    variables = [f"{name}={value}" for name, value in env.items()]
    words = [str(cwd), *streams, str(len(argv)), *argv, *variables]
    path.write_bytes(b"".join(os.fsencode(word) + b"\0" for word in words))
    with (FOLDER / "bell").open("w") as bell:
        bell.write(f"{path.name}\n")
    return path


class _Fork:
    """A program that runs as a fork of the warm Python, a process that has imported POX.

    The program is a child of the warm Python, not of the process that creates this object.
    `request` is the path of the program's request file. Raises `LabError` if the fork does not
    start within `FORK_TIMEOUT_S` seconds.
    """

    def __init__(self, request: Path, doing: str) -> None:
        self._request = request
        self.returncode: int | None = None
        answer, deadline = request.with_suffix(".pid"), time.monotonic() + FORK_TIMEOUT_S
        while not answer.exists():
            if time.monotonic() > deadline:
                raise LabError(f"{doing}: the warm Python did not start it in {FORK_TIMEOUT_S} s")
            time.sleep(POLL_S)
        self.pid = int(answer.read_text())

    def poll(self) -> int | None:
        with contextlib.suppress(FileNotFoundError):
            self.returncode = int(self._request.with_suffix(".status").read_text())
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the program, and return its exit status.

        Raises `subprocess.TimeoutExpired` if the program still runs after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self._request), timeout or 0)
            time.sleep(POLL_S)
        return status

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
