"""Run the kernel's MPTCP over paths that a program emulates, for machines without netem. As root:

    PYTHONPATH=.:tests python -m emulation.kernel_paths CASE SEED FILE
    PYTHONPATH=.:tests python -m emulation.kernel_paths SCENARIO SEED FILE SECONDS [KEY=VALUE]...

    server ==s1== this program: rate, queue, delay, loss ==u1== user
           ==s2==                                        ==u2==

The devices are tun devices in two namespaces; the kernel needs MPTCP and tun. One case of the study
`two_paths` runs in real time, or a scenario with `parallel_paths` and one download without events.
With more than nine paths, the lab's path manager opens the subflows. FILE gets the results, with the keys of result.json. There is no
switch and no POX: REACTION_S after a scenario raises the loss of a path, its endpoint becomes a
backup, as `loss_aware` would decide, and REACTION_S after the loss ends, an ordinary one again. Run
it with real-time priority (chrt): packets that are forwarded late are counted, and a run with too
many of them is not used.
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
from lab.engines.mininet.kernel.path_manager import PathManager
from lab.engines.mininet.network.host_setup import SOCKET_BUFFERS
from lab.engines.mininet.network.joins import MAX_SUBFLOWS
from lab.engines.mininet.programs.userspace_path_manager import Join, UserspacePathManager
from lab.engines.mininet.traffic.processes import TrafficProcesses
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario
from papers.studies import TWO_PATHS

SERVER = "10.0.0.1"
TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001  # linux/if_tun.h
ETHERNET_BYTES = 14  # rates include this header, which tun packets lack
LATE_S = 0.005
MOST_LATE = 0.02  # a run with a larger share of late packets is not used
REACTION_S = 1.5
OUTSIDE_WINDOW = re.compile(r"MPTcpExtNoDSSInWindow\s+(\d+)")
# a machine whose default is BBR would pace all flows, also after they have changed to another law
SETTINGS = (
    "net.ipv4.tcp_no_metrics_save=1 net.ipv4.conf.all.rp_filter=0 net.mptcp.enabled=1"
    " net.ipv4.tcp_congestion_control=reno"
)
RECEIVED = re.compile(r"10\.(\d+)\.0\.1\S*\s+\S+:5001[^\n]*\n[^\n]*bytes_received:(\d+)")


@dataclass
class Direction:
    """One direction of a path: a finite queue that is served at a rate, then a delay."""

    source: int
    target: int
    rate_bps: float
    delay_s: float
    queue_packets: int
    loss: float = 0.0
    free_s: float = 0.0
    leaves_s: list[float] = field(default_factory=list)

    def arrival_s(self, now_s: float, size_bytes: int, random_value: float) -> float | None:
        """When a packet that arrives now leaves the path; None if it is dropped."""
        self.leaves_s = [each for each in self.leaves_s if each > now_s]
        if random_value < self.loss or len(self.leaves_s) > self.queue_packets:
            return None
        self.free_s = max(now_s, self.free_s) + (size_bytes + ETHERNET_BYTES) * 8 / self.rate_bps
        self.leaves_s.append(self.free_s)
        return self.free_s + self.delay_s


class Paths:
    """Forwards packets in a thread."""

    def __init__(self, directions: list[Direction], seed: int) -> None:
        self.directions = {each.source: each for each in directions}
        self._rng = random.Random(seed)
        self.forwarded, self.late = 0, 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        in_flight: list[tuple[float, int, int, bytes]] = []
        sources = list(self.directions)
        while True:
            while in_flight and in_flight[0][0] <= time.monotonic():
                due_s, _, target, packet = heapq.heappop(in_flight)
                self.late += time.monotonic() - due_s > LATE_S
                os.write(target, packet)
            wait_s = in_flight[0][0] - time.monotonic() if in_flight else 0.05
            for source in select.select(sources, [], [], max(0.0, wait_s))[0]:
                packet = os.read(source, 2000)
                path = self.directions[source]
                arrival_s = path.arrival_s(time.monotonic(), len(packet), self._rng.random())
                if arrival_s is not None:
                    self.forwarded += 1
                    heapq.heappush(in_flight, (arrival_s, self.forwarded, path.target, packet))


class Hosted:
    """A user with one address per path, and a server, with the methods that `TrafficProcesses`
    needs."""

    hosts = ("user", "server")

    def __init__(self, loaded: Scenario) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._holders = {
            name: subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; read _"], **pipes)
            for name in self.hosts
        }
        for holder in self._holders.values():
            holder.stdout.readline()
        self.downward: list[Direction] = []
        upward = []
        for number, path in enumerate(loaded.topology.params.paths, 1):
            ends = self._tun("server", f"s{number}"), self._tun("user", f"u{number}")
            shape = (
                path.rate_mbps * loaded.rate_scale * 1e6,
                path.delay_ms / 1000,
                path.queue_packets,
            )
            self.downward.append(Direction(*ends, *shape, path.loss))
            upward.append(Direction(*reversed(ends), *shape))
        self._configure(len(upward))
        self.paths = Paths([*self.downward, *upward], loaded.seed)
        self.programs = TrafficProcesses(self, NoLedger(), self.hosts)
        self.programs.send("server", do="serve", mptcp=True)

    def _tun(self, host: str, name: str) -> int:
        def make() -> int:
            device = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN_NO_PI))
            return device

        return netlink.inside(self.pid(host), make)

    def _configure(self, count: int) -> None:
        by_lab = count > MAX_SUBFLOWS + 1
        for host in self.hosts:
            self.run(host, f"sysctl -qw {SETTINGS} net.mptcp.pm_type={int(by_lab)}")
            buffers = [f"net.ipv4.tcp_{each}mem={SOCKET_BUFFERS}" for each in "rw"]
            subprocess.run(self.inside(host, ["sysctl", "-qw", *buffers]), check=True)
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
            if not by_lab:
                self.run("user", f"ip mptcp endpoint add 10.{n}.0.1 subflow id {n}")
        self.run("user", "ip route add default dev u1")
        if by_lab:
            joins = [Join(f"10.{n}.0.1", n - 1, SERVER) for n in range(1, count + 1)]
            managers = [self._manager("user", joins), self._manager("server", [])]
            threading.Thread(target=_open, args=(managers,), daemon=True).start()

    def _manager(self, host: str, joins: list[Join]) -> UserspacePathManager:
        pid = self.pid(host)
        return netlink.inside(pid, lambda: UserspacePathManager(pid, PathManager(), joins))

    def pid(self, name: str) -> int:
        return self._holders[name].pid

    def inside(self, name: str, argv: list[str]) -> list[str]:
        return ["nsenter", "-t", str(self.pid(name)), "-n", *argv]

    def run(self, name: str, command: str) -> str:
        return subprocess.run(
            self.inside(name, command.split()), check=True, text=True, stdout=subprocess.PIPE
        ).stdout

    def flow(self) -> dict[str, Any]:
        return self.programs.send("user", do="status")["flows"]["f"]

    def outside_window(self) -> int:
        """Packets that the user has dropped because they were beyond its receive window."""
        found = OUTSIDE_WINDOW.search(self.run("user", "nstat -asz"))
        return int(found.group(1)) if found else 0

    def received(self) -> dict[str, int]:
        """Bytes that the user has received: "whole" and by path."""
        by_path = {
            f"ue1-1/{n}": int(count)
            for n, count in RECEIVED.findall(self.run("user", "ss -tinH state established"))
        }
        return {"whole": self.flow()["bytes"], **by_path}

    def close(self) -> None:
        self.programs.stop()
        for holder in self._holders.values():
            holder.communicate(b"\n")


def _open(managers: list[UserspacePathManager]) -> None:
    while True:
        for each in select.select(managers, [], [])[0]:
            each.act()


def frame(
    t: float, elapsed_s: float, before: dict[str, int], now: dict[str, int]
) -> dict[str, Any]:
    """A sample from two readings of the counters."""
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
    """(time, number of the path, new loss or None, new flag of its endpoint or ""), sorted by
    time."""
    found: list[tuple[float, int, float | None, str]] = []
    for event in loaded.events:
        number = int(event.target.removeprefix("link.path").removesuffix(".loss"))
        found.append((event.at_s, number, event.value, ""))
        found.append(
            (event.at_s + REACTION_S, number, None, "backup" if event.value else "nobackup")
        )
    return sorted(found, key=lambda change: change[0])


def measure(loaded: Scenario) -> dict[str, Any]:
    """Run one connection from the start to the end of the scenario."""
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
    net.programs.send("user", do="connect", id="f", **request, **more)
    time.sleep(1)  # the second subflow joins
    net.programs.send("user", do="go", id="f")
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
    outside = net.outside_window()
    flow, share_late = net.flow(), net.paths.late / max(1, net.paths.forwarded)
    net.close()
    return {
        "status": "complete" if flow["mptcp"] and not flow["error"] else "failed",
        "overloaded": share_late > MOST_LATE,
        "late_share": round(share_late, 4),
        "outside_window": outside,
        "seed": loaded.seed,
        "connections": [{"completion_s": flow["done_s"]}],
        "frames": frames,
    }


def main(name: str, seed: int, out: Path, seconds: float = 0, *settings: str) -> None:
    sys.setswitchinterval(0.0005)
    case = next((each for each in TWO_PATHS.cases if each.name == name), None)
    if case:
        name, settings = TWO_PATHS.scenario, case.settings
        seconds = case.duration_s or TWO_PATHS.duration_s
    overrides = Overrides(case.strategy if case else None, None, seed, seconds, settings)
    out.write_text(json.dumps(measure(scenario.load(name, overrides))) + "\n")


if __name__ == "__main__":
    more = [*map(float, sys.argv[4:5]), *sys.argv[5:]]
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), *more)
