"""Start a traffic program in each host that has flows, and send commands to these programs."""

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

PROJECT = Path(__file__).resolve().parents[3]
PROGRAM = "lab.engines.mininet.programs.traffic"
ANSWER_TIMEOUT_S = 15


class TrafficProcesses:
    """Hold one traffic program per host, which runs all flows of the host.

    There is no program per flow, because starting one takes a second in a VM without KVM.
    """

    def __init__(self, network: Network, ledger: Ledger, hosts: Iterable[str]) -> None:
        self._programs: dict[str, subprocess.Popen[str]] = {}
        for host in hosts:
            argv = network.inside(host, [sys.executable, "-SE", "-m", PROGRAM])
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
            doing = f"start the traffic program of {host}"
            program = shell.spawn(argv, doing, cwd=PROJECT, **pipes)
            ledger.record("process", pid=program.pid)
            self._programs[host] = program

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the hosts that have a traffic program."""
        return tuple(self._programs)

    def send(self, host: str, **request: Any) -> dict[str, Any]:
        """Send a command to the traffic program of one host, and return its answer."""
        return self.send_all({host: request})[host]

    def send_all(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send a command to each of these hosts, and return the answers by host.

        All commands are sent before the first answer is read, so the hosts work in parallel. Raises
        `LabError` if a program has ended, does not answer or reports an error.
        """
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

    def _answer(self, host: str, command: str) -> dict[str, Any]:
        pipe = self._programs[host].stdout
        assert pipe is not None
        readable, _, _ = select.select([pipe], [], [], ANSWER_TIMEOUT_S)
        line = pipe.readline() if readable else ""
        if not line:
            raise LabError(
                f"ask {host} to {command}: no answer in {ANSWER_TIMEOUT_S} s. "
                "Is the machine overloaded?"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LabError(f"ask {host} to {command}: {answer['error']}")
        return answer

    def stop(self) -> None:
        """End every program by closing its standard input.

        Closing fails if a program has ended already and a command is left in the pipe's buffer;
        this error is ignored.
        """
        for program in self._programs.values():
            for pipe in (program.stdin, program.stdout):
                if pipe:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
