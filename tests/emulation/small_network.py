"""A network of three namespaces for experiments with congestion control, built in seconds.

Needs root and leaves nothing behind.

user ==path 1== router --- server
     ==path 2==
Data goes from the server to the user; each path's queue is at the router. A path may carry several
addresses of the user.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import asdict, dataclass
from typing import Any

from lab.engines.mininet.kernel import netlink, shaping, tcp_sockets
from lab.engines.mininet.traffic.processes import TrafficProcesses

SERVER = "10.0.0.1"
PORT = 5001
CLOSE_S = 1.0  # until both ends have closed; else the kernel would keep their sockets for a minute
SETTINGS = (
    "net.ipv4.ip_forward=1 net.ipv4.tcp_no_metrics_save=1 "
    "net.ipv4.conf.all.rp_filter=0 net.mptcp.enabled=1"
)


@dataclass(frozen=True)
class NetworkPath:
    """One path to the user: Ethernet rate, one-way delay, queue, and number of the user's
    addresses."""

    rate_mbps: float
    delay_ms: float
    queue_packets: int
    addresses: int = 1


class NoLedger:
    def record(self, kind: str, **what: Any) -> None:
        """Everything made here ends with its processes."""


class SmallNetwork:
    """The hosts `user` and `server`, as a context manager."""

    hosts = ("user", "server")

    def __init__(self, *paths: NetworkPath) -> None:
        self.paths = paths
        self.addresses = [address for n in range(1, len(paths) + 1) for address in self.on_path(n)]

    def __enter__(self) -> SmallNetwork:
        holding = ["unshare", "--net", "sh", "-c", "echo; read _"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._holders = {
            name: subprocess.Popen(holding, **pipes) for name in (*self.hosts, "router")
        }
        for holder in self._holders.values():
            holder.stdout.readline()
        self._build()
        self.programs = TrafficProcesses(self, NoLedger(), self.hosts)
        self.programs.send("server", do="serve", mptcp=True)
        self._diagnosis = netlink.inside(self.pid("server"), tcp_sockets.Diagnosis)
        return self

    def __exit__(self, *_: object) -> None:
        self._diagnosis.close()
        self.programs.stop()
        time.sleep(CLOSE_S)
        for holder in self._holders.values():
            holder.communicate(b"\n")

    def pid(self, name: str) -> int:
        return self._holders[name].pid

    def inside(self, name: str, argv: list[str]) -> list[str]:
        return ["nsenter", "-t", str(self.pid(name)), "-n", *argv]

    def on_path(self, number: int) -> list[str]:
        """The user's addresses on a path; paths are counted from 1."""
        return [f"10.{number}.{k}.1" for k in range(1, self.paths[number - 1].addresses + 1)]

    def run(self, name: str, command: str, stdin: str | None = None) -> None:
        subprocess.run(self.inside(name, command.split()), input=stdin, text=True, check=True)

    def _build(self) -> None:
        """Configure each namespace with one command per program: processes start slowly in a VM."""
        lines: dict[str, list[str]] = {name: ["link set lo up"] for name in (*self.hosts, "router")}
        wires = [("server", "s0", "r0", [f"{SERVER}/24"], "10.0.0.2/24")]
        for n in range(1, len(self.paths) + 1):
            wires.append(
                (
                    "user",
                    f"u{n}",
                    f"r{n}",
                    [f"{each}/16" for each in self.on_path(n)],
                    f"10.{n}.0.2/16",
                )
            )
        for host, device, port, addresses, gateway in wires:
            lines["router"] += [
                f"link add {device} netns {self.pid(host)} type veth peer name {port}",
                *_up(port, gateway),
            ]
            lines[host] += _up(device, *addresses)
        for n in range(1, len(self.paths) + 1):
            lines["user"] += [f"route add default via 10.{n}.0.2 dev u{n} table {n}"]
            lines["user"] += [f"rule add from {each} table {n}" for each in self.on_path(n)]
        lines["user"] += ["route add default via 10.1.0.2"]
        lines["server"] += ["route add default via 10.0.0.2"]
        for name in ("router", *self.hosts):
            self.run(name, f"sysctl -qw {SETTINGS}")
            self.run(name, "ip -batch -", shaping.batch(lines[name]))
        for host, device, port, _, _ in wires:
            self.run(host, f"ethtool -K {device} tso off gso off gro off")
            self.run("router", f"ethtool -K {port} tso off gso off gro off")
        for host in self.hosts:
            self.run(host, "ip mptcp limits set subflow 8")
        for each in self.addresses:
            self.run("user", f"ip mptcp endpoint add {each} subflow")
        for n, path in enumerate(self.paths, 1):
            self._shape(n, path)

    def _shape(self, number: int, path: NetworkPath) -> None:
        """Put the queue at the router's port to the user; the return path has the same delay."""
        rate_bps, delay_ns = round(path.rate_mbps * 1e6), round(path.delay_ms * 1e6)
        queue = {"queue_packets": path.queue_packets}
        self.run("router", f"tc {shaping.link(f'r{number}', rate_bps, delay_ns, **queue)}")
        self.run("user", f"tc {shaping.link(f'u{number}', None, delay_ns)}")

    def start(self, id: str, cc: str, mptcp: bool = True, address: str = "") -> None:
        """Start an endless download under the kernel's congestion control `cc`."""
        bind = address or self.addresses[0]
        request = {
            "id": id,
            "server": SERVER,
            "bind": bind,
            "mptcp": mptcp,
            "direction": "down",
            "cc": cc,
            "rate_bps": None,
        }
        self.programs.send(
            "user", do="connect", **request, volume_bytes=None, receive_buffer_bytes=4_000_000
        )
        self.programs.send("user", do="go", id=id)

    def received(self) -> dict[str, int]:
        """Bytes that the user's applications have read, by flow."""
        return {
            name: flow["bytes"]
            for name, flow in self.programs.send("user", do="status")["flows"].items()
        }

    def watch(self, duration_s: float, every_s: float = 0.05) -> list[dict[str, Any]]:
        """Samples of the sending sockets: `t` [s], and in `sockets` the kernel's numbers by the
        user's address."""
        samples, began = [], time.monotonic()
        while (now := time.monotonic() - began) < duration_s:
            sending = [each for each in self._diagnosis.sockets() if each.source[1] == PORT]
            samples.append(
                {
                    "t": round(now, 3),
                    "sockets": {each.destination[0]: asdict(each) for each in sending},
                }
            )
            time.sleep(every_s)
        return samples


def _up(device: str, *addresses: str) -> list[str]:
    return [
        f"link set {device} up gso_max_segs 1",
        *(f"addr add {each} dev {device}" for each in addresses),
    ]
