"""Start the traffic program of each host (programs/traffic.py), and send it commands.

A traffic program sends and receives the data of all flows of its host.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.errors import LabError

PROJECT = Path(__file__).resolve().parents[4]
PROGRAM = "lab.engines.mininet.programs.traffic"  # one host's
STARTER = "lab.engines.mininet.programs.traffic_forks"
MESSAGE_BYTES = 32
ANSWER_TIMEOUT_S = 30


class Namespaces(Protocol):
    def pid(self, host: str) -> int:
        """Return the ID of a process in the network namespace of a host."""


class _Program:
    """The traffic program of one host, with the pipes to its standard input and output."""

    def __init__(self) -> None:
        self.own_input, write = os.pipe()
        read, self.own_output = os.pipe()
        self.stdin, self.stdout = os.fdopen(write, "w"), os.fdopen(read)
        self.pid = 0

    def close_own(self) -> None:
        """Close the ends of the pipes that only the traffic program uses."""
        os.close(self.own_input)
        os.close(self.own_output)


class TrafficProcesses:
    """Runs one traffic program per host, which handles all flows of the host.

    Starting Python takes a second in a virtual machine without KVM. So all programs are forks of
    one process (programs/traffic_forks.py), and there is no program per flow.
    """

    def __init__(
        self, network: Namespaces, ledger: Ledger, hosts: Iterable[str], module: str = STARTER
    ) -> None:
        """Request a traffic program for each host, and return before the programs have started.

        `module` is the Python module that forks the programs.
        """
        self._ledger = ledger
        self._programs = {host: _Program() for host in hosts}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._starter = shell.spawn(
                [sys.executable, "-SE", "-m", module, str(theirs.fileno())],
                "start the traffic programs",
                cwd=PROJECT,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        ledger.record("process", pid=self._starter.pid)
        for host, program in self._programs.items():
            streams = [program.own_input, program.own_output]
            socket.send_fds(self._control, [str(network.pid(host)).encode()], streams)
            program.close_own()
        self._control.settimeout(ANSWER_TIMEOUT_S)

    def _wait_started(self) -> None:
        """Wait until all programs have started, and record their processes for the clean-up.

        Raises `LabError` if a program does not start within `ANSWER_TIMEOUT_S`.
        """
        for host, program in self._programs.items():
            if not program.pid:
                try:
                    program.pid = int(self._control.recv(MESSAGE_BYTES) or b"0")
                except TimeoutError:
                    program.pid = 0
                if not program.pid:
                    raise LabError(f"start the traffic program of {host}: no answer")
                self._ledger.record("process", pid=program.pid)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(self._programs)

    def send(self, host: str, **request: Any) -> dict[str, Any]:
        return self.send_all({host: request})[host]

    def send_all(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send commands to several hosts, and return the answers by host.

        All commands are sent before the first answer is read, so the hosts work in parallel. Raises
        `LabError` if a program has ended, does not answer or reports an error.
        """
        self._wait_started()
        for host, request in requests.items():
            pipe = self._programs[host].stdin
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
        """End all programs by closing their standard input.

        Closing fails if a program has already ended and a command is still in the pipe's buffer.
        This error is ignored.
        """
        self._control.close()
        for program in self._programs.values():
            for pipe in (program.stdin, program.stdout):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        shell.wait_or_kill(self._starter)
