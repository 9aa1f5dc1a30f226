"""Watch for programs that end during a run: restart POX and the agents, report the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lab.engines.mininet.emulated_network import EmulatedNetwork
from lab.engines.mininet.machine import open_vswitch
from lab.engines.mininet.machine.processes import start_time
from lab.engines.mininet.network import wifi
from lab.run.report import MptcpVerdict

Warn = Callable[[str], None]


class Restartable(Protocol):
    """A program that `Supervision` restarts when it has ended."""

    def restart_if_ended(self) -> bool:
        """Restart the program if it has ended. Return True if it was restarted."""


@dataclass(frozen=True)
class Daemon:
    """A program that is not restarted if it ends during a run.

    If it ends, the run does not count as verified Multipath TCP. `pid_file` is the file with its
    process ID. `name` is its name in "NAME ended during the run". `warning` is the text of the
    event that reports the end.
    """

    pid_file: Path
    name: str
    warning: str


def daemons(scratch: Path, aps: tuple[str, ...]) -> list[Daemon]:
    """Return the daemons of a network: Open vSwitch, and one hostapd for each WiFi access point.

    `scratch` is the folder that contains the files of hostapd.
    """
    switches = Daemon(
        open_vswitch.PID_FILE,
        "Open vSwitch",
        "Open vSwitch has ended (ovs-vswitchd): no switch takes new flows or new rules. "
        "Type: sudo systemctl restart openvswitch-switch",
    )
    return [
        switches,
        *(
            Daemon(
                file,
                f"hostapd of {ap}",
                f"the access point {ap} has ended (hostapd): its users have no WiFi",
            )
            for ap, file in wifi.hostapd_pid_files(scratch, aps).items()
        ),
    ]


class Supervision:
    """Watches the programs of a run: restarts some when they end, reports the others.

    The keys of `restarted` are pairs of a program's name and its log file, such as ("POX",
    "pox/log.txt"). `warn` records a warning event. A `with` block checks all programs at its
    beginning, and once more if the block fails.
    """

    def __init__(
        self,
        restarted: Mapping[tuple[str, str], Restartable],
        daemons: Iterable[Daemon],
        warn: Warn,
    ) -> None:
        self._restarted, self._warn = restarted, warn
        self._running = {daemon: _process(daemon.pid_file) for daemon in daemons}
        self._ended: list[str] = []

    @classmethod
    def of(cls, emulated: EmulatedNetwork, warn: Warn) -> Supervision:
        """Return an object that watches POX, both agents, Open vSwitch and hostapd.

        To be called after all of them have started.
        """
        programs: dict[tuple[str, str], Restartable | None] = {
            ("POX", "pox/log.txt"): emulated.pox,
            ("the host agent", "hosts.log"): emulated.host_agent,
            ("the AP agent", "agents.log"): emulated.stations.agent,
        }
        restarted = {name: program for name, program in programs.items() if program}
        aps = emulated.topology.ids("wifi")
        return cls(restarted, daemons(emulated.network.scratch, aps), warn)

    def __enter__(self) -> None:
        self.check()

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """If the block has failed, check once more, so that an event names a program that ended."""
        if failure:
            self.check()

    def check(self) -> None:
        """Restart or report the programs that have ended since the last check."""
        for (name, log), program in self._restarted.items():
            if program.restart_if_ended():
                self._warn(f"{name} had ended; it was restarted. See {log}")
        for daemon, (pid, started) in list(self._running.items()):
            if started is None or start_time(pid) != started:
                del self._running[daemon]
                self._ended.append(daemon.name)
                self._warn(daemon.warning)

    def qualified(self, verdict: MptcpVerdict) -> MptcpVerdict:
        """Return `verdict`, but "not verified" if a daemon has ended during the run."""
        if not self._ended or not verdict.verified:
            return verdict
        why = f"{', '.join(self._ended)} ended during the run"
        return replace(verdict, verified=False, why=why)


def _process(file: Path) -> tuple[int, int | None]:
    """Return the process ID in a PID file, and the start time of this process.

    The start time is None if the process has ended.
    """
    try:
        pid = int(file.read_text())
    except (OSError, ValueError):  # the program has ended and has removed its file
        return 0, None
    return pid, start_time(pid)
