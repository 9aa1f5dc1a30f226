"""Run the host agent: one process that acts on all hosts with Multipath TCP for the controller.

1) Each host reports its MPTCP subflows and the loss on the path to each of its addresses: every two
   seconds, and, once a command has come, every change four times per control interval.
2) A command is carried out only if it comes from the registered controller with this run's key, and
   only once.
3) Backup: the host with several addresses changes its endpoint, and the kernel notifies the other
   end (MP_PRIO). Where a path manager in user space opens the subflows, only the subflow changes.
4) An expected rate: both hosts set the pacing rate of the subflow's socket, or, if the scenario
   limits windows, write the rate into the map that its congestion control reads. It acts on the
   sender.
5) What was done is reported at once, as the kernel shows it, and written to standard output as a
   command.

Its configuration is one JSON file; it ends when its standard input ends.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.errors import MessageRefused
from controller.host_messages import HostCommand, HostReport, encode, read_command
from lab.engines.mininet.kernel import netlink, shaping
from lab.engines.mininet.kernel.expected_rates import ExpectedRates
from lab.engines.mininet.kernel.pacing import Endpoint, Pacing
from lab.engines.mininet.machine import shell
from lab.engines.mininet.programs.controlled_host import ControlledHost, HostSettings
from lab.engines.mininet.programs.userspace_path_manager import UserspacePathManager
from lab.errors import LabError

FULL_REPORT_S = 2.0  # between two reports of a host without a change
SOON_S = 0.1  # from a command to the report of its effect
DATAGRAM_BYTES = 65536


@dataclass(frozen=True)
class Settings:
    """Hold the configuration; after a command, changes are reported every `period_s`.

    `pins` is the folder of the pacing program. `expected` is the path of the pinned map of expected
    rates if the scenario limits windows to them; None if it limits pacing rates.
    """

    controller: Endpoint
    key: str
    period_s: float
    pins: Path
    hosts: Mapping[str, HostSettings]
    expected: Path | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        """Return the settings in the configuration file."""
        hosts = {name: HostSettings(**each) for name, each in data["hosts"].items()}
        address, port = data["controller"]
        pins, expected = Path(data["pins"]), data["expected"] and Path(data["expected"])
        return cls((address, port), data["key"], data["period_s"], pins, hosts, expected)


class HostAgent:
    """Report the state of all hosts to the controller, and carry out its commands."""

    def __init__(self, settings: Settings) -> None:
        self._controller, self._key = settings.controller, settings.key
        self.period_s, self._period_after_command_s = FULL_REPORT_S, settings.period_s
        # by host: what was reported last, and when to report without a change
        self._reported: dict[str, tuple[Any, float]] = {}
        by_window = settings.expected
        limits = Pacing(settings.pins) if by_window is None else ExpectedRates(by_window)
        self._hosts = {
            name: ControlledHost(name, each, limits) for name, each in settings.hosts.items()
        }
        self._scheduler = netlink.Scheduler()
        devices = {
            device
            for each in settings.hosts.values()
            for path in each.loss.values()
            for device in path
        }
        self._netem = {
            device: (self._scheduler.index(device), shaping.NETEM) for device in sorted(devices)
        }
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))

    @property
    def path_managers(self) -> list[UserspacePathManager]:
        """Return the path managers in user space of all hosts that have one."""
        managers = (host.userspace_manager for host in self._hosts.values())
        return [each for each in managers if each is not None]

    def report(self) -> None:
        """Send a report on each host whose state has changed or whose last report is 2 s old."""
        now = time.monotonic()
        found = self._scheduler.losses(list(self._netem.values()))
        losses = {device: found.get(netem, 0.0) for device, netem in self._netem.items()}
        seq = time.time_ns() // 1_000_000
        for name, host in self._hosts.items():
            report: HostReport = host.report(seq, losses)
            state = report.subflows, report.loss
            before, due = self._reported.get(name, (None, now))
            if state != before or now >= due:
                self._reported[name] = state, now + FULL_REPORT_S
                self.socket.sendto(encode(report, self._key), self._controller)

    def read(self, datagram: bytes, sender: Endpoint) -> HostCommand:
        """Decode a command from a datagram of `sender`.

        Raises `MessageRefused` if the sender, the key or the host is wrong.
        """
        if sender != self._controller:
            raise MessageRefused(
                f"obey {sender[0]}:{sender[1]}: it is not the registered controller"
            )
        command = read_command(datagram, self._key)
        if command.host not in self._hosts:
            known = ", ".join(sorted(self._hosts))
            raise MessageRefused(f"obey a command to '{command.host}': choose from {known}")
        return command

    def obey(self, command: HostCommand) -> None:
        """Carry out a command, and report changes more often from now on."""
        self.period_s = self._period_after_command_s
        self._hosts[command.host].obey(command)

    def obey_waiting(self) -> None:
        """Carry out the received commands; for each connection only the latest one.

        A command contains everything that is still to be done on its connection, so it replaces
        earlier ones. If this program or the kernel refuses a command, log it and go on.
        """
        commands: dict[tuple[str, str], HostCommand] = {}
        while select.select([self.socket], [], [], 0)[0]:
            try:
                command = self.read(*self.socket.recvfrom(DATAGRAM_BYTES))
            except (MessageRefused, OSError) as problem:
                log(problem)
            else:
                key = command.host, command.token
                commands[key] = max(command, commands.get(key, command), key=_seq)
        for command in sorted(commands.values(), key=_seq):
            try:
                self.obey(command)
            except (MessageRefused, LabError, OSError) as problem:
                log(problem)


def serve(agent: HostAgent) -> None:
    """Send reports and carry out commands until standard input ends.

    The first line on standard output announces the start.
    """
    print(json.dumps({"ready": True}), flush=True)
    due = time.monotonic()
    while True:
        sources = [sys.stdin, agent.socket, *agent.path_managers]
        readable, _, _ = select.select(sources, [], [], max(0.0, due - time.monotonic()))
        if sys.stdin in readable:
            return
        if agent.socket in readable:
            agent.obey_waiting()
            due = min(due, time.monotonic() + SOON_S)
        for manager in (each for each in agent.path_managers if each in readable):
            for problem in manager.act():
                log(problem)
        if time.monotonic() >= due:
            agent.report()
            due = time.monotonic() + agent.period_s


def log(problem: Exception | str) -> None:
    """Write a problem to standard error, which is the agent's log."""
    print(problem, file=sys.stderr, flush=True)


def _seq(command: HostCommand) -> int:
    return command.seq


def _write_command(at: float, argv: Sequence[str], stdin: str | None) -> None:
    """Write a command that was run to standard output, as one line of JSON for the runner."""
    print(json.dumps({"at": at, "argv": list(argv), "stdin": stdin}), flush=True)


if __name__ == "__main__":
    shell.add_journal(_write_command)
    configuration = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    serve(HostAgent(Settings.from_json(configuration)))
