"""Kernel MPTCP of the machine itself over paths that a program makes, for machines without netem. As root, with MPTCP and tun:

    PYTHONPATH=.:tests python -m emulation.kernel_paths CASE SEED FILE

    server ==s1== this program: rate, queue, delay, loss ==u1== user           (tun devices in two namespaces)
           ==s2==                                        ==u2==

One case of the study `two_paths`, in real time; writes what the page asks for, in the words of result.json. No switch, no POX:
a path whose loss a scenario raises is made a backup `REACTION_S` later, as `loss_aware` would, and an ordinary one again so long
after it is whole. Run it with real-time priority (chrt): a packet that is passed on late is counted, and too many of them are no evidence.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import re
import select
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulation.small_network import NoLedger

from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.traffic_processes import Hosts
from lab.evaluation.studies import FRAMES, TWO_PATHS
from lab.scenario import loading as scenario
from lab.scenario.schema import Scenario

SERVER = "10.0.0.1"
TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001  # linux/if_tun.h
ETHERNET_BYTES = 14  # rates count them, and a tun has none
LATE_S, MOST_LATE = (
    0.005,
    0.02,
)  # a packet so late, and the share of such packets that is still evidence
REACTION_S = 1.5
SETTINGS = "net.ipv4.tcp_no_metrics_save=1 net.ipv4.conf.all.rp_filter=0 net.mptcp.enabled=1"
RECEIVED = re.compile(r"10\.(\d)\.0\.1\S*\s+\S+:5001[^\n]*\n[^\n]*bytes_received:(\d+)")


@dataclass
class Way:
    """One direction of a path: a finite queue served at a rate, then a delay."""

    source: int
    target: int
    rate_bps: float
    delay_s: float
    queue_packets: int
    loss: float = 0.0
    free_s: float = 0.0
    leaves_s: list[float] = field(default_factory=list)

    def arrival_s(self, now_s: float, size_bytes: int, chance: float) -> float | None:
        """When a packet that comes now is at the other end; None if it is lost, or the queue is full."""
        self.leaves_s = [each for each in self.leaves_s if each > now_s]
        if chance < self.loss or len(self.leaves_s) > self.queue_packets:
            return None
        self.free_s = max(now_s, self.free_s) + (size_bytes + ETHERNET_BYTES) * 8 / self.rate_bps
        self.leaves_s.append(self.free_s)
        return self.free_s + self.delay_s


class Paths:
    """Passes packets on in a thread of its own."""

    def __init__(self, ways: list[Way], seed: int) -> None:
        self.ways, self._chance = {way.source: way for way in ways}, random.Random(seed)
        self.passed, self.late = 0, 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        under_way: list[tuple[float, int, int, bytes]] = []
        poll = select.poll()
        for source in self.ways:
            poll.register(source, select.POLLIN)
        while True:
            while under_way and under_way[0][0] <= time.monotonic():
                due_s, _, target, packet = heapq.heappop(under_way)
                self.late += time.monotonic() - due_s > LATE_S
                os.write(target, packet)
            wait_s = under_way[0][0] - time.monotonic() if under_way else 0.05
            for source, _ in poll.poll(max(0.0, wait_s * 1000)):
                packet = os.read(source, 2000)
                way = self.ways[source]
                arrival_s = way.arrival_s(time.monotonic(), len(packet), self._chance.random())
                if arrival_s is not None:
                    self.passed += 1
                    heapq.heappush(under_way, (arrival_s, self.passed, way.target, packet))


class Hosted:
    """A user with an address per path, and a server; `hosts`, `pid` and `inside` are what `Hosts` asks for."""

    hosts = ("user", "server")

    def __init__(self, loaded: Scenario) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._holders = {
            name: subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; read _"], **pipes)
            for name in self.hosts
        }
        for holder in self._holders.values():
            holder.stdout.readline()
        self.downward: list[Way] = []
        upward = []
        for number, path in enumerate(loaded.topology.params.paths, 1):
            ends = self._tun("server", f"s{number}"), self._tun("user", f"u{number}")
            shape = (
                path.rate_mbps * loaded.rate_scale * 1e6,
                path.delay_ms / 1000,
                path.queue_packets,
            )
            self.downward.append(Way(*ends, *shape, path.loss))
            upward.append(Way(*reversed(ends), *shape))
        self._configure(len(upward))
        self.paths = Paths([*self.downward, *upward], loaded.seed)
        self.programs = Hosts(self, NoLedger(), self.hosts)
        self.programs.ask("server", do="serve", mptcp=True)

    def _tun(self, host: str, name: str) -> int:
        def make() -> int:
            device = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN_NO_PI))
            return device

        return netlink.inside(self.pid(host), make)

    def _configure(self, count: int) -> None:
        for host in self.hosts:
            self.run(host, f"sysctl -qw {SETTINGS}")
            self.run(host, "ip link set lo up")
            self.run(host, "ip mptcp limits set subflow 8")
        self.run("server", f"ip addr add {SERVER}/32 dev lo")
        for n in range(1, count + 1):
            self.run("server", f"ip link set s{n} up gso_max_segs 1 txqueuelen 5000")
            self.run("server", f"ip route add 10.{n}.0.0/16 dev s{n}")
            self.run("user", f"ip link set u{n} up gso_max_segs 1 txqueuelen 5000")
            self.run("user", f"ip addr add 10.{n}.0.1/32 dev u{n}")
            self.run("user", f"ip route add default dev u{n} table {n}")
            self.run("user", f"ip rule add from 10.{n}.0.1 table {n}")
            self.run("user", f"ip mptcp endpoint add 10.{n}.0.1 subflow id {n}")
        self.run("user", "ip route add default dev u1")

    def pid(self, name: str) -> int:
        return self._holders[name].pid

    def inside(self, name: str, argv: list[str]) -> list[str]:
        return ["nsenter", "-t", str(self.pid(name)), "-n", *argv]

    def run(self, name: str, command: str) -> str:
        return subprocess.run(
            self.inside(name, command.split()), check=True, text=True, stdout=subprocess.PIPE
        ).stdout

    def flow(self) -> dict[str, Any]:
        return self.programs.ask("user", do="status")["flows"]["f"]

    def received(self) -> dict[str, int]:
        """Bytes at the user: of the whole, and by path."""
        by_path = {
            f"ue1-1/{n}": int(count)
            for n, count in RECEIVED.findall(self.run("user", "ss -tinH state established"))
        }
        return {"whole": self.flow()["bytes"], **by_path}

    def close(self) -> None:
        self.programs.stop()
        for holder in self._holders.values():
            holder.communicate(b"\n")


def frame(
    t: float, elapsed_s: float, before: dict[str, int], now: dict[str, int]
) -> dict[str, Any]:
    """A sample from counters."""
    mbps = {
        name: (count - before.get(name, 0)) * 8 / elapsed_s / 1e6 for name, count in now.items()
    }
    whole = mbps.pop("whole")
    return {
        "t": t,
        "user": {"ue1": {"mbps": whole}},
        "sf": {name: {"mbps": rate} for name, rate in mbps.items()},
    }


def changes(loaded: Scenario) -> list[tuple[float, int, float | None, str]]:
    """(when, number of the path, its loss if that is what changes, its endpoint's new flag if that is)."""
    found: list[tuple[float, int, float | None, str]] = []
    for event in loaded.events:
        number = int(event.target.removeprefix("link.path").removesuffix(".loss"))
        found.append((event.at_s, number, event.value, ""))
        found.append(
            (event.at_s + REACTION_S, number, None, "backup" if event.value else "nobackup")
        )
    return sorted(found, key=lambda change: change[0])


def measure(loaded: Scenario) -> dict[str, Any]:
    """One connection from the start to the end of the scenario."""
    net, traffic = Hosted(loaded), loaded.traffic[0]
    request = {
        "server": SERVER,
        "bind": "10.1.0.1",
        "mptcp": True,
        "direction": "down",
        "cc": loaded.multipath.cc,
    }
    volume_bytes = None if traffic.volume_mb is None else round(traffic.volume_mb * 1e6)
    buffer_bytes = loaded.multipath.receive_buffer_kb * 1000
    more = {"rate_bps": None, "volume_bytes": volume_bytes, "receive_buffer_bytes": buffer_bytes}
    net.programs.ask("user", do="connect", id="f", **request, **more)
    time.sleep(1)  # the further subflow joins
    net.programs.ask("user", do="go", id="f")
    began, due, frames = time.monotonic(), changes(loaded), []
    last_s, last = 0.0, {"whole": 0}
    while last_s < loaded.duration_s:
        next_s = (
            min(round(last_s) + 1.0, *(change[0] for change in due)) if due else round(last_s) + 1.0
        )
        time.sleep(max(0.0, began + next_s - time.monotonic()))
        while due and due[0][0] <= next_s:
            _, number, loss, flag = due.pop(0)
            if flag:
                net.run("user", f"ip mptcp endpoint change id {number} {flag}")
            else:
                net.downward[number - 1].loss = loss
        if next_s == round(next_s):
            now_s, now = time.monotonic() - began, net.received()
            frames.append(frame(next_s, now_s - last_s, last, now))
            last_s, last = now_s, now
    flow, share_late = net.flow(), net.paths.late / max(1, net.paths.passed)
    net.close()
    return {
        "status": "complete" if flow["mptcp"] and not flow["error"] else "failed",
        "overloaded": share_late > MOST_LATE,
        "late_share": round(share_late, 4),
        "seed": loaded.seed,
        "connections": [{"completion_s": flow["done_s"]}],
        FRAMES: frames,
    }


def main(name: str, seed: int, out: Path) -> None:
    sys.setswitchinterval(0.0005)
    case = next(each for each in TWO_PATHS.cases if each.name == name)
    asked = scenario.Overrides(
        case.strategy, None, seed, case.duration_s or TWO_PATHS.duration_s, case.settings
    )
    out.write_text(json.dumps(measure(scenario.load(TWO_PATHS.scenario, asked))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
