"""Run a command inside a host of a running emulation, also through the VM: `exec RUN HOST -- CMD`.

The run folder is the channel. The caller renames a request into `RUN/exec/`; the engine runs it and
writes the output and, last, the status beside it.
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
MACHINE = "machine"  # the host name of the machine (or VM) that runs the network


@dataclass(frozen=True)
class Request:
    """Hold a command for a host, as its JSON file does."""

    host: str
    argv: list[str]


class Executor:
    """Run the requests of a run folder, in a thread of the engine."""

    def __init__(
        self,
        folder: Path,
        inside: Callable[[str, list[str]], list[str]],
        record: Callable[[int], None],
    ) -> None:
        """Start the thread.

        `inside` makes the command line that enters a host, `record` is called with every process
        that is started.
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
        """Start the command of a request's file."""
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
        """Stop serving and kill the commands that are still running."""
        self._stop.set()
        self._thread.join(2)
        os.close(self._handle)
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a shell's children too
            process.wait()


def main(run: str, host: str, argv: list[str], runs: Path) -> int:
    """Run a command in a host of a run, print its output as it comes, and return its status."""
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
    """Copy output and errors until the status is there, and return it."""
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
