"""Limit subflows to their expected rates, by pacing or by the window (S-MPTCP, section V).

The expected rate of a subflow is the rate that the controller has assigned to it. There are two
ways to limit a subflow to this rate:

- `Pacing`: an eBPF iterator finds the subflow's socket by its addresses and ports, and sets the
  socket option SO_MAX_PACING_RATE. The paper uses another method; pacing works on any interface. On
  a slow machine, a socket reaches the rate only if its interface has an fq qdisc (`shaping.paced`).
  The option counts bytes of payload.
- `ExpectedRates`: the congestion control is an eBPF program. It reads the rate from a pinned map
  and limits the congestion window (Algorithm 5; ebpf/expected.h).

In this module, `rate_bps` always counts whole Ethernet frames.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from lab.engines.mininet.kernel import bpf, netlink
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.machine import shell

SOURCE = Path(__file__).with_name("pacing.bpf.c")
FRAME_BYTES, PAYLOAD_BYTES = 1514, 1420  # full frame of Multipath TCP (RFC 8684) with timestamps
UNLIMITED = 0xFFFFFFFF
Endpoint = tuple[str, int]


def pacing_program() -> Path:
    """Compile pacing.bpf.c if needed, and return the eBPF object file."""
    return bpf.compiled(SOURCE, "the pacing program")


def payload_rate(rate_bps: int) -> int:
    """Convert a rate of Ethernet frames [bit/s] to the rate of their payload [bytes/s]."""
    return min(max(1, round(rate_bps / 8 * PAYLOAD_BYTES / FRAME_BYTES)), UNLIMITED - 1)


def payload_limit(rate_bps: int | None) -> int:
    """Convert a rate of Ethernet frames [bit/s] to a SO_MAX_PACING_RATE [bytes of payload/s].

    Returns `UNLIMITED` if the rate is None.
    """
    return UNLIMITED if rate_bps is None else payload_rate(rate_bps)


def frame_rate_bps(payload_bytes_per_s: int) -> int | None:
    """Convert a SO_MAX_PACING_RATE to a rate of Ethernet frames [bit/s], or None if unlimited."""
    if payload_bytes_per_s >= UNLIMITED:
        return None
    return round(payload_bytes_per_s * 8 * FRAME_BYTES / PAYLOAD_BYTES)


def pacing_rate_bps(sending: TcpSocket) -> int | None:
    """Return the pacing rate of a socket in Ethernet frames [bit/s], or None if unlimited."""
    return frame_rate_bps(sending.pacing_limit)


class Pacing:
    """Limit the rates of subflows by the socket option SO_MAX_PACING_RATE, set by an eBPF program.

    The first call of `set_rate` loads the program. The clean-up of the run deletes the folder
    `pins`; this unloads the program.
    """

    def __init__(self, pins: Path) -> None:
        """`pins` is a folder in a bpf file system, where the program and its map will be pinned.

        The folder is created if it does not exist.
        """
        self._pins = pins
        self._rates: bpf.Map | None = None
        self._program = -1

    def set_rate(self, pid: int, local: Endpoint, remote: Endpoint, rate_bps: int | None) -> None:
        """Set the pacing rate of the TCP socket with these two endpoints.

        `pid` is a process in the network namespace of the socket. `rate_bps` counts Ethernet
        frames; None removes the limit.
        """
        rates = self._loaded()
        key = socket_key(local, remote)
        value = struct.pack("=I", payload_limit(rate_bps))
        argv = ["bpftool", "map", "update", "pinned", str(rates.pin)]
        argv += ["key", "hex", *key.hex(" ").split(), "value", "hex", *value.hex(" ").split()]
        shell.journal_command(argv)
        rates.write(key, value)
        shell.journal_command(["mnexec", "-a", str(pid), "cat", str(self._pins / "each")])
        netlink.inside(pid, self._run)
        if rate_bps is None:
            rates.delete(key)

    def is_set(self, subflow: TcpSocket, rate_bps: int | None) -> bool:
        """Return True if the pacing rate is already `rate_bps` (None means no limit)."""
        return payload_limit(rate_bps) == min(subflow.pacing_limit, UNLIMITED)

    def rate_bps(self, sending: TcpSocket) -> int | None:
        return pacing_rate_bps(sending)

    def _loaded(self) -> bpf.Map:
        if self._rates is None:
            pins = str(self._pins)
            argv = ["bpftool", "prog", "loadall", str(pacing_program()), pins, "pinmaps", pins]
            shell.run(argv, "load the pacing program")
            self._program = bpf.iterate(self._pins / "pace", self._pins / "each")
            self._rates = bpf.Map(self._pins / "rates", 12, 4)
        return self._rates

    def _run(self) -> None:
        """Run the eBPF program on all TCP sockets in the network namespace of this thread."""
        iterator = bpf.begin(self._program)
        try:
            while os.read(iterator, 4096):
                pass
        finally:
            os.close(iterator)


def socket_key(local: Endpoint, remote: Endpoint) -> bytes:
    """Return the key of a TCP socket in the eBPF maps (struct flow in their C source).

    The key has 12 bytes: local address, remote address, local port, remote port.
    """
    addresses = b"".join(socket.inet_aton(address) for address, _ in (local, remote))
    return addresses + struct.pack("!HH", local[1], remote[1])


VALUE = struct.Struct("=Q")  # bit/s
KEY_BYTES = 12


class ExpectedRates:
    """The rates to which the controller limits subflows ("expected rates"), in a pinned eBPF map.

    The congestion control reads the map, and limits the congestion window of each subflow.
    """

    def __init__(self, pin: Path) -> None:
        """`pin` is the path of the map.

        As long as this path does not exist, no subflow has an expected rate.
        """
        self._pin = pin
        self._map: bpf.Map | None = None

    def set_rate(self, pid: int, local: Endpoint, remote: Endpoint, rate_bps: int | None) -> None:
        """Set the expected rate of the TCP socket with these two endpoints; None removes the rate.

        `rate_bps` counts Ethernet frames. `pid` is not used; it is a parameter because
        `Pacing.set_rate` has it. Raises `LabError` if the map is not pinned, or if there is no
        expected rate to remove.
        """
        rates = self._opened()
        key = socket_key(local, remote)
        argv = ["bpftool", "map", "delete" if rate_bps is None else "update", "pinned"]
        argv += [str(self._pin), "key", "hex", *key.hex(" ").split()]
        if rate_bps is None:
            shell.journal_command(argv)
            rates.delete(key)
        else:
            value = VALUE.pack(rate_bps)
            shell.journal_command([*argv, "value", "hex", *value.hex(" ").split()])
            rates.write(key, value)

    def rate_bps(self, sending: TcpSocket) -> int | None:
        """Return a socket's expected rate [bit/s of Ethernet frames]; None if it has none."""
        if self._map is None and not self._pin.exists():
            return None
        found = self._opened().find(socket_key(sending.source, sending.destination))
        return None if found is None else int(VALUE.unpack(found)[0])

    def is_set(self, subflow: TcpSocket, rate_bps: int | None) -> bool:
        """Return True if the expected rate is already `rate_bps` (None means no rate)."""
        return self.rate_bps(subflow) == rate_bps

    def _opened(self) -> bpf.Map:
        if self._map is None:
            self._map = bpf.Map(self._pin, KEY_BYTES, VALUE.size)
        return self._map
