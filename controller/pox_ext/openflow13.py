"""The few OpenFlow 1.3 messages that meters, table 0 and counters need, coded by os-ken (OpenFlow 1.3.5, section 7).

os-ken is used as a codec only: no application of it runs, and no socket is its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as codec
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

VERSION = ofp.OFP_VERSION
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY = ofp.OFPT_HELLO, ofp.OFPT_ERROR, ofp.OFPT_ECHO_REQUEST, ofp.OFPT_ECHO_REPLY
FEATURES_REQUEST, FEATURES_REPLY, BARRIER_REPLY = ofp.OFPT_FEATURES_REQUEST, ofp.OFPT_FEATURES_REPLY, ofp.OFPT_BARRIER_REPLY
BARRIER_REQUEST, MULTIPART_REQUEST, MULTIPART_REPLY = (
    ofp.OFPT_BARRIER_REQUEST,
    ofp.OFPT_MULTIPART_REQUEST,
    ofp.OFPT_MULTIPART_REPLY,
)
FLOW_MOD, METER_MOD = ofp.OFPT_FLOW_MOD, ofp.OFPT_METER_MOD
METER_ADD, METER_MODIFY, METER_DELETE = ofp.OFPMC_ADD, ofp.OFPMC_MODIFY, ofp.OFPMC_DELETE
METER, PATHS_TABLE = 1, 1
METER_PRIORITY = 100
FULL_FRAME_BITS = 1514 * 8
UNCOUNTED = 0xFFFFFFFFFFFFFFFF
REQUEST_HEADER_BYTES = 16  # of a multipart request: header, kind and flags
_SWITCH = ProtocolDesc(version=VERSION)
_SHORTEST_FLOW_BYTES, _PORT_BYTES, _SHORTEST_METER_BYTES, _SHORTEST_CONFIG_BYTES = 56, 112, 40, 8


def message(kind: int, body: bytes = b"", xid: int = 0) -> bytes:
    """A message of a kind whose body is known as bytes."""
    return struct.pack("!BBHL", VERSION, kind, 8 + len(body), xid) + body


def _coded(message: Any) -> bytes:
    message.set_xid(0)
    message.serialize()
    return bytes(message.buf)


def silence() -> bytes:
    """No packet-in, port status or flow removed on this channel, whatever the role: POX hears them on the other."""
    return _coded(codec.OFPSetAsync(_SWITCH, [0, 0], [0, 0], [0, 0]))


def kbps(rate_bps: int) -> int:
    """A meter counts in kb/s; less than one is one."""
    return max(1, round(rate_bps / 1000))


def burst_kbit(rate_bps: int) -> int:
    """Ten full frames, or what the rate carries in 20 ms: a burst below one frame would starve a flow."""
    return ceil(max(10 * FULL_FRAME_BITS, rate_bps * 0.020) / 1000)


def meter_mod(command: int, rate_bps: int = 0) -> bytes:
    """Add, modify or delete the one meter of a switch."""
    bands = [] if command == METER_DELETE else [codec.OFPMeterBandDrop(kbps(rate_bps), burst_kbit(rate_bps))]
    flags = ofp.OFPMF_KBPS | ofp.OFPMF_BURST | ofp.OFPMF_STATS
    return _coded(codec.OFPMeterMod(_SWITCH, command, flags, METER, bands))


def to_paths(address: str | None, metered: bool) -> bytes:
    """TCP to this address goes to the table of the paths, through the meter or not; without an address everything does."""
    meter = [codec.OFPInstructionMeter(METER)] if metered else []
    return _table0(ofp.OFPFC_ADD, address, [*meter, codec.OFPInstructionGotoTable(PATHS_TABLE)])


def forget(address: str) -> bytes:
    """Delete the entry of an address."""
    return _table0(ofp.OFPFC_DELETE_STRICT, address, [])


def _table0(command: int, address: str | None, instructions: list[Any]) -> bytes:
    match = codec.OFPMatch(eth_type=0x0800, ip_proto=6, ipv4_dst=address) if address else codec.OFPMatch()
    anywhere = {"out_port": ofp.OFPP_ANY, "out_group": ofp.OFPG_ANY}
    priority = METER_PRIORITY if address else 0
    return _coded(
        codec.OFPFlowMod(_SWITCH, command=command, priority=priority, match=match, instructions=instructions, **anywhere)
    )


def ask_flows(table: int) -> tuple[int, bytes]:
    """Kind and body of a request for the entries of a table."""
    return _asked(codec.OFPFlowStatsRequest(_SWITCH, 0, table, ofp.OFPP_ANY, ofp.OFPG_ANY))


def ask_ports() -> tuple[int, bytes]:
    return _asked(codec.OFPPortStatsRequest(_SWITCH, 0, ofp.OFPP_ANY))


def ask_meter() -> tuple[int, bytes]:
    return _asked(codec.OFPMeterStatsRequest(_SWITCH, 0, ofp.OFPM_ALL))


def ask_meter_config() -> tuple[int, bytes]:
    return _asked(codec.OFPMeterConfigStatsRequest(_SWITCH, 0, ofp.OFPM_ALL))


def _asked(request: Any) -> tuple[int, bytes]:
    return request.type, _coded(request)[REQUEST_HEADER_BYTES:]


@dataclass(frozen=True)
class FlowEntry:
    """One entry with its counters; `address` and `metered` are those of table 0."""

    cookie: int
    priority: int
    packets: int
    bytes: int
    address: str | None
    metered: bool


@dataclass(frozen=True)
class MeterCount:
    """What came to the meter and what it dropped, in bytes."""

    offered_bytes: int
    dropped_bytes: int


@dataclass(frozen=True)
class PortCount:
    """Counters of a port; what a switch does not count is 0."""

    port: int
    rx_bytes: int
    tx_bytes: int
    rx_packets: int
    tx_packets: int
    rx_dropped: int
    tx_dropped: int


def flows(body: bytes) -> list[FlowEntry]:
    """The entries in a flow statistics reply."""
    return [_flow(entry) for entry in _entries(body, codec.OFPFlowStats.parser, _SHORTEST_FLOW_BYTES)]


def _flow(entry: Any) -> FlowEntry:
    metered = any(isinstance(each, codec.OFPInstructionMeter) for each in entry.instructions)
    address = entry.match.get("ipv4_dst")
    return FlowEntry(entry.cookie, entry.priority, entry.packet_count, entry.byte_count, address, metered)


def meter_count(body: bytes) -> MeterCount | None:
    """The counters of our meter in a meter statistics reply, None without one."""
    for entry in _entries(body, codec.OFPMeterStats.parser, _SHORTEST_METER_BYTES, length_at=4):
        if entry.meter_id == METER:
            return MeterCount(entry.byte_in_count, sum(band.byte_band_count for band in entry.band_stats))
    return None


def meter_rate_bps(body: bytes) -> int | None:
    """The rate of our meter in a meter configuration reply, None without one."""
    for entry in _entries(body, codec.OFPMeterConfigStats.parser, _SHORTEST_CONFIG_BYTES):
        if entry.meter_id == METER and entry.bands:
            return int(entry.bands[0].rate) * 1000
    return None


def ports(body: bytes) -> list[PortCount]:
    """The counters of every port in a port statistics reply; local ports left out."""
    found = (codec.OFPPortStats.parser(body, at) for at in range(0, len(body) - _PORT_BYTES + 1, _PORT_BYTES))
    return [_port(each) for each in found if each.port_no <= ofp.OFPP_MAX]


def _port(stats: Any) -> PortCount:
    counts = (stats.rx_bytes, stats.tx_bytes, stats.rx_packets, stats.tx_packets, stats.rx_dropped, stats.tx_dropped)
    return PortCount(stats.port_no, *(0 if each == UNCOUNTED else each for each in counts))


def _entries(body: bytes, parse: Callable[[bytes, int], Any], shortest: int, length_at: int = 0) -> Iterator[Any]:
    """Entries that carry their own length; stops where the list is broken."""
    while len(body) >= shortest:
        (length,) = struct.unpack_from("!H", body, length_at)
        if not shortest <= length <= len(body):
            return
        try:
            yield parse(body[:length], 0)
        except (struct.error, AttributeError, KeyError, ValueError):
            return
        body = body[length:]
