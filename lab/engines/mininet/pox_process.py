"""The controller's process: POX with our extension. The runner starts it, tells it about flips, and never decides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError
from lab.run.reading import Follower

PROJECT = Path(__file__).resolve().parents[3]
READY_TIMEOUT_S = 90
PATIENCE_S = 180  # the network is built after POX has started
SETTLED_WITHIN_S = 10.0
OF_SUBFLOWS = {
    "route",
    "expect",
    "backup",
    "normal",
}  # decisions that somebody has yet to carry out
AGENTS_PORT, HOSTS_PORT = 6699, 6698


@dataclass
class Pox:
    """POX as a child process; its folder is `RUN/pox`."""

    folder: Path
    upstream: Path
    ledger: Ledger
    strategy: str
    params: dict[str, Any]
    key_file: Path
    _process: subprocess.Popen[bytes] | None = None
    _sent: int = 0
    restarts: int = field(default=0)

    def start(self, description: dict[str, Any]) -> None:
        """Write the topology and start POX; it is ready when the switches have connected (`wait_ready`)."""
        (self.folder / "inbox").mkdir(parents=True, exist_ok=True)
        (self.folder / "topology.json").write_text(json.dumps(description, indent=1))
        self._launch()

    def _launch(self) -> None:
        argv = [
            sys.executable,
            "pox.py",
            "--unthreaded-sh",  # hand-overs between threads are most of POX's cost under software emulation
            "openflow.of_01",
            "--port=6633",
            "--address=127.0.0.1",
            "pox_ext",
            f"--strategy={self.strategy}",
            f"--params={json.dumps(self.params)}",
            f"--topology={self.folder / 'topology.json'}",
            f"--run={self.folder}",
            f"--agents_port={AGENTS_PORT}",
            f"--hosts_port={HOSTS_PORT}",
            f"--key_file={self.key_file}",
            f"--patience_s={PATIENCE_S}",
        ]
        environment = os.environ | {
            "PYTHONPATH": f"{PROJECT}:{PROJECT / 'controller'}",
            "PYTHONUNBUFFERED": "1",
        }
        with (self.folder / "log.txt").open("ab") as log:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "text": False}
            self._process = shell.spawn(
                argv,
                "start POX",
                cwd=self.upstream,
                env=environment,
                start_new_session=True,
                **streams,
            )
        self.ledger.record("process", pid=self._process.pid)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def wait_ready(self) -> None:
        """Until POX has written `ready`: every switch connected and its tables in place."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        decisions = self.folder / "decisions.jsonl"
        while not (decisions.exists() and '"kind": "ready"' in decisions.read_text()):
            if not self.alive():
                raise LabError(
                    f"start POX: it ended with status {self._status()}: {self._last_words()}"
                )
            if time.monotonic() > deadline:
                raise LabError(
                    f"start POX: the switches did not connect in {READY_TIMEOUT_S} s: {self._last_words()}"
                )
            time.sleep(0.1)

    def wait_settled(self) -> None:
        """Until a step of control has nothing more to ask of the subflows that are there; who never settles is not waited for long.

        Traffic that began earlier would take ways, and be held to rates, that nobody has chosen for it.
        """
        said, deadline = (
            Follower(self.folder / "decisions.jsonl"),
            time.monotonic() + SETTLED_WITHIN_S,
        )
        said.new()  # steps in which not all subflows were there
        while time.monotonic() < deadline and not _settled(said.new()):
            time.sleep(0.2)

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def revive(self) -> bool:
        """Start POX again if it has died; True if it had. Forwarding went on meanwhile; POX rebuilds its tables itself."""
        if self.alive():
            return False
        self.restarts += 1
        self._launch()
        return True

    def send(self, kind: str, value: dict[str, Any]) -> None:
        """Tell POX about a flip: one file, renamed into its inbox."""
        if kind == "params":
            self.params |= value
        elif kind == "strategy":
            self.strategy, self.params = value["name"], dict(value["params"])
        self._sent += 1
        target = self.folder / "inbox" / f"{self._sent:06d}.json"
        draft = target.with_suffix(".part")
        draft.write_text(json.dumps({"seq": self._sent, "kind": kind, "value": value}))
        draft.rename(target)

    def stop(self) -> None:
        """End POX; a stopped one is woken to hear it."""
        if self._process is not None and self.alive():
            self._process.terminate()
            try:
                self._process.wait(3)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _status(self) -> int | None:
        return self._process.returncode if self._process else None

    def _last_words(self) -> str:
        return " / ".join(
            (self.folder / "log.txt").read_text(errors="replace").strip().splitlines()[-3:]
        )


def _settled(lines: Iterable[Mapping[str, Any]]) -> bool:
    """Whether among these lines there is a step of control, and of subflows neither an order nor a change."""
    found = list(lines)
    moved = any(line["kind"] == "subflow" or line.get("action") in OF_SUBFLOWS for line in found)
    return not moved and any(line["kind"] == "observation" for line in found)
