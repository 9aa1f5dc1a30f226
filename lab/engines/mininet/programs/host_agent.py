"""The agents of all hosts, in one process: they do what the controller asks of subflows, and report what is the case.

1) each host reports its subflows of Multipath TCP, and the loss on the way to each of its addresses: every two seconds, and,
   once anything was ordered, what is new four times per control interval
2) an order is read only when it comes from the registered controller with this run's key, and only once
3) backup: the host with several addresses changes its endpoint, and the kernel tells the other end (MP_PRIO)
   where a path manager in user space opens the subflows (`opener`), it changes the subflow alone
4) an expected rate: both hosts pace the subflow's socket; only the one that sends data feels it
5) what was done is reported at once, from what the kernel says, and encode to standard output as a command

Its configuration is one JSON file; it ends when its standard input does.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from controller.errors import MessageRefused
from controller.host_messages import (
    HostCommand,
    HostReport,
    SubflowChange,
    SubflowState,
    encode,
    read_command,
)
from lab.engines.mininet.kernel import netlink, shaping
from lab.engines.mininet.kernel.netlink import TcpSocket
from lab.engines.mininet.kernel.pacing import (
    UNLIMITED,
    Endpoint,
    Pacing,
    frame_rate_bps,
    payload_limit,
)
from lab.engines.mininet.kernel.path_manager import PathManager
from lab.engines.mininet.machine import shell
from lab.engines.mininet.programs.userspace_path_manager import Opener
from lab.errors import LabError

RESTING_S, SOON_S = 2.0, 0.1


class Host:
    """One host: its sockets, and its path manager if it has several addresses."""

    def __init__(self, name: str, spec: dict[str, Any], pacing: Pacing) -> None:
        self.name, self.pid, self._loss, self._pacing = name, spec["pid"], spec["loss"], pacing
        self._diagnosis = netlink.inside(self.pid, netlink.Diagnosis)
        self._manager = (
            netlink.inside(self.pid, PathManager) if spec["endpoints"] or "opens" in spec else None
        )
        self.opener = self._opener(spec["opens"]) if "opens" in spec else None
        self._may_set_backup = bool(spec["endpoints"])
        self._backup: dict[str, bool] = {}
        self._paced: list[str] = spec.get("paced", [])
        self._last_seq = -1

    def report(self, seq: int, losses: dict[str, float]) -> HostReport:
        """What is the case now; `losses` by device."""
        found = sorted(
            (each for each in self._diagnosis.sockets() if each.token is not None), key=_as_joined
        )
        return HostReport(
            seq, self.name, tuple(_state(each) for each in found), _along(self._loss, losses)
        )

    def obey(self, asked: HostCommand) -> None:
        """Carry out an order that is newer than the last; what the kernel refuses of one subflow keeps no other from its due."""
        if asked.seq <= self._last_seq:
            raise MessageRefused(
                f"obey order {asked.seq} to {self.name}: order {self._last_seq} has come before"
            )
        self._last_seq = asked.seq
        own = {(each.source, each.destination): each for each in self._diagnosis.sockets()}
        refused = []
        for each in asked.subflows:
            ends = (_endpoint(each.source), _endpoint(each.destination))
            mine = own.get(ends) or own.get(ends[::-1])
            try:
                if mine is not None:  # otherwise it has ended meanwhile
                    self._change(mine, each)
            except LabError as problem:
                refused.append(f"{each.source} to {each.destination}: {problem}")
        if refused:
            raise LabError(f"obey order {asked.seq} to {self.name}: {'; '.join(refused)}")

    def _change(self, mine: TcpSocket, asked: SubflowChange) -> None:
        if asked.backup is not None and self._manager is not None and self._may_set_backup:
            if self.opener is None:
                self._set_backup(self._manager, mine.source[0], asked.backup)
            else:
                self._set_subflow_backup(self._manager, mine, asked.backup)
        if asked.expected_mbps is not None:
            rate_bps = round(asked.expected_mbps * 1_000_000) or None
            if payload_limit(rate_bps) != min(mine.pacing_limit, UNLIMITED):
                self._prepare_pacing()
                self._pacing.set_rate(self.pid, mine.source, mine.destination, rate_bps)

    def _prepare_pacing(self) -> None:
        """Once, when a rate is asked for."""
        lines, self._paced = self._paced, []
        if lines:
            argv = ["mnexec", "-a", str(self.pid), "tc", "-batch", "-"]
            shell.run(argv, f"prepare {self.name} for pacing", stdin=shaping.batch(lines))

    def _set_backup(self, manager: PathManager, address: str, backup: bool) -> None:
        """PathDelay a second time, the other end has not heard the first: the kernel says it again only after the opposite."""
        again = [not backup] if self._backup.get(address, False) == backup else []
        for each in (*again, backup):
            word = "backup" if each else "nobackup"
            shell.journal_command(
                ["mnexec", "-a", str(self.pid), "ip", "mptcp", "endpoint", "change", address, word]
            )
            manager.set_backup(address, each)
        self._backup[address] = backup

    def _set_subflow_backup(self, manager: PathManager, mine: TcpSocket, backup: bool) -> None:
        """Of one subflow alone, which the path manager in user space can; said again, the other end is told again."""
        assert mine.token is not None
        (address, _), (remote, port) = mine.source, mine.destination
        argv = [
            "set",
            address,
            "token",
            str(mine.token),
            "flags",
            "backup" if backup else "nobackup",
        ]
        shell.journal_command(
            ["mnexec", "-a", str(self.pid), "pm_nl_ctl", *argv, "rip", remote, "rport", str(port)]
        )
        manager.set_subflow_backup(mine.token, address, mine.destination, backup)

    def _opener(self, addresses: list[str]) -> Opener:
        assert self._manager is not None
        manager = self._manager
        return netlink.inside(self.pid, lambda: Opener(self.pid, manager, addresses))


class Agent:
    """All hosts, and the socket over which they talk to the controller."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        self._controller: Endpoint = (
            configuration["controller"][0],
            configuration["controller"][1],
        )
        self._key = configuration["key"]
        self.period_s, self._ordered_s = RESTING_S, configuration["period_s"]
        self._said: dict[str, tuple[Any, float]] = {}
        pacing = Pacing(Path(configuration["pins"]))
        self._hosts = {
            name: Host(name, spec, pacing) for name, spec in configuration["hosts"].items()
        }
        self._scheduler = netlink.Scheduler()
        devices = {
            each for spec in configuration["hosts"].values() for each in _devices(spec["loss"])
        }
        self._netem = {
            device: (self._scheduler.index(device), shaping.NETEM) for device in sorted(devices)
        }
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))

    @property
    def openers(self) -> list[Opener]:
        """Those of hosts where subflows are opened here."""
        return [host.opener for host in self._hosts.values() if host.opener is not None]

    def report(self) -> None:
        """Every host reports that has something new to say, or has not spoken for long."""
        now = time.monotonic()
        found = self._scheduler.losses(list(self._netem.values()))
        losses = {device: found.get(netem, 0.0) for device, netem in self._netem.items()}
        seq = time.time_ns() // 1_000_000
        for name, host in self._hosts.items():
            report = host.report(seq, losses)
            new = report.subflows, report.loss
            said, due = self._said.get(name, (None, now))
            if new != said or now >= due:
                self._said[name] = new, now + RESTING_S
                self.socket.sendto(encode(report, self._key), self._controller)

    def read(self, datagram: bytes, sender: Endpoint) -> HostCommand:
        """The order in a datagram, or `MessageRefused`."""
        if sender != self._controller:
            raise MessageRefused(
                f"obey {sender[0]}:{sender[1]}: it is not the registered controller"
            )
        asked = read_command(datagram, self._key)
        if asked.host not in self._hosts:
            raise MessageRefused(
                f"obey an order to '{asked.host}': choose from {', '.join(sorted(self._hosts))}"
            )
        return asked

    def obey(self, asked: HostCommand) -> None:
        """Have it carried out."""
        self.period_s = self._ordered_s
        self._hosts[asked.host].obey(asked)


