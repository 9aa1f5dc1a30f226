"""What the captures of a run show of each TCP subflow: how it joined, MP_PRIO, resets,
retransmissions and reordering.

`run --pcap` captures the packets of every host into a file of its own. Each subflow is in two of
them: that of the user, who opens it, and that of the server. A segment is a retransmission if its
first byte has left its sender before. It is reordered if it fills a gap at its receiver and has
left its sender only once.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from socket import inet_ntoa

from pydantic import TypeAdapter, ValidationError

from controller.pox_ext import frames
from controller.pox_ext.frames import Capable, Join, Prio
from lab import sudo
from lab.errors import LabError
from lab.run.reading import read_lines

REPORT = "subflows.json"  # beside the captures
SWITCH_PORTS = "switch ports"  # the host of events about the capture of all switch ports
MAGIC, COOKED_V2 = 0xA1B2C3D4, 276  # microseconds; the link type of `tcpdump -i any`
FILE_HEADER, PACKET_HEADER = struct.Struct("=IHHiIII"), struct.Struct("=IIII")
COOKED_BYTES, ETH_IP, OUTGOING = 20, 0x0800, 4
IP_HEADER, TCP_HEADER = struct.Struct("!BBHHHBBH4s4s"), struct.Struct("!HHIIBB")
WRAP = 1 << 32
End = tuple[str, int]  # address and port


@dataclass(frozen=True)
class Segment:
    """A TCP segment. `is_out` means that the host of the capture has sent it; `size` is the number
    of its data bytes. `at_s` is the time of day."""

    at_s: float
    is_out: bool
    source: End
    destination: End
    sequence: int
    flags: int
    size: int
    options: bytes

    @property
    def opens(self) -> bool:
        return bool(self.flags & frames.SYN) and not self.flags & frames.ACK


def segments(file: Path) -> Iterator[Segment]:
    """Yield the TCP segments over IPv4 of a capture. An incomplete last packet is left out.

    Raise `LabError` if tcpdump has not written the file.
    """
    try:
        with file.open("rb") as source:
            head = source.read(FILE_HEADER.size)
            if not head:  # nothing was captured
                return
            magic, *_, link_type = FILE_HEADER.unpack(head)
            if (magic, link_type) != (MAGIC, COOKED_V2):
                raise LabError(f"read {file}: tcpdump -i any of this lab has not written it")
            while len(head := source.read(PACKET_HEADER.size)) == PACKET_HEADER.size:
                seconds, micros, kept, _ = PACKET_HEADER.unpack(head)
                data = source.read(kept)
                if len(data) == kept and (found := _segment(seconds + micros / 1e6, data)):
                    yield found
    except (OSError, struct.error) as error:
        raise LabError(f"read {file}: {error}") from error


def _segment(at_s: float, data: bytes) -> Segment | None:
    if len(data) < COOKED_BYTES + IP_HEADER.size or int.from_bytes(data[:2]) != ETH_IP:
        return None
    first, _, length, _, fragment, _, protocol, _, source, to = IP_HEADER.unpack_from(
        data, COOKED_BYTES
    )
    header = (first & 15) * 4
    start = COOKED_BYTES + header
    if protocol != frames.TCP or fragment & 0x1FFF or len(data) < start + 20:
        return None
    port, to_port, sequence, _, offset, flags = TCP_HEADER.unpack_from(data, start)
    size = (offset >> 4) * 4
    return Segment(
        at_s,
        data[10] == OUTGOING,
        (inet_ntoa(source), port),
        (inet_ntoa(to), to_port),
        sequence,
        flags,
        length - header - size,
        data[start + 20 : start + size],
    )


@dataclass
class _Sent:
    """The data that one end has sent."""

    end: int | None = None  # the first byte that has not left yet
    segments: int = 0
    repeated: set[int] = field(default_factory=set)  # first bytes that have left more than once
    repetitions: int = 0

    def add(self, sequence: int, size: int) -> None:
        start = _unwrapped(sequence, self.end)
        self.segments += 1
        if self.end is not None and start < self.end:
            self.repeated.add(start % WRAP)
            self.repetitions += 1
        self.end = max(start + size, self.end or 0)


@dataclass
class _Arrived:
    """The data that has arrived at one end. `end` is the byte after the last one that has arrived,
    at first that after the SYN."""

    end: int
    gaps: list[tuple[int, int]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)  # first bytes of what filled a gap

    def add(self, sequence: int, size: int) -> None:
        start = _unwrapped(sequence, self.end)
        if start > self.end:
            self.gaps.append((self.end, start))
        elif start < self.end:
            self._fill(start, start + size)
        self.end = max(self.end, start + size)

    def _fill(self, start: int, end: int) -> None:
        left = []
        for low, high in self.gaps:
            if end <= low or high <= start:
                left.append((low, high))
                continue
            self.late.append(start % WRAP)
            left += [gap for gap in ((low, start), (end, high)) if gap[0] < gap[1]]
        self.gaps = left


def _unwrapped(sequence: int, near: int | None) -> int:
    """Return the sequence number without the wrap after 4 GiB: the one next to `near`."""
    if near is None:
        return sequence
    return near + (sequence - near + WRAP // 2) % WRAP - WRAP // 2


@dataclass(frozen=True)
class Subflow:
    """What the captures show of a subflow. `user` opens it, from the end `client`.

    `connection` is the token of its connection, which all its subflows have; None for plain TCP.
    `joins` is True for a further subflow. `opened_s` is when its first SYN left, `joined_s` when
    the server had the last packet of its handshake, both as times of the run; None if it never
    was. `prios` has time, sender and backup flag of each MP_PRIO, and `resets` time and sender of
    each reset, as they were sent. The counts are of both directions.
    """

    user: str
    client: str
    server: str
    connection: str | None
    joins: bool
    opened_s: float
    joined_s: float | None
    segments: int
    retransmitted: int
    reordered: int
    prios: list[tuple[float, str, bool]]
    resets: list[tuple[float, str]]

    @property
    def handshake_ms(self) -> float | None:
        """How long it took to open; None if it never was open."""
        return None if self.joined_s is None else 1000 * (self.joined_s - self.opened_s)


@dataclass
class _Seen:
    """What is known of a subflow while captures are read. `sent` and `arrived` are by sender."""

    user: str
    opened_s: float
    token: str | None = None
    joins: bool = False
    joined_s: float | None = None
    sent: dict[End, _Sent] = field(default_factory=dict)
    arrived: dict[End, _Arrived] = field(default_factory=dict)
    prios: list[tuple[float, str, bool]] = field(default_factory=list)
    resets: list[tuple[float, str]] = field(default_factory=list)

    def add(self, host: str, client: End, each: Segment) -> None:
        self._look_at_opening(each)
        if each.is_out:
            self._left(host, each)
        elif each.source == client and each.flags & frames.ACK and self.joined_s is None:
            option = frames.mptcp_option(each.options)
            if not self.joins or (isinstance(option, Join) and option.step == "ack"):
                self.joined_s = each.at_s
        if each.size and not each.flags & frames.SYN:
            if each.is_out:
                self.sent.setdefault(each.source, _Sent()).add(each.sequence, each.size)
            elif each.source in self.arrived:
                self.arrived[each.source].add(each.sequence, each.size)

    def _left(self, host: str, each: Segment) -> None:
        option = frames.mptcp_option(each.options)
        if each.flags & frames.RST:
            self.resets.append((each.at_s, host))
        if isinstance(option, Prio):
            self.prios.append((each.at_s, host, option.backup))

    def _look_at_opening(self, each: Segment) -> None:
        if not each.flags & frames.SYN:
            return
        if not each.is_out:  # what it sends first has the next number
            self.arrived.setdefault(each.source, _Arrived(each.sequence + 1))
        option = frames.mptcp_option(each.options)
        if isinstance(option, Join) and option.step == "syn":
            self.joins, self.token = True, option.token
        if isinstance(option, Capable) and each.flags & frames.ACK:
            self.token = option.token()


def subflows(captures: Sequence[Path], zero_s: float) -> list[Subflow]:
    """Return what captures show of each subflow, in the order in which they were opened.

    Each file is named after its host. `zero_s` is the time of day at which the run began.
    """
    seen: dict[tuple[End, End], _Seen] = {}
    for file in captures:
        for each in segments(file):
            forth, back = (each.source, each.destination), (each.destination, each.source)
            if each.opens:
                _note_opened(seen.setdefault(forth, _Seen("", each.at_s)), file.stem, each)
            key = forth if forth in seen else back
            if key in seen:
                seen[key].add(file.stem, key[0], each)
    in_order = sorted(seen.items(), key=lambda item: item[1].opened_s)
    return [_subflow(client, server, found, zero_s) for (client, server), found in in_order]


def _note_opened(seen: _Seen, host: str, syn: Segment) -> None:
    seen.opened_s = min(seen.opened_s, syn.at_s)
    if syn.is_out:
        seen.user = host


def _subflow(client: End, server: End, seen: _Seen, zero_s: float) -> Subflow:
    def t(at_s: float) -> float:
        return round(at_s - zero_s, 3)

    late = {end: each.late for end, each in seen.arrived.items()}
    repeated = {end: each.repeated for end, each in seen.sent.items()}
    return Subflow(
        seen.user,
        f"{client[0]}:{client[1]}",
        f"{server[0]}:{server[1]}",
        seen.token,
        seen.joins,
        t(seen.opened_s),
        None if seen.joined_s is None else t(seen.joined_s),
        sum(each.segments for each in seen.sent.values()),
        sum(each.repetitions for each in seen.sent.values()),
        sum(each not in repeated.get(end, ()) for end in late for each in late[end]),
        [(t(at_s), host, backup) for at_s, host, backup in sorted(seen.prios)],
        [(t(at_s), host) for at_s, host in sorted(seen.resets)],
    )


def write_report(folder: Path) -> None:
    """Write what the captures of a run in `folder` show of each subflow into a file beside them.

    Write nothing if the run has no captures, or has ended before it began to send.
    """
    ended = [
        each
        for each in read_lines(folder / "events.jsonl")
        if each.get("kind") == "pcap" and "zero" in each
    ]
    captures = [folder / each["file"] for each in ended if each["host"] != SWITCH_PORTS]
    if not captures:
        return
    rows = [asdict(each) for each in subflows(captures, ended[0]["zero"])]
    file = folder / "pcap" / REPORT
    try:
        file.write_text(json.dumps(rows, indent=1) + "\n")
    except OSError as error:
        raise LabError(f"write {file}: {error}") from error
    sudo.give_away(file)


def report(folder: Path) -> list[Subflow]:
    """Return the report in the run folder; [] if the run has none."""
    try:
        return TypeAdapter(list[Subflow]).validate_json((folder / "pcap" / REPORT).read_bytes())
    except (OSError, ValidationError):
        return []
