"""Limit a subflow to its expected throughput: the kernel paces its socket (S-MPTCP, section V).

The paper limits subflows by other means. Here an eBPF iterator finds the socket by its addresses
and ports and sets its SO_MAX_PACING_RATE. This works on any interface; on a slow machine the rate
is kept where the interface has fq (`shaping.paced`). Rates count Ethernet frames here and payload
in the kernel.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from lab.engines.mininet.kernel import bpf, bpf_object, netlink
from lab.engines.mininet.machine import shell

SOURCE = Path(__file__).with_name("pacing.bpf.c")
FRAME_BYTES, PAYLOAD_BYTES = 1514, 1420  # full frame of Multipath TCP (RFC 8684) with timestamps
UNLIMITED = 0xFFFFFFFF
Endpoint = tuple[str, int]


def program() -> Path:
    """Return the compiled pacing.bpf.c."""
    return bpf_object.compiled(SOURCE, "the pacing program")


def payload_rate(rate_bps: int) -> int:
    """Return the payload rate [bytes/s] of a rate of frames [bit/s]."""
    return min(max(1, round(rate_bps / 8 * PAYLOAD_BYTES / FRAME_BYTES)), UNLIMITED - 1)


def payload_limit(rate_bps: int | None) -> int:
    """Return a socket's limit [bytes/s] for a rate of frames; None removes the limit."""
    return UNLIMITED if rate_bps is None else payload_rate(rate_bps)


def frame_rate_bps(payload_bytes_per_s: int) -> int | None:
    """Return the rate of frames [bit/s] of a socket's limit; None if it is not limited."""
    if payload_bytes_per_s >= UNLIMITED:
        return None
    return round(payload_bytes_per_s * 8 * FRAME_BYTES / PAYLOAD_BYTES)


class Pacing:
    """Set the pacing rates of subflows.

    The program is loaded when the first rate is set, and unloaded when its pins are removed.
    """

    def __init__(self, pins: Path) -> None:
        """Use `pins`, a folder in a bpf file system that need not exist, for the program and map."""
        self._pins = pins
        self._rates: bpf.Map | None = None
        self._program = -1

    def set_rate(self, pid: int, local: Endpoint, remote: Endpoint, rate_bps: int | None) -> None:
        """Pace a socket of the host of process `pid`; the rate counts frames, None removes it."""
        rates = self._loaded()
        key = _key(local, remote)
        value = struct.pack("=I", payload_limit(rate_bps))
        argv = ["bpftool", "map", "update", "pinned", str(rates.pin)]
        argv += ["key", "hex", *key.hex(" ").split(), "value", "hex", *value.hex(" ").split()]
        shell.journal_command(argv)
        rates.write(key, value)
        shell.journal_command(["mnexec", "-a", str(pid), "cat", str(self._pins / "each")])
        netlink.inside(pid, self._run)
        if rate_bps is None:
            rates.delete(key)

    def _loaded(self) -> bpf.Map:
        if self._rates is None:
            pins = str(self._pins)
            argv = ["bpftool", "prog", "loadall", str(program()), pins, "pinmaps", pins]
            shell.run(argv, "load the pacing program")
            self._program = bpf.iterate(self._pins / "pace", self._pins / "each")
            self._rates = bpf.Map(self._pins / "rates", 12, 4)
        return self._rates

    def _run(self) -> None:
        """Run the iterator over all sockets of the namespace this is called in."""
        iterator = bpf.begin(self._program)
        try:
            while os.read(iterator, 4096):
                pass
        finally:
            os.close(iterator)


def _key(local: Endpoint, remote: Endpoint) -> bytes:
    addresses = b"".join(socket.inet_aton(address) for address, _ in (local, remote))
    return addresses + struct.pack("!HH", local[1], remote[1])
