"""Send or receive the data of one flow over TCP, MPTCP or UDP.

The sender has a given rate, or sends as fast as possible. `Flow` is for TCP and MPTCP,
`DatagramFlow` for UDP. `Application` decides how many bytes are written, and when.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

# How much data an application with a limited rate writes, and when. Both engines have this rule
# (lab/engines/sim/core/mptcp.py, `on_application`):
#
# 1) The application has a turn every 20 ms. In each turn, it may write as much data as its rate
#    gives for the time since the last turn: the data that is due. The turns are at fixed times, so
#    a late turn makes up for the delay, up to one second.
# 2) Data that TCP cannot send does not pile up. After its turn, an application is at most 16
#    segments ahead of TCP, or the data that was due in this turn if that is more. The application
#    skips the rest, and never sends it later.
#
# A datagram application has shorter turns, and skips nothing.

WRITING_TURN_S = 0.02
CATCH_UP_S = 1.0  # the longest delay that is made up for
UNSENT_BYTES = 16 * 1448  # 16 segments of TCP with time stamps
SIOCOUTQNSD = 0x894B  # linux/sockios.h: data written and not sent


class Application:
    """Decides when an application with a limited rate writes data, and how many bytes.

    The application writes in turns, at fixed times. A fraction of a byte is kept for the next turn.
    """

    def __init__(self, now_s: float, turn_s: float = WRITING_TURN_S) -> None:
        """`now_s` is the time of the first turn, and `turn_s` the time between two turns.

        In the first turn, as much data is due as the application produces in `turn_s`.
        """
        self._period_s, self._due_s = turn_s, now_s
        self._last_s, self._fraction = now_s - turn_s, 0.0

    def due_bytes(self, rate_bps: int, now_s: float) -> int:
        """Return how many bytes are due in the turn at `now_s`. Call this once per turn.

        These are the bytes that the application produces at `rate_bps` since the last turn. If that
        was more than `CATCH_UP_S` seconds ago, only the bytes of `CATCH_UP_S` seconds are due.
        """
        elapsed_s, self._last_s = min(CATCH_UP_S, now_s - self._last_s), now_s
        exact = self._fraction + rate_bps * elapsed_s / 8
        self._fraction = exact - int(exact)
        return int(exact)

    def restart(self, now_s: float) -> None:
        """Forget the data that was due before `now_s`."""
        self._last_s = now_s

    def wait_s(self, now_s: float) -> float:
        """Choose the time of the next turn, and return how long to wait until this time [s].

        The result is 0 if the next turn is late. `now_s` is the current time. Call this once per
        turn.
        """
        self._due_s = max(self._due_s + self._period_s, now_s)
        return self._due_s - now_s


def writable_bytes(due: int, unsent: int) -> int:
    """Return how many of the `due` bytes an application writes in this turn. The rest is dropped.

    `unsent` is the number of bytes that the application has written before and that TCP has not
    sent yet. After the turn, at most `UNSENT_BYTES` (16 segments) are unsent. If `due` is
    larger, at most `due` bytes are unsent.
    """
    return max(0, min(due, max(UNSENT_BYTES, due) - unsent))


def unsent_bytes(connection: socket.socket) -> int:
    """Return the number of bytes that have been written to the socket and are not sent yet.

    In MPTCP, a byte counts as sent when a subflow has taken it. Returns 0 if this kernel has no
    such counter.
    """
    answer = bytearray(4)
    try:
        fcntl.ioctl(connection.fileno(), SIOCOUTQNSD, answer)
    except OSError:
        return 0
    return int(struct.unpack("@i", answer)[0])


# How much data a receiver holds back because data before it is missing.
#
# The kernel has no counter for the data held back. It is computed from two counters in bytes:
#
#     arrived - delivered = held back + duplicates so far
#
# `arrived` is the data of all segments that arrived on any subflow. `delivered` is the data that
# the application can read in order. The number of duplicates only grows. So if the difference
# falls, data was held back before and is delivered now. The largest fall of the difference from a
# peak is the largest amount of data held back.

SOL_MPTCP, MPTCP_INFO, MPTCP_TCPINFO = 284, 1, 2  # linux/mptcp.h
INFO_BYTES = 192  # of a struct tcp_info, up to its data_segs_in and some more
MAX_SUBFLOWS = 64
SUBFLOW_DATA = struct.Struct("=IIII")  # struct mptcp_subflow_data
PERIOD_S = 0.05  # between two polls
MAX_ATTEMPTS = 10  # to read all counters while no data arrives


class ReceiveBuffer:
    """Measure how many bytes have arrived but wait in the kernel for earlier bytes.

    The kernel has no such counter, so the number is known only afterwards, when the bytes are
    delivered. `most_bytes` is the largest number so far; None before the first `poll`.
    """

    def __init__(self, connection: socket.socket, is_mptcp: bool) -> None:
        self._connection, self._is_mptcp = connection, is_mptcp
        self._getsockopt: Callable[..., int] | None = None
        self._segment_bytes = 0  # of a full segment: the largest that arrived
        self._subflows, self._peak, self._due_s = 0, 0, 0.0
        self._difference, self._recent_peak, self._recent_bytes = 0, 0, 0
        self.most_bytes: int | None = None

    def poll(self) -> None:
        """Read the kernel's counters of the connection, but at most once per `PERIOD_S`."""
        now = time.monotonic()
        if now < self._due_s:
            return
        self._due_s = now + PERIOD_S
        try:
            infos, delivered = self._multipath() if self._is_mptcp else self._plain()
        except OSError:  # the connection has ended, or this kernel cannot say
            return
        if infos:
            self.take([(info.segments, info.segment_bytes) for info in infos], delivered)

    def take(self, arrived: list[tuple[int, int]], delivered: int) -> None:
        """Update `most_bytes` with counters of the connection that were read together.

        `arrived` has, for each subflow, the number of data segments and the size of a segment in
        bytes. `delivered` is the number of bytes delivered in order.
        """
        self._segment_bytes = max(self._segment_bytes, *(size for _, size in arrived))
        difference = sum(count for count, _ in arrived) * self._segment_bytes - delivered
        if len(arrived) != self._subflows:  # counters of another subflow begin or end
            self._subflows, self._peak, self._recent_peak = len(arrived), difference, difference
        self._difference = difference
        self._peak = max(self._peak, difference)
        self.most_bytes = max(self.most_bytes or 0, self._peak - difference)
        self._recent_peak = max(self._recent_peak, difference)
        self._recent_bytes = max(self._recent_bytes, self._recent_peak - difference)

    def take_recent_bytes(self) -> int | None:
        """Return the largest number of bytes that have waited for earlier bytes at the same time.

        Only bytes that were delivered since the last call of this method count. The result is None
        before the first `poll`.
        """
        if self.most_bytes is None:
            return None
        found, self._recent_bytes, self._recent_peak = self._recent_bytes, 0, self._difference
        return found

    def delivered_bytes(self) -> int:
        """Return a counter of the bytes that have arrived in order.

        The counter does not start at 0.

        Bytes that the application has not read yet are included. Raises `OSError` if the connection
        has ended.
        """
        if not self._is_mptcp:
            return self._plain()[1]
        info = self._connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 40)
        return int(struct.unpack_from("=Q", info, 32)[0])  # the next expected sequence number

    def _plain(self) -> tuple[list[TcpInfo], int]:
        info = TcpInfo(self._connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES))
        return [info], info.bytes_received

    def _multipath(self) -> tuple[list[TcpInfo], int]:
        """Return the counters of all subflows, and the number of bytes delivered at that moment.

        If data is delivered during the reading, everything is read again, at most `MAX_ATTEMPTS`
        times in all. If no attempt succeeds, the result is ([], 0).
        """
        for _ in range(MAX_ATTEMPTS):
            before = self.delivered_bytes()
            infos = self._subflow_infos()
            if self.delivered_bytes() == before:
                return infos, before
        return [], 0

    def _subflow_infos(self) -> list[TcpInfo]:
        """Return the TCP counters of every subflow (socket option MPTCP_TCPINFO).

        This calls the C library, because the option needs an input that Python's getsockopt cannot
        pass.
        """
        import ctypes  # slow to load, and a host that only sends does not need it

        if self._getsockopt is None:
            self._getsockopt = ctypes.CDLL(None, use_errno=True).getsockopt
        buffer = ctypes.create_string_buffer(SUBFLOW_DATA.size + MAX_SUBFLOWS * INFO_BYTES)
        SUBFLOW_DATA.pack_into(buffer, 0, SUBFLOW_DATA.size, 0, 0, INFO_BYTES)
        length = ctypes.c_uint(len(buffer))
        number = self._connection.fileno()
        if self._getsockopt(number, SOL_MPTCP, MPTCP_TCPINFO, buffer, ctypes.byref(length)):
            raise OSError(ctypes.get_errno(), "read the subflows")
        raw = buffer.raw
        header, count, _, size = SUBFLOW_DATA.unpack_from(raw, 0)
        starts = range(header, header + min(count, MAX_SUBFLOWS) * size, size)
        return [TcpInfo(raw[start : start + size]) for start in starts]


