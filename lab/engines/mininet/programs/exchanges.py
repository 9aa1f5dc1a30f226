"""The two ends of a connection over which a client asks for data, and the thread of a client.

A request is two numbers, its length and the length of the answer in bytes, and then zeros. The
server answers requests in their order. `lab.scenario.clients` says what the client asks, and when.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections import deque

from lab.engines.mininet.programs.flow import (
    CHUNK_BYTES,
    ZEROS,
    Flow,
    FlowRequest,
    ReceiveBuffer,
    Status,
    is_mptcp,
)
from lab.scenario.clients import NEVER_S, Ask, Asks, ClientSpec, Done, make

HEADER = struct.Struct("!II")
LONGEST_WAIT_S = 0.5  # until a client notices that its connection has ended


class AnsweringEnd(Flow):
    """The server's end: it sends what it is asked for."""

    def _send(self) -> None:
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while header := self._exactly(HEADER.size):
            length, answer_bytes = HEADER.unpack(header)
            self._exactly(length - HEADER.size)
            self._write(answer_bytes)

    def _exactly(self, size: int) -> bytes:
        """Read this many bytes, or nothing if the client has closed the connection."""
        got = self.connection.recv(size, socket.MSG_WAITALL) if size else b""
        return got if len(got) == size else b""


class AskingEnd(Flow):
    """The user's end. Its client runs in a thread, from `go` on, and draws random numbers from the
    seed in its specification."""

    def __init__(self, request: FlowRequest, connection: socket.socket) -> None:
        super().__init__(request, connection, sends=False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._spec = ClientSpec(*request.client or ())
        self._client = make(self._spec)
        self._asked: deque[tuple[Ask, int]] = deque()  # and the bytes that are still to come
        self._zero_s = 0.0
        self._done: list[Done] = []
        self._lock = threading.Lock()

    def go_at(self, at_s: float, run_s: float) -> None:
        """Begin at `at_s` on the monotonic clock, which is `run_s` after the start of the run."""
        self._zero_s = at_s - run_s
        self.go(at_s)

    def report_rate(self, at_s: float = 0.0) -> None:
        """Do nothing: the server sends what it is asked for, at no set rate."""

    def _receive(self) -> None:
        self._buffer = ReceiveBuffer(self.connection, is_mptcp(self.connection))
        buffer = bytearray(CHUNK_BYTES)
        self._ask(self._client.begin(self._now_s))
        while True:
            if self._client.wake_s <= self._now_s:
                self._client.wake_s = NEVER_S
                self._ask(self._client.woke(self._now_s))
            wait_s = min(LONGEST_WAIT_S, max(0.0, self._client.wake_s - self._now_s))
            readable, _, _ = select.select([self.connection], [], [], wait_s)
            if not readable:
                continue
            received = self.connection.recv_into(buffer)
            if not received:
                return
            self._take(received)
            self._buffer.poll()

    @property
    def _now_s(self) -> float:
        return time.monotonic() - self._zero_s

    def _ask(self, asks: Asks) -> None:
        length = max(HEADER.size, self._spec.request_bytes)
        for ask in asks:
            self._asked.append((ask, ask.answer_bytes))
            request = HEADER.pack(length, ask.answer_bytes) + ZEROS[: length - HEADER.size]
            self.connection.sendall(request)

    def _take(self, received: int) -> None:
        """Count bytes that have arrived, and let the client act when they end an answer."""
        self.bytes += received
        while received and self._asked:
            ask, left = self._asked.popleft()
            if received < left:
                self._asked.appendleft((ask, left - received))
                return
            received -= left
            now_s = self._now_s
            with self._lock:
                asks = self._client.answered(now_s, ask)
                self._done += self._client.take_done()
            self._ask(asks)

    def status(self) -> Status:
        """Return the keys of `Flow.status` and two others, with times in s of the run.

        - `exchanges`: [when the user wanted it, when it was complete, bytes] of each exchange that
          was complete since the last call
        - `waiting`: [when the user wanted it, bytes] of each that is not complete
        """
        with self._lock:
            done, self._done = self._done, []
            waiting = list(self._client.waiting)
        return super().status() | {"exchanges": done, "waiting": waiting}
