"""Encode and decode OpenFlow 1.3 messages for meters, table 0 and counters.

Layouts: OpenFlow 1.3.5, section 7. Functions that decode take the body of a statistics reply.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from socket import inet_aton, inet_ntoa
from typing import NamedTuple

from controller.units import NS_PER_S

VERSION = 4
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6
(
    FLOW_MOD,
    MULTIPART_REQUEST,
    MULTIPART_REPLY,
    BARRIER_REQUEST,
    BARRIER_REPLY,
    SET_ASYNC,
    METER_MOD,
) = 14, 18, 19, 20, 21, 28, 29
FLOW_STATS, PORT_STATS, METER_STATS, METER_CONFIG = 1, 4, 9, 10
METER_ADD, METER_MODIFY, METER_DELETE = 0, 1, 2
FLOW_ADD, FLOW_DELETE_STRICT = 0, 4
ANY, NO_BUFFER, UNCOUNTED = 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
TIER_2_METER, TIER_1_METER, PATHS_TABLE = 1, 2, 1
METER_PRIORITY = 100
FULL_FRAME_BITS = 1514 * 8
_KBPS, _BURST, _STATS = 1, 4, 8
_ETH_TYPE, _IP_PROTO, _IPV4_SRC, _IPV4_DST = 5, 10, 11, 12
_GOTO, _METER_INSTRUCTION = 1, 6


class Data(NamedTuple):
    """The TCP data at one address of a user, in one direction.

    Data in the direction "down" is received by the user, and data in the direction "up" is sent.
    """

    address: str
    direction: str = "down"


def message(kind: int, body: bytes = b"", xid: int = 0) -> bytes:
    return struct.pack("!BBHL", VERSION, kind, 8 + len(body), xid) + body


def disable_async() -> bytes:
    """Return a message that disables packet-in, port status and flow removed messages.

    POX gets these messages on its OpenFlow 1.0 connection instead.
    """
    return message(SET_ASYNC, struct.pack("!6L", 0, 0, 0, 0, 0, 0))


def kbps(rate_bps: int) -> int:
    """Convert bit/s to the unit of a meter's rate, kb/s; at least 1."""
    return max(1, round(rate_bps / 1000))


def burst_kbit(rate_bps: int) -> int:
    """Return the burst size in kbit for a meter with this rate.

    It is the larger of ten full frames and 20 ms at this rate: a burst smaller than one frame would
    starve a flow.
    """
    return ceil(max(10 * FULL_FRAME_BITS, rate_bps * 0.020) / 1000)


def meter_mod(command: int, rate_bps: int = 0, meter: int = TIER_2_METER) -> bytes:
    """Return a message that adds, modifies or deletes a meter (a rate limit).

    `command` is `METER_ADD`, `METER_MODIFY` or `METER_DELETE`. The last one needs no rate.
    """
    band = (
        struct.pack("!HHLL4x", 1, 16, kbps(rate_bps), burst_kbit(rate_bps))
        if command != METER_DELETE
        else b""
    )
    return message(METER_MOD, struct.pack("!HHL", command, _KBPS | _BURST | _STATS, meter) + band)


def send_to_paths(data: Data | None, meter: int | None) -> bytes:
    """Return a message that adds an entry to table 0 for the TCP packets of `data`.

    The entry sends the packets to table 1, where they are forwarded. If `meter` is not None, the
    packets pass this meter first. If `data` is None, the entry is for all packets that match no
    other entry.
    """
    metered = struct.pack("!HHL", _METER_INSTRUCTION, 8, meter) if meter else b""
    return _table0(FLOW_ADD, data, metered + struct.pack("!HHB3x", _GOTO, 8, PATHS_TABLE))


def delete_entry(data: Data) -> bytes:
    return _table0(FLOW_DELETE_STRICT, data, b"")


def _table0(command: int, data: Data | None, instructions: bytes) -> bytes:
    priority = METER_PRIORITY if data else 0
    fixed = struct.pack("!QQBBHHHLLLH2x", 0, 0, 0, command, 0, 0, priority, NO_BUFFER, ANY, ANY, 0)
    return message(FLOW_MOD, fixed + _match(data) + instructions)


def _match(data: Data | None) -> bytes:
    fields = b""
    if data:
        fields = (
            _oxm(_ETH_TYPE, b"\x08\x00")
            + _oxm(_IP_PROTO, b"\x06")
            + _oxm(_IPV4_SRC if data.direction == "up" else _IPV4_DST, inet_aton(data.address))
        )
    length = 4 + len(fields)
    return struct.pack("!HH", 1, length) + fields + b"\0" * (-length % 8)


def _oxm(field: int, value: bytes) -> bytes:
    return struct.pack("!HBB", 0x8000, field << 1, len(value)) + value


def flow_stats_request(table: int) -> tuple[int, bytes]:
    """Return (kind, body) of a request for all entries of a table and their counters."""
    return FLOW_STATS, struct.pack("!B3xLL4xQQ", table, ANY, ANY, 0, 0) + _match(None)


def port_stats_request() -> tuple[int, bytes]:
    return PORT_STATS, struct.pack("!L4x", ANY)


def meter_stats_request() -> tuple[int, bytes]:
    return METER_STATS, struct.pack("!L4x", ANY)


