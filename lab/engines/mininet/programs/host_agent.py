"""The host agent: one program that reports and changes the subflows of all hosts, for POX.

- Reports: it reports the MPTCP subflows of each host every two seconds, with the loss on the way to
  each address. After the first command it also reports each change, which it looks for more often
  (`Settings.period_s`).
- Commands: it accepts a command only from the registered controller and with the secret key of this
  run. It carries out each command once, and reports the effect 0.1 s later, as the kernel shows it.
  It writes equivalent shell commands to standard output.
- Backup flag: the user's host changes the flag of the MPTCP endpoint with the subflow's address. So
  all subflows from this address change, and the kernel notifies the other end (MP_PRIO). With a
  path manager in user space, only the one subflow changes.
- Expected rate, to which a subflow is limited: the hosts at both ends set the pacing rate of the
  subflow's socket, or write the rate into the map that the congestion control reads. The scenario
  chooses between the two. Only the sender's setting has an effect.

Its only argument is a JSON file with its configuration. It ends when its standard input ends.
"""

from __future__ import annotations

import contextlib
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
from lab.engines.mininet.programs.userspace_path_manager import Join, UserspacePathManager
from lab.errors import LabError


@dataclass(frozen=True)
class HostSettings:
    """The host agent's configuration for one host.

    - `pid`: a process in the namespaces of the host
    - `endpoints`: True for a multipath user; the agent may change the backup flags of its addresses
    - `loss`: maps each address of a user to the interfaces that send data on the path to this
      address; the agent reports the random loss that is configured at these interfaces
    - `paced`: `tc` lines that prepare the interfaces of the host for pacing; empty if subflows are
      limited by the window
    - `opens`: the subflows that a path manager in user space opens; None if the kernel opens them
    """

    pid: int
    endpoints: bool
    loss: Mapping[str, list[str]]
    paced: list[str] = field(default_factory=list)
    opens: list[Join] | None = None


