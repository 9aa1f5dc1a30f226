"""Encode OpenFlow 1.0 messages with Nicira's extensions for table ids and extended matches.

Each function returns the bytes of a message, or of a match or action in a message. Only what
routing needs is here, because POX's classes are slower. Layouts: openvswitch/nicira-ext.h and
OpenFlow 1.0.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from socket import inet_aton

from controller.paths import Flow
from controller.pox_ext.frames import TCP, mac_bytes

VENDOR_NICIRA = 0x2320
NXT_FLOW_MOD_TABLE_ID, NXT_FLOW_MOD = 15, 13
PORT_IN, PORT_CONTROLLER, PORT_NONE = 0xFFF8, 0xFFFD, 0xFFFF
NO_BUFFER = 0xFFFFFFFF
ADD, MODIFY_STRICT, DELETE, DELETE_STRICT = 0, 2, 3, 4
SEND_FLOW_REMOVED = 1  # OFPFF_SEND_FLOW_REM
ETH_IP, ETH_ARP = 0x0800, 0x0806
ACK = 0x10
COPY = 0  # OFPR_NO_MATCH: the reason of a packet that came by `copy_to_controller`
_VERSION, _VENDOR, _PACKET_OUT, _BARRIER_REQUEST = 1, 4, 13, 18
_ACTION_CONTROLLER = 20  # NXAST_CONTROLLER


def _nxm(vendor: int, field: int, value: bytes, mask: bytes = b"") -> bytes:
    """Return one field of an extended match: a header with the length, the value, and the mask."""
    return (
        struct.pack("!HBB", vendor, field << 1 | bool(mask), len(value) + len(mask)) + value + mask
    )


def in_port(port: int) -> bytes:
    return _nxm(0, 0, struct.pack("!H", port))


def eth_type(kind: int) -> bytes:
    return _nxm(0, 3, struct.pack("!H", kind))


def protocol(number: int) -> bytes:
    return _nxm(0, 6, bytes([number]))


def destination(address: str, prefix_bits: int = 32) -> bytes:
    mask = struct.pack("!L", 0xFFFFFFFF << (32 - prefix_bits) & 0xFFFFFFFF)
    return _nxm(0, 8, inet_aton(address), mask if prefix_bits < 32 else b"")


def no_ack() -> bytes:
    """Return a match for TCP segments without the ACK flag: a SYN, but not a SYN/ACK."""
    return _nxm(1, 34, struct.pack("!H", 0), struct.pack("!H", ACK))


def match_flow(flow: Flow) -> bytes:
    """Return a match for exactly the packets of this flow, at any ingress port."""
    match = (
        eth_type(ETH_IP)
        + protocol(flow.protocol)
        + _nxm(0, 7, inet_aton(flow.source))
        + destination(flow.destination)
    )
    if flow.protocol == TCP:
        match += _nxm(0, 9, struct.pack("!H", flow.source_port)) + _nxm(
            0, 10, struct.pack("!H", flow.destination_port)
        )
    return match


def output(port: int, ingress_port: int | None = None) -> bytes:
    """Return an action that sends a packet out of `port`.

    If `port` is that of the controller, the controller gets the whole packet. `ingress_port` is the
    port by which the packet entered. If it equals `port`, the action names the reserved port
    PORT_IN instead: OpenFlow sends a packet back only in this way.
    """
    return struct.pack("!HHHH", 0, 8, PORT_IN if port == ingress_port else port, 0xFFFF)


def copy_to_controller() -> bytes:
    """Return an action that sends a copy of the whole packet to the controller, with reason COPY.

    It is Nicira's: an ordinary output to the controller has the same reason in every entry.
    """
    return struct.pack("!HHLHHHBx", 0xFFFF, 16, VENDOR_NICIRA, _ACTION_CONTROLLER, 0xFFFF, 0, COPY)


def set_destination_mac(mac: str) -> bytes:
    return struct.pack("!HH6s6x", 5, 16, mac_bytes(mac))


def enable_table_ids() -> bytes:
    """Return a message after which flow-mods on this connection can name a table.

    The table number is then in the upper byte of the flow-mod's command field.
    """
    return _vendor(NXT_FLOW_MOD_TABLE_ID, struct.pack("!B7x", 1))


def flow_mod(
    table: int,
    priority: int,
    match: bytes,
    actions: Iterable[bytes] = (),
    *,
    command: int = ADD,
    cookie: int = 0,
    idle_s: int = 0,
    hard_s: int = 0,
    out_port: int = PORT_NONE,
    flags: int = 0,
) -> bytes:
    """Return a message that adds, modifies or deletes a flow entry in `table`.

    An entry without actions drops its packets. Modifying an entry that does not exist adds it. If
    `command` deletes and `out_port` is given, only entries that send packets out of this port are
    deleted. The switch removes an entry after `idle_s` seconds without packets, or `hard_s` seconds
    after it was written; 0 means never.
    """
    fixed = struct.pack(
        "!QHHHHLHHH6x",
        cookie,
        table << 8 | command,
        idle_s,
        hard_s,
        priority,
        NO_BUFFER,
        out_port,
        flags,
        len(match),
    )
    padding = b"\0" * (-len(match) % 8)
    return _vendor(NXT_FLOW_MOD, fixed + match + padding + b"".join(actions))


def packet_out(data: bytes, actions: Iterable[bytes], ingress_port: int = PORT_NONE) -> bytes:
    """Return a message that makes a switch apply `actions` to the packet `data`.

    `ingress_port` is the port by which the packet entered.
    """
    packed = b"".join(actions)
    fixed = struct.pack("!LHH", NO_BUFFER, ingress_port, len(packed))
    return _message(_PACKET_OUT, fixed + packed + data)


def barrier(xid: int) -> bytes:
    """Return a message that the switch answers when it has carried out all earlier messages."""
    return _message(_BARRIER_REQUEST, b"", xid)


def _vendor(subtype: int, body: bytes) -> bytes:
    return _message(_VENDOR, struct.pack("!LL", VENDOR_NICIRA, subtype) + body)


def _message(kind: int, body: bytes, xid: int = 0) -> bytes:
    return struct.pack("!BBHL", _VERSION, kind, 8 + len(body), xid) + body
