"""Parse Ethernet, VLAN, ARP and IPv4 headers from bytes, and build ARP frames.

POX's own parser fails at the TCP header of an MPTCP v1 SYN, and then does not return the ports.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from socket import inet_aton, inet_ntoa

from controller.paths import Flow

TCP, UDP = 6, 17
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
ARP_REQUEST, ARP_REPLY = 1, 2
BROADCAST = "ff:ff:ff:ff:ff:ff"
_ETH_IP, _ETH_ARP, _VLAN = 0x0800, 0x0806, (0x8100, 0x88A8)


@dataclass(frozen=True)
class Arp:
    """Hold the fields of an ARP packet (RFC 826).

    `sender` and `target` are IPv4 addresses; `operation` is 1 in a request and 2 in a reply.
    """

    operation: int
    sender_mac: str
    sender: str
    target_mac: str
    target: str


@dataclass(frozen=True)
class Ip:
    """Hold what the controller needs of an IPv4 packet: its flow, and the flags and options of TCP.

    `flags` is 0 and `options` is empty if the packet is not TCP.
    """

    flow: Flow
    flags: int = 0
    options: bytes = b""

    @property
    def is_syn(self) -> bool:
        """Return whether the packet is a TCP SYN or SYN/ACK."""
        return bool(self.flags & SYN)


@dataclass(frozen=True)
class Frame:
    """Hold an Ethernet frame; `payload` is None if the frame contains neither ARP nor IPv4."""

    destination_mac: str
    source_mac: str
    payload: Arp | Ip | None


def parse(data: bytes) -> Frame | None:
    """Parse an Ethernet frame; return None if it is too short.

    Whatever the bytes are, no exception is raised.
    """
    try:
        return _frame(data)
    except (struct.error, OSError, IndexError):
        return None


def _frame(data: bytes) -> Frame:
    (kind,) = struct.unpack_from("!H", data, 12)
    offset = 14
    while kind in _VLAN:
        (kind,) = struct.unpack_from("!H", data, offset + 2)
        offset += 4
    payload: Arp | Ip | None = None
    if kind == _ETH_ARP:
        payload = _arp(data[offset:])
    elif kind == _ETH_IP:
        payload = _ip(data[offset:])
    return Frame(mac_text(data[0:6]), mac_text(data[6:12]), payload)


def _arp(data: bytes) -> Arp | None:
    hardware, protocol, sizes, operation = struct.unpack_from("!HHHH", data)
    if (hardware, protocol, sizes) != (1, _ETH_IP, 0x0604):
        return None
    sender_mac, sender, target_mac, target = struct.unpack_from("!6s4s6s4s", data, 8)
    return Arp(
        operation, mac_text(sender_mac), inet_ntoa(sender), mac_text(target_mac), inet_ntoa(target)
    )


def _ip(data: bytes) -> Ip | None:
    first, _, length, _, fragment, _, protocol, _, source, destination = struct.unpack_from(
        "!BBHHHBBH4s4s", data
    )
    header = (first & 15) * 4
    if first >> 4 != 4 or header < 20 or length < header:
        return None
    ends = (inet_ntoa(source), inet_ntoa(destination))
    if protocol != TCP or fragment & 0x1FFF:
        return Ip(Flow(*ends, protocol))
    segment = data[header:length]  # an Ethernet frame may be padded
    source_port, destination_port, _, _, offset, flags = struct.unpack_from("!HHLLBB", segment)
    size = (offset >> 4) * 4
    if size < 20 or size > len(segment):
        return None
    return Ip(Flow(*ends, TCP, source_port, destination_port), flags, segment[20:size])


def arp(operation: int, sender_mac: str, sender: str, target_mac: str, target: str) -> bytes:
    """Return an Ethernet frame that contains an ARP packet from `sender`.

    A request is sent to the broadcast address, a reply to `target_mac`.
    """
    requested_mac = b"\0" * 6 if operation == ARP_REQUEST else mac_bytes(target_mac)
    to = BROADCAST if operation == ARP_REQUEST else target_mac
    ethernet = mac_bytes(to) + mac_bytes(sender_mac) + struct.pack("!H", _ETH_ARP)
    fixed = struct.pack("!HHHH", 1, _ETH_IP, 0x0604, operation)
    return (
        ethernet
        + fixed
        + mac_bytes(sender_mac)
        + inet_aton(sender)
        + requested_mac
        + inet_aton(target)
    )


def mac_text(raw: bytes) -> str:
    """Format the six bytes of a MAC address as text: "02:00:0a:01:00:02"."""
    return raw.hex(":")


def mac_bytes(text: str) -> bytes:
    """Return the six bytes of a MAC address written as "02:00:0a:01:00:02"."""
    return bytes.fromhex(text.replace(":", ""))
