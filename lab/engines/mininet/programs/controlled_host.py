"""Act on one host for the controller: report its TCP connections, and carry out commands.

A command sets or clears the backup flag of subflows, or sets their expected rates: the rate to
which the host limits a subflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from controller.errors import MessageRefused
from controller.host_messages import (
    NO_TOKEN,
    HostCommand,
    HostReport,
    SubflowChange,
    SubflowState,
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
    """Describe a host; `pid` is a process in the host's namespaces.

    `endpoints` is True if the host may change the backup flag of its own addresses: it is a
    multipath user. `loss` maps each address of the user to the interfaces that send the data along
    the path of this address; their random loss is reported. `paced` are the `tc` lines that prepare
    the host's interfaces for pacing; empty if windows are limited instead. `opens` lists the
    addresses from which a path manager in user space opens subflows; None if the kernel opens the
    subflows.
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

        `limits` sets the expected rates of subflows: as their pacing rates, or as limits of their
        windows.
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
        """Return a report on the subflows of the host, and on the loss on the path of each address.

        A TCP connection without MPTCP is reported as one subflow.

        `seq` is the number of the report. `losses` maps each interface to its configured random
        loss, from 0 to 1.
        """
        subflows = sorted(self._diagnosis.sockets(), key=_order_of_joining)
        loss = {
            address: _combined(losses.get(device, 0.0) for device in devices)
            for address, devices in self._settings.loss.items()
        }
        return HostReport(seq, self.name, tuple(self._state(each) for each in subflows), loss)

    def obey(self, command: HostCommand) -> None:
        """Carry out a command of the controller; changes of subflows that have ended are ignored.

        Raises `MessageRefused` if the sequence number of the command is not larger than that of the
        last command. If the kernel refuses some changes, carry out the others, then raise
        `LabError`.
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
        """Give the host's interfaces an fq qdisc in the first call; later calls do nothing."""
        lines, self._to_prepare = self._to_prepare, []
        if lines:
            argv = [*self._inside(), "tc", "-batch", "-"]
            shell.run(argv, f"prepare {self.name} for pacing", stdin=shaping.batch(lines))

    def _set_backup(self, manager: PathManager, address: str, backup: bool) -> None:
        """Set or clear the backup flag of all subflows from a local address.

        The controller repeats a command if the command had no effect at the other end. The kernel
        notifies the other end only of a change. So a repeated command sets the opposite first.
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
    """Return a key that sorts the subflows of a connection in the order in which they joined.

    Only a server knows this order, from the address IDs. A controller that was restarted numbers
    the subflows by this order.
    """
    return subflow.token or 0, subflow.remote_id, subflow.source, subflow.destination


def _combined(losses: Iterable[float]) -> float:
    """Return the loss of a path (0 to 1), given the loss of each interface on the path."""
    return 1.0 - prod(1.0 - each for each in losses)


def _endpoint(text: str) -> Endpoint:
    address, _, port = text.rpartition(":")
    return address, int(port) if port.isdecimal() else 0
