"""Open vSwitch in user space, hosts in namespaces, and real POX; no kernel modules are needed.

user (wifi, lte) --- wifi1, lte1 --- s1 --- server, and a longer path: s1 --- c1 --- wifi1
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from userspace_bridges import end, free_port
from userspace_hosts import SERVER, USER, Hosts

from controller.datagrams import seal
from lab.engines.mininet.programs.host_agent import HostSettings, Settings

ROOT = Path(__file__).resolve().parents[1]
POX = (
    Path(os.environ.get("MULTIPATH_LAB_CACHE", Path.home() / ".cache" / "multipath-lab"))
    / "upstreams"
    / "pox"
)
SWITCHES = {"s1": 1, "wifi1": 2, "lte1": 3, "c1": 4}
TRUNKS = {
    "wifi": ("s1", "wifi1"),
    "lte": ("s1", "lte1"),
    "up": ("s1", "c1"),
    "down": ("c1", "wifi1"),
}
KEY = "a key for tests"
MPTCP = 262


def missing() -> str:
    """Why these tests cannot run here; empty if they can."""
    tools = [
        tool
        for tool in ("ovs-vswitchd", "ovsdb-server", "ip", "ethtool")
        if shutil.which(tool) is None
    ]
    if os.geteuid() != 0:
        return "needs root: sudo ./run_lab.sh test"
    if tools:
        return f"needs {', '.join(tools)}: apt install openvswitch-switch iproute2 ethtool"
    if not (POX / "pox.py").exists():
        return f"needs POX in {POX}: ./run_lab.sh setup-emulation"
    return (
        "" if Path("/proc/sys/net/mptcp/enabled").exists() else "needs a kernel with Multipath TCP"
    )


class Network(Hosts):
    """`with Network(folder) as network:` removes all of it at the end."""

    switches, trunks = SWITCHES, TRUNKS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.run = folder / "run"
        self.run.mkdir()
        self.agents_port = free_port(socket.SOCK_DGRAM)
        self.hosts_port = free_port(socket.SOCK_DGRAM)
        (folder / "key").write_text(KEY)
        (self.run / "topology.json").write_text(json.dumps(self.topology()))
        self.pox: subprocess.Popen[bytes] | None = None

    def __exit__(self, *_exception: object) -> None:
        self.stop_pox()
        super().__exit__()

    def topology(self) -> dict[str, Any]:
        """Contents of topology.json."""

        def at(interface: str, address: str, mac: str, switch: str) -> dict[str, str]:
            return {
                "name": interface,
                "address": address,
                "mac": mac,
                "switch": switch,
                "port": self.name(f"p{interface}"),
                "link": switch,
            }

        return {
            "switches": {switch: {"dpid": dpid} for switch, dpid in SWITCHES.items()},
            "hosts": {
                "ue1": [at(name, *place) for name, place in USER.items()],
                "srv1": [at("eth", *SERVER)],
            },
            "trunks": [
                {
                    "link": link,
                    "a": a,
                    "a_port": self.name(a + b),
                    "b": b,
                    "b_port": self.name(b + a),
                }
                for link, (a, b) in TRUNKS.items()
            ],
            "aps": {
                "wifi1": {
                    "kind": "wifi",
                    "capacity_mbps": 10,
                    "stations": {"ue1": {"rate_mbps": 10}},
                },
                "lte1": {
                    "kind": "lte",
                    "capacity_mbps": 20,
                    "stations": {"ue1": {"rate_mbps": 20}},
                },
            },
            "multipath": ["ue1"],
        }

    # POX

    def start_pox(self, strategy: str, **params: Any) -> None:
        """`strategy`: a name or the path of a Python file. The log is `pox.log`."""
        file = ROOT / "tests" / "scripted.py" if strategy == "scripted" else Path(strategy)
        own = [f"--strategy_file={file}"] if file.suffix == ".py" else []
        argv = [
            sys.executable,
            "pox.py",
            "openflow.of_01",
            f"--port={self.of10_port}",
            "controller.pox_ext",
            f"--strategy={file.stem if own else strategy}",
            *own,
            f"--hosts_port={self.hosts_port}",
            f"--key_file={self.folder / 'key'}",
        ]
        argv += [f"--topology={self.run / 'topology.json'}", f"--params={json.dumps(params)}"]
        argv += [f"--of13_port={self.of13_port}", f"--agents_port={self.agents_port}"]
        log = open(self.folder / "pox.log", "ab")  # noqa: SIM115 - handed to the process
        with log:
            environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
            self.pox = subprocess.Popen(
                argv, cwd=POX, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def stop_pox(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.pox is not None:
            self.pox.send_signal(signal.SIGCONT)
            self.pox.send_signal(how)
            try:
                self.pox.wait(5)
            except subprocess.TimeoutExpired:
                self.pox.kill()
                self.pox.wait()
            self.pox = None

    # Host agents

    def start_agents(self) -> subprocess.Popen[bytes]:
        """Start one process for the agents of both hosts, until `reset`. The log is `hosts.log`."""
        holders = {
            host: self.start_inside(host, "import time; time.sleep(1e6)")
            for host in ("user", "server")
        }
        loss: dict[str, list[str]] = {place[0]: [] for place in USER.values()}
        hosts = {
            "ue1": HostSettings(holders["user"].pid, endpoints=True, loss=loss),
            "srv1": HostSettings(holders["server"].pid, endpoints=False, loss={}),
        }
        return self._start_agents(hosts)

    def _start_agents(self, hosts: dict[str, HostSettings]) -> subprocess.Popen[bytes]:
        controller = ("127.0.0.1", self.hosts_port)
        settings = Settings(controller, KEY, 0.125, self._bpf() / "pacing", hosts)
        configuration = self.folder / "hosts.json"
        configuration.write_text(json.dumps(settings.to_json()))
        argv = [
            sys.executable,
            "-SE",
            "-m",
            "lab.engines.mininet.programs.host_agent",
            str(configuration),
        ]
        with open(self.folder / "hosts.log", "ab") as log:
            agents = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self._ended.callback(end, agents)
        assert agents.stdin is not None
        self._ended.callback(agents.stdin.close)
        return agents

    def _bpf(self) -> Path:
        """Mount a bpf file system for this network only."""
        folder = self.folder / "bpf"
        folder.mkdir(exist_ok=True)
        self._command("mount", "-t", "bpf", "bpf", str(folder))
        self._ended.callback(self._quietly, "umount", str(folder))
        return folder

    # Messages

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Lines of this kind in decisions.jsonl; a last line without its end is left out."""
        path = self.run / "decisions.jsonl"
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        read = [json.loads(line) for line in whole.splitlines()]
        return [line for line in read if line["kind"] == kind]

    def tell(self, seq: int, kind: str, value: Any) -> None:
        """Put a message into the inbox of POX."""
        aside = self.run / "message"
        aside.write_text(json.dumps({"seq": seq, "kind": kind, "value": value}))
        aside.rename(self.run / "inbox" / f"{seq:06d}.json")

    def report(self, ap: str, mac_occupancy: float) -> None:
        """Send one report, as the access point's agent does."""
        message = {
            "kind": "ap",
            "seq": 1,
            "ap": ap,
            "mac_occupancy": mac_occupancy,
            "backlog_packets": round(16 * mac_occupancy),
        }
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(seal(message, KEY), ("127.0.0.1", self.agents_port))

    def reset(self) -> None:
        """Stop POX and the programs, and clear all switches.

        Hosts are made anew, because connections outlive their programs by a minute.
        """
        self.stop_pox()
        self._ended.close()
        self._hosts.close()
        for switch in self.switches:
            for command in ("del-flows", "del-meters"):
                self.ofctl(command, switch)
        for file in self.run.glob("[!t]*.json*"):
            file.unlink()
        self._make_hosts()
