"""Parse Ethernet, VLAN, ARP and IPv4 headers and MPTCP options from bytes; build ARP frames.

POX's own parser fails at the TCP header of an MPTCP v1 SYN, and then does not return the ports.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
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
    """The fields of an ARP packet (RFC 826).

    `sender` and `target` are IPv4 addresses; `operation` is 1 in a request and 2 in a reply.
    """

    operation: int
    sender_mac: str
    sender: str
    target_mac: str
    target: str


@dataclass(frozen=True)
class Ip:
    """The parts of an IPv4 packet that the controller needs.

    `flags` and `options` are those of the TCP header. They are 0 and empty if the packet is not
    TCP.
    """

    flow: Flow
    flags: int = 0
    options: bytes = b""

    @property
    def is_syn(self) -> bool:
        """True for a SYN and for a SYN/ACK."""
        return bool(self.flags & SYN)


@dataclass(frozen=True)
class Frame:
    """An Ethernet frame. `payload` is None if the frame contains neither ARP nor IPv4."""

    destination_mac: str
    source_mac: str
    payload: Arp | Ip | None


def parse(data: bytes) -> Frame | None:
    """Parse an Ethernet frame; return None if it is too short. No input raises an exception."""
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
    """Return an Ethernet frame with an ARP packet: a request is broadcast, a reply is not."""
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
    """Format a MAC address as "02:00:0a:01:00:02"."""
    return raw.hex(":")


def mac_bytes(text: str) -> bytes:
    """Parse a MAC address such as "02:00:0a:01:00:02"."""
    return bytes.fromhex(text.replace(":", ""))


# MPTCP options of version 0 (RFC 6824) and version 1 (RFC 8684)
#
# MP_CAPABLE differs: a v1 SYN contains no key, and the third ACK may contain a data length. In
# both versions the SYN/ACK contains the server's key. The token, a hash of this key, identifies
# the connection in every MP_JOIN that is sent to the server.


MPTCP_KIND = 30
SUBTYPES = (
    "MP_CAPABLE",
    "MP_JOIN",
    "DSS",
    "ADD_ADDR",
    "REMOVE_ADDR",
    "MP_PRIO",
    "MP_FAIL",
    "MP_FASTCLOSE",
    "MP_TCPRST",
)
_CAPABLE_LENGTHS = {0: (12, 20), 1: (4, 12, 20, 22, 24)}
_JOIN_LENGTHS = {12: "syn", 16: "syn_ack", 24: "ack"}


@dataclass(frozen=True)
class Capable:
    """An MP_CAPABLE option (RFC 8684 and RFC 6824, section 3.1).

    A field is None if the option is too short to contain it.
    """

    version: int
    flags: int
    sender_key: bytes | None = None
    receiver_key: bytes | None = None
    data_length: int | None = None

    def token(self) -> str | None:
        """Return the MPTCP token of the sender's key (RFC 8684, section 3.2).

        Return None if the option contains no key.
        """
        return None if self.sender_key is None else token(self.sender_key, self.version)


@dataclass(frozen=True)
class Join:
    """An MP_JOIN option (section 3.2 of RFC 8684 and RFC 6824).

    `step` is the handshake packet that contains the option: "syn", "syn_ack" or "ack". Only the SYN
    has a token. The third ACK has neither an address id nor a backup flag; they are then 0 and
    False.
    """

    step: str
    backup: bool
    address_id: int
    token: str | None = None


@dataclass(frozen=True)
class Prio:
    """An MP_PRIO option, which sets the backup flag (RFC 8684 and RFC 6824, section 3.3.8).

    If `address_id` is None, the flag applies to the subflow on which the option arrived. Otherwise
    it applies to all subflows of this address. Only version 0 of MPTCP has an address id here.
    """

    backup: bool
    address_id: int | None = None


@dataclass(frozen=True)
class Other:
    """An MPTCP option other than MP_CAPABLE, MP_JOIN and MP_PRIO."""

    name: str


MptcpOption = Capable | Join | Prio | Other


def token(key: bytes, version: int) -> str:
    """Return the MPTCP token of a key: the first 32 bits of its hash, in hexadecimal.

    The hash is SHA-1 in version 0 and SHA-256 in version 1.
    """
    digest = hashlib.sha256(key) if version else hashlib.sha1(key, usedforsecurity=False)
    return digest.hexdigest()[:8]


def mptcp_option(options: bytes) -> MptcpOption | None:
    """Return the most important MPTCP option of a TCP segment, or None if there is none.

    A segment may contain several. The first MP_CAPABLE, MP_JOIN or MP_PRIO is more important than
    all other MPTCP options. No input raises an exception.
    """
    found = [option for option in map(_option, _mptcp_options(options)) if option is not None]
    named = [option for option in found if not isinstance(option, Other)]
    return next(iter(named or found), None)


def _mptcp_options(options: bytes) -> Iterator[bytes]:
    """Yield each MPTCP option among the options of a TCP segment (RFC 9293, section 3.1).

    Stop at the first option whose length is not valid.
    """
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            return
        if options[at] == MPTCP_KIND and length > 2:
            yield options[at : at + length]
        at += length


def _option(raw: bytes) -> MptcpOption | None:
    subtype = raw[2] >> 4
    if subtype == 0:
        return _capable(raw)
    if subtype == 1:
        return _join(raw)
    if subtype == 5:
        return _prio(raw)
    return Other(SUBTYPES[subtype]) if subtype < len(SUBTYPES) else None


def _capable(raw: bytes) -> Capable | None:
    version = raw[2] & 15
    if len(raw) < 4 or len(raw) not in _CAPABLE_LENGTHS.get(version, ()):
        return None
    return Capable(
        version,
        raw[3],
        sender_key=raw[4:12] or None,
        receiver_key=raw[12:20] or None,
        data_length=int.from_bytes(raw[20:22], "big") if len(raw) >= 22 else None,
    )


def _join(raw: bytes) -> Join | None:
    step = _JOIN_LENGTHS.get(len(raw))
    if step is None:
        return None
    named = raw[4:8].hex() if step == "syn" else None
    return Join(step, step != "ack" and bool(raw[2] & 1), 0 if step == "ack" else raw[3], named)


def _prio(raw: bytes) -> Prio | None:
    if len(raw) not in (3, 4):
        return None
    return Prio(bool(raw[2] & 1), raw[3] if len(raw) == 4 else None)
