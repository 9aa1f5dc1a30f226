"""`exec RUN HOST -- CMD`: a command inside a host of a running emulation, also through the VM.

The run folder is the channel: the caller renames a request into `RUN/exec/`, the engine runs it and writes the output
and, last, the status beside it.
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
from pathlib import Path

from controller.folder_changes import FolderChanges
from lab.engines.mininet.machine import shell
from lab.errors import LabError, RequestError, unknown

POLL_S = 0.1
SERVE_S = 0.5  # a look into a folder shared with a VM is dear
TAKEN_TIMEOUT_S = 10
MACHINE = "machine"  # the host name for the machine (or VM) that carries the network


class Executor:
    """The engine's side: a thread that runs what is asked for."""

    def __init__(
        self,
        folder: Path,
        inside: Callable[[str, list[str]], list[str]],
        record: Callable[[int], None],
    ) -> None:
        """`inside` makes the command line that enters a host, `record` is told every process that was started."""
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
            for request in (
                sorted(self.folder.glob("*.json")) if self._changes.may_have_changed() else ()
            ):
                self._take(request)
            for request, process in list(self._running.items()):
                if process.poll() is not None:
                    request.with_suffix(".status").write_text(str(process.returncode))
                    del self._running[request]

    def _take(self, request: Path) -> None:
        asked = json.loads(request.read_text())
        request.unlink()
        with (
            request.with_suffix(".out").open("wb") as out,
            request.with_suffix(".err").open("wb") as err,
        ):
            try:
                argv = self._inside(asked["host"], asked["argv"])
                streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "text": False}
                process = shell.spawn(
                    argv, f"run a command in {asked['host']}", start_new_session=True, **streams
                )
                self._running[request] = process
                self._record(process.pid)
            except (LabError, OSError) as problem:
                err.write(f"{problem}\n".encode())
                request.with_suffix(".status").write_text("127")

    def close(self) -> None:
        """Stop serving and end what still runs."""
        self._stop.set()
        self._thread.join(2)
        os.close(self._handle)
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a shell's children too
            process.wait()


def main(run: str, host: str, argv: list[str], runs: Path) -> int:
    """Ask a running emulation, print what the command prints as it comes, and return its status."""
    folder = runs / run if (runs / run).is_dir() else Path(run)
    served = folder / "exec"
    if not served.is_dir():
        raise RequestError(
            f"exec in {run}: no emulation serves this run. Only a running one does; see {runs}"
        )
    hosts = [*json.loads((folder / "pox" / "topology.json").read_text())["hosts"], MACHINE]
    if host not in hosts:
        raise RequestError(f"exec in {run}: host {unknown(host, hosts)}")
    request = served / f"{time.time_ns()}.json"
    draft = request.with_suffix(".part")
    draft.write_text(json.dumps({"host": host, "argv": argv}))
    draft.rename(request)
    return _follow(request)


def _follow(request: Path) -> int:
    """Copy output and errors until the status is there."""
    positions = {".out": 0, ".err": 0}
    deadline = time.monotonic() + TAKEN_TIMEOUT_S
    while True:
        status = request.with_suffix(".status")
        done = status.exists() and status.read_text().strip()
        for suffix, stream in ((".out", sys.stdout), (".err", sys.stderr)):
            path = request.with_suffix(suffix)
            if path.exists():
                data = path.read_bytes()[positions[suffix] :]
                positions[suffix] += len(data)
                stream.buffer.write(data)
                stream.flush()
        if done:
            return int(done)
        if not request.with_suffix(".out").exists() and time.monotonic() > deadline:
            request.unlink(missing_ok=True)
            raise LabError(
                f"exec: the run did not take the command in {TAKEN_TIMEOUT_S} s. Is it still running?"
            )
        time.sleep(POLL_S)
