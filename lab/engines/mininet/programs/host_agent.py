"""Run the host agent: one process that reports and changes the subflows of all hosts for POX.

1) For each host, the agent reports the MPTCP subflows, and the loss on the path to each address,
   every two seconds. After the first command it also polls for changes more often
   (`Settings.period_s`), and reports each change.
2) A command is carried out only if it comes from the registered controller with this run's key, and
   only once.
3) Backup: the user's host sets or clears the backup flag of the MPTCP endpoint that has the
   subflow's address. This changes all subflows from that address, and the kernel notifies the other
   end (MP_PRIO). With a path manager in user space, only the one subflow is changed.
4) Expected rate, the rate to which a subflow is limited: both hosts set the pacing rate of the
   subflow's socket. If the scenario limits windows instead, both write the rate into the map that
   the congestion control of the subflow reads. Only the setting at the sender has an effect.
5) The effect of a command, as the kernel shows it, is reported 0.1 s later. The equivalent shell
   commands are written to standard output.

Its configuration is one JSON file. It ends when its standard input ends.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from controller.errors import MessageRefused
from controller.host_messages import (
    NO_TOKEN,
    HostCommand,
    HostReport,
    SubflowChange,
    SubflowState,
    encode,
    read_command,
)
from controller.units import bps_from_mbps, mbps_from_bps
from lab.engines.mininet.kernel import netlink, shaping, tcp_sockets
from lab.engines.mininet.kernel.path_manager import PathManager
from lab.engines.mininet.kernel.subflow_rates import Endpoint, ExpectedRates, Pacing
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.machine import shell
from lab.engines.mininet.programs.userspace_path_manager import UserspacePathManager
from lab.errors import LabError


@dataclass(frozen=True)
class HostSettings:
    """The configuration of one host; `pid` is a process in the host's namespaces.

    `endpoints` is True for a multipath user: the agent may change the backup flags of its
    addresses. `loss` maps each address of the user to the interfaces that send data along the path
    of this address; their random loss is reported. `paced` are the `tc` lines that prepare the
    host's interfaces for pacing; empty if windows are limited instead. `opens` lists the addresses
    from which a path manager in user space opens subflows; None if the kernel opens them.
    """

    pid: int
    endpoints: bool
    loss: Mapping[str, list[str]]
    paced: list[str] = field(default_factory=list)
    opens: list[str] | None = None


class ControlledHost:
    """Report the MPTCP subflows of one host, and change their backup flags and expected rates."""

    def __init__(self, name: str, settings: HostSettings, limits: Pacing | ExpectedRates) -> None:
        """Open netlink sockets inside the host `name`.

        `limits` applies the expected rates of subflows, as pacing rates or as limits of windows.
        """
        self.name, self._settings, self._limits = name, settings, limits
        self._diagnosis = netlink.inside(settings.pid, tcp_sockets.Diagnosis)
        opens = settings.opens
        self._manager = (
            netlink.inside(settings.pid, PathManager)
            if settings.endpoints or opens is not None
            else None
        )
        self.userspace_manager = None if opens is None else self._userspace_manager(opens)
        self._backup: dict[str, bool] = {}
        self._to_prepare = settings.paced
        self._last_seq = -1

    def report(self, seq: int, losses: Mapping[str, float]) -> HostReport:
        """Report the subflows of the host, and the loss (0 to 1) on the path of each address.

        `seq` is the number of the report. `losses` maps each interface to its configured random
        loss. A TCP connection without MPTCP is reported as one subflow.
        """
        subflows = sorted(self._diagnosis.sockets(), key=_order_of_joining)
        loss = {
            address: _combined(losses.get(device, 0.0) for device in devices)
            for address, devices in self._settings.loss.items()
        }
        return HostReport(seq, self.name, tuple(self._state(each) for each in subflows), loss)

    def obey(self, command: HostCommand) -> None:
        """Carry out a command of the controller; changes of subflows that have ended are ignored.

        Raises `MessageRefused` unless `command.seq` is larger than in the last command. Raises
        `LabError` if the kernel refuses some changes, after the other changes have been made.
        """
        if command.seq <= self._last_seq:
            raise MessageRefused(
                f"obey command {command.seq} to {self.name}: "
                f"command {self._last_seq} has come before"
            )
        self._last_seq = command.seq
        own = {(each.source, each.destination): each for each in self._diagnosis.sockets()}
        refused = []
        for change in command.subflows:
            ends = (_endpoint(change.source), _endpoint(change.destination))
            subflow = own.get(ends) or own.get(ends[::-1])
            try:
                if subflow is not None:  # otherwise it has ended meanwhile
                    self._change(subflow, change)
            except LabError as problem:
                refused.append(f"{change.source} to {change.destination}: {problem}")
        if refused:
            raise LabError(f"obey command {command.seq} to {self.name}: {'; '.join(refused)}")

    def _change(self, subflow: TcpSocket, change: SubflowChange) -> None:
        if change.backup is not None and self._manager is not None and self._settings.endpoints:
            if self.userspace_manager is None:
                self._set_backup(self._manager, subflow.source[0], change.backup)
            else:
                self._set_subflow_backup(self._manager, subflow, change.backup)
        if change.expected_mbps is not None:
            rate_bps = bps_from_mbps(change.expected_mbps) or None
            if not self._limits.is_set(subflow, rate_bps):
                self._prepare_pacing()
                ends = subflow.source, subflow.destination
                self._limits.set_rate(self._settings.pid, *ends, rate_bps)

    def _prepare_pacing(self) -> None:
        """Add an fq qdisc to the host's interfaces in the first call; later calls do nothing."""
        lines, self._to_prepare = self._to_prepare, []
        if lines:
            argv = [*self._inside(), "tc", "-batch", "-"]
            shell.run(argv, f"prepare {self.name} for pacing", stdin=shaping.batch(lines))

    def _set_backup(self, manager: PathManager, address: str, backup: bool) -> None:
        """Set or clear the backup flag of all subflows from a local address.

        The controller repeats a command that had no effect at the other end. The kernel notifies
        the other end only of a change, so a repeated command sets the opposite first.
        """
        repeated = self._backup.get(address, False) == backup
        for each in (not backup, backup) if repeated else (backup,):
            word = "backup" if each else "nobackup"
            shell.journal_command(
                [*self._inside(), "ip", "mptcp", "endpoint", "change", address, word]
            )
            manager.set_backup(address, each)
        self._backup[address] = backup

    def _set_subflow_backup(self, manager: PathManager, subflow: TcpSocket, backup: bool) -> None:
        """Set or clear the backup flag of one subflow, on a host with a path manager in user space.

        The kernel notifies the other end at every call.
        """
        assert subflow.token is not None
        (address, _), (remote, port) = subflow.source, subflow.destination
        argv = ["pm_nl_ctl", "set", address, "token", str(subflow.token)]
        argv += ["flags", "backup" if backup else "nobackup", "rip", remote, "rport", str(port)]
        shell.journal_command([*self._inside(), *argv])
        manager.set_subflow_backup(subflow.token, address, subflow.destination, backup)

    def _userspace_manager(self, addresses: list[str]) -> UserspacePathManager:
        assert self._manager is not None
        manager, pid = self._manager, self._settings.pid
        return netlink.inside(pid, lambda: UserspacePathManager(pid, manager, addresses))

    def _state(self, subflow: TcpSocket) -> SubflowState:
        rate_bps = self._limits.rate_bps(subflow)
        ends = subflow.source, subflow.destination
        local, remote = (f"{address}:{port}" for address, port in ends)
        return SubflowState(
            NO_TOKEN if subflow.token is None else f"{subflow.token:08x}",
            local,
            remote,
            subflow.backup,
            None if rate_bps is None else mbps_from_bps(rate_bps),
            subflow.retransmitted,
        )

    def _inside(self) -> list[str]:
        return ["mnexec", "-a", str(self._settings.pid)]