class TcpInfo:
    """Three counters of received data from a struct tcp_info (linux/tcp.h)."""

    def __init__(self, raw: bytes) -> None:
        (self.segment_bytes,) = struct.unpack_from("=I", raw, 20)  # tcpi_rcv_mss
        (self.bytes_received,) = struct.unpack_from("=Q", raw, 128)
        (self.segments,) = struct.unpack_from("=I", raw, 152)  # tcpi_data_segs_in


IPPROTO_MPTCP = 262  # RFC 8684 on Linux: a program must request it for a socket
FLAG_FALLBACK = 1  # mptcpi_flags: the connection fell back to TCP (linux/mptcp.h)
CHUNK_BYTES = 1 << 18
COUNT_S = 0.05  # between two counts of a receiver, at least
LONGEST_COUNT_S = 0.4
FEW_BYTES = 8 * 1420  # of a few segments: fewer do not need a count of their own
ZEROS = bytes(CHUNK_BYTES)


Status = dict[str, Any]  # the counters of one end of a flow, as JSON


class FlowRequest(NamedTuple):
    """The parameters of a flow to open.

    - `server`, `bind`: address of the server, and address of the user
    - `direction`: "down" or "up"
    - `protocol`: "tcp" (also for MPTCP) or "udp"
    - `cc`: the kernel's name of the congestion control
    - `rate_bps`, `volume_bytes`: None means unlimited
    - `port`: the user's port in all subflows; 0 means any port
    - `counted_from_s`: when the transfer began on the monotonic clock, if this is before its
      connection is open; 0: it begins with its first data
    - `client`: the values of a `ClientSpec` if the user asks for the data; else None
    - `place`: the number of the connection among those of the client, from 0
    - `call`: the values of a `CallSpec` if it is one direction of a call; else None

    This is not a dataclass, because the module `dataclasses` takes long to load on an emulated
    processor.
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
    counted_from_s: float = 0.0
    client: list[Any] | None = None
    place: int = 0
    call: list[Any] | None = None

    @classmethod
    def from_json(cls, request: dict[str, Any]) -> FlowRequest:
        """Take the fields of this class from `request`, and ignore all other keys."""
        return cls(**{key: request[key] for key in cls._fields if key in request})


def first_bytes(request: FlowRequest) -> bytes:
    """Return what the user's end sends first: the request, a line of JSON.

    If the flow starts at once, the command to start follows in the same packet. Sent on its own, it
    would wait until the request is acknowledged (RFC 9293, section 3.7.4).
    """
    line = json.dumps(request._asdict()).encode() + b"\n"
    is_started = bool(request.counted_from_s) and request.direction == "down"
    return line + start_line(request.rate_bps) if is_started else line


def start_line(rate_bps: int | None, at_s: float = 0.0) -> bytes:
    return json.dumps({"rate_bps": rate_bps, "at_s": at_s}).encode() + b"\n"


class Flow:
    """One end of a TCP or MPTCP flow: sends the flow's data or receives it.

    `sends` is True if this end sends. `bytes` is the number of bytes that this end has sent or
    received.
    """

    def __init__(self, request: FlowRequest, connection: socket.socket, sends: bool) -> None:
        self.connection, self.sends = connection, sends
        self.rate_bps, self._volume_bytes = request.rate_bps, request.volume_bytes
        self.started_s, self.bytes = 0.0, 0
        self._counted_from_s = request.counted_from_s
        self.done_s: float | None = None
        self.error: str | None = None
        self._is_over = self._is_mptcp = False
        self._buffer: ReceiveBuffer | None = None
        self._counted: tuple[int, int] | None = None  # `bytes`, and the kernel's counter then

    def go(self, at_s: float = 0.0) -> None:
        """Start a thread that sends or receives the data until the flow ends.

        The flow starts at `at_s` on the monotonic clock, or at once if this time has passed.
        """
        threading.Thread(target=self._run, args=(at_s,), daemon=True).start()

    def stop(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)

    def report_rate(self, at_s: float = 0.0) -> None:
        """If the other end sends the data, tell it the rate of the flow. Otherwise do nothing.

        The first call also starts the flow at the other end, at the time `at_s` of the monotonic
        clock.
        """
        if not self.sends:
            self.connection.sendall(start_line(self.rate_bps, at_s))

    def set_cc(self, cc: str) -> None:
        """Change the congestion control of this end, on all subflows and also on later ones.

        `cc` is the kernel's name of the congestion control. This does nothing if the flow has
        ended.
        """
        if not self._is_over:
            choose_cc(self.connection, cc)

    def further_subflows(self) -> int | None:
        """Return how many subflows there are beyond the first, or None if this is not MPTCP."""
        if not is_mptcp(self.connection):
            return None
        return self.connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 16)[0]

    def _run(self, at_s: float) -> None:
        time.sleep(max(0.0, at_s - time.monotonic()))
        self.started_s = self._counted_from_s or time.monotonic()
        try:
            (self._send if self.sends else self._receive)()
        except OSError as problem:
            self.error = problem.strerror or str(problem)
        self._is_over = True
        if self._volume_bytes is not None and self.bytes >= self._volume_bytes:
            self.done_s = time.monotonic() - self.started_s
        if self._counted_from_s:  # one of many connections, which stay open for nothing
            self._is_mptcp = is_mptcp(self.connection)
            self.connection.close()

    def _send(self) -> None:
        """Send the whole volume of the flow, then close the connection for sending.

        A flow with a rate writes in turns (see `Application`). Other flows write as fast as
        possible.
        """
        left = self._volume_bytes
        if left is not None:  # else the last segment, not a full one, waits for acknowledgements
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
        """Write this many zero bytes. Wait while the send buffer is full."""
        for start in range(0, size, CHUNK_BYTES):
            data = ZEROS[: min(CHUNK_BYTES, size - start)]
            self.connection.sendall(data)
            self.bytes += len(data)

    def _receive(self) -> None:
        """Receive until the volume of the flow has arrived, or the sender closes the connection.

        Waking up for every packet would cost more than the packet itself. So the bytes are counted
        at most 20 times a second, and less often if the flow is slow. MSG_WAITALL lets the kernel
        copy each packet to the buffer at once. Without it, the receive window could not grow
        between two counts, and Linux would delay its ACKs.

        Linux may signal the end of the connection many seconds after the last byte. So this
        function stops as soon as the volume has arrived.
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
        """Return how many bytes to request next, or 0 if the volume is complete."""
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
        """Return the bytes sent or received up to now.

        A receiver updates `bytes` only now and then. So this method adds the bytes that have
        arrived in order since the last update.
        """
        if self._counted is None or self._buffer is None or self._is_over:
            return self.bytes
        counted, delivered = self._counted
        try:
            return counted + self._buffer.delivered_bytes() - delivered
        except OSError:
            return self.bytes

    def status(self) -> Status:
        """Return the counters of this end.

        - `done_s`: duration of the whole transfer; None until it is complete, and for an unlimited
          flow
        - `error`: the error that ended the flow, or None
        - `mptcp`: True if the connection is MPTCP now
        - `receive_buffer_max_bytes`: the most bytes that have arrived but waited for earlier bytes;
          None at a sender
        - `held_back_bytes`: like `receive_buffer_max_bytes`, but only since the last call
        """
        return {
            "bytes": self._bytes_now(),
            "done_s": self.done_s,
            "error": self.error,
            "sends": self.sends,
            "mptcp": self._is_mptcp or is_mptcp(self.connection),
            "receive_buffer_max_bytes": self._buffer.most_bytes if self._buffer else None,
            "held_back_bytes": self._buffer.take_recent_bytes() if self._buffer else None,
        }


