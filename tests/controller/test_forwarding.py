"""What forwarding does with packets, on bridges that only take notes."""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace

import pytest

from controller import plan
from controller.pox_ext import frames
from controller.pox_ext.forwarding import Forwarding
from controller.pox_ext.frames import ACK, SYN
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.router import Router

DPID = {"s1": 1, "up": 2, "low": 3, "ap": 4}
PORTS = {
    "s1": ["s1-up", "s1-low", "s1-host"],
    "up": ["up-s1", "up-ap"],
    "low": ["low-s1", "low-ap"],
    "ap": ["ap-up", "ap-low", "ap-host"],
}
LINKS = [("s1", "up"), ("s1", "low"), ("up", "ap"), ("low", "ap")]
SERVER, USER = ("10.0.0.1", "02:00:00:00:00:01"), ("10.1.0.1", "02:00:00:00:00:02")


class Bridge:
    """Notes what it is sent: flow-mods as (command, priority), packets as (data, port)."""

    def __init__(self, ports: list[str]) -> None:
        self.ports = {number: SimpleNamespace(name=name, port_no=number) for number, name in enumerate(ports, 1)}
        self.entries: list[tuple[int, int]] = []
        self.packets: list[tuple[bytes, int]] = []

    def send(self, message: bytes) -> None:
        if message[1] == 13:
            (size,) = struct.unpack_from("!H", message, 14)
            (port,) = struct.unpack_from("!H", message, 16 + size - 4)
            self.packets.append((message[16 + size :], port))
        elif struct.unpack_from("!L", message, 12)[0] == 13:
            _, command, _, _, priority = struct.unpack_from("!QHHHH", message, 16)
            self.entries.append((command & 0xFF, priority))


class World:
    """Four bridges in a square, a server and a user."""

    def __init__(self, **known: bool) -> None:
        self.bridges = {name: Bridge(ports) for name, ports in PORTS.items()}
        hosts = {name: [{"name": "eth", "switch": switch, "port": f"{switch}-host", "address": address, "mac": mac if known.get(name, True) else None}]
                 for name, switch, (address, mac) in (("srv1", "s1", SERVER), ("ue1", "ap", USER))}  # fmt: skip
        trunks = [{"link": a + b, "a": a, "a_port": f"{a}-{b}", "b": b, "b_port": f"{b}-{a}"} for a, b in LINKS]
        network = plan.read(
            json.dumps({"switches": {name: {"dpid": dpid} for name, dpid in DPID.items()}, "hosts": hosts, "trunks": trunks})
        )
        self.seen: list[frames.Ip] = []
        nexus = SimpleNamespace(
            addListeners=lambda _: None, getConnection=lambda dpid: self.bridges[{v: k for k, v in DPID.items()}[dpid]]
        )
        places = Hosts(network)
        self.forwarding = Forwarding(nexus, network, places, Router(network, places), self.seen.append, lambda *_: None)

    def comes(self, switch: str, port: str, data: bytes) -> None:
        self.forwarding._handle_PacketIn(SimpleNamespace(dpid=DPID[switch], port=PORTS[switch].index(port) + 1, data=data))

    @property
    def entries(self) -> dict[str, int]:
        return {name: len(bridge.entries) for name, bridge in self.bridges.items() if bridge.entries}


def tcp(flags: int, port: int = 40000) -> bytes:
    segment = struct.pack("!HHLLBBHHH", port, 5001, 0, 0, 0x50, flags, 0, 0, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, bytes([10, 1, 0, 1]), bytes([10, 0, 0, 1]))
    return frames.mac_bytes(SERVER[1]) + frames.mac_bytes(USER[1]) + b"\x08\x00" + ip + segment


def test_a_syn_installs_both_directions_and_goes_on_by_the_first_link():
    world = World()
    world.comes("ap", "ap-host", tcp(SYN))
    middle = next(name for name in ("up", "low") if name in world.entries)
    assert world.entries == {"ap": 2, middle: 2, "s1": 2}
    assert world.bridges["ap"].packets == [(tcp(SYN), PORTS["ap"].index(f"ap-{middle}") + 1)]
    assert [packet.flow.source_port for packet in world.seen] == [40000]


def test_data_in_the_middle_of_a_connection_gets_a_path_but_is_not_tracked():
    world = World()
    world.comes("ap", "ap-host", tcp(ACK))
    assert world.entries["ap"] == 2
    assert world.seen == []


def test_entries_are_not_written_again_for_every_packet_that_was_on_its_way():
    world = World()
    for _ in range(5):
        world.comes("ap", "ap-host", tcp(ACK))
    assert world.entries["ap"] == 2
    assert len(world.bridges["ap"].packets) == 5


def test_a_link_down_moves_its_flows_and_clears_its_ends():
    world = World()
    for port in range(20):
        world.comes("ap", "ap-host", tcp(SYN, port))
    before = world.entries["low"]
    world.bridges["s1"].entries.clear()
    moved = world.forwarding.set_link("s1up", up=False)
    assert moved > 0
    assert world.entries["low"] == before + moved
    assert (3, 0) in world.bridges["s1"].entries
    assert world.forwarding.set_link("s1up", up=False) == 0
    assert world.forwarding.set_link("nowhere", up=False) is None


def test_without_a_way_packets_are_dropped_in_the_bridge():
    world = World()
    for link in ("s1up", "s1low"):
        world.forwarding.set_link(link, up=False)
    world.comes("ap", "ap-host", tcp(ACK))
    assert world.entries["ap"] == 1
    assert world.bridges["ap"].packets == []


def test_arp_is_answered_here_from_the_plan():
    world = World()
    world.comes("ap", "ap-host", frames.arp(frames.ARP_REQUEST, USER[1], USER[0], "", SERVER[0]))
    ((data, port),) = world.bridges["ap"].packets
    assert frames.parse(data).payload == frames.Arp(frames.ARP_REPLY, SERVER[1], SERVER[0], USER[1], USER[0])
    assert PORTS["ap"][port - 1] == "ap-host"


def test_whom_nobody_knows_is_asked_for_and_the_answer_goes_to_the_asker():
    world = World(srv1=False)
    world.comes("ap", "ap-host", frames.arp(frames.ARP_REQUEST, USER[1], USER[0], "", SERVER[0]))
    ((asked, port),) = world.bridges["s1"].packets
    assert frames.parse(asked).payload.operation == frames.ARP_REQUEST
    assert PORTS["s1"][port - 1] == "s1-host"
    world.comes("s1", "s1-host", frames.arp(frames.ARP_REPLY, SERVER[1], SERVER[0], USER[1], USER[0]))
    ((answer, _),) = world.bridges["ap"].packets
    assert frames.parse(answer).payload.sender_mac == SERVER[1]
    assert not world.bridges["up"].packets
    assert not world.bridges["low"].packets


@pytest.mark.parametrize("data", [b"", bytes(13), bytes(60), tcp(SYN)[:30]])
def test_garbage_is_not_forwarded(data):
    world = World()
    world.comes("ap", "ap-host", data)
    assert world.entries == {}
