"""Expected throughput at the sender: the kernel paces a subflow's socket (S-MPTCP, section V, by other means).

An eBPF iterator finds the socket by its addresses and ports and sets its SO_MAX_PACING_RATE. It works on any interface, and keeps to
the rate on a slow machine where fq is (`shaping.paced`). The rate is of Ethernet frames here and of payload in the kernel.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from lab.engines.mininet.kernel import bpf, bpf_object, netlink
from lab.engines.mininet.machine import shell

SOURCE = Path(__file__).with_name("pacing.bpf.c")
FRAME_BYTES, PAYLOAD_BYTES = (
    1514,
    1420,
)  # of a full frame of Multipath TCP (RFC 8684) with timestamps
UNLIMITED = 0xFFFFFFFF
Endpoint = tuple[str, int]


def program() -> Path:
    """The compiled pacing.bpf.c."""
    return bpf_object.compiled(SOURCE, "the pacing program")


def payload_rate(rate_bps: int) -> int:
    """Payload [bytes/s] of a rate of frames [bit/s]."""
    return min(max(1, round(rate_bps / 8 * PAYLOAD_BYTES / FRAME_BYTES)), UNLIMITED - 1)


def payload_limit(rate_bps: int | None) -> int:
    """A socket's limit [bytes/s] for a rate of frames; None lets go."""
    return UNLIMITED if rate_bps is None else payload_rate(rate_bps)


def frame_rate_bps(payload_bytes_per_s: int) -> int | None:
    """The opposite; None when nothing is held."""
    return (
        None
        if payload_bytes_per_s >= UNLIMITED
        else round(payload_bytes_per_s * 8 * FRAME_BYTES / PAYLOAD_BYTES)
    )


class Pacing:
    """Rates by subflow. The program is loaded when a rate is first asked for; it ends with the folder of its pins."""

    def __init__(self, pins: Path) -> None:
        """`pins` is a folder in a bpf file system; it need not exist."""
        self._pins = pins
        self._rates: bpf.Map | None = None
        self._program = -1

    def hold(self, pid: int, local: Endpoint, remote: Endpoint, rate_bps: int | None) -> None:
        """Hold what a process' host sends from here to there to this rate of frames; None lets it go."""
        rates = self._loaded()
        key = _key(local, remote)
        value = struct.pack("=I", payload_limit(rate_bps))
        where = ["bpftool", "map", "update", "pinned", str(rates.pin)]
        shell.journal_command(
            [*where, "key", "hex", *key.hex(" ").split(), "value", "hex", *value.hex(" ").split()]
        )
        rates.write(key, value)
        shell.journal_command(["mnexec", "-a", str(pid), "cat", str(self._pins / "each")])
        netlink.inside(pid, self._run)
        if rate_bps is None:
            rates.delete(key)

    def _loaded(self) -> bpf.Map:
        if self._rates is None:
            argv = [
                "bpftool",
                "prog",
                "loadall",
                str(program()),
                str(self._pins),
                "pinmaps",
                str(self._pins),
            ]
            shell.run(argv, "load the pacing program")
            self._program = bpf.iterate(self._pins / "pace", self._pins / "each")
            self._rates = bpf.Map(self._pins / "rates", 12, 4)
        return self._rates

    def _run(self) -> None:
        """Visit every socket of the namespace this is called in."""
        iterator = bpf.begin(self._program)
        try:
            while os.read(iterator, 4096):
                pass
        finally:
            os.close(iterator)


def _key(local: Endpoint, remote: Endpoint) -> bytes:
    addresses = b"".join(socket.inet_aton(address) for address, _ in (local, remote))
    return addresses + struct.pack("!HH", local[1], remote[1])
