"""The traffic program: it sends and receives the data of all flows of one host, inside the host.

It opens its sockets itself, so it can verify that a connection is MPTCP. It reads commands from
standard input, one JSON object per line. It answers each with one line of JSON on standard output.
It ends when its input ends, so it never outlives the run. It imports few modules, because a process
starts slowly on an emulated processor.

{"do": "serve", "mptcp": true}    -> {"mptcp": true}    false: this kernel refused MPTCP; with "cc",
                                     the congestion control of connections until they say theirs
{"do": "connect", ...}            -> {"port": 40112}    keys: see FlowRequest
{"do": "open", "flows": [...]}    -> {}    connect TCP flows, one after the other, and do not wait
                                     for it; each has the keys of FlowRequest
{"do": "opened"}                  -> {"opened": {"ue2-1": 40112}}    the port of each flow that
                                     "open" has connected, or as text why it could not
{"do": "expect", "port", ...}     -> {}    open the server's end of a UDP flow; `port` is the
                                     user's port; other keys: see FlowRequest
{"do": "subflows"}                -> {"subflows": {"ue2-1": 1}}    number of subflows of each
                                     flow beyond the first; null for plain TCP
{"do": "go", "id", "at_s", "run_s"} -> {}  start a connected flow at this time of the monotonic
                                     clock [s]; without a time, at once. `run_s` is the same time
                                     in the run
{"do": "rate", "id", "rate_bps"}  -> {}
{"do": "stop", "id"}              -> {}
{"do": "cc", "cc"}                -> {}    for all connections that are open, and of a server for
                                     those that follow
{"do": "plan", "flows": [...]}    -> {}    flows of a workload that this host opens later; each
                                     has the keys of FlowRequest and `at_s`, in s after `zero_s`
{"do": "begin", "zero_s"}         -> {}    the zero of these times, on the monotonic clock
{"do": "status"}                  -> {"flows": {"ue2-1": {"bytes", "done_s", "error", "sends",
                                     "mptcp", "receive_buffer_max_bytes",
                                     "held_back_bytes"}}}
{"do": "probe", "server", "bind", "burst", "up"} -> {"rate_bps", "rtt_ms", "up_bps"}
                                     burst: see path_probe.Burst;
                                     the uplink is measured only if `up` is true; else it is null

When a TCP flow is connected, the user's end sends the FlowRequest to the server as its first line.
After this first data, the kernel opens the other subflows, before any other data is sent. In a
download, the second line says when the flow starts, and each later line changes its rate. All hosts
run on one machine, so they have the same monotonic clock. A UDP flow sends no such lines; its two
ends get all commands separately.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from lab.engines.mininet.programs import path_probe
from lab.engines.mininet.programs.call import CallEnd
from lab.engines.mininet.programs.exchanges import AnsweringEnd, AskingClient, AskingEnd
from lab.engines.mininet.programs.flow import (
    DatagramFlow,
    Flow,
    FlowRequest,
    bind,
    choose_cc,
    first_bytes,
    open_datagrams,
    open_socket,
)
from lab.scenario.clients import ClientSpec

PORT = 5001
CONNECT_TIMEOUT_S = 10
LONGEST_LINE, PEEK_AGAIN_S = 4096, 0.005
Answer = dict[str, Any]  # one line of JSON


class TrafficProgram:
    """Carries out the commands for the flows of this host.

    `flows` has this host's end of each flow, by the ID of the flow.
    """

    def __init__(self) -> None:
        self.flows: dict[str, Flow | DatagramFlow] = {}
        self._clients: dict[str, AskingClient] = {}  # by their seeds, which are their own
        self._planned: list[tuple[float, FlowRequest]] = []
        self._opened: dict[str, int | str] = {}  # by flow: its port, or why it has none
        self._listener: socket.socket | None = None
        self._cc: str | None = None  # of all connections, if it was changed during the run
        self._commands: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "serve": lambda request: self.serve(bool(request["mptcp"]), request.get("cc")),
            "connect": lambda request: self.connect(FlowRequest.from_json(request)),
            "open": lambda request: self.open(request["flows"]),
            "opened": lambda _: {"opened": dict(self._opened)},
            "expect": lambda request: self.expect(FlowRequest.from_json(request)),
            "cc": lambda request: self.set_cc(request["cc"]),
            "subflows": lambda _: self.subflows(),
            "go": lambda request: self.go(
                request["id"], request.get("at_s", 0.0), request.get("run_s", 0.0)
            ),
            "rate": lambda request: self.set_rate(request["id"], request["rate_bps"]),
            "stop": lambda request: self.stop(request["id"]),
            "plan": lambda request: self.plan(request["flows"]),
            "begin": lambda request: self.begin(request["zero_s"]),
            "status": lambda _: self.status(),
            "probe": lambda request: _probe(**request),
        }

    def answer(self, line: str) -> Answer:
        """Carry out the command in `line`, a JSON object, and return the answer.

        If the command fails, the answer has only the key `error`.
        """
        request = json.loads(line)
        try:
            return self._commands[request.pop("do")](request)
        except (OSError, KeyError, TypeError) as problem:
            return {"error": f"{type(problem).__name__}: {problem}"}

    def serve(self, mptcp: bool, cc: str | None = None) -> Answer:
        """Listen for flows and measurements. The answer says if the listening socket uses MPTCP.

        The socket uses plain TCP if `mptcp` is False, or if the kernel refuses an MPTCP socket. It
        accepts the ECN of DCTCP only if its own congestion control, `cc`, is DCTCP.
        """
        try:
            listener = open_socket(mptcp)
        except OSError:
            mptcp, listener = False, open_socket(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if cc:
            choose_cc(listener, cc)
        self._listener = listener
        listener.bind(("", PORT))
        listener.listen(64)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        path_probe.serve()
        return {"mptcp": mptcp}

    def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _peer = listener.accept()
            threading.Thread(target=self._take, args=(connection,), daemon=True).start()

    def _take(self, connection: socket.socket) -> None:
        """Run the server's end of a TCP flow. The first line of the connection is the FlowRequest.

        If the server sends the data, the second line has the rate and the start time of the flow.
        Each later line has a new rate.
        """
        with contextlib.suppress(OSError, ValueError, KeyError), connection.makefile("rb") as lines:
            request = FlowRequest.from_json(json.loads(first_line(connection)))
            choose_cc(connection, request.cc)
            end = AnsweringEnd if request.client else Flow
            flow = end(request, connection, request.direction == "down")
            self.flows[request.id] = flow
            at_s = 0.0
            if request.client:
                flow.go()
                return
            if flow.sends:
                start = json.loads(lines.readline())
                flow.rate_bps, at_s = start["rate_bps"], start["at_s"]
            flow.go(at_s)
            while flow.sends and (line := lines.readline()):
                flow.rate_bps = json.loads(line)["rate_bps"]

    def connect(self, request: FlowRequest) -> Answer:
        """Open the user's end of a TCP, MPTCP or UDP flow. The answer has its local port."""
        if request.protocol == "udp":
            own = open_datagrams(request.bind, request.port)
            own.connect((request.server, PORT))
            end = CallEnd if request.call else DatagramFlow
            self.flows[request.id] = end(request, own, request.direction == "up")
            return {"port": own.getsockname()[1]}
        connection = open_socket(request.mptcp)
        if request.receive_buffer_bytes:
            connection.setsockopt(
                socket.SOL_SOCKET, path_probe.SO_RCVBUFFORCE, request.receive_buffer_bytes
            )
        choose_cc(connection, request.cc)
        bind(connection, request.bind, request.port)
        connection.settimeout(CONNECT_TIMEOUT_S)
        connection.connect((request.server, PORT))
        connection.settimeout(None)
        connection.sendall(first_bytes(request))
        self.flows[request.id] = self._end(request, connection)
        return {"port": connection.getsockname()[1]}

    def open(self, flows: list[dict[str, Any]]) -> Answer:
        """Begin to connect TCP flows; `opened` in later answers says which are connected."""
        requests = [FlowRequest.from_json(each) for each in flows]
        threading.Thread(target=self._open_each, args=(requests,), daemon=True).start()
        return {}

    def _open_each(self, requests: list[FlowRequest]) -> None:
        for request in requests:
            try:
                self._opened[request.id] = self.connect(request)["port"]
            except OSError as problem:
                self._opened[request.id] = f"{type(problem).__name__}: {problem}"

    def _end(self, request: FlowRequest, connection: socket.socket) -> Flow:
        """Return the user's end of a TCP flow that is open."""
        if not request.client:
            return Flow(request, connection, request.direction == "up")
        spec = ClientSpec(*request.client)
        client = self._clients.setdefault(spec.seed, AskingClient(spec))
        return AskingEnd(request, connection, client)

    def expect(self, request: FlowRequest) -> Answer:
        """Open the server's end of a UDP flow; `request.port` is the port of the user's end.

        The server sends an empty datagram to the user. So the controller sets up the path before
        the flow starts.
        """
        own = open_datagrams(request.server, PORT)
        own.connect((request.bind, request.port))
        end = CallEnd if request.call else DatagramFlow
        self.flows[request.id] = end(request, own, request.direction == "down")
        own.send(b"")
        return {}

    def set_cc(self, cc: str) -> Answer:
        self._cc = cc
        if self._listener:
            choose_cc(self._listener, cc)
        for flow in list(self.flows.values()):
            flow.set_cc(cc)
        return {}

    def plan(self, flows: list[dict[str, Any]]) -> Answer:
        """Take the flows of a workload, in the order of their times."""
        self._planned += [(each["at_s"], FlowRequest.from_json(each)) for each in flows]
        return {}

    def begin(self, zero_s: float) -> Answer:
        """Open the planned flows at their times. `zero_s` is the zero of these times."""
        threading.Thread(target=self._open_planned, args=(zero_s,), daemon=True).start()
        return {}

    def _open_planned(self, zero_s: float) -> None:
        for at_s, request in self._planned:
            due_s = zero_s + at_s
            time.sleep(max(0.0, due_s - time.monotonic()))
            due = request._replace(counted_from_s=due_s, cc=self._cc or request.cc)
            threading.Thread(target=self._open_now, args=(due,), daemon=True).start()

    def _open_now(self, request: FlowRequest) -> None:
        """Open a TCP flow and start it at once. A flow that cannot be opened is never complete."""
        with contextlib.suppress(OSError):
            self.connect(request)
            self.flows[request.id].go()

    def subflows(self) -> Answer:
        """Answer, for each flow, how many subflows it has in addition to its first.

        The number is None for a flow that is not MPTCP.
        """
        found = list(self.flows.items())
        return {"subflows": {name: flow.further_subflows() for name, flow in found}}

    def go(self, flow_id: str, at_s: float, run_s: float = 0.0) -> Answer:
        """Start a flow: a TCP flow at both ends, a UDP flow only at this end.

        It starts at `at_s` on the monotonic clock, or at once if this time has passed. This is
        `run_s` after the start of the run.
        """
        flow = self.flows[flow_id]
        if isinstance(flow, AskingEnd):
            flow.go_at(at_s, run_s)
            return {}
        flow.report_rate(at_s)
        flow.go(at_s)
        return {}

    def set_rate(self, flow_id: str, rate_bps: int | None) -> Answer:
        """Change the rate of a flow; None removes the limit.

        If the other end of a TCP flow is the sender, the rate is sent to the other end.
        """
        flow = self.flows[flow_id]
        flow.rate_bps = rate_bps
        flow.report_rate()
        return {}

    def stop(self, flow_id: str) -> Answer:
        """End a flow: a TCP flow at both ends, a UDP flow only at this end."""
        self.flows[flow_id].stop()
        return {}

    def status(self) -> Answer:
        """Answer with the counters of every flow at this host (see `Flow.status`)."""
        return {"flows": {name: flow.status() for name, flow in list(self.flows.items())}}


def first_line(connection: socket.socket) -> bytes:
    """Read up to the end of the first line, and nothing of the data that may follow it at once."""
    while seen := connection.recv(LONGEST_LINE, socket.MSG_PEEK):
        if end := seen.find(b"\n") + 1:
            return connection.recv(end)
        if len(seen) == LONGEST_LINE:
            break
        time.sleep(PEEK_AGAIN_S)
    return b""


def _probe(server: str, bind: str, burst: dict[str, int], up: bool = False) -> Answer:
    sent = path_probe.Burst(**burst)
    rate_bps, rtt_ms = path_probe.measure(server, bind, sent)
    up_bps = path_probe.measure_up(server, bind, sent) if up else None
    return {"rate_bps": rate_bps, "rtt_ms": rtt_ms, "up_bps": up_bps}


def main() -> None:
    """Read commands from standard input until it ends, and print one line of answer to each."""
    program = TrafficProgram()
    for line in sys.stdin:
        print(json.dumps(program.answer(line)), flush=True)


if __name__ == "__main__":
    main()
