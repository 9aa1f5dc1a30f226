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
from lab.scenario.clients import NEVER_S, Ask, Asks, ClientSpec, Done, Quality, make

HEADER = struct.Struct("!II")
LONGEST_WAIT_S = 0.5  # until a client notices that its connections have ended


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


class AskingClient:
    """A client and its connections. It runs in a thread from the start of its last connection on.

    Times are in s since the start of the run, as for `lab.scenario.clients.Client`.
    """

    def __init__(self, spec: ClientSpec) -> None:
        self._spec, self._client = spec, make(spec)
        self._ends: list[AskingEnd] = []
        self._zero_s = 0.0
        self._done: list[Done] = []
        self._lock = threading.Lock()

    def add(self, end: AskingEnd) -> None:
        """Add a connection, or one that was opened anew in place of an incomplete one."""
        others = [each for each in self._ends if each.place != end.place]
        self._ends = sorted([*others, end], key=lambda each: each.place)

    def go(self, at_s: float, run_s: float) -> None:
        """Begin at `at_s` on the monotonic clock, which is `run_s` after the start of the run, if
        all connections have been told to."""
        if any(end.started_s == 0.0 for end in self._ends):
            return
        if len(self._ends) == self._spec.connections:
            self._zero_s = at_s - run_s
            threading.Thread(target=self._run, args=(at_s,), daemon=True).start()

    def take_done(self) -> list[Done]:
        with self._lock:
            found, self._done = self._done, []
        return found

    def waiting(self) -> list[tuple[float, int]]:
        with self._lock:
            return list(self._client.waiting)

    def quality(self) -> Quality | None:
        with self._lock:
            return self._client.quality(self._now_s) if self._zero_s else None

    @property
    def _now_s(self) -> float:
        return time.monotonic() - self._zero_s

    def _run(self, at_s: float) -> None:
        time.sleep(max(0.0, at_s - time.monotonic()))
        by_socket = {end.connection: end for end in self._ends}
        try:
            with self._lock:
                asks = self._client.begin(self._now_s)
            self._act(asks)
            while by_socket:
                self._wake()
                wait_s = min(LONGEST_WAIT_S, max(0.0, self._client.wake_s - self._now_s))
                for connection in select.select([*by_socket], [], [], wait_s)[0]:
                    answered = by_socket[connection].read()
                    if answered is None:
                        del by_socket[connection]
                    for ask in answered or ():
                        self._take(ask)
        except OSError as problem:
            for end in self._ends:
                end.error = problem.strerror or str(problem)

    def _wake(self) -> None:
        if self._client.wake_s <= self._now_s:
            with self._lock:
                self._client.wake_s = NEVER_S
                asks = self._client.woke(self._now_s)
            self._act(asks)

    def _take(self, ask: Ask) -> None:
        now_s = self._now_s
        with self._lock:
            asks = self._client.answered(now_s, ask)
            self._done += self._client.take_done()
        self._act(asks)

    def _act(self, asks: Asks) -> None:
        for ask in asks:
            self._ends[ask.connection].ask(ask, self._spec.request_bytes)


class AskingEnd(Flow):
    """The user's end of a connection of a client."""

    def __init__(self, request: FlowRequest, connection: socket.socket, of: AskingClient) -> None:
        super().__init__(request, connection, sends=False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.place, self._of = request.place, of
        self._asked: deque[tuple[Ask, int]] = deque()  # and the bytes that are still to come
        self._buffer = ReceiveBuffer(connection, is_mptcp(connection))
        self._space = bytearray(CHUNK_BYTES)
        of.add(self)

    def go_at(self, at_s: float, run_s: float) -> None:
        self.started_s = at_s
        self._of.go(at_s, run_s)

    def report_rate(self, at_s: float = 0.0) -> None:
        """Do nothing: the server sends what it is asked for, at no set rate."""

    def ask(self, ask: Ask, request_bytes: int) -> None:
        length = max(HEADER.size, request_bytes)
        self._asked.append((ask, ask.answer_bytes))
        self.connection.sendall(
            HEADER.pack(length, ask.answer_bytes) + ZEROS[: length - HEADER.size]
        )

    def read(self) -> list[Ask] | None:
        """Read what has arrived. Return the requests whose answers are complete now, or None if the
        server has closed the connection."""
        received = self.connection.recv_into(self._space)
        if not received:
            return None
        self.bytes += received
        if self._buffer:
            self._buffer.poll()
        answered = []
        while received and self._asked:
            ask, left = self._asked.popleft()
            if received < left:
                self._asked.appendleft((ask, left - received))
                break
            received -= left
            answered.append(ask)
        return answered

    def status(self) -> Status:
        """Return the keys of `Flow.status`. The first connection of a client has others, with
        times in s of the run:

        - `exchanges`: [when the user wanted it, when it was complete, bytes] of each exchange that
          was complete since the last call
        - `waiting`: [when the user wanted it, bytes] of each that is not complete
        - `quality`: of a video, the values of `lab.scenario.clients.Quality`; else null
        """
        if self.place:
            return super().status()
        own = {"exchanges": self._of.take_done(), "waiting": self._of.waiting()}
        return super().status() | own | {"quality": self._of.quality()}
