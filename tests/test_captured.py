"""What captures show of subflows. The captures are written here, packet by packet, as `tcpdump -i
any` writes them; another test has a real one."""

from __future__ import annotations

import json
import random
import struct
from dataclasses import replace
from socket import inet_aton

import pytest

from controller.pox_ext.frames import ACK, RST, SYN
from lab.batch import single
from lab.batch.job import Job
from lab.cli import terminal
from lab.errors import LabError
from lab.run import captured
from lab.run.engine import Options
from lab.run.outcome import Outcome
from lab.vm_environment import IN_VM

USER, OTHER, SERVER = ("10.1.0.2", 40_000), ("10.2.0.2", 40_000), ("10.0.0.1", 5001)
KEY = bytes(range(8))
TOKEN = "8a851ff8"  # the first four bytes of the SHA-256 of KEY
CAPABLE = bytes([30, 12, 0x01, 0x81]) + KEY
JOIN_SYN = bytes([30, 12, 0x10, 2]) + bytes.fromhex(TOKEN) + bytes(4)
JOIN_SYN_ACK = bytes([30, 16, 0x10, 2]) + bytes(12)
JOIN_ACK = bytes([30, 24, 0x10, 0]) + bytes(20)
PRIO, NO_PRIO = bytes([30, 3, 0x51, 1]), bytes([30, 3, 0x50, 1])
NAMES = {USER[0]: "ue2", OTHER[0]: "ue2", SERVER[0]: "srv1"}


class Wire:
    """Packets between hosts, and the captures of both. Times are in ms after 1000 s."""

    def __init__(self, folder):
        self.folder, self.packets = folder, {"ue2": [], "srv1": []}

    def send(self, at_ms, source, to, flags=ACK, sequence=0, size=0, options=b"", after_ms=10):
        """A packet that leaves at `at_ms`; None for `after_ms`: it is lost on the way."""
        options += bytes([1]) * (-len(options) % 4)
        header = struct.pack(
            "!HHIIBBHHH",
            source[1],
            to[1],
            sequence % 2**32,
            0,
            (20 + len(options)) // 4 << 4,
            flags,
            9,
            0,
            0,
        )
        length = 20 + len(header + options) + size
        ip = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0x4000, 64, 6, 0)
        packet = ip + inet_aton(source[0]) + inet_aton(to[0]) + header + options + bytes(size)
        self._add(NAMES[source[0]], at_ms, 4, packet)
        if after_ms is not None:
            self._add(NAMES[to[0]], at_ms + after_ms, 0, packet)

    def _add(self, host, at_ms, kind, packet):
        cooked = struct.pack("!HHIHBB8s", 0x0800, 0, 3, 1, kind, 6, bytes(8))
        data = (cooked + packet)[:128]
        micros = round(1000 * at_ms)
        head = struct.pack(
            "=IIII", 1000 + micros // 10**6, micros % 10**6, len(data), len(cooked + packet)
        )
        self.packets[host].append((at_ms, len(self.packets[host]), head + data))

    def open(self, at_ms=0, user=USER, syn=b"", syn_ack=b"", ack=b""):
        self.send(at_ms, user, SERVER, SYN, 99, options=syn)
        self.send(at_ms + 10, SERVER, user, SYN | ACK, 4_294_967_000, options=syn_ack)
        self.send(at_ms + 20, user, SERVER, ACK, 100, options=ack)

    def files(self):
        self.folder.mkdir(exist_ok=True)
        for host, packets in self.packets.items():
            head = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 276)
            (self.folder / f"{host}.pcap").write_bytes(
                head + b"".join(p[2] for p in sorted(packets))
            )
        return sorted(self.folder.glob("*.pcap"))

    def found(self):
        return captured.subflows(self.files(), 1000.0)


@pytest.fixture
def wire(tmp_path):
    return Wire(tmp_path / "pcap")


def down(wire, at_ms, n, after_ms=10, user=USER):
    """Segment `n` of a download, after the number wraps."""
    wire.send(at_ms, SERVER, user, ACK, 4_294_967_001 + 1000 * n, 1000, after_ms=after_ms)


