"""The traffic programs of all hosts, seen from the runner: ask one, or ask all at once."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network.network import Network
from lab.errors import LabError

PROGRAM = Path(__file__).parent / "programs" / "traffic.py"
ANSWER_TIMEOUT_S = 15


class Hosts:
    """One traffic program in each of these hosts; to start one costs a second under software emulation."""

    def __init__(self, network: Network, ledger: Ledger, names: Iterable[str]) -> None:
        self._programs: dict[str, subprocess.Popen[str]] = {}
        for host in names:
            argv = network.inside(host, [sys.executable, "-SE", str(PROGRAM)])
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
            program = shell.spawn(argv, f"start the traffic program of {host}", **pipes)
            ledger.record("process", pid=program.pid)
            self._programs[host] = program

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._programs)

    def ask(self, host: str, **request: Any) -> dict[str, Any]:
        """One host's answer."""
        return self.ask_all({host: request})[host]

    def ask_all(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send to all first, then collect, so that the hosts work at the same time."""
        for host, request in requests.items():
            pipe = self._programs[host].stdin
            assert pipe is not None
            try:
                pipe.write(json.dumps(request) + "\n")
                pipe.flush()
            except OSError as problem:
                raise LabError(
                    f"ask {host} to {request['do']}: its traffic program has ended ({problem})"
                ) from problem
        return {host: self._answer(host, str(request["do"])) for host, request in requests.items()}

    def _answer(self, host: str, verb: str) -> dict[str, Any]:
        pipe = self._programs[host].stdout
        assert pipe is not None
        readable, _, _ = select.select([pipe], [], [], ANSWER_TIMEOUT_S)
        line = pipe.readline() if readable else ""
        if not line:
            raise LabError(
                f"ask {host} to {verb}: no answer in {ANSWER_TIMEOUT_S} s. Is the machine overloaded?"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LabError(f"ask {host} to {verb}: {answer['error']}")
        return answer

    def stop(self) -> None:
        """Close every program's input; they end by themselves. One that ended before leaves words that cannot be sent."""
        for program in self._programs.values():
            for pipe in (program.stdin, program.stdout):
                if pipe:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
