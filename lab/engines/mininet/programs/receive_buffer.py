"""Measure how much data a receiver holds back because data before it is missing.

The kernel has no counter for the data held back. It is computed from two counters in bytes:

    arrived - delivered = held back + duplicates so far

`arrived` is the data of all segments that arrived on any subflow. `delivered` is the data that the
application can read in order. The number of duplicates only grows. So if the difference falls, data
was held back before and is delivered now. The largest fall of the difference from a peak is the
largest amount of data held back.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

SOL_MPTCP, MPTCP_INFO, MPTCP_TCPINFO = 284, 1, 2  # linux/mptcp.h
INFO_BYTES = 192  # of a struct tcp_info, up to its data_segs_in and some more
MAX_SUBFLOWS = 64
SUBFLOW_DATA = struct.Struct("=IIII")  # struct mptcp_subflow_data
PERIOD_S = 0.05  # between two polls
MAX_ATTEMPTS = 10  # to read all counters while no data arrives


class ReceiveBuffer:
    """Measure the data held back at the receiving end of one connection, by repeated polls.

    `most_bytes` is the largest amount so far; None before the first poll. `take_recent_bytes`
    returns the largest amount that was delivered since its last call. Data that is still held back
    does not count before it is delivered.
    """

    def __init__(self, connection: socket.socket, is_mptcp: bool) -> None:
        self._connection, self._is_mptcp = connection, is_mptcp
        self._getsockopt: Callable[..., int] | None = None
        self._segment_bytes = 0  # of a full segment: the largest that arrived
        self._subflows, self._peak, self._due_s = 0, 0, 0.0
        self._difference, self._recent_peak, self._recent_bytes = 0, 0, 0
        self.most_bytes: int | None = None

    def poll(self) -> None:
        """Read the counters of the connection, unless the last poll was less than 50 ms ago."""
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
        """Update `most_bytes` from one reading of the counters.

        `arrived` has the number of segments and the segment size in bytes of each subflow,
        `delivered` the number of bytes delivered in order.
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
        """Return the most data that was held back and then delivered since the last call, in bytes.

        Return None before the first poll.
        """
        if self.most_bytes is None:
            return None
        found, self._recent_bytes, self._recent_peak = self._recent_bytes, 0, self._difference
        return found

    def delivered_bytes(self) -> int:
        """Return a counter of the bytes that the application can read in order or has read.

        It does not start at 0. Raise `OSError` if the connection has ended.
        """
        if not self._is_mptcp:
            return self._plain()[1]
        info = self._connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 40)
        return int(struct.unpack_from("=Q", info, 32)[0])  # the next expected sequence number

    def _plain(self) -> tuple[list[TcpInfo], int]:
        info = TcpInfo(self._connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES))
        return [info], info.bytes_received

    def _multipath(self) -> tuple[list[TcpInfo], int]:
        """Return the counters of all subflows, and the bytes delivered at the same time.

        The delivered bytes are read before and after the counters. If they differ, all is read once
        more, at most `MAX_ATTEMPTS` times; after that the result is an empty list and 0.
        """
        for _ in range(MAX_ATTEMPTS):
            before = self.delivered_bytes()
            infos = self._subflow_infos()
            if self.delivered_bytes() == before:
                return infos, before
        return [], 0

    def _subflow_infos(self) -> list[TcpInfo]:
        """Return the TCP counters of every subflow.

        This calls getsockopt of the C library: Python's getsockopt cannot pass the input that the
        option MPTCP_TCPINFO needs.
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
    """Decode the received bytes, the segments and their size in a struct tcp_info (linux/tcp.h)."""

    def __init__(self, raw: bytes) -> None:
        (self.segment_bytes,) = struct.unpack_from("=I", raw, 20)  # tcpi_rcv_mss
        (self.bytes_received,) = struct.unpack_from("=Q", raw, 128)
        (self.segments,) = struct.unpack_from("=I", raw, 152)  # tcpi_data_segs_in
