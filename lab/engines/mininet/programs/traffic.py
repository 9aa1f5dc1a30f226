"""The traffic program that runs inside every host: our own sockets, so that each run can verify what it measured.

It is driven by JSON lines on standard input and answers each with one JSON line on standard output; it ends when its
input does, so it never outlives the run. It imports little, because a process starts slowly under software emulation.

    {"do": "serve", "mptcp": true}                              -> {"mptcp": true}        false: this host's kernel refused MPTCP
    {"do": "connect", "id", "server", "bind", "mptcp", "direction", "cc", "rate_bps", "volume_bytes", "receive_buffer_bytes"} -> {"port": 40112}
    {"do": "subflows"}                                          -> {"subflows": {"ue2-1": 1}}   beyond the first; null for plain TCP
    {"do": "go", "id"}                                          -> {}                     a connected flow starts to move data
    {"do": "rate", "id", "rate_bps"}  {"do": "stop", "id"}      -> {}
    {"do": "status"}                                            -> {"flows": {"ue2-1": {"bytes", "done_s", "error", ...}}}
    {"do": "probe", "server", "bind", "packets"}                -> {"rate_bps", "rtt_ms"}

A flow tells the server in its first line what it wants, as soon as it is connected: with this first data the kernel opens its
other subflows, before anything else is under way. The next line lets it go, later ones change its rate.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import sys
import threading
import time
from typing import Any

IPPROTO_MPTCP = 262  # RFC 8684 on Linux: a socket must ask for it
SOL_MPTCP, MPTCP_INFO = 284, 1
FLAG_FALLBACK = 1  # mptcpi_flags: the connection fell back to TCP (linux/mptcp.h)
SO_RCVBUFFORCE = 33
PORT, PROBE_PORT = 5001, 5002
CONNECT_TIMEOUT_S = 10
CHUNK_BYTES = 1 << 18
COUNT_S = 0.05  # a receiver counts what the kernel read for it so often
PACE_S = 0.02  # an application-limited flow hands over its data this often
FRAME_BYTES, PAYLOAD_BYTES = 1514, 1472
WARM_UP_PACKETS = 10
_ZEROS = bytes(CHUNK_BYTES)


class Flow:
    """One connection at one of its ends: what it was asked to do, and how far it got."""

    def __init__(self, request: dict[str, Any], connection: socket.socket, sends: bool) -> None:
        self.request, self.connection, self.sends = request, connection, sends
        self.rate_bps = request.get("rate_bps")
        self.started_s, self.bytes = 0.0, 0
        self.done_s: float | None = None
        self.error: str | None = None

    def go(self) -> None:
        """Start to move data."""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        self.started_s = time.time()
        try:
            (self._send if self.sends else self._receive)()
            self.done_s = time.time() - self.started_s
        except OSError as problem:
            self.error = problem.strerror or str(problem)

    def _send(self) -> None:
        """Send until the volume is done; at a rate, one slice of data per 20 ms and never a backlog of slices."""
        left = self.request.get("volume_bytes")
        while left is None or left > 0:
            began = time.monotonic()
            size = CHUNK_BYTES if self.rate_bps is None else int(self.rate_bps * PACE_S / 8)
            data = _ZEROS[: size if left is None else min(size, left)]
            if data:
                self.connection.sendall(data)
                self.bytes += len(data)
            left = None if left is None else left - len(data)
            if self.rate_bps is not None:
                time.sleep(max(0.0, PACE_S - (time.monotonic() - began)))
        self.connection.shutdown(socket.SHUT_WR)

    def _receive(self) -> None:
        """Let the kernel read each packet as it comes, and count 20 times a second.

        A program that woke for every packet would cost more than the packet. One that reads seldom would be no ordinary
        receiver: between two reads the window cannot grow, and then Linux puts off its acknowledgements.
        """
        self.connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(COUNT_S * 1e6))
        )
        buffer, received = bytearray(CHUNK_BYTES), 1
        while received:
            with contextlib.suppress(BlockingIOError):
                received = self.connection.recv_into(buffer, CHUNK_BYTES, socket.MSG_WAITALL)
                self.bytes += received

    def status(self) -> dict[str, Any]:
        """Counters and what the kernel says of the connection."""
        return {
            "bytes": self.bytes,
            "done_s": self.done_s,
            "error": self.error,
            "sends": self.sends,
            "mptcp": is_mptcp(self.connection),
        }


def open_socket(mptcp: bool) -> socket.socket:
    """A stream socket; it asks for MPTCP if wanted."""
    return socket.socket(
        socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP if mptcp else socket.IPPROTO_TCP
    )


def is_mptcp(connection: socket.socket) -> bool:
    """Whether this connection really is MPTCP now: asked for, granted by the peer, and not fallen back."""
    try:
        info = connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 16)
    except OSError:
        return False
    return not struct.unpack_from("=BBBBBBxxI", info)[6] & FLAG_FALLBACK


def further_subflows(connection: socket.socket) -> int | None:
    """How many subflows a connection has beyond its first; None if it is no MPTCP."""
    return connection.getsockopt(SOL_MPTCP, MPTCP_INFO, 16)[0] if is_mptcp(connection) else None


class Host:
    """The flows of this host."""

    def __init__(self) -> None:
        self.flows: dict[str, Flow] = {}

    def serve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Listen for flows and probes. Where the kernel refuses an MPTCP socket, listen for TCP and say so."""
        mptcp = bool(request["mptcp"])
        try:
            listener = open_socket(mptcp)
        except OSError:
            mptcp, listener = False, open_socket(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", PORT))
        listener.listen(64)
        probes = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        probes.bind(("", PROBE_PORT))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        threading.Thread(target=_answer_probes, args=(probes,), daemon=True).start()
        return {"mptcp": mptcp}

    def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _peer = listener.accept()
            threading.Thread(target=self._take, args=(connection,), daemon=True).start()

    def _take(self, connection: socket.socket) -> None:
        """A new flow: its first line says what it wants, the second lets it go, later ones change its rate."""
        with connection.makefile("rb") as lines, contextlib.suppress(OSError, ValueError, KeyError):
            request = json.loads(lines.readline())
            _choose_cc(connection, request["cc"])
            flow = self.flows[request["id"]] = Flow(
                request, connection, request["direction"] == "down"
            )
            if flow.sends:
                flow.rate_bps = json.loads(lines.readline())["rate_bps"]
            flow.go()
            while flow.sends and (line := lines.readline()):
                flow.rate_bps = json.loads(line)["rate_bps"]

    def connect(self, request: dict[str, Any]) -> dict[str, Any]:
        """Open a connection from this host."""
        connection = open_socket(request["mptcp"])
        if request.get("receive_buffer_bytes"):
            connection.setsockopt(
                socket.SOL_SOCKET, SO_RCVBUFFORCE, request["receive_buffer_bytes"]
            )
        _choose_cc(connection, request["cc"])
        connection.bind((request["bind"], 0))
        connection.settimeout(CONNECT_TIMEOUT_S)
        connection.connect((request["server"], PORT))
        connection.settimeout(None)
        connection.sendall(json.dumps(request).encode() + b"\n")
        self.flows[request["id"]] = Flow(request, connection, request["direction"] == "up")
        return {"port": connection.getsockname()[1]}

    def subflows(self, _request: dict[str, Any]) -> dict[str, Any]:
        """How many subflows each connection of this host has beyond its first."""
        return {
            "subflows": {
                name: further_subflows(flow.connection) for name, flow in list(self.flows.items())
            }
        }

    def go(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start a flow at both ends."""
        flow = self.flows[request["id"]]
        self._tell_rate(flow)
        flow.go()
        return {}

    def _tell_rate(self, flow: Flow) -> None:
        """The sending end, if it is the other one, goes on at this rate."""
        if not flow.sends:
            flow.connection.sendall(json.dumps({"rate_bps": flow.rate_bps}).encode() + b"\n")

    def rate(self, request: dict[str, Any]) -> dict[str, Any]:
        """Change what a flow demands; `None` is without limit. The sending end is told."""
        flow = self.flows[request["id"]]
        flow.rate_bps = request["rate_bps"]
        self._tell_rate(flow)
        return {}

    def stop(self, request: dict[str, Any]) -> dict[str, Any]:
        """End a flow."""
        self.flows[request["id"]].connection.shutdown(socket.SHUT_RDWR)
        return {}

    def status(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Every flow's counters."""
        return {"flows": {name: flow.status() for name, flow in list(self.flows.items())}}

    def probe(self, request: dict[str, Any]) -> dict[str, Any]:
        """Rate and round trip of the path from the server to this address, with nothing else on it."""
        rtt_ms = _ping_ms(request["server"], request["bind"])
        _burst_bps(
            request["server"], request["bind"], WARM_UP_PACKETS
        )  # neither path nor program are slow the second time
        return {
            "rtt_ms": rtt_ms,
            "rate_bps": _burst_bps(request["server"], request["bind"], request["packets"]),
        }


def _choose_cc(connection: socket.socket, cc: str) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())


def _answer_probes(probes: socket.socket) -> None:
    """Send as many full frames as asked for, back to back; queues on the way must hold them."""
    while True:
        request, peer = probes.recvfrom(64)
        for _ in range(min(int(request), 1000)):
            probes.sendto(_ZEROS[:PAYLOAD_BYTES], peer)


def _burst_bps(server: str, bind: str, packets: int) -> float | None:
    """The rate [bit/s of Ethernet frames] at which a burst arrives; its first fifth is not counted.

    The clock is read here: the kernel's receive stamp of a WiFi frame is the time its cell gave it, not its arrival.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 20)
        probe.bind((bind, 0))
        probe.settimeout(1.0)
        probe.sendto(str(packets).encode(), (server, PROBE_PORT))
        arrivals: list[float] = []
        try:
            while len(arrivals) < packets:
                probe.recv(2048)
                arrivals.append(time.monotonic())
        except TimeoutError:
            pass
    counted = arrivals[len(arrivals) // 5 :]
    if len(counted) < 10 or counted[-1] <= counted[0]:
        return None
    return (len(counted) - 1) * FRAME_BYTES * 8 / (counted[-1] - counted[0])


def _ping_ms(server: str, bind: str, count: int = 6) -> float | None:
    """The shortest of a few round trips [ms]; the server's kernel answers, and the first one teaches the controller the path."""
    best = None
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as ping:
        ping.bind((bind, 0))
        ping.settimeout(1.0)
        for number in range(count):
            sent_s = time.monotonic()
            ping.sendto(_echo_request(os.getpid() & 0xFFFF, number), (server, 0))
            try:
                ping.recv(2048)
            except TimeoutError:
                continue
            rtt_ms = (time.monotonic() - sent_s) * 1000
            best = rtt_ms if best is None else min(best, rtt_ms)
    return best


def _echo_request(ident: int, number: int) -> bytes:
    """An ICMP echo request (RFC 792) with its checksum (RFC 1071)."""
    words = struct.unpack("!4H", struct.pack("!BBHHH", 8, 0, 0, ident, number))
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!BBHHH", 8, 0, ~total & 0xFFFF, ident, number)


def main() -> None:
    """Answer each line of standard input with one line."""
    host = Host()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(host, request["do"])(request)
        except (OSError, KeyError) as problem:
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
