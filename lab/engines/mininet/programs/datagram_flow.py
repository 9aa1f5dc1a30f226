"""Move the datagrams of one UDP flow: send them at a rate, or receive and count them.

Each datagram begins with its number, counted from 0. So the receiver knows how many datagrams are
missing and how many came out of order.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Any

from lab.engines.mininet.programs.application import Application
from lab.engines.mininet.programs.flow import COUNT_S, FlowRequest

PAYLOAD_BYTES = 1472  # of a full Ethernet frame
TURN_S = 0.005  # of the sender: the datagrams of 5 ms may leave together
LONGEST_SLEEP_S = 0.02  # until a sender notices a new rate, or its end
BUFFER_BYTES = 1 << 22
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
NUMBER = struct.Struct("!Q")


class DatagramFlow:
    """Send or receive the datagrams of a flow at one end.

    `own` is the UDP socket of this end; `sends` says whether this end sends. `rate_bps` counts
    payload. A datagram is lost if it finds a full queue, even on the sending host.
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
        """Start a thread that sends the datagrams, or receives them, until `stop`.

        The flow starts when the monotonic clock shows `at_s`, at once if that has passed.
        """
        threading.Thread(target=self._run, args=(at_s,), daemon=True).start()

    def stop(self) -> None:
        """End the flow at this end; the runner ends the flow at the other end separately."""
        self._is_over = True

    def report_rate(self, _at_s: float = 0.0) -> None:
        """Do nothing.

        A TCP flow sends its rate to the other end here. For a UDP flow, the runner sets the rate at
        both ends.
        """

    def set_cc(self, _cc: str) -> None:
        """Do nothing: UDP has no congestion control."""

    def further_subflows(self) -> None:
        """Return None: a UDP flow has no subflows."""
        return

    def _run(self, at_s: float) -> None:
        time.sleep(max(0.0, at_s - time.monotonic()))
        (self._send if self.sends else self._receive)()

    def _send(self) -> None:
        turns, due = Application(time.monotonic(), TURN_S), 0
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
        """Read what has arrived, 20 times a second."""
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

    def status(self) -> dict[str, Any]:
        """Return the counters of this end as a dictionary.

        `datagrams` counts the datagrams sent or received at this end. `out_of_order` counts
        datagrams that arrived after one with a larger number. `next` is one more than the largest
        number that has arrived.
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
    """Return a UDP socket bound to the address `bind` and this port; 0 means any free port.

    Several sockets of a server may share one port.
    """
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.bind((bind, port))
    return own