def test_subflows_of_a_connection_have_its_token_and_times_of_the_run(wire):
    wire.open(syn=bytes([30, 4, 0x01, 0x81]), syn_ack=CAPABLE)
    wire.open(100, OTHER, JOIN_SYN, JOIN_SYN_ACK, JOIN_ACK)
    first, joined = wire.found()
    assert (first.connection, joined.connection) == (TOKEN, TOKEN)
    assert (first.joins, joined.joins) == (False, True)
    assert (first.user, first.client, first.server) == ("ue2", "10.1.0.2:40000", "10.0.0.1:5001")
    assert (joined.opened_s, joined.joined_s) == (0.1, 0.13)
    assert joined.handshake_ms == pytest.approx(30)


def test_a_join_whose_last_packet_never_arrives_was_never_open(wire):
    wire.open(syn_ack=CAPABLE)
    wire.send(100, OTHER, SERVER, SYN, 99, options=JOIN_SYN)
    wire.send(110, SERVER, OTHER, SYN | ACK, 7, options=JOIN_SYN_ACK)
    wire.send(120, OTHER, SERVER, ACK, 100, options=JOIN_ACK, after_ms=None)
    wire.send(130, OTHER, SERVER, ACK, 100)  # data's ACK, without MP_JOIN
    _, joined = wire.found()
    assert (joined.joins, joined.joined_s, joined.handshake_ms) == (True, None, None)


def test_the_summary_of_a_run_shows_each_subflow(wire):
    wire.open(syn_ack=CAPABLE)
    wire.send(100, OTHER, SERVER, SYN, 99, options=JOIN_SYN)
    wire.send(500, OTHER, SERVER, options=PRIO)
    lines = terminal._captured_table(wire.found()).splitlines()
    assert lines[-2].split() == ["ue2", "10.1.0.2:40000", "first", "30", "0", "0", "0", "0", "0"]
    assert lines[-1].split() == [
        "ue2",
        "10.2.0.2:40000",
        "joined",
        "never",
        "0",
        "0",
        "0",
        "1",
        "0",
    ]


def test_the_summary_names_how_many_subflows_it_leaves_out(wire):
    wire.open()
    lines = terminal._captured_table(wire.found() * 43).splitlines()
    assert lines[-1] == "3 more in pcap/subflows.json"
    assert len(lines) == len(terminal._captured_table(wire.found() * 40).splitlines()) + 1


def test_plain_tcp_has_no_connection(wire):
    wire.open()
    (only,) = wire.found()
    assert (only.connection, only.joins, only.joined_s) == (None, False, 0.03)


def test_what_leaves_again_is_retransmitted_and_what_overtakes_is_reordered(wire):
    wire.open()
    down(wire, 100, 0)
    down(wire, 101, 1, after_ms=None)  # lost
    down(wire, 102, 2)
    down(wire, 103, 3, after_ms=30)  # overtaken by 4 and 5
    down(wire, 104, 4)
    down(wire, 105, 5)
    down(wire, 200, 1)  # again; it fills its gap, and is not reordered
    down(wire, 300, 0)  # needlessly again
    (only,) = wire.found()
    assert (only.segments, only.retransmitted, only.reordered) == (8, 2, 1)


def test_a_retransmission_whose_first_copy_was_captured_nowhere_is_one(wire):
    """A queue of the sending host dropped the first copy."""
    wire.open()
    down(wire, 100, 0)
    down(wire, 101, 2)
    down(wire, 150, 1)
    (only,) = wire.found()
    assert (only.segments, only.retransmitted, only.reordered) == (3, 1, 0)


def test_both_directions_count(wire):
    wire.open()
    for n in range(3):
        wire.send(100 + n, USER, SERVER, ACK, 100 + 10 * n, 10)
        down(wire, 200 + n, n)
    wire.send(300, USER, SERVER, ACK, 110, 10)
    (only,) = wire.found()
    assert (only.segments, only.retransmitted, only.reordered) == (7, 1, 0)


