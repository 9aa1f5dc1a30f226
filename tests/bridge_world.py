"""Four bridges in a square, a server at s1 and a user at ap. The bridges record the OpenFlow
messages that they get."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from socket import inet_aton
from types import SimpleNamespace

from controller import topology
from controller.paths import TCP, Flow
from controller.pox_ext import frames
from controller.pox_ext.forwarding import Forwarding
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.router import Router
from controller.pox_ext.switches import Switches

DPID = {"s1": 1, "up": 2, "low": 3, "ap": 4}
PORTS = {
    "s1": ["s1-up", "s1-low", "s1-host"],
    "up": ["up-s1", "up-ap"],
    "low": ["low-s1", "low-ap"],
    "ap": ["ap-up", "ap-low", "ap-host"],
}
LINKS = [("s1", "up"), ("s1", "low"), ("up", "ap"), ("low", "ap")]
OFPR_ACTION = 1  # an entry sent the packet to the controller
SERVER, USER = ("10.0.0.1", "02:00:00:00:00:01"), ("10.1.0.1", "02:00:00:00:00:02")


class Bridge:
    """Flow-mods are recorded in `entries` as (command, priority), packets in `packets` as (data,
    port)."""

    def __init__(self, ports: list[str], answer: Callable[[int], None]) -> None:
        self.answer, self.slow, self.barriers = answer, False, []
        self.ports = {
            number: SimpleNamespace(name=name, port_no=number)
            for number, name in enumerate(ports, 1)
        }
        self.entries: list[tuple[int, int]] = []
        self.messages: list[bytes] = []
        self.packets: list[tuple[bytes, int]] = []

    def send(self, message: bytes) -> None:
        self.messages.append(message)
        if message[1] == 18:
            self.barriers.append(struct.unpack_from("!L", message, 4)[0])
            if not self.slow:
                self.pass_barriers()
        elif message[1] == 13:
            (size,) = struct.unpack_from("!H", message, 14)
            (port,) = struct.unpack_from("!H", message, 16 + size - 4)
            self.packets.append((message[16 + size :], port))
        elif struct.unpack_from("!L", message, 12)[0] == 13:
            _, command, _, _, priority = struct.unpack_from("!QHHHH", message, 16)
            self.entries.append((command & 0xFF, priority))

    @property
    def xids(self) -> list[int]:
        return [struct.unpack_from("!L", message, 4)[0] for message in self.messages]

    def pass_barriers(self) -> None:
        while self.barriers:
            self.answer(self.barriers.pop(0))


class World:
    def __init__(self, **known: bool) -> None:
        self.bridges = {name: Bridge(ports, self.answered) for name, ports in PORTS.items()}
        hosts = {
            name: [
                {
                    "name": "eth",
                    "switch": switch,
                    "port": f"{switch}-host",
                    "address": address,
                    "mac": mac if known.get(name, True) else None,
                }
            ]
            for name, switch, (address, mac) in (("srv1", "s1", SERVER), ("ue1", "ap", USER))
        }
        trunks = [
            {"link": a + b, "a": a, "a_port": f"{a}-{b}", "b": b, "b_port": f"{b}-{a}"}
            for a, b in LINKS
        ]
        network = topology.read(
            json.dumps(
                {
                    "switches": {name: {"dpid": dpid} for name, dpid in DPID.items()},
                    "hosts": hosts,
                    "trunks": trunks,
                }
            )
        )
        self.seen: list[frames.Ip] = []
        self.warnings: list[str] = []
        nexus = SimpleNamespace(
            addListeners=lambda _: None,
            getConnection=lambda dpid: self.bridges.get({v: k for k, v in DPID.items()}[dpid]),
        )
        places = Hosts(network)
        self.forwarding = Forwarding(
            nexus,
            network,
            Switches(nexus, network),
            places,
            Router(network, places),
            self.seen.append,
            lambda *_: None,
            warn=self.warnings.append,
        )

    def answered(self, xid: int) -> None:
        self.forwarding._handle_BarrierIn(SimpleNamespace(xid=xid))

    def comes(self, switch: str, port: str, data: bytes, reason: int = OFPR_ACTION) -> None:
        number, ofp = PORTS[switch].index(port) + 1, SimpleNamespace(reason=reason)
        self.forwarding._handle_PacketIn(
            SimpleNamespace(dpid=DPID[switch], port=number, data=data, ofp=ofp)
        )

    def refuses(self, switch: str, xid: int, error: int, code: int) -> None:
        ofp = SimpleNamespace(type=error, code=code)
        self.forwarding._handle_ErrorIn(SimpleNamespace(dpid=DPID[switch], xid=xid, ofp=ofp))

    @property
    def entries(self) -> dict[str, int]:
        return {
            name: len(bridge.entries) for name, bridge in self.bridges.items() if bridge.entries
        }


def tcp(flags: int, port: int = 40000) -> bytes:
    return segment(Flow(USER[0], SERVER[0], TCP, port, 5001), (USER[1], SERVER[1]), flags)


def segment(flow: Flow, macs: tuple[str, str], flags: int, options: bytes = b"") -> bytes:
    """`macs` are those of the source and of the destination; `options` fill whole words."""
    ports, words = (flow.source_port, flow.destination_port), 5 + len(options) // 4
    head = struct.pack("!HHLLBBHHH", *ports, 0, 0, words << 4, flags, 0, 0, 0) + options
    ends = inet_aton(flow.source), inet_aton(flow.destination)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(head), 0, 0, 64, TCP, 0, *ends)
    to_and_from = frames.mac_bytes(macs[1]) + frames.mac_bytes(macs[0])
    return to_and_from + b"\x08\x00" + ip + head
