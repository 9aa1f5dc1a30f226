"""Run a command inside a host of a running emulation, also through the VM: `exec RUN HOST -- CMD`.

Caller and engine communicate by files in the folder `RUN/exec/`, which a VM shares with its host.
The caller writes a request, a JSON file. The engine runs its command, writes the output into files
with the same name and another suffix, and finally writes the exit status.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from controller.folder_changes import FolderChanges
from lab.engines.mininet.machine import shell
from lab.errors import LabError, RequestError, unknown

POLL_S = 0.1
SERVE_S = 0.5  # reading a folder shared with a VM is slow
START_TIMEOUT_S = 10
MACHINE = "machine"  # in place of a host's name: outside all hosts, in the machine or VM


@dataclass(frozen=True)
class Request:
    """Describe a command to run in a host; a request's JSON file has these fields."""

    host: str
    argv: list[str]


class Executor:
    """Run the commands that are requested in a run folder, in a thread of the engine."""

    def __init__(
        self,
        folder: Path,
        inside: Callable[[str, list[str]], list[str]],
        record: Callable[[int], None],
    ) -> None:
        """Start the thread.

        `inside` gets a host and a command, and returns the command line that runs it inside the
        host. `record` is called with the number of every started process.
        """
        self.folder, self._inside, self._record = folder / "exec", inside, record
        self._running: dict[Path, subprocess.Popen[bytes]] = {}
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
                if process.poll() is not None:
                    file.with_suffix(".status").write_text(str(process.returncode))
                    del self._running[file]

    def _start(self, file: Path) -> None:
        """Read a request from its JSON file, delete the file, and start the command."""
        request = Request(**json.loads(file.read_text()))
        file.unlink()
        with file.with_suffix(".out").open("wb") as out, file.with_suffix(".err").open("wb") as err:
            streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "text": False}
            try:
                process = shell.spawn(
                    self._inside(request.host, request.argv),
                    f"run a command in {request.host}",
                    start_new_session=True,
                    **streams,
                )
                self._running[file] = process
                self._record(process.pid)
            except (LabError, OSError) as problem:
                err.write(f"{problem}\n".encode())
                file.with_suffix(".status").write_text("127")

    def close(self) -> None:
        """End the thread, and kill the commands that are still running."""
        self._stop.set()
        self._thread.join(2)
        os.close(self._handle)
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a shell's children too
            process.wait()


def main(run: str, host: str, argv: list[str], runs: Path) -> int:
    """Run a command in a host of a running emulation, and return its exit status.

    `run` is the name of a run in the folder `runs`, or the path of a run folder. The output of the
    command is printed while it runs.
    """
    folder = runs / run if (runs / run).is_dir() else Path(run)
    served = folder / "exec"
    if not served.is_dir():
        raise RequestError(
            f"exec in {run}: no emulation serves this run. Only a running one does; see {runs}"
        )
    hosts = [*json.loads((folder / "pox" / "topology.json").read_text())["hosts"], MACHINE]
    if host not in hosts:
        raise RequestError(f"exec in {run}: host {unknown(host, hosts)}")
    file = served / f"{time.time_ns()}.json"
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps(asdict(Request(host, argv))))
    draft.rename(file)
    return _follow(file)


def _follow(file: Path) -> int:
    """Copy the command's output to this process until its exit status is written; return it.

    `file` is the request.
    """
    positions = {".out": 0, ".err": 0}
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        status = file.with_suffix(".status")
        done = status.exists() and status.read_text().strip()
        for suffix, stream in ((".out", sys.stdout), (".err", sys.stderr)):
            path = file.with_suffix(suffix)
            if path.exists():
                data = path.read_bytes()[positions[suffix] :]
                positions[suffix] += len(data)
                stream.buffer.write(data)
                stream.flush()
        if done:
            return int(done)
        if not file.with_suffix(".out").exists() and time.monotonic() > deadline:
            file.unlink(missing_ok=True)
            raise LabError(
                f"exec: the run did not start the command in {START_TIMEOUT_S} s. "
                "Is it still running?"
            )
        time.sleep(POLL_S)
