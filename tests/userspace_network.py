"""A small network without kernel modules: Open vSwitch in user space, namespaces, and real POX.

    user (wifi, lte) --- wifi1, lte1 --- s1 --- server, and a longer path: s1 --- c1 --- wifi1

It has an Open vSwitch of its own, with database, sockets and daemons in one temporary folder, and
removes everything at the end. One machine or network namespace can run one such network at a time.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from controller.datagrams import seal

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
WITHIN_S = 60
USER = {
    "wifi": ("10.1.0.1", "02:00:0a:01:00:01", "wifi1"),
    "lte": ("10.2.0.1", "02:00:0a:02:00:01", "lte1"),
}
SERVER = ("10.0.0.1", "02:00:0a:00:00:01", "s1")
MPTCP = 262


def missing() -> str:
    """Return why these tests cannot run here; empty if they can."""
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


def eventually(what: Callable[[], Any], doing: str) -> Any:
    """Return the first true result of `what`; the time limit is long enough for any machine."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        answer = what()
        if answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"{doing}: not within {WITHIN_S} s")


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Network:
    """Bridges and namespaces; `with Network(folder) as network:` removes all of them."""

    switches, trunks = SWITCHES, TRUNKS

    def __init__(self, folder: Path) -> None:
        self.folder, self.prefix = folder, f"x{os.getpid() % 100000}"
        self.run = folder / "run"
        self.run.mkdir()
        self.of10_port, self.of13_port, self.agents_port = (
            free_port(),
            free_port(),
            free_port(socket.SOCK_DGRAM),
        )
        self.hosts_port = free_port(socket.SOCK_DGRAM)
        (folder / "key").write_text(KEY)
        self.environment = {
            **os.environ,
            "OVS_RUNDIR": str(folder),
            "OVS_DBDIR": str(folder),
            "OVS_LOGDIR": str(folder),
        }
        self._undo, self._ended, self._hosts = ExitStack(), ExitStack(), ExitStack()
        self.pox: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Network:
        with ExitStack() as undo:
            self._undo = undo
            self._start_daemons()
            for switch, dpid in self.switches.items():
                self._add_bridge(switch, dpid)
            for a, b in self.trunks.values():
                self._add_trunk(a, b)
            undo.callback(lambda: self._hosts.close())
            self._make_hosts()
            (self.run / "topology.json").write_text(json.dumps(self.topology()))
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop_pox()
        self._ended.close()
        self._undo.close()

    def name(self, thing: str) -> str:
        """A name on this machine."""
        return f"{self.prefix}{thing}"

    def topology(self) -> dict[str, Any]:
        """The topology file."""

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

    # --- POX

    def start_pox(self, strategy: str, **params: Any) -> None:
        """Start POX; its log is `pox.log`. `strategy` is a name or the path of a Python file."""
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

    # --- host agents

    def start_agents(self) -> subprocess.Popen[bytes]:
        """Start the host agents of both hosts, ended by `reset`; their log is `hosts.log`."""
        holders = {
            host: self.start_inside(host, "import time; time.sleep(1e6)")
            for host in ("user", "server")
        }
        hosts = {
            "ue1": {
                "pid": holders["user"].pid,
                "endpoints": True,
                "loss": {place[0]: [] for place in USER.values()},
            },
            "srv1": {"pid": holders["server"].pid, "endpoints": False, "loss": {}},
        }
        return self._start_agents(hosts)

    def _start_agents(self, hosts: dict[str, Any]) -> subprocess.Popen[bytes]:
        asked = {
            "controller": ["127.0.0.1", self.hosts_port],
            "key": KEY,
            "pins": str(self._bpf() / "pacing"),
            "period_s": 0.125,
            "hosts": hosts,
        }
        configuration = self.folder / "hosts.json"
        configuration.write_text(json.dumps(asked))
        argv = [
            sys.executable,
            "-SE",
            "-m",
            "lab.engines.mininet.programs.host_agent",
            str(configuration),
        ]
        with open(self.folder / "hosts.log", "ab") as log:
            agents = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self._ended.callback(_end, agents)
        assert agents.stdin is not None
        self._ended.callback(agents.stdin.close)
        return agents

    def _bpf(self) -> Path:
        """A bpf file system of our own."""
        folder = self.folder / "bpf"
        folder.mkdir(exist_ok=True)
        self._command("mount", "-t", "bpf", "bpf", str(folder))
        self._ended.callback(self._quietly, "umount", str(folder))
        return folder

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """The lines of one kind in decisions.jsonl."""
        path = self.run / "decisions.jsonl"
        read = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in read if line["kind"] == kind]

    def tell(self, seq: int, kind: str, value: Any) -> None:
        """Put a message into the inbox."""
        aside = self.run / "message"
        aside.write_text(json.dumps({"seq": seq, "kind": kind, "value": value}))
        aside.rename(self.run / "inbox" / f"{seq:06d}.json")

    def report(self, ap: str, mac_occupancy: float) -> None:
        """One report of an access point's agent."""
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
        """Remove everything that a controller left.

        The hosts are new, because connections last a minute longer than their programs.
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

    # --- questions

    def ofctl(self, command: str, switch: str, *more: str) -> str:
        return self._command("ovs-ofctl", "-O", "OpenFlow13", command, self.name(switch), *more)

    def limit_table(self, switch: str, entries: int | None) -> None:
        """Let table 1 of a switch refuse entries when it has so many; None ends this."""
        bridge = self.name(switch)
        if entries is None:
            self._vsctl("clear", "bridge", bridge, "flow_tables")
            return
        table = ("--id=@t", "create", "flow_table", f"flow_limit={entries}")
        self._vsctl(
            *table, "overflow_policy=refuse", "--", "set", "bridge", bridge, "flow_tables:1=@t"
        )

    def meter_kbps(self, switch: str) -> int | None:
        """The rate of the meter of a switch, None without one."""
        words = self.ofctl("dump-meters", switch).replace("=", " ").split()
        return int(words[words.index("rate") + 1]) if "rate" in words else None

    def inside(self, host: str, *argv: str) -> str:
        return self._command("ip", "netns", "exec", self.name(host), *argv)

    def outside(self, *argv: str) -> str:
        """A command on this machine."""
        return self._command(*argv)

    def start_inside(
        self, host: str, script: str, *argv: str, **options: Any
    ) -> subprocess.Popen[bytes]:
        """A Python script inside a host, ended by `reset`."""
        command = ["ip", "netns", "exec", self.name(host), sys.executable, "-c", script, *argv]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
        self._ended.callback(_end, process)
        return process

    def spawn_inside(self, host: str, *argv: str, cwd: Path) -> subprocess.Popen[str]:
        """A program inside a host that reads commands and writes answers, ended by `reset`."""
        command = ["ip", "netns", "exec", self.name(host), *argv]
        process = self._ended.enter_context(
            subprocess.Popen(command, cwd=cwd, stdin=-1, stdout=-1, text=True)
        )
        self._ended.callback(_end, process)
        return process

    # --- building

    def _start_daemons(self) -> None:
        database, sock = self.folder / "conf.db", self.folder / "db.sock"
        self._command(
            "ovsdb-tool", "create", str(database), "/usr/share/openvswitch/vswitch.ovsschema"
        )
        self._daemon(
            "ovsdb-server",
            str(database),
            f"--remote=punix:{sock}",
            f"--unixctl={self.folder}/db.ctl",
        )
        eventually(sock.exists, "start ovsdb-server")
        self._vsctl("--no-wait", "init")
        self._daemon("ovs-vswitchd", f"unix:{sock}", f"--unixctl={self.folder}/switch.ctl")

    def _daemon(self, *argv: str) -> None:
        with open(self.folder / f"{argv[0]}.log", "ab") as log:
            process = subprocess.Popen(
                argv, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self._undo.callback(_end, process)

    def _vsctl(self, *argv: str) -> str:
        return self._command("ovs-vsctl", "--timeout=10", f"--db=unix:{self.folder}/db.sock", *argv)

    def _add_bridge(self, switch: str, dpid: int) -> None:
        bridge = self.name(switch)
        self._undo.callback(
            self._quietly,
            "ovs-vsctl",
            "--timeout=5",
            f"--db=unix:{self.folder}/db.sock",
            "--if-exists",
            "del-br",
            bridge,
        )
        settings = ["datapath_type=netdev", "fail_mode=secure", "protocols=OpenFlow10,OpenFlow13"]
        self._vsctl(
            "add-br",
            bridge,
            "--",
            "set",
            "bridge",
            bridge,
            *settings,
            f"other-config:datapath-id={dpid:016x}",
        )
        self._vsctl(
            "set-controller",
            bridge,
            f"tcp:127.0.0.1:{self.of10_port}",
            f"tcp:127.0.0.1:{self.of13_port}",
        )
        for uuid in (
            self._vsctl("--bare", "get", "bridge", bridge, "controller").strip("[]\n").split(", ")
        ):
            self._vsctl("set", "controller", uuid, "max_backoff=1000", "inactivity_probe=60000")

    def _add_trunk(self, a: str, b: str) -> None:
        for here, there in ((a, b), (b, a)):
            port, peer = self.name(here + there), self.name(there + here)
            self._vsctl(
                "add-port",
                self.name(here),
                port,
                "--",
                "set",
                "interface",
                port,
                "type=patch",
                f"options:peer={peer}",
            )

    def _make_hosts(self) -> None:
        for host in ("user", "server"):
            self._command("ip", "netns", "add", self.name(host))
            self._hosts.callback(self._quietly, "ip", "netns", "del", self.name(host))
            self.inside(host, "ip", "link", "set", "lo", "up")
        for table, (interface, place) in enumerate(USER.items(), 1):
            self._attach("user", interface, *place, table)
        self._attach("server", "eth", *SERVER, 1)
        self._configure_mptcp()

    def _attach(
        self,
        host: str,
        interface: str,
        address: str,
        mac: str,
        switch: str,
        table: int,
        called: str = "",
    ) -> None:
        """Attach an interface of a host, with a routing table of its own, to a port of a switch."""
        port, namespace = self.name(called or f"p{interface}"), self.name(host)
        self._command(
            "ip",
            "link",
            "add",
            port,
            "type",
            "veth",
            "peer",
            "name",
            interface,
            "address",
            mac,
            "netns",
            namespace,
        )
        self._hosts.callback(self._quietly, "ip", "link", "del", port)
        self._command("ip", "link", "set", port, "up")
        self._vsctl("add-port", self.name(switch), port)
        self._hosts.callback(self._vsctl, "--if-exists", "del-port", self.name(switch), port)
        off = ["tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off"]
        self._command("ethtool", "-K", port, *off)
        self.inside(host, "ethtool", "-K", interface, *off)
        for key, value in (("rp_filter", 0), ("arp_ignore", 1), ("arp_announce", 2)):
            self.inside(
                host,
                "sysctl",
                "-qw",
                f"net.ipv4.conf.all.{key}={value}",
                f"net.ipv4.conf.{interface}.{key}={value}",
            )
        self.inside(host, "ip", "link", "set", interface, "up", "gso_max_segs", "1")
        self.inside(host, "ip", "address", "add", f"{address}/32", "dev", interface)
        self.inside(
            host,
            "ip",
            "route",
            "add",
            "10.0.0.0/8",
            "dev",
            interface,
            "src",
            address,
            "table",
            str(table),
        )
        self.inside(host, "ip", "rule", "add", "from", address, "table", str(table))
        if table == 1:
            self.inside(host, "ip", "route", "add", "10.0.0.0/8", "dev", interface, "src", address)

    def _configure_mptcp(self) -> None:
        for host in ("user", "server"):
            self.inside(
                host,
                "sysctl",
                "-qw",
                "net.mptcp.enabled=1",
                "net.ipv4.tcp_no_metrics_save=1",
                "net.ipv6.conf.all.disable_ipv6=1",
            )
            self.inside(
                host, "ip", "mptcp", "limits", "set", "subflow", "4", "add_addr_accepted", "4"
            )
        for interface, (address, _, _) in USER.items():
            self.inside(
                "user", "ip", "mptcp", "endpoint", "add", address, "dev", interface, "subflow"
            )

    def _command(self, *argv: str) -> str:
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=False, timeout=30
        )
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr.strip()}"
        return done.stdout

    def _quietly(self, *argv: str) -> None:
        subprocess.run(argv, env=self.environment, capture_output=True, check=False, timeout=30)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
