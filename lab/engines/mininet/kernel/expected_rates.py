"""Tell the congestion control of a subflow its expected rate (S-MPTCP, Algorithm 5).

The congestion control is an eBPF program, which limits the window of the subflow
(ebpf/expected.h). It reads the rates from a pinned map; rates count Ethernet frames.
"""

from __future__ import annotations

import struct
from pathlib import Path

from lab.engines.mininet.kernel import bpf
from lab.engines.mininet.kernel.pacing import Endpoint, socket_key
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.machine import shell

VALUE = struct.Struct("=Q")  # bit/s
KEY_BYTES = 12


class ExpectedRates:
    """Set and read the expected rates of subflows in the map that the eBPF programs share."""

    def __init__(self, pin: Path) -> None:
        """Use the map that is pinned at `pin`.

        It may be pinned later: until then no subflow has an expected rate.
        """
        self._pin = pin
        self._map: bpf.Map | None = None

    def set_rate(self, pid: int, local: Endpoint, remote: Endpoint, rate_bps: int | None) -> None:
        """Set the expected rate of the TCP socket with these two endpoints; None removes it.

        `pid` is not used: the addresses of the hosts are unique in the network. Raises `LabError`
        if the map is not pinned.
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
        """Return the expected rate of a socket [bit/s]; None if it has none."""
        if self._map is None and not self._pin.exists():
            return None
        found = self._opened().find(socket_key(sending.source, sending.destination))
        return None if found is None else int(VALUE.unpack(found)[0])

    def is_set(self, subflow: TcpSocket, rate_bps: int | None) -> bool:
        """Return whether the socket has this expected rate already."""
        return self.rate_bps(subflow) == rate_bps

    def _opened(self) -> bpf.Map:
        if self._map is None:
            self._map = bpf.Map(self._pin, KEY_BYTES, VALUE.size)
        return self._map
