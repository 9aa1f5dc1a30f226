"""Capture the packets of every host and switch port into files during a run, with tcpdump:
`run --pcap`.

tcpdump writes the packets into a pipe, and this module appends them to a file. tcpdump itself would
write its buffer to the file only after a signal. If the signal came while tcpdump adds a packet to
the buffer, the rest of the file would be damaged.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network.network import Network
from lab.errors import LabError
from lab.run.captured import SWITCH_PORTS

SNAPSHOT_BYTES = 128  # of each packet: all headers, with the options of Multipath TCP
BUFFER_KIB = 16384  # for packets that a busy machine has not written yet
PIPE_BYTES = 1 << 20  # the most that Linux allows by default; about 7000 packets
END_TIMEOUT_S = 60  # a busy machine writes for a while what is in the buffer
PAUSE_S = 0.02  # between two looks whether a tcpdump has ended


@dataclass(frozen=True)
class Captured:
    """Counts of one tcpdump. Both are None if tcpdump had to be killed.

    `packets` is the number of packets in the file. `dropped` is the number of packets that the
    kernel dropped because tcpdump was too slow.
    """

    packets: int | None
    dropped: int | None


class Captures:
    """Runs tcpdump inside every host, and one for all switch ports, which are outside the hosts.

    Each host has its own file `HOST.pcap`. A packet is in `switch_ports.pcap` once for each switch,
    as it enters it; what leaves a switch enters the next node, or is lost on the link. At a port
    that leads to a host it is there twice: host_port.bpf.c replaces it by a clone. The file has the
    index of the port, and `ports` its name.
    """

    def __init__(self, folder: Path, network: Network, ledger: Ledger) -> None:
        """Start every tcpdump, and wait until all are capturing.

        The files are written into `folder`, which must not exist yet. Raises `LabError` if a
        tcpdump does not start.
        """
        folder.mkdir()
        self.files = {host: folder / f"{host}.pcap" for host in network.hosts}
        self.files[SWITCH_PORTS] = folder / "switch_ports.pcap"
        self.ports = {socket.if_nametoindex(each): each for each in network.bridge_ports()}
        of_ports = " or ".join(f"ifindex {index}" for index in self.ports)
        self._programs: dict[str, subprocess.Popen[str]] = {}
        self._pipes: dict[str, int] = {}
        for host, file in self.files.items():
            argv = ["tcpdump", "-i", "any", "-y", "LINUX_SLL2", "-n", "-s", str(SNAPSHOT_BYTES)]
            argv += ["-Z", "root", "-B", str(BUFFER_KIB), "--packet-buffered", "-w", "-"]
            whole = (
                [*argv, f"inbound and ({of_ports})"]
                if host == SWITCH_PORTS
                else network.inside(host, argv)
            )
            reading, writing = os.pipe()
            fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            os.set_blocking(reading, False)
            try:
                program = shell.spawn(
                    whole,
                    f"capture the packets of {host}",
                    stdin=subprocess.DEVNULL,
                    stdout=writing,
                    stderr=subprocess.PIPE,
                )
            finally:
                os.close(writing)
            ledger.record("process", pid=program.pid)
            self._programs[host], self._pipes[host] = program, reading
            file.touch()
        for host, program in self._programs.items():
            _wait_until_listening(host, program)

    def flush(self) -> None:
        """Append to the files the packets that were captured since the last call."""
        for host, pipe in self._pipes.items():
            _append(pipe, self.files[host])

    def stop(self) -> dict[str, Captured]:
        for program in self._programs.values():
            program.send_signal(signal.SIGINT)
        counts = {}
        for host, program in self._programs.items():
            counts[host] = _counts(program, self.flush)
            _append(self._pipes[host], self.files[host])
            os.close(self._pipes.pop(host))
        return counts


def _append(pipe: int, file: Path) -> None:
    with file.open("ab") as target, contextlib.suppress(BlockingIOError):
        while data := os.read(pipe, PIPE_BYTES):
            target.write(data)


def _wait_until_listening(host: str, program: subprocess.Popen[str]) -> None:
    assert program.stderr is not None
    lines: list[str] = []
    for line in program.stderr:
        lines.append(line.strip())
        if "listening on" in line:
            return
    raise LabError(f"capture the packets of {host}: tcpdump ended: {' / '.join(lines)}")


def _counts(program: subprocess.Popen[str], empty: Callable[[], None]) -> Captured:
    """Wait for the end of a tcpdump, and return its counts.

    A tcpdump does not end while its pipe is full. So `empty` is called repeatedly; it must empty
    the pipes of all programs.
    """
    deadline_s = time.monotonic() + END_TIMEOUT_S
    while program.poll() is None:
        empty()
        if time.monotonic() > deadline_s:
            program.kill()
        time.sleep(PAUSE_S)
    text = program.communicate()[1] or ""
    found = {what: int(count) for count, what in re.findall(r"(\d+) packets? (\w+)", text)}
    return Captured(found.get("captured"), found.get("dropped"))
