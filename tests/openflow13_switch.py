"""A switch in memory that speaks OpenFlow 1.3: table 0, meters and counters. It reads messages with
os-ken, and refuses what Open vSwitch refuses."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import os_ken.ofproto.ofproto_v1_3 as ofproto
import os_ken.ofproto.ofproto_v1_3_parser as codec

DATAPATH = SimpleNamespace(ofproto=ofproto, ofproto_parser=codec)
FIELDS = {"ipv4_dst": "down", "ipv4_src": "up"}
UNKNOWN_METER, METER_EXISTS = 3, 1  # codes of METER_MOD_FAILED
Data = tuple[str, str]  # address, direction
REST = ("", "")  # the entry for all other packets


@dataclass
class Meter:
    rate_kbps: int
    burst_kbit: int
    offered_bytes: int = 0
    dropped_bytes: int = 0
    age_s: float = 0.0


@dataclass
class Switch:
    """`table0` has the meter of each entry. `paths` has (cookie, packets, bytes) of the entries of
    table 1, and `ports` the counters of each port: packets, bytes and drops, received and sent."""

    dpid: int
    table0: dict[Data, int | None] = field(default_factory=dict)
    meters: dict[int, Meter] = field(default_factory=dict)
    bytes: dict[Data, int] = field(default_factory=dict)
    paths: list[tuple[int, int, int]] = field(default_factory=list)
    ports: dict[int, tuple[int, int, int, int, int, int]] = field(default_factory=dict)
    is_silent: bool = False  # answers no request for counters before `answer`
    ignores_barriers: bool = False
    refuses_counters: bool = False
    changes: list[str] = field(default_factory=list)  # the messages that changed something
    echoes: list[tuple[int, bytes]] = field(default_factory=list)  # transaction id and content
    _inbox: bytes = b""
    _unanswered: list[bytes] = field(default_factory=list)
    socket: socket.socket | None = None

    def connect(self, port: int, version: int = 4) -> None:
        self.socket, self._inbox = socket.create_connection(("127.0.0.1", port)), b""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.socket.sendall(struct.pack("!BBHL", version, ofproto.OFPT_HELLO, 8, 0))

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def pass_s(self, seconds: float) -> None:
        for each in self.meters.values():
            each.age_s += seconds

    def serve(self) -> bool:
        """Answer what has come; return whether anything had."""
        if self.socket is None:
            return False
        data = None
        with suppress(BlockingIOError, ConnectionResetError):
            data = self.socket.recv(1 << 20)
        if data == b"":
            self.close()
        self._inbox += data or b""
        while self.socket is not None and (message := self._next()):
            version, kind, _, xid = struct.unpack_from("!BBHL", message)
            assert version == ofproto.OFP_VERSION
            self._take(kind, xid, message)
        return data is not None

    def answer(self, most: int) -> None:
        """Answer the oldest requests for counters that have no answer yet, at most so many."""
        for message in self._unanswered[:most]:
            (xid,) = struct.unpack_from("!L", message, 4)
            self._counters(xid, *struct.unpack_from("!HH", message, 8), message[16:])
        del self._unanswered[:most]

    def _next(self) -> bytes:
        """The next message that is whole, or nothing."""
        (length,) = struct.unpack_from("!H", self._inbox, 2) if len(self._inbox) >= 8 else (8,)
        if len(self._inbox) < length:
            return b""
        message, self._inbox = self._inbox[:length], self._inbox[length:]
        return message

    def send(self, kind: int, body: bytes = b"", xid: int = 0) -> None:
        assert self.socket is not None
        self.socket.sendall(struct.pack("!BBHL", 4, kind, 8 + len(body), xid) + body)

    def _take(self, kind: int, xid: int, message: bytes) -> None:
        match kind:
            case ofproto.OFPT_FEATURES_REQUEST:
                self.send(ofproto.OFPT_FEATURES_REPLY, struct.pack("!Q16x", self.dpid), xid)
            case ofproto.OFPT_FLOW_MOD:
                self._flow_mod(xid, message)
            case ofproto.OFPT_METER_MOD:
                self._meter_mod(xid, message)
            case ofproto.OFPT_BARRIER_REQUEST if not self.ignores_barriers:
                self.send(ofproto.OFPT_BARRIER_REPLY, b"", xid)
            case ofproto.OFPT_MULTIPART_REQUEST if self.is_silent:
                self._unanswered.append(message)
            case ofproto.OFPT_MULTIPART_REQUEST:
                self._counters(xid, *struct.unpack_from("!HH", message, 8), message[16:])
            case ofproto.OFPT_ECHO_REPLY:
                self.echoes.append((xid, message[8:]))
            case ofproto.OFPT_SET_ASYNC:
                assert message[8:] == bytes(24)

    def _refuse(self, xid: int, kind: int, code: int) -> None:
        self.send(ofproto.OFPT_ERROR, struct.pack("!HH", kind, code), xid)

    def _flow_mod(self, xid: int, message: bytes) -> None:
        asked = codec.OFPFlowMod.parser(DATAPATH, 4, message[1], len(message), xid, message)
        data = self._matched(asked)
        assert (asked.table_id, asked.buffer_id) == (0, ofproto.OFP_NO_BUFFER)
        if asked.command == ofproto.OFPFC_DELETE_STRICT:
            assert (asked.out_port, asked.out_group) == (ofproto.OFPP_ANY, ofproto.OFPG_ANY)
            self.table0.pop(data, None)
            self.changes.append(f"delete {' '.join(data)}")
            return
        assert asked.command == ofproto.OFPFC_ADD
        *metered, goto = asked.instructions
        assert (type(goto), goto.table_id) == (codec.OFPInstructionGotoTable, 1)
        meter = metered[0].meter_id if metered else None
        if meter is not None and meter not in self.meters:
            self._refuse(xid, ofproto.OFPET_METER_MOD_FAILED, UNKNOWN_METER)
            return
        self.table0[data] = meter
        self.changes.append(f"write {' '.join(data)} {meter or ''}".strip())

    def _matched(self, asked: Any) -> Data:
        fields = dict(asked.match.items())
        if not fields:
            assert asked.priority == 0
            return REST
        ((name, address),) = ((key, value) for key, value in fields.items() if key in FIELDS)
        assert fields == {"eth_type": 0x0800, "ip_proto": 6, name: address}
        assert asked.priority == 100
        return address, FIELDS[name]

    def _meter_mod(self, xid: int, message: bytes) -> None:
        command, flags, number = struct.unpack_from("!HHL", message, 8)
        if (command == ofproto.OFPMC_ADD) == (number in self.meters):
            code = METER_EXISTS if number in self.meters else UNKNOWN_METER
            self._refuse(xid, ofproto.OFPET_METER_MOD_FAILED, code)
            return
        if command == ofproto.OFPMC_DELETE:  # the entries that name it go with it
            del self.meters[number]
            self.table0 = {data: meter for data, meter in self.table0.items() if meter != number}
            self.changes.append(f"delete meter {number}")
            return
        assert flags == ofproto.OFPMF_KBPS | ofproto.OFPMF_BURST | ofproto.OFPMF_STATS
        band = codec.OFPMeterBandHeader.parser(message, 16)
        assert isinstance(band, codec.OFPMeterBandDrop)
        self.meters[number] = Meter(band.rate, band.burst_size)
        verb = "add" if command == ofproto.OFPMC_ADD else "modify"
        self.changes.append(f"{verb} meter {number} {band.rate}")

    # Counters

    def _counters(self, xid: int, kind: int, flags: int, body: bytes) -> None:
        assert flags == 0
        if self.refuses_counters:
            self._refuse(xid, ofproto.OFPET_BAD_REQUEST, 1)
            return
        match kind:
            case ofproto.OFPMP_FLOW:
                entries = self._flows(body)
            case ofproto.OFPMP_PORT_STATS:
                entries = self._ports(body)
            case ofproto.OFPMP_METER:
                entries = self._meter_counts(body)
            case ofproto.OFPMP_METER_CONFIG:
                entries = self._meter_configs(body)
            case _:
                self._refuse(xid, ofproto.OFPET_BAD_REQUEST, 2)
                return
        for left, entry in zip(range(len(entries) - 1, -1, -1), entries, strict=True):
            more = ofproto.OFPMPF_REPLY_MORE if left else 0
            self.send(ofproto.OFPT_MULTIPART_REPLY, struct.pack("!HH4x", kind, more) + entry, xid)

    def _flows(self, body: bytes) -> list[bytes]:
        """One part of the reply for each entry, as in the other lists."""
        table, out_port, out_group, cookie, mask = struct.unpack_from("!B3xLL4xQQ", body)
        assert (out_port, out_group) == (ofproto.OFPP_ANY, ofproto.OFPG_ANY)
        assert (cookie, mask, dict(codec.OFPMatch.parser(body, 32).items())) == (0, 0, {})
        if table == 1:
            rows = [_flow(1, 110, *counts, codec.OFPMatch()) for counts in self.paths]
            return [*rows, _flow(1, 10, 0, 7, 700, codec.OFPMatch())]
        names = {direction: name for name, direction in FIELDS.items()}
        found = []
        for (address, direction), meter in self.table0.items():
            fields = {"eth_type": 0x0800, "ip_proto": 6, names.get(direction): address}
            match = codec.OFPMatch(**fields) if address else codec.OFPMatch()
            instructions = [codec.OFPInstructionMeter(meter)] if meter else []
            size = self.bytes.get((address, direction), 0)
            counts = (100 if address else 0, 0, size // 1514, size)
            found.append(_flow(0, *counts, match, *instructions, codec.OFPInstructionGotoTable(1)))
        return found or [b""]

    def _ports(self, body: bytes) -> list[bytes]:
        assert struct.unpack_from("!L", body) == (ofproto.OFPP_ANY,)
        return [
            struct.pack("!L4x6Q", number, *counts) + struct.pack("!6QLL", *[9] * 8)
            for number, counts in {**self.ports, ofproto.OFPP_LOCAL: (1,) * 6}.items()
        ]

    def _meter_counts(self, body: bytes) -> list[bytes]:
        assert struct.unpack_from("!L", body) == (ofproto.OFPM_ALL,)
        return [
            struct.pack(
                "!LH6xLQQLLQQ", number, 56, 1, each.offered_bytes // 1514, each.offered_bytes,
                int(each.age_s), round(each.age_s % 1 * 1e9), each.dropped_bytes // 1514,
                each.dropped_bytes,
            )
            for number, each in self.meters.items()
        ] or [b""]  # fmt: skip

    def _meter_configs(self, body: bytes) -> list[bytes]:
        assert struct.unpack_from("!L", body) == (ofproto.OFPM_ALL,)
        return [
            struct.pack("!HHLHHLL4x", 24, 13, number, 1, 16, each.rate_kbps, each.burst_kbit)
            for number, each in self.meters.items()
        ] or [b""]


def _flow(
    table: int, priority: int, cookie: int, packets: int, size: int, match: Any, *instructions: Any
) -> bytes:
    rest = bytearray()
    match.serialize(rest, 0)
    for each in instructions:
        each.serialize(rest, len(rest))
    numbers = (48 + len(rest), table, 1, 2, priority, 0, 0, 0, cookie, packets, size)
    return struct.pack("!HBxLLHHHH4xQQQ", *numbers) + bytes(rest)
