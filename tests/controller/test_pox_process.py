"""Real POX in a process of its own, with switches in memory: no root and no Open vSwitch."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from userspace_bridges import eventually, free_port
from userspace_network import KEY, POX

from controller.datagrams import seal
from controller.pox_ext import statistics

pytest.importorskip("os_ken", reason="os-ken is missing: see requirements-emulation.txt")
from openflow13_switch import Switch

NO_POX = f"needs POX in {POX}: ./run_lab.sh setup-emulation"
pytestmark = [pytest.mark.whole, pytest.mark.skipif(not (POX / "pox.py").exists(), reason=NO_POX)]
ROOT = Path(__file__).resolve().parents[2]
HELLO, FEATURES_REQUEST, FEATURES_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 0, 5, 6, 18, 19
NETWORK = {
    "switches": {"wifi1": {"dpid": 2}},
    "hosts": {
        "ue1": [{"name": "w", "switch": "wifi1", "port": "wifi1-wlan1", "address": "10.1.0.1"}]
    },
    "aps": {
        "wifi1": {"kind": "wifi", "capacity_mbps": 9, "stations": {"ue1": {"rate_mbps": 9}}},
    },
    "multipath": ["ue1"],
}


class OpenFlow10:
    """The connection of switch wifi1 to POX itself: it has one port."""

    def __init__(self, port: int) -> None:
        self.socket, self._inbox = socket.create_connection(("127.0.0.1", port)), b""
        self.socket.setblocking(False)
        self._send(HELLO)

    def serve(self) -> None:
        with suppress(BlockingIOError):
            self._inbox += self.socket.recv(65536)
        while len(self._inbox) >= 8:
            _, kind, length, xid = struct.unpack_from("!BBHL", self._inbox)
            if len(self._inbox) < length:
                return
            self._inbox = self._inbox[length:]
            if kind == FEATURES_REQUEST:
                port = struct.pack("!H6s16s24x", 1, bytes(6), b"wifi1-wlan1")
                self._send(FEATURES_REPLY, struct.pack("!QLB3xLL", 2, 0, 2, 0, 0) + port, xid)
            elif kind == BARRIER_REQUEST:
                self._send(BARRIER_REPLY, b"", xid)

    def _send(self, kind: int, body: bytes = b"", xid: int = 0) -> None:
        self.socket.sendall(struct.pack("!BBHL", 1, kind, 8 + len(body), xid) + body)


class Process:
    def __init__(self, folder: Path, *words: str) -> None:
        """`words` are further options of the controller."""
        self.folder = folder / "run"
        (folder / "topology.json").write_text(json.dumps(NETWORK))
        (folder / "key").write_text(KEY)
        self.ports = [free_port(), free_port()]
        self.agents = [free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)]
        argv = [sys.executable, "pox.py", "openflow.of_01", f"--port={self.ports[0]}"]
        argv += ["controller.pox_ext", f"--of13_port={self.ports[1]}"]
        argv += [f"--topology={folder / 'topology.json'}", f"--run={self.folder}"]
        argv += [
            f"--key_file={folder / 'key'}",
            f"--agents_port={self.agents[0]}",
            f"--hosts_port={self.agents[1]}",
            *words,
        ]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        self.log = folder / "pox.log"
        with self.log.open("wb") as log:
            self.pox = subprocess.Popen(
                argv, cwd=POX, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def lines(self, kind: str) -> list[dict]:
        path = self.folder / "decisions.jsonl"
        text = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return [line for line in map(json.loads, text.splitlines()) if line["kind"] == kind]


@pytest.fixture
def run(tmp_path):
    started = []

    def start(*words):
        started.append(Process(tmp_path, *words))
        return started[0]

    yield start
    for each in started:
        each.pox.kill()
        each.pox.wait()


def test_it_controls_a_switch_until_it_is_told_to_end(run):
    process, switch, ends = run('--params={"interval_s": 0.5}'), Switch(2), []

    def connected():
        with suppress(ConnectionRefusedError):
            if not ends:
                ends.append(OpenFlow10(process.ports[0]))
            switch.connect(process.ports[1])
        return switch.socket

    eventually(connected, "connect to POX")

    def seen(kind):
        for each in (*ends, switch):
            each.serve()
        assert process.pox.poll() is None, process.log.read_text()
        return process.lines(kind)

    eventually(lambda: seen("ready"), "be ready")
    assert set(switch.table0) == {("", ""), ("10.1.0.1", "down")}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as agent:
        for port in process.agents:
            agent.sendto(seal({}, KEY), ("127.0.0.1", port))
    eventually(lambda: len(seen("warning")) == 2, "refuse both reports")
    (process.folder / "inbox" / "000001.json").write_text(
        '{"seq": 1, "kind": "tier1", "value": {"ap": "wifi1", "mbps": 3}}'
    )
    eventually(lambda: seen("flip") and switch.meters, "set a meter")
    eventually(lambda: len(seen("observation")) >= 3, "make steps")
    process.pox.send_signal(signal.SIGTERM)
    assert process.pox.wait(30) == 0
    for each in (*ends, switch):
        each.socket.close()
    tables = statistics.read(process.folder / "statistics.json")
    assert [row["params"]["interval_s"] for row in tables["control"]] == [0.5]


def test_a_wrong_option_ends_it_with_the_reason(run):
    process = run("--strategy=nothing")
    assert process.pox.wait(60) == 2
    assert "'nothing' is unknown: choose from" in process.log.read_text()
