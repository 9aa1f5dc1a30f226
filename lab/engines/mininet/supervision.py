"""Watch for programs that end during a run: restart POX and the host agent, report hostapd."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from lab.engines.mininet.host_agent_process import HostAgentProcess
from lab.engines.mininet.machine.processes import start_time
from lab.engines.mininet.pox_process import PoxProcess
from lab.run.report import MptcpVerdict

Warn = Callable[[str], None]


class Supervision:
    """Watch the programs of a run that has started.

    `pid_files` has, by access point, the file into which its hostapd writes its process number.
    `warn` records a warning event with a text.
    """

    def __init__(
        self,
        pox: PoxProcess,
        host_agent: HostAgentProcess | None,
        pid_files: Mapping[str, Path],
        warn: Warn,
    ) -> None:
        self._pox, self._host_agent, self._warn = pox, host_agent, warn
        self._daemons = {ap: _process(file) for ap, file in pid_files.items()}
        self._ended: list[str] = []

    def check(self) -> None:
        """Restart POX and the host agent if they have ended; report access points that have ended.

        An access point whose hostapd has ended carries no data any more. It is not restarted.
        """
        if self._pox.restart_if_ended():
            self._warn("POX had ended; it was restarted. See pox/log.txt")
        if self._host_agent:
            if self._host_agent.restart_if_ended():
                self._warn("the host agent had ended; it was restarted. See hosts.log")
            self._host_agent.write_journal()
        for ap, (pid, started) in self._daemons.items():
            if ap not in self._ended and start_time(pid) != started:
                self._ended.append(ap)
                self._warn(f"the access point {ap} has ended (hostapd): its users have no WiFi")

    def qualified(self, verdict: MptcpVerdict) -> MptcpVerdict:
        """Return `verdict`, but never a positive one if an access point has ended."""
        if not self._ended or not verdict.verified:
            return verdict
        why = f"hostapd of {', '.join(self._ended)} ended during the run"
        return replace(verdict, verified=False, why=why)


def _process(file: Path) -> tuple[int, int | None]:
    pid = int(file.read_text())
    return pid, start_time(pid)