@pytest.mark.parametrize("seed", range(20))
def test_random_losses_and_delays(wire, seed):
    """Reordered are the first copies that arrive behind a later one."""
    chance = random.Random(seed)
    wire.open()
    arrivals, lost = [], []
    for n in range(200):
        after_ms = chance.choice([10, 10, 10, 12.5, 13.5, None])
        down(wire, 100 + n, n, after_ms)
        if after_ms is None:
            lost.append(n)
        else:
            arrivals.append((n + after_ms, n))
    for n in lost:
        down(wire, 1000 + n, n)
    order = [n for _, n in sorted(arrivals)]
    reordered = sum(n < max(order[:at], default=-1) for at, n in enumerate(order))
    (only,) = wire.found()
    assert (only.segments, only.retransmitted) == (200 + len(lost), len(lost))
    assert only.reordered == reordered > 10


def test_prios_and_resets_have_time_and_sender_once(wire):
    wire.open()
    wire.send(500, USER, SERVER, options=PRIO)
    wire.send(700, USER, SERVER, options=NO_PRIO)
    wire.send(900, SERVER, USER, RST | ACK, 5)
    (only,) = wire.found()
    assert only.prios == [(0.5, "ue2", True), (0.7, "ue2", False)]
    assert only.resets == [(0.9, "srv1")]


def test_a_file_that_was_cut_and_other_packets_are_no_errors(wire):
    wire.open()
    wire._add("ue2", 50, 0, b"\x45")  # too short
    wire._add("ue2", 51, 0, b"\x60" + bytes(60))  # not IPv4
    (file, other) = wire.files()
    other.write_bytes(other.read_bytes()[:-5])
    assert len(captured.subflows([file, other], 1000.0)) == 1
    other.write_bytes(b"")
    assert len(captured.subflows([file, other], 1000.0)) == 1
    other.write_bytes(b"a text that is no capture, but long enough")
    with pytest.raises(LabError, match=r"read .*ue2\.pcap: tcpdump -i any of this lab"):
        captured.subflows([other], 1000.0)


def test_the_report_of_a_run_is_beside_its_captures_and_comes_back(wire):
    wire.open()
    wire.send(500, USER, SERVER, options=PRIO)
    folder = wire.folder.parent
    wire.files()
    events = [
        {"t": 0, "kind": "pcap", "host": "ue2", "file": "pcap/ue2.pcap", "state": "started"},
        *(
            {"t": 1, "kind": "pcap", "host": host, "file": f"pcap/{file}.pcap", "zero": 999.0}
            for host, file in (("ue2", "ue2"), ("srv1", "srv1"), ("switch ports", "absent"))
        ),
    ]
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in events))
    assert captured.report(folder) == []
    captured.write_report(folder)
    (only,) = captured.report(folder)
    assert (only.opened_s, only.prios) == (1.0, [(1.5, "ue2", True)])
    (folder / "pcap" / captured.REPORT).write_text('[{"user": 3}]')
    assert captured.report(folder) == []


def test_a_run_that_never_began_to_send_has_no_report(wire):
    folder = wire.folder.parent
    wire.files()
    event = {"t": 0, "kind": "pcap", "host": "ue2", "file": "pcap/ue2.pcap", "state": "ended"}
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    captured.write_report(folder)
    assert not (folder / "pcap" / captured.REPORT).exists()


def test_a_run_with_captures_writes_the_report_where_it_was_asked_for(wire, tmp_path, monkeypatch):
    """In the VM, processors are slow: its host reads the captures."""
    wire.open()
    wire.files()
    event = {"t": 1, "kind": "pcap", "host": "ue2", "file": "pcap/ue2.pcap", "zero": 1000.0}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n")
    made = Outcome({"status": "complete"}, tmp_path, 0)
    monkeypatch.setattr(single, "_outcome", lambda job, on_progress: made)
    job = Job(None, "mininet", Options(0, pcap=True))
    with monkeypatch.context() as inside:
        inside.setenv(IN_VM, "1")
        assert single.run_job(job, lambda _: None) == made
        assert captured.report(tmp_path) == []
    assert single.run_job(replace(job, options=Options(0)), lambda _: None) == made
    assert captured.report(tmp_path) == []
    assert single.run_job(job, lambda _: None) == made
    assert len(captured.report(tmp_path)) == 1
    (tmp_path / "pcap" / "ue2.pcap").write_bytes(b"something else, long enough for a header")
    failed = single.run_job(job, lambda _: None)
    assert "tcpdump -i any of this lab has not written it" in failed.error
    assert failed.exit_code == 0  # the run is complete