class ControlledHost:
    """Report the MPTCP subflows of one host, and change their backup flags and expected rates."""

    def __init__(self, name: str, settings: HostSettings, limits: Pacing | ExpectedRates) -> None:
        """Open netlink sockets inside the host `name`.

        `limits` is the method that limits subflows to their expected rates: by pacing or by the
        window.
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
        """Return a report on the host's subflows, and on the loss of the path of each address.

        `seq` is the sequence number of the report. `losses` maps each interface to its configured
        random loss, from 0 to 1. A plain TCP connection is reported as one subflow.
        """
        subflows = sorted(self._diagnosis.sockets(), key=_order_of_joining)
        loss = {
            address: _combined(losses.get(device, 0.0) for device in devices)
            for address, devices in self._settings.loss.items()
        }
        return HostReport(seq, self.name, tuple(self._state(each) for each in subflows), loss)

    def obey(self, command: HostCommand) -> None:
        """Carry out a command of the controller. Changes of subflows that have ended are ignored.

        Raises `MessageRefused` if the last command had the same or a larger `seq`. Raises
        `LabError` if the kernel refuses some changes; the other changes are made.
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
        """Add fq qdiscs to the interfaces of the host in the first call. Later calls do nothing."""
        lines, self._to_prepare = self._to_prepare, []
        if lines:
            argv = [*self._inside(), "tc", "-batch", "-"]
            shell.run(argv, f"prepare {self.name} for pacing", stdin=shaping.batch(lines))

    def _set_backup(self, manager: PathManager, address: str, backup: bool) -> None:
        """Set or clear the backup flag of all subflows from a local address.

        The controller repeats a command that had no effect at the other end. But the kernel
        notifies the other end only if the flag changes. So a repeated command first sets the
        opposite value.
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
        """Set or clear the backup flag of one subflow.

        This is for hosts whose path manager runs in user space. The kernel notifies the other end
        at every call.
        """
        assert subflow.token is not None
        (address, _), (remote, port) = subflow.source, subflow.destination
        argv = ["pm_nl_ctl", "set", address, "token", str(subflow.token)]
        argv += ["flags", "backup" if backup else "nobackup", "rip", remote, "rport", str(port)]
        shell.journal_command([*self._inside(), *argv])
        manager.set_subflow_backup(subflow.token, address, subflow.destination, backup)

    def _userspace_manager(self, joins: list[Join]) -> UserspacePathManager:
        assert self._manager is not None
        manager, pid = self._manager, self._settings.pid
        return netlink.inside(pid, lambda: UserspacePathManager(pid, manager, joins))

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
    """Return a sort key that puts the subflows of a connection into the order in which they joined.

    Only a server knows this order, from the MPTCP address IDs. A controller that was restarted
    numbers the subflows in this order.
    """
    return subflow.token or 0, subflow.remote_id, subflow.source, subflow.destination


def _combined(losses: Iterable[float]) -> float:
    """Return the loss of a path, 0 to 1, from the losses of the interfaces on the path."""
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

    - `controller`: UDP address and port of POX
    - `key`: secret key of the run, which authenticates messages
    - `period_s`: time between two checks of the subflows, after the first command
    - `pins`: folder where the pacing program is pinned
    - `expected`: path of the pinned map with expected rates; None if subflows are limited by pacing
    - `adopted`: True in a network that another script has built: netem has any handle there, and
      shapes hosts' own interfaces too
    """

    controller: Endpoint
    key: str
    period_s: float
    pins: Path
    hosts: Mapping[str, HostSettings]
    expected: Path | None = None
    adopted: bool = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        hosts = {}
        for name, each in data["hosts"].items():
            opens = each["opens"] and [Join(**join) for join in each["opens"]]
            hosts[name] = HostSettings(**{**each, "opens": opens})
        address, port = data["controller"]
        pins, expected = Path(data["pins"]), data["expected"] and Path(data["expected"])
        key, period_s, adopted = (data[each] for each in ("key", "period_s", "adopted"))
        return cls((address, port), key, period_s, pins, hosts, expected, adopted)

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
        self._netem: dict[str, netlink.Handle] = {}
        self._namespaces: list[tuple[netlink.Scheduler, dict[int, str]]] = []
        if settings.adopted:
            pids = [each.pid for each in settings.hosts.values()]
            inside = [netlink.inside(pid, netlink.Scheduler) for pid in pids]
            self._namespaces = [
                (each, _present(each, devices)) for each in (self._scheduler, *inside)
            ]
        else:
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
        """Report each host whose state has changed, or whose last report is two seconds old."""
        now = time.monotonic()
        found = self._scheduler.losses(list(self._netem.values()))
        losses = {device: found.get(netem, 0.0) for device, netem in self._netem.items()}
        for scheduler, names in self._namespaces:
            losses |= scheduler.losses_of(names)
        seq = time.monotonic_ns() // 1_000_000  # a restarted agent goes on from here
        for name, host in self._hosts.items():
            report: HostReport = host.report(seq, losses)
            state = report.subflows, report.loss
            before, due = self._reported.get(name, (None, now))
            if state != before or now >= due:
                self._reported[name] = state, now + FULL_REPORT_S
                self.socket.sendto(encode(report, self._key), self._controller)

    def read(self, datagram: bytes, sender: Endpoint) -> HostCommand:
        """Decode the command in a datagram. `sender` is the address that has sent the datagram.

        Raises `MessageRefused` if the sender is not the controller, the key is wrong, or the host
        is not known.
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
        """Carry out a command. From now on, check the subflows every `Settings.period_s`.

        Raises the errors of `ControlledHost.obey`.
        """
        self.period_s = self._period_after_command_s
        self._hosts[command.host].obey(command)

    def obey_waiting(self) -> None:
        """Read all received commands, and carry out the latest command for each MPTCP connection.

        The latest command has everything that is still to be done on its connection, so the older
        commands are dropped. Refused commands are logged.
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


def _present(scheduler: netlink.Scheduler, devices: Iterable[str]) -> dict[int, str]:
    """Return those of `devices` that are in the network namespace of `scheduler`, by number."""
    found = {}
    for device in devices:
        with contextlib.suppress(LabError):
            found[scheduler.index(device)] = device
    return found


def serve(agent: HostAgent) -> None:
    """Send reports and carry out commands until standard input ends.

    The line {"ready": true} is printed first. It tells the main process of the run that the agent
    works.
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
    """Print a command as one line of JSON, for the main process.

    `at` is its time [s since 1970].
    """
    print(json.dumps({"at": at, "argv": list(argv), "stdin": stdin}), flush=True)


if __name__ == "__main__":
    shell.add_journal(_write_command)
    configuration = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    serve(HostAgent(Settings.from_json(configuration)))
