"""Move the data of one TCP or MPTCP flow: send it, or receive and count it.

The sender sends at a given rate or as fast as possible.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from typing import Any, NamedTuple

from lab.engines.mininet.programs.application import Application, unsent_bytes, writable_bytes
from lab.engines.mininet.programs.receive_buffer import MPTCP_INFO, SOL_MPTCP, ReceiveBuffer

IPPROTO_MPTCP = 262  # RFC 8684 on Linux: a program must request it for a socket
FLAG_FALLBACK = 1  # mptcpi_flags: the connection fell back to TCP (linux/mptcp.h)
CHUNK_BYTES = 1 << 18
COUNT_S = 0.05  # between two counts of a receiver, at least
LONGEST_COUNT_S = 0.4
FEW_BYTES = 8 * 1420  # of a few segments: fewer do not need a count of their own
ZEROS = bytes(CHUNK_BYTES)


class FlowRequest(NamedTuple):
    """Describe a flow to open.

    `server` and `bind` are the addresses of the server and of the user; `direction` is "down" or
    "up". `protocol` is "tcp" (also for MPTCP) or "udp". `cc` is the kernel's name of the congestion
    control. `rate_bps` and `volume_bytes` are None if they are unlimited. `port` is the user's port
    in all subflows; 0 means any. This is a tuple because `dataclasses` takes long to load on an
    emulated processor.
    """

    id: str
    server: str
    bind: str
    mptcp: bool
    direction: str
    cc: str
    rate_bps: int | None = None
    volume_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    protocol: str = "tcp"
    port: int = 0

    @classmethod
    def from_json(cls, request: dict[str, Any]) -> FlowRequest:
        """Return a FlowRequest with the fields of a JSON object; other keys are ignored."""
        return cls(**{key: request[key] for key in cls._fields if key in request})


class Flow:
    """Send or receive the data of a TCP or MPTCP flow at one end of its connection.

    `sends` says whether this end sends. `bytes` counts what this end has sent or received so far.
    """

    def __init__(self, request: FlowRequest, connection: socket.socket, sends: bool) -> None:
        self.connection, self.sends = connection, sends
        self.rate_bps, self._volume_bytes = request.rate_bps, request.volume_bytes
        self.started_s, self.bytes = 0.0, 0
        self.done_s: float | None = None
        self.error: str | None = None
        self._is_over = False
        self._buffer: ReceiveBuffer | None = None
        self._counted: tuple[int, int] | None = None  # `bytes`, and the kernel's counter then

    def go(self, at_s: float = 0.0) -> None:
        """Start a thread that sends or receives the data until the flow ends.

        The flow starts when the monotonic clock shows `at_s`, at once if that has passed.
        """
        threading.Thread(target=self._run, args=(at_s,), daemon=True).start()

    def stop(self) -> None:
        """End the flow by shutting its connection down in both directions."""
        self.connection.shutdown(socket.SHUT_RDWR)

    def report_rate(self, at_s: float = 0.0) -> None:
        """Send the rate of the flow to the other end, if the other end sends the data.

        The first such report also starts the flow at the other end, at the time `at_s`.
        """
        if not self.sends:
            report = {"rate_bps": self.rate_bps, "at_s": at_s}
            self.connection.sendall(json.dumps(report).encode() + b"\n")

    def set_cc(self, cc: str) -> None:
        """Change the congestion control of this end, on all present and later subflows.

        `cc` is the kernel's name of the congestion control. Do nothing if the flow has ended.
        """
        if not self._is_over:
            choose_cc(self.connection, cc)

    def further_subflows(self) -> int | None:
        """Return the number of subflows beyond the first; None if the connection is not MPTCP."""
        if not is_mptcp(self.connection):
            return None
        return self.connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 16)[0]

    def _run(self, at_s: float) -> None:
        time.sleep(max(0.0, at_s - time.monotonic()))
        self.started_s = time.time()
        try:
            (self._send if self.sends else self._receive)()
        except OSError as problem:
            self.error = problem.strerror or str(problem)
        self._is_over = True
        if self._volume_bytes is not None and self.bytes >= self._volume_bytes:
            self.done_s = time.time() - self.started_s

    def _send(self) -> None:
        """Send until the volume of the flow is sent, then close the connection for sending.

        If the flow has a rate, write in turns (see application.py); otherwise write as fast as
        possible.
        """
        left = self._volume_bytes
        turns = Application(time.monotonic())
        while left is None or left > 0:
            now_s, rate_bps = time.monotonic(), self.rate_bps
            if rate_bps is None:
                turns.restart(now_s)
                size = CHUNK_BYTES
            else:
                size = writable_bytes(
                    turns.due_bytes(rate_bps, now_s), unsent_bytes(self.connection)
                )
            size = size if left is None else min(size, left)
            self._write(size)
            left = None if left is None else left - size
            if rate_bps is not None:
                time.sleep(turns.wait_s(time.monotonic()))
        self.connection.shutdown(socket.SHUT_WR)

    def _write(self, size: int) -> None:
        """Write `size` zero bytes to the connection; wait while the kernel takes no more."""
        for start in range(0, size, CHUNK_BYTES):
            data = ZEROS[: min(CHUNK_BYTES, size - start)]
            self.connection.sendall(data)
            self.bytes += len(data)

    def _receive(self) -> None:
        """Receive until the volume of the flow has arrived, or the sender closes the connection.

        Count at most 20 times a second, and at once when the volume is complete. That is earlier
        than the end of the connection, which Linux may signal many seconds after the last byte.
        In between, the kernel copies each packet to the buffer when it arrives (MSG_WAITALL). If
        the program woke for every packet, this would cost more than the packet. If it read only 20
        times a second, it would be no ordinary receiver: between two reads the receive window
        cannot grow, and Linux then delays its acknowledgements. A slow flow is counted less often:
        counts of 30 slow flows cost more than their packets.
        """
        self._buffer = ReceiveBuffer(self.connection, is_mptcp(self.connection))
        buffer, received, wait_s = bytearray(CHUNK_BYTES), 1, COUNT_S
        self._wait_at_most(wait_s)
        while received and (most := self._still_expected()):
            new = 0
            with contextlib.suppress(BlockingIOError):
                new = received = self.connection.recv_into(buffer, most, socket.MSG_WAITALL)
            self._count(self._buffer, new)
            before_s, wait_s = wait_s, next_wait_s(wait_s, new)
            if wait_s != before_s:
                self._wait_at_most(wait_s)

    def _still_expected(self) -> int:
        """Return how many bytes a receiver asks for next; 0 if its volume is complete."""
        if self._volume_bytes is None:
            return CHUNK_BYTES
        return min(CHUNK_BYTES, self._volume_bytes - self.bytes)

    def _wait_at_most(self, wait_s: float) -> None:
        limit = struct.pack("@ll", 0, int(wait_s * 1e6))
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)

    def _count(self, buffer: ReceiveBuffer, new: int) -> None:
        self.bytes += new
        try:
            self._counted = self.bytes, buffer.delivered_bytes()
        except OSError:
            self._counted = None
        buffer.poll()

    def _bytes_now(self) -> int:
        """Return `bytes`, and for a receiver also what arrived in order after the last count."""
        if self._counted is None or self._buffer is None or self._is_over:
            return self.bytes
        counted, delivered = self._counted
        try:
            return counted + self._buffer.delivered_bytes() - delivered
        except OSError:
            return self.bytes

    def status(self) -> dict[str, Any]:
        """Return the counters of this end as a dictionary.

        `mptcp` says whether the connection is MPTCP now. `done_s` is the time that the transfer of
        the volume took, None until it is complete, and None for a flow without a volume. `error` is
        the error that ended the flow, None without an error. `held_back_bytes` is the most data
        held back since the last call; None for a sender.
        """
        return {
            "bytes": self._bytes_now(),
            "done_s": self.done_s,
            "error": self.error,
            "sends": self.sends,
            "mptcp": is_mptcp(self.connection),
            "receive_buffer_max_bytes": self._buffer.most_bytes if self._buffer else None,
            "held_back_bytes": self._buffer.take_recent_bytes() if self._buffer else None,
        }


def next_wait_s(wait_s: float, received: int) -> float:
    """Return how long a receiver waits for its next count; `wait_s` is how long it waited last.

    After few `received` bytes it waits twice as long, at most `LONGEST_COUNT_S`; otherwise it waits
    half as long, at least `COUNT_S`.
    """
    if received < FEW_BYTES:
        return min(2 * wait_s, LONGEST_COUNT_S)
    return max(wait_s / 2, COUNT_S)


def open_socket(mptcp: bool) -> socket.socket:
    """Return a new stream socket: MPTCP with `mptcp`, otherwise plain TCP."""
    return socket.socket(
        socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if mptcp else socket.IPPROTO_TCP
    )


def is_mptcp(connection: socket.socket) -> bool:
    """Return whether a connection is MPTCP now.

    It is not if the peer has not agreed to MPTCP, or if the connection has fallen back to TCP.
    """
    try:
        info = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 16)
    except OSError:
        return False
    return not struct.unpack_from("=BBBBBBxxI", info)[6] & FLAG_FALLBACK


def choose_cc(connection: socket.socket, cc: str) -> None:
    """Set the congestion control of a connection; `cc` is the kernel's name for it."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
