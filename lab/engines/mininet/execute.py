"""Run commands inside the hosts of a running emulation: `exec RUN HOST -- CMD` and `cli RUN`.

Caller and engine communicate by files in the folder `RUN/exec/`, which a VM shares with its host.
The caller (exec_caller.py) writes a request, a JSON file. The engine runs the requested command,
writes its output into files with the same name and another suffix, and finally writes its exit
status.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from controller.folder_changes import FolderChanges
from lab.engines.mininet import children
from lab.errors import LabError

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
    """Describe a command to run in a host; the fields are the keys of a request's JSON file.

    `terminal` is the type of the terminal that the command gets, such as "xterm"; "" means none. If
    `host` is `PROMPT`, Mininet-WiFi's prompt is opened. The prompt then reads its commands from the
    terminal, or without a terminal from `argv`.
    """

    host: str
    argv: list[str]
    terminal: str = ""


class Executor:
    """Run the commands that are requested in a run folder, in a thread of the engine."""

    def __init__(
        self,
        folder: Path,
        inside: Callable[[str, list[str]], list[str]],
        record: Callable[[int], None],
        prompt: RunPrompt,
    ) -> None:
        """Start the thread, which looks for requests in the folder `folder`/exec.

        `inside` gets a host and a command, and returns the command line that runs the command
        inside the host. `record` is called with the number of every started process. `prompt` runs
        Mininet-WiFi's prompt.
        """
        self.folder, self._inside, self._record = folder / "exec", inside, record
        self._prompt = prompt
        self._running: dict[Path, children.Process] = {}
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

    def _process(self, request: Request, file: Path, out: int, err: int) -> children.Process:
        """Start the command of a request and return its process; `out`, `err` are descriptors."""
        if request.host == PROMPT:
            windows = file.with_suffix(".windows")

            def run() -> None:
                os.environ["TERM"] = request.terminal or "dumb"
                self._prompt(windows, None if request.terminal else request.argv)

            def prompt(stdin: int, stdout: int) -> children.Process:
                return children.Fork(run, stdin, stdout)

            if request.terminal:
                return children.Terminal(file, lambda slave: prompt(slave, slave))
            return children.without_input(lambda stdin: prompt(stdin, out))
        argv, doing = self._inside(request.host, request.argv), f"run a command in {request.host}"
        if request.terminal:
            argv = ["env", f"TERM={request.terminal}", *argv]
            return children.Terminal(
                file, lambda slave: children.start_command(argv, doing, slave, slave, slave)
            )
        return children.start_command(argv, doing, children.NO_INPUT, out, err)

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
