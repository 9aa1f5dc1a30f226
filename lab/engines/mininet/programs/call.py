"""One end of one direction of a call: sends a datagram at fixed times, or notes when each arrives.

A datagram begins with its number, from 0, and the time of the monotonic clock at which it was sent.
All hosts run on one machine, so they have the same clock. The kernel says when a datagram arrived
(SO_TIMESTAMPNS), because this program may read it later.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time

from lab.engines.mininet.programs.flow import LONGEST_SLEEP_S, DatagramFlow, FlowRequest, Status

SO_TIMESTAMPNS = 35  # asm-generic/socket.h; also the type of the control message
HEADER = struct.Struct("!Qd")
TIME = struct.Struct("@ll")  # struct timespec: time of day of the arrival
LONGEST_WAIT_S = 0.2  # until a receiver notices its end


class CallEnd(DatagramFlow):
    def __init__(self, request: FlowRequest, own: socket.socket, sends: bool) -> None:
        super().__init__(request, own, sends)
        assert request.call is not None
        self._packet_bytes, self._packet_s, _ = request.call
        self._arrived: list[tuple[int, float]] = []
        own.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def _send(self) -> None:
        begun_s = time.monotonic()
        while not self._is_over:
            wait_s = begun_s + self._datagrams * self._packet_s - time.monotonic()
            if wait_s > 0:
                time.sleep(min(wait_s, LONGEST_SLEEP_S))
                continue
            header = HEADER.pack(self._datagrams, time.monotonic())
            with contextlib.suppress(OSError):  # a full queue, or an interface without an address
                self.connection.send(header.ljust(self._packet_bytes, b"\0"))
            self._datagrams += 1
            self.bytes += self._packet_bytes

    def _receive(self) -> None:
        while not self._is_over:
            if not select.select([self.connection], [], [], LONGEST_WAIT_S)[0]:
                continue
            with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                data, control, _, _ = self.connection.recvmsg(2048, 256)
                self._note(data, control)

    def _note(self, data: bytes, control: list[tuple[int, int, bytes]]) -> None:
        if len(data) < HEADER.size:
            return  # the first datagram, which only makes the controller set up the path
        number, sent_s = HEADER.unpack_from(data)
        waited_s = next(
            (_age_s(value) for _, kind, value in control if kind == SO_TIMESTAMPNS), 0.0
        )
        self._arrived.append((number, time.monotonic() - waited_s - sent_s))
        self._count(data)

    def status(self) -> Status:
        """Return the keys of `DatagramFlow.status`, and `arrived`: [number, one-way delay in s] of
        each datagram that has arrived since the last call."""
        arrived, self._arrived = self._arrived, []
        return super().status() | {"arrived": arrived}


def _age_s(stamp: bytes) -> float:
    """Return how long ago the time of day was that a control message holds."""
    seconds, nanoseconds = TIME.unpack_from(stamp)
    return float(max(0.0, time.time() - seconds - nanoseconds / 1e9))