def next_wait_s(wait_s: float, received: int) -> float:
    """Return how many seconds a receiver waits for its next count, after a wait of `wait_s`.

    The time doubles, up to `LONGEST_COUNT_S`, if fewer than `FEW_BYTES` arrived during the last
    wait. Otherwise it is halved, down to `COUNT_S`.
    """
    if received < FEW_BYTES:
        return min(2 * wait_s, LONGEST_COUNT_S)
    return max(wait_s / 2, COUNT_S)


def open_socket(mptcp: bool) -> socket.socket:
    return socket.socket(
        socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if mptcp else socket.IPPROTO_TCP
    )


def is_mptcp(connection: socket.socket) -> bool:
    """Return False if the peer has refused MPTCP, or if the connection has fallen back to TCP."""
    try:
        info = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 16)
    except OSError:
        return False
    return not struct.unpack_from("=BBBBBBxxI", info)[6] & FLAG_FALLBACK


def choose_cc(connection: socket.socket, cc: str) -> None:
    """Set the congestion control of a socket. `cc` is the kernel's name of it."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())


# Each datagram of a UDP flow begins with its number, counted from 0. So the receiver knows how many
# datagrams are missing and how many came out of order.

PAYLOAD_BYTES = 1472  # of a full Ethernet frame
DATAGRAM_TURN_S = 0.005  # of the sender: the datagrams of 5 ms may leave together
LONGEST_SLEEP_S = 0.02  # until a sender notices a new rate, or its end
BUFFER_BYTES = 1 << 22
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
NUMBER = struct.Struct("!Q")


class DatagramFlow:
    """One end of a UDP flow: sends datagrams, or receives and counts them.

    `own` is the UDP socket of this end. `rate_bps` counts payload only. If a queue is full, even on
    the sending host, the datagram is lost.
    """

    def __init__(self, request: FlowRequest, own: socket.socket, sends: bool) -> None:
        self.connection, self.sends = own, sends
        self.rate_bps = request.rate_bps
        self.bytes, self.error = 0, None
        self._datagrams, self._out_of_order, self._next = 0, 0, 0
        self._is_over = False
        for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
            with contextlib.suppress(PermissionError):
                own.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
        own.setblocking(False)

    def go(self, at_s: float = 0.0) -> None:
        """Start a thread that sends or receives datagrams until `stop` is called.

        The flow starts at `at_s` on the monotonic clock, or at once if this time has passed.
        """
        threading.Thread(target=self._run, args=(at_s,), daemon=True).start()

    def stop(self) -> None:
        """End the flow at this end only. The other end must be stopped separately."""
        self._is_over = True

    def report_rate(self, _at_s: float = 0.0) -> None:
        """Do nothing. The main process of the run tells both ends of a UDP flow the rate."""

    def set_cc(self, _cc: str) -> None:
        """Do nothing, because UDP has no congestion control."""

    def further_subflows(self) -> None:
        """Return None, because a UDP flow has no subflows."""
        return

    def _run(self, at_s: float) -> None:
        time.sleep(max(0.0, at_s - time.monotonic()))
        (self._send if self.sends else self._receive)()

    def _send(self) -> None:
        turns, due = Application(time.monotonic(), DATAGRAM_TURN_S), 0
        while not self._is_over:
            now_s, rate_bps = time.monotonic(), self.rate_bps or 0
            due += turns.due_bytes(rate_bps, now_s)
            for _ in range(due // PAYLOAD_BYTES):
                self._send_one()
            due %= PAYLOAD_BYTES
            next_s = (PAYLOAD_BYTES - due) * 8 / rate_bps if rate_bps else LONGEST_SLEEP_S
            time.sleep(max(turns.wait_s(time.monotonic()), min(next_s, LONGEST_SLEEP_S)))

    def _send_one(self) -> None:
        data = NUMBER.pack(self._datagrams).ljust(PAYLOAD_BYTES, b"\0")
        with contextlib.suppress(OSError):  # a full queue, or no receiver yet
            self.connection.send(data)
        self._datagrams += 1
        self.bytes += PAYLOAD_BYTES

    def _receive(self) -> None:
        """Read all datagrams that have arrived, 20 times a second."""
        while not self._is_over:
            with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                while True:
                    self._count(self.connection.recv(2048))
            time.sleep(COUNT_S)

    def _count(self, data: bytes) -> None:
        if len(data) < NUMBER.size:
            return  # the first datagram, which only makes the controller set up the path
        (number,) = NUMBER.unpack_from(data)
        self._datagrams += 1
        self._out_of_order += number < self._next
        self._next = max(self._next, number + 1)
        self.bytes += len(data)

    def status(self) -> Status:
        """Return the counters of this end, with the keys of `Flow.status` and three others.

        - `datagrams`: number of datagrams that this end has sent or received
        - `out_of_order`: number of datagrams that arrived after one with a larger sequence number
        - `next`: the largest sequence number that has arrived, plus 1
        """
        return {
            "bytes": self.bytes,
            "done_s": None,
            "error": self.error,
            "sends": self.sends,
            "mptcp": False,
            "receive_buffer_max_bytes": 0,
            "held_back_bytes": 0,
            "datagrams": self._datagrams,
            "out_of_order": self._out_of_order,
            "next": self._next,
        }


def open_datagrams(bind: str, port: int = 0) -> socket.socket:
    """Return a UDP socket bound to the address `bind` and to `port`; 0 means any free port.

    Several sockets can share a port (SO_REUSEADDR).
    """
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.bind((bind, port))
    return own


# All subflows of a connection get the same local port. A hash of addresses and ports chooses among
# equally short paths. If the kernel drew the ports, the paths would differ from run to run. The
# scenario draws them from its seed.

IP_LOCAL_PORT_RANGE = 51  # linux/in.h; Linux applies it to subflows since version 6.8
OPENING_S = 3.0  # by then a new connection has its subflows


def bind(connection: socket.socket, address: str, port: int) -> None:
    """Bind a TCP or MPTCP socket to `address` and `port`; 0 means any free port.

    All subflows that open within `OPENING_S` seconds get this port. Later subflows get any port,
    because the kernel reserves the port of a closed subflow for a minute. The socket gets any free
    port if `port` is in use, or if the kernel lacks IP_LOCAL_PORT_RANGE.
    """
    try:
        _limit(connection, port)
        connection.bind((address, port))
    except OSError:
        _lift(connection)
        connection.bind((address, 0))
    else:
        later = threading.Timer(OPENING_S, _lift, (connection,))
        later.daemon = True
        later.start()


def _limit(connection: socket.socket, port: int) -> None:
    """Allow subflows of the connection to use only this local port; 0 allows all ports."""
    allowed = struct.pack("=I", port << 16 | port)
    connection.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, allowed)


def _lift(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        _limit(connection, 0)
