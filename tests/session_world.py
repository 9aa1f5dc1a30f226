"""The whole controller in this process, as POX starts it, with switches in memory and a clock that
the test turns.

srv1 --- s1 --- wifi1, wifi2, lte1; ue1 (multipath) at wifi1 and lte1, ue2 at wifi1
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bridge_world import OFPR_ACTION, Bridge, segment
from openflow13_switch import Switch
from userspace_bridges import free_port

from controller import host_messages
from controller.datagrams import seal
from controller.host_messages import HostCommand, HostReport, SubflowState
from controller.paths import TCP, Flow
from controller.pox_ext import nicira, statistics
from controller.pox_ext.frames import ACK, SYN

KEY = "a key for tests"
DPID = {"s1": 1, "wifi1": 2, "lte1": 3, "wifi2": 4}
WIFI, LTE, OTHER, SERVER = "10.1.0.1", "10.2.0.1", "10.1.0.2", "10.0.0.1"
DOWN = Flow(SERVER, WIFI, TCP, 5001, 40000)
SECOND = Flow(SERVER, LTE, TCP, 5001, 40001)
PORTS = {
    "s1": ["s1-srv1", "s1-wifi1", "s1-lte1", "s1-wifi2"],
    **{ap: [f"{ap}-s1", f"{ap}-wlan1"] for ap in ("wifi1", "lte1", "wifi2")},
}


def host(switch: str, port: str, address: str) -> dict[str, str]:
    place = {"name": port, "switch": switch, "port": port, "link": switch}
    return place | {"address": address, "mac": mac(address)}


def mac(address: str) -> str:
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))


NETWORK: dict[str, Any] = {
    "switches": {name: {"dpid": dpid} for name, dpid in DPID.items()},
    "hosts": {
        "srv1": [host("s1", "s1-srv1", SERVER)],
        "ue1": [host("wifi1", "wifi1-wlan1", WIFI), host("lte1", "lte1-wlan1", LTE)],
        "ue2": [host("wifi1", "wifi1-wlan1", OTHER)],
    },
    "trunks": [
        {"link": f"to-{ap}", "a": "s1", "a_port": f"s1-{ap}", "b": ap, "b_port": f"{ap}-s1"}
        for ap in ("wifi1", "lte1", "wifi2")
    ],
    "aps": {
        "wifi1": {
            "kind": "wifi", "capacity_mbps": 10, "port": "wifi1-wlan1",
            "stations": {"ue1": {"rate_mbps": 10}, "ue2": {"rate_mbps": 10}},
        },
        "lte1": {"kind": "lte", "capacity_mbps": 20, "stations": {"ue1": {"rate_mbps": 20}}},
        "wifi2": {"kind": "wifi", "capacity_mbps": 10, "port": "wifi2-wlan1"},
    },
    "multipath": ["ue1"],
}  # fmt: skip


@dataclass
class Clock:
    now_s: float = 1000.0


class Controller:
    """One process of the controller, until `end`. `switches` live longer than it."""

    def __init__(
        self,
        pox: SimpleNamespace,
        folder: Path,
        clock: Clock,
        strategy: str = "none",
        switches: dict[str, Switch] | None = None,
        params: dict[str, Any] | None = None,
        key: str = KEY,
        **network: Any,
    ) -> None:
        self.core, self.folder, self.clock = pox.core, folder, clock
        self.switches = switches or {
            name: Switch(dpid, ports={1: (10, 20, 15140, 30280, 1, 2)})
            for name, dpid in DPID.items()
        }
        self.bridges: dict[str, Bridge] = {}
        self.core.openflow = SimpleNamespace(addListeners=self._listen, getConnection=self._bridge)
        (folder / "topology.json").write_text(json.dumps(NETWORK | network))
        (folder / "key").write_text(KEY + "\n")
        file = strategy if strategy.endswith(".py") else None
        self.port, self.agents_port = free_port(), free_port(socket.SOCK_DGRAM)
        self.hosts_port = free_port(socket.SOCK_DGRAM)
        self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # of all agents
        self._sender.setblocking(False)
        self._seq = 0
        pox.component.start(
            Path(strategy).stem, str(folder / "topology.json"), None, json.dumps(params or {}),
            self.port, self.agents_port, 10.0, self.hosts_port,
            str(folder / "key") if key else None, file, None, "127.0.0.1",
        )  # fmt: skip

    def end(self) -> None:
        if not self.core.timers:
            return
        self.core.listeners.pop("DownEvent")(None)
        for task, waits in self.core.waiting:
            task.close()
            for each in waits[0]:
                getattr(each, "socket", each).close()
        self.core.waiting.clear()
        self.core.timers.clear()
        for each in self.switches.values():
            each.close()
        self._sender.close()

    # Switches

    def _listen(self, listener: Any) -> None:
        self.forwarding = listener

    def _bridge(self, dpid: int) -> Bridge | None:
        return self.bridges.get(next(name for name, known in DPID.items() if known == dpid))

    def connect(self, *names: str) -> None:
        """Connect these switches, or all, with both versions of OpenFlow."""
        for name in names or DPID:
            self.connect10(name)
            self.switches[name].connect(self.port)
        self.settle()

    def connect10(self, name: str) -> None:
        bridge = Bridge(PORTS[name], self._answered)
        bridge.sock = SimpleNamespace(setsockopt=lambda *_: None)
        self.bridges[name] = bridge
        up = SimpleNamespace(dpid=DPID[name], connection=bridge)
        self.forwarding._handle_ConnectionUp(up)

    def disconnect(self, name: str) -> None:
        del self.bridges[name]
        self.forwarding._handle_ConnectionDown(SimpleNamespace(dpid=DPID[name]))
        self.switches[name].close()
        self.settle()

    def _answered(self, xid: int) -> None:
        self.forwarding._handle_BarrierIn(SimpleNamespace(xid=xid))

    def packet(self, flow: Flow, flags: int, options: bytes = b"") -> None:
        """Let the first switch of its path send a packet of this flow to the controller."""
        at = {WIFI: "wifi1", LTE: "lte1", OTHER: "wifi1", SERVER: "s1"}[flow.source]
        port = PORTS[at].index("s1-srv1" if at == "s1" else f"{at}-wlan1") + 1
        data = segment(flow, (mac(flow.source), mac(flow.destination)), flags, options)
        copied = flags == SYN | ACK  # the switch sends it on itself
        ofp = SimpleNamespace(reason=nicira.COPY if copied else OFPR_ACTION)
        self.forwarding._handle_PacketIn(
            SimpleNamespace(dpid=DPID[at], port=port, data=data, ofp=ofp)
        )
        self.settle()

    def open(self, flow: Flow = DOWN) -> None:
        """Let the user of this flow open a connection without Multipath TCP."""
        self.packet(flow.back(), SYN)
        self.packet(flow, SYN | ACK)

    # Time

    def settle(self) -> None:
        """Let the controller and the switches answer each other until all is said."""
        idle = 0
        for _ in range(5000):
            served = [each.serve() for each in self.switches.values()]
            idle = 0 if self.core.turn() or any(served) else idle + 1
            if idle == 2:
                return
            time.sleep(idle / 2000)
        raise AssertionError("the controller and the switches talk without end")

    def wait(self, seconds: float) -> None:
        end_s = self.clock.now_s + seconds
        while self.clock.now_s < end_s:
            (timer,) = self.core.timers
            assert timer.recurring
            self.clock.now_s += timer.every_s
            for each in self.switches.values():
                each.pass_s(timer.every_s)
            timer.call()
            self.settle()

    # Messages and files

    def tell(self, kind: str, value: Any) -> None:
        self._seq += 1
        text = json.dumps({"seq": self._seq, "kind": kind, "value": value})
        (self.folder / "inbox" / f"{self._seq:06d}.json").write_text(text)

    def report(self, ap: str, key: str = KEY, wait: bool = True, **values: Any) -> None:
        self._seq += 1
        message = {"kind": "ap", "seq": self._seq, "ap": ap, "mac_occupancy": 0.5} | values
        self._sender.sendto(seal(message, key), ("127.0.0.1", self.agents_port))
        if wait:
            self.settle()

    def host_report(self, host: str, *subflows: SubflowState, key: str = KEY) -> None:
        self._seq += 1
        datagram = host_messages.encode(HostReport(self._seq, host, subflows), key)
        self._sender.sendto(datagram, ("127.0.0.1", self.hosts_port))
        self.settle()

    def commands(self) -> list[HostCommand]:
        """Return the commands to hosts since the last call."""
        found = []
        with suppress(BlockingIOError):
            while True:
                found.append(host_messages.read_command(self._sender.recv(65536), KEY))
        return found

    def lines(self, kind: str) -> list[dict[str, Any]]:
        found = map(json.loads, (self.folder / "decisions.jsonl").read_text().splitlines())
        return [line for line in found if line["kind"] == kind]

    def observed(self, ap: str = "wifi1") -> list[dict[str, Any]]:
        """What each step so far has observed of an access point."""
        return [line["aps"][ap] for line in self.lines("observation")]

    def tables(self) -> statistics.Tables:
        """End the controller and read the statistics file."""
        self.end()
        return statistics.read(self.folder / "statistics.json")

    @property
    def warnings(self) -> list[str]:
        return [line["text"] for line in self.lines("warning")]