def meter_config_request() -> tuple[int, bytes]:
    return METER_CONFIG, struct.pack("!L4x", ANY)


@dataclass(frozen=True)
class FlowEntry:
    """A flow entry with its counters.

    `data` is the address and the direction that the entry matches, or None if it matches no
    address. `meter` is the number of the meter that matching packets pass, or None. Only table 0
    uses these two fields.
    """

    cookie: int
    priority: int
    packets: int
    bytes: int
    data: Data | None
    meter: int | None


class FlowCount(NamedTuple):
    cookie: int
    packets: int
    bytes: int


@dataclass(frozen=True)
class MeterCount:
    """The counters of a meter (a rate limit), and the time since it was added.

    `offered_bytes` counts the bytes that have reached the meter. `dropped_bytes` counts those of
    them that the meter has dropped.
    """

    offered_bytes: int
    dropped_bytes: int
    age_ns: int

    @property
    def passed_bytes(self) -> int:
        return self.offered_bytes - self.dropped_bytes


@dataclass(frozen=True)
class PortCount:
    """The counters of a port. A counter that the switch does not support is 0."""

    port: int
    rx_bytes: int
    tx_bytes: int
    rx_packets: int
    tx_packets: int
    rx_dropped: int
    tx_dropped: int


def flows(body: bytes) -> list[FlowEntry]:
    return [_flow(entry) for entry in _entries(body, least=52)]


def flow_counts(body: bytes) -> list[FlowCount]:
    """Return the counters of the entries that forward one flow.

    These are the entries whose cookie is not 0.
    """
    counts = (
        FlowCount(*struct.unpack_from("!QQQ", entry, 24)) for entry in _entries(body, least=48)
    )
    return [each for each in counts if each.cookie]


def _flow(entry: bytes) -> FlowEntry:
    _, _, _, _, priority, _, _, _, cookie, packets, size = struct.unpack_from(
        "!HBxLLHHHH4xQQQ", entry
    )
    _, match_length = struct.unpack_from("!HH", entry, 48)
    instructions = entry[48 + (match_length + 7) // 8 * 8 :]
    return FlowEntry(
        cookie,
        priority,
        packets,
        size,
        data_of(entry[52 : 48 + match_length]),
        _meter(instructions),
    )


def data_of(fields: bytes) -> Data | None:
    """Return the IPv4 address in encoded match fields (OXM), with its direction.

    The direction is "up" if the address is the source, and "down" if it is the destination. Return
    None if the fields contain no address.
    """
    while len(fields) >= 4:
        kind, field, length = struct.unpack_from("!HBB", fields)
        if len(fields) >= 8 and kind == 0x8000 and field >> 1 in (_IPV4_SRC, _IPV4_DST):
            direction = "up" if field >> 1 == _IPV4_SRC else "down"
            return Data(inet_ntoa(fields[4:8]), direction)
        fields = fields[4 + length :]
    return None


def _meter(instructions: bytes) -> int | None:
    for each in _entries(instructions, length_at=2, least=8):
        kind, _, meter = struct.unpack_from("!HHL", each)
        if kind == _METER_INSTRUCTION:
            return int(meter)
    return None


def meter_count(body: bytes, wanted: int = TIER_2_METER) -> MeterCount | None:
    """Find the meter `wanted` in a meter statistics reply; None if the reply does not have it."""
    for entry in _entries(body, length_at=4, least=40):
        meter, _, _, _, offered, age_s, age_ns = struct.unpack_from("!LH6xLQQLL", entry)
        if meter == wanted:
            dropped = sum(
                struct.unpack_from("!QQ", entry, at)[1] for at in range(40, len(entry) - 15, 16)
            )
            return MeterCount(offered, dropped, age_s * NS_PER_S + age_ns)
    return None


def meter_rate_bps(body: bytes, wanted: int = TIER_2_METER) -> int | None:
    """Return the rate of the meter `wanted` in a meter configuration reply.

    Return None if the reply does not have this meter.
    """
    for entry in _entries(body, least=16):
        _, _, meter = struct.unpack_from("!HHL", entry)
        if meter == wanted:
            return int(struct.unpack_from("!L", entry, 12)[0]) * 1000
    return None


def ports(body: bytes) -> list[PortCount]:
    """Return the counters of all ports, except reserved ports such as LOCAL."""
    found = []
    for at in range(0, len(body) - 111, 112):
        port, rx_packets, tx_packets, rx, tx, rx_dropped, tx_dropped = struct.unpack_from(
            "!L4x6Q", body, at
        )
        if port < 0xFFFFFF00:
            counts = (rx, tx, rx_packets, tx_packets, rx_dropped, tx_dropped)
            found.append(PortCount(port, *(0 if each == UNCOUNTED else each for each in counts)))
    return found


def _entries(body: bytes, length_at: int = 0, least: int = 4) -> Iterator[bytes]:
    """Yield each entry of a list in which every entry states its own length in bytes.

    The length is at offset `length_at` of the entry. Entries shorter than `least` bytes are left
    out. An invalid length ends the list.
    """
    while len(body) >= length_at + 2:
        (length,) = struct.unpack_from("!H", body, length_at)
        if length < 4 or length > len(body):
            return
        if length >= least:
            yield body[:length]
        body = body[length:]
