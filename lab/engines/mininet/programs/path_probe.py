"""Measure the rates and the round-trip time of the path between a server and a user's address.

- Downlink: the user's host sends a request, and the server answers with a burst of full frames.
- Uplink: the user's host sends a burst of full frames. Then it asks the server at which rate they
  arrived.

The frames of a burst are sent faster than the path can carry them. So a queue builds up at the
slowest link of the path, and the frames arrive at the rate of this link. The frames are not sent
all at once, because a short queue would drop most of them.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

PROBE_PORT = 5002
SO_RCVBUFFORCE = 33
FRAME_BYTES, PAYLOAD_BYTES = 1514, 1472
WARM_UP_PACKETS = 10
MAX_PACKETS = 1000
RECEIVE_BUFFER_BYTES = 1 << 20
TIMEOUT_S = 1.0
UPLINK_TIMEOUT_S = 3.0  # a slow path needs seconds for the whole burst
ASK_AGAIN_S = 0.5
ARRIVED = b"arrived"  # the request for the rate of a burst from the user's side
MIN_ARRIVALS = 10
ZEROS = bytes(PAYLOAD_BYTES)


@dataclass(frozen=True)
class Burst:
    """A number of full Ethernet frames to send, and their rate `send_bps`; 0 means no pauses."""

    packets: int
    send_bps: int

    def send(self, sender: socket.socket, peer: tuple[str, int]) -> None:
        interval_s = FRAME_BYTES * 8 / self.send_bps if self.send_bps else 0.0
        began_s = time.monotonic()
        for number in range(min(self.packets, MAX_PACKETS)):
            wait_s = began_s + number * interval_s - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            sender.sendto(ZEROS, peer)


def serve() -> None:
    """Start a thread that answers measurement requests on UDP port `PROBE_PORT`."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    listener.bind(("", PROBE_PORT))
    threading.Thread(target=_answer, args=(listener,), daemon=True).start()


def _answer(listener: socket.socket) -> None:
    """Answer measurement requests for ever.

    The request "100 2000000" gets a burst of 100 frames at 2000000 bit/s. The request `ARRIVED`
    gets a number: the rate [bit/s] at which the burst of the sender has arrived, or 0 if the rate
    is unknown.
    """
    arrivals: dict[tuple[str, int], list[float]] = {}
    while True:
        request, peer = listener.recvfrom(2048)
        if len(request) == PAYLOAD_BYTES:
            arrivals.setdefault(peer, []).append(time.monotonic())
        elif request == ARRIVED:
            rate_bps = _rate_bps(arrivals.pop(peer, []))
            listener.sendto(str(round(rate_bps or 0)).encode(), peer)
        else:
            burst = Burst(*map(int, request.split()))
            threading.Thread(target=burst.send, args=(listener, peer), daemon=True).start()


def measure(server: str, bind: str, burst: Burst) -> tuple[float | None, float | None]:
    """Measure the path from `server` to the local address `bind`. There must be no other traffic.

    Returns the rate [bit/s] at which the frames of `burst` arrive, and the round-trip time [ms].
    Each of the two is None if too few answers came.
    """
    rtt_ms = _ping_ms(server, bind)
    warm_up = Burst(WARM_UP_PACKETS, burst.send_bps)
    _burst_bps(server, bind, warm_up)  # the first use of path and program is slow
    return _burst_bps(server, bind, burst), rtt_ms


def measure_up(server: str, bind: str, burst: Burst) -> float | None:
    """Measure the rate [bit/s] from the local address `bind` to `server`, without other traffic.

    This sends the frames of `burst`, then asks at which rate they arrived. The queue may still be
    full and drop the question, so it is asked several times. Returns None if too few frames
    arrived.

    Before the burst, the server has to send one small frame. The reason is that an uplink frame in
    a WiFi cell also waits for the airtime of the latest downlink frame. If this were a large frame,
    the result would be too small.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((bind, 0))
        probe.connect((server, PROBE_PORT))
        probe.settimeout(ASK_AGAIN_S)
        if _arrived_bps(probe, least_bps=0) is None:
            return None
        burst.send(probe, (server, PROBE_PORT))
        return _arrived_bps(probe, least_bps=1)


def _arrived_bps(probe: socket.socket, least_bps: int) -> float | None:
    """Ask the server at which rate frames arrived [bit/s], until the answer is at least
    `least_bps`: an answer of 0 may be a late one to a question before the frames. Return None after
    `UPLINK_TIMEOUT_S`."""
    ends_s = time.monotonic() + UPLINK_TIMEOUT_S
    while time.monotonic() < ends_s:
        probe.send(ARRIVED)
        with suppress(TimeoutError):
            if (rate_bps := float(probe.recv(64))) >= least_bps:
                return rate_bps
    return None


def _burst_bps(server: str, bind: str, burst: Burst) -> float | None:
    """Request a burst and return the rate [bit/s] at which it arrives; None if too few frames come.

    The clock is read at each arrival. The kernel's timestamps cannot be used: for a WiFi frame,
    they would be the departure time set by the eBPF program of the cell.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
        probe.bind((bind, 0))
        probe.settimeout(TIMEOUT_S)
        request = f"{burst.packets} {burst.send_bps}"
        probe.sendto(request.encode(), (server, PROBE_PORT))
        arrivals: list[float] = []
        try:
            while len(arrivals) < burst.packets:
                probe.recv(2048)
                arrivals.append(time.monotonic())
        except TimeoutError:
            pass
    return _rate_bps(arrivals)


def _rate_bps(arrivals: list[float]) -> float | None:
    """Return the rate [bit/s] of full Ethernet frames, given the times at which they arrived [s].

    The first fifth of the frames is ignored. Returns None if fewer than `MIN_ARRIVALS` are left.
    """
    counted = arrivals[len(arrivals) // 5 :]
    if len(counted) < MIN_ARRIVALS or counted[-1] <= counted[0]:
        return None
    return (len(counted) - 1) * FRAME_BYTES * 8 / (counted[-1] - counted[0])


def _ping_ms(server: str, bind: str, count: int = 6) -> float | None:
    """Return the shortest round-trip time of several pings [ms], or None if no answer came.

    The first ping is slower than the others, because the controller then sets up the path.
    """
    best, first = None, int(time.monotonic() * 1000) & 0xFFF0  # no number is used a second time
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as ping:
        ping.bind((bind, 0))
        ping.settimeout(TIMEOUT_S)
        for number in range(first, first + count):
            sent_s = time.monotonic()
            ping.sendto(_echo_request(os.getpid() & 0xFFFF, number), (server, 0))
            try:
                while struct.unpack_from("!H", ping.recv(2048), 26)[0] != number:
                    pass  # a late answer to an earlier ping
            except TimeoutError:
                continue
            rtt_ms = (time.monotonic() - sent_s) * 1000
            best = rtt_ms if best is None else min(best, rtt_ms)
    return best


def _echo_request(ident: int, number: int) -> bytes:
    """Return an ICMP echo request (RFC 792) with its checksum (RFC 1071)."""
    words = struct.unpack("!4H", struct.pack("!BBHHH", 8, 0, 0, ident, number))
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!BBHHH", 8, 0, ~total & 0xFFFF, ident, number)