def _order_of_joining(subflow: TcpSocket) -> tuple[int, int, Endpoint, Endpoint]:
    """Return a sort key: the order in which the subflows of a connection joined.

    Only a server knows this order, from the address IDs. A restarted controller numbers the
    subflows by it.
    """
    return subflow.token or 0, subflow.remote_id, subflow.source, subflow.destination


def _combined(losses: Iterable[float]) -> float:
    """Return the loss of a path (0 to 1), given the loss of each interface on the path."""
    return 1.0 - prod(1.0 - each for each in losses)


def _endpoint(text: str) -> Endpoint:
    address, _, port = text.rpartition(":")
    return address, int(port) if port.isdecimal() else 0


FULL_REPORT_S = 2.0  # between two reports of a host without a change
SOON_S = 0.1  # from a command to the report of its effect
DATAGRAM_BYTES = 65536


@dataclass(frozen=True)
class Settings:
    """The configuration of the host agent.

    `controller` is POX's UDP address. `key` authenticates messages. `period_s` is the time between
    two polls after the first command. `pins` is the folder where the pacing program is pinned.
    `expected` is the path of the pinned map of expected rates if the scenario limits windows; None
    if it limits pacing rates.
    """

    controller: Endpoint
    key: str
    period_s: float
    pins: Path
    hosts: Mapping[str, HostSettings]
    expected: Path | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        hosts = {name: HostSettings(**each) for name, each in data["hosts"].items()}
        address, port = data["controller"]
        pins, expected = Path(data["pins"]), data["expected"] and Path(data["expected"])
        return cls((address, port), data["key"], data["period_s"], pins, hosts, expected)

    def to_json(self) -> dict[str, Any]:
        expected = self.expected and str(self.expected)
        return asdict(self) | {"pins": str(self.pins), "expected": expected}


class HostAgent:
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
        """Decode the command in a datagram that has come from the address `sender`.

        Raises `MessageRefused` if the sender is not the controller, the key is wrong, or the host
        is unknown.
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
        """Carry out a command; from now on, poll the hosts at the period of the settings.

        Raises the errors of `ControlledHost.obey`.
        """
        self.period_s = self._period_after_command_s
        self._hosts[command.host].obey(command)

    def obey_waiting(self) -> None:
        """Carry out the latest command that has been received for each connection.

        A command contains everything that is still to be done on its connection, so it replaces
        earlier ones. Refused commands are logged.
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

    The line {"ready": true}, printed first, tells the runner that the agent works.
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
    print(problem, file=sys.stderr, flush=True)


def _seq(command: HostCommand) -> int:
    return command.seq


def _write_command(at: float, argv: Sequence[str], stdin: str | None) -> None:
    """Print a command and its time `at` [s since 1970] as one line of JSON, for the runner."""
    print(json.dumps({"at": at, "argv": list(argv), "stdin": stdin}), flush=True)


if __name__ == "__main__":
    shell.add_journal(_write_command)
    configuration = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    serve(HostAgent(Settings.from_json(configuration)))
