"""Record the packets of every host into files during a run, with tcpdump: `run --pcap`."""

from __future__ import annotations

import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network.network import Network
from lab.errors import LabError

SNAPSHOT_BYTES = 128  # of each packet: all headers, with the options of Multipath TCP
BUFFER_KIB = 16384  # for packets that a busy machine has not written yet
END_TIMEOUT_S = 60  # a busy machine writes for a while what is in the buffer


@dataclass(frozen=True)
class Captured:
    """Hold the number of packets in the capture file of one host, and of packets that are missing.

    The missing packets are those that the kernel `dropped` because tcpdump was too slow. Both
    numbers are None if tcpdump had to be killed.
    """

    packets: int | None
    dropped: int | None


class Captures:
    """Run one tcpdump inside every host; each writes its packets into its own file `HOST.pcap`."""

    def __init__(self, folder: Path, network: Network, ledger: Ledger) -> None:
        """Start tcpdump inside every host, and wait until all of them capture.

        The files are written into `folder`, which is made. Raises `LabError` if a tcpdump does not
        start.
        """
        folder.mkdir()
        self.files = {host: folder / f"{host}.pcap" for host in network.hosts}
        self._programs: dict[str, subprocess.Popen[str]] = {}
        for host, file in self.files.items():
            argv = ["tcpdump", "-i", "any", "-n", "-s", str(SNAPSHOT_BYTES), "-Z", "root"]
            argv += ["-B", str(BUFFER_KIB)]
            program = shell.spawn(
                network.inside(host, [*argv, "-w", str(file)]),
                f"capture the packets of {host}",
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            ledger.record("process", pid=program.pid)
            self._programs[host] = program
        for host, program in self._programs.items():
            _wait_until_listening(host, program)

    def flush(self) -> None:
        """Make every tcpdump write its buffered packets into its file."""
        for program in self._programs.values():
            program.send_signal(signal.SIGUSR2)

    def stop(self) -> dict[str, Captured]:
        """End every tcpdump, and return the number of captured and dropped packets of each host."""
        for program in self._programs.values():
            program.send_signal(signal.SIGINT)
        return {host: _counts(program) for host, program in self._programs.items()}


def _wait_until_listening(host: str, program: subprocess.Popen[str]) -> None:
    assert program.stderr is not None
    lines: list[str] = []
    for line in program.stderr:
        lines.append(line.strip())
        if "listening on" in line:
            return
    raise LabError(f"capture the packets of {host}: tcpdump ended: {' / '.join(lines)}")


def _counts(program: subprocess.Popen[str]) -> Captured:
    try:
        text = program.communicate(timeout=END_TIMEOUT_S)[1]
    except subprocess.TimeoutExpired:
        program.kill()
        text = program.communicate()[1]
    found = {what: int(count) for count, what in re.findall(r"(\d+) packets? (\w+)", text)}
    return Captured(found.get("captured"), found.get("dropped"))