def serve(agent: Agent) -> None:
    """Report and obey until standard input ends; the first line of output says that this begins."""
    print(json.dumps({"ready": True}), flush=True)
    due = time.monotonic()
    while True:
        waiting = [sys.stdin, agent.socket, *agent.openers]
        readable, _, _ = select.select(waiting, [], [], max(0.0, due - time.monotonic()))
        if sys.stdin in readable:
            return
        if agent.socket in readable:
            _obey(agent)
            due = min(due, time.monotonic() + SOON_S)
        for opener in (each for each in agent.openers if each in readable):
            for problem in opener.act():
                print(problem, file=sys.stderr, flush=True)
        if time.monotonic() >= due:
            agent.report()
            due = time.monotonic() + agent.period_s


def _obey(agent: Agent) -> None:
    """Take what has come; what is refused, and what the kernel refuses, is said and changes nothing else."""
    orders: dict[tuple[str, str], HostCommand] = {}
    while select.select([agent.socket], [], [], 0)[0]:
        try:
            asked = agent.read(*agent.socket.recvfrom(65536))
        except (MessageRefused, OSError) as problem:
            print(problem, file=sys.stderr, flush=True)
        else:
            orders[asked.host, asked.token] = max(
                asked, orders.get((asked.host, asked.token), asked), key=_seq
            )
    for asked in sorted(
        orders.values(), key=_seq
    ):  # one says all that is left to be done: who is slow need not read those before
        try:
            agent.obey(asked)
        except (MessageRefused, LabError, OSError) as problem:
            print(problem, file=sys.stderr, flush=True)


def _seq(asked: HostCommand) -> int:
    return asked.seq


def _state(each: TcpSocket) -> SubflowState:
    rate_bps = frame_rate_bps(each.pacing_limit)
    expected_mbps = None if rate_bps is None else rate_bps / 1e6
    local, remote = (f"{address}:{port}" for address, port in (each.source, each.destination))
    return SubflowState(
        f"{each.token or 0:08x}", local, remote, each.backup, expected_mbps, each.retransmitted
    )


def _as_joined(each: TcpSocket) -> Any:
    """At a server, the subflows of a connection in the order in which they joined: a controller that is new numbers them by it."""
    return each.token, each.remote_id, each.source, each.destination


def _along(ways: dict[str, list[str]], losses: dict[str, float]) -> dict[str, float]:
    """The loss on the way to each address: of all devices a packet leaves by."""
    found = {}
    for address, devices in ways.items():
        kept = 1.0
        for device in devices:
            kept *= 1.0 - losses.get(device, 0.0)
        found[address] = 1.0 - kept
    return found


def _devices(ways: dict[str, list[str]]) -> Iterable[str]:
    return (device for devices in ways.values() for device in devices)


def _endpoint(text: str) -> Endpoint:
    address, _, port = text.rpartition(":")
    return address, int(port) if port.isdecimal() else 0


def _tell_runner(at: float, argv: Any, stdin: str | None) -> None:
    print(json.dumps({"at": at, "argv": list(argv), "stdin": stdin}), flush=True)


if __name__ == "__main__":
    shell.add_journal(_tell_runner)
    with open(sys.argv[1], encoding="utf-8") as file:
        serve(Agent(json.load(file)))
