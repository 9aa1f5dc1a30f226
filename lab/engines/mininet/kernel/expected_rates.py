"""Set the expected rates of subflows for their congestion control (S-MPTCP, Algorithm 5).

The expected rate is the throughput to which the controller limits a subflow. The congestion control
is an eBPF program, which reads the rate from a pinned map and limits the window of the subflow
(ebpf/expected.h). Rates count Ethernet frames.
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
    """Set and read the expected rates of subflows in a pinned map that the eBPF programs read."""

    def __init__(self, pin: Path) -> None:
        """Choose the map that is pinned at `pin`.

        The map may be pinned later; until then no subflow has an expected rate.
        """
        self._pin = pin
        self._map: bpf.Map | None = None

    def set_rate(self, pid: int, local: Endpoint, remote: Endpoint, rate_bps: int | None) -> None:
        """Set the expected rate of the TCP socket with these two endpoints; None removes the rate.

        `rate_bps` counts Ethernet frames. `pid` is not used, because the endpoints identify a
        socket in the whole network; `Pacing.set_rate` needs it. Raises `LabError` if the map is not
        pinned, or if there is no rate to remove.
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
        """Return the expected rate of a socket in Ethernet frames [bit/s]; None if it has none."""
        if self._map is None and not self._pin.exists():
            return None
        found = self._opened().find(socket_key(sending.source, sending.destination))
        return None if found is None else int(VALUE.unpack(found)[0])

    def is_set(self, subflow: TcpSocket, rate_bps: int | None) -> bool:
        """Return whether the expected rate of `subflow` is `rate_bps` already (None: no rate)."""
        return self.rate_bps(subflow) == rate_bps

    def _opened(self) -> bpf.Map:
        if self._map is None:
            self._map = bpf.Map(self._pin, KEY_BYTES, VALUE.size)
        return self._map
