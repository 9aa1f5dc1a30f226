"""Bridges of Open vSwitch in user space, without kernel modules.

They have an Open vSwitch of their own, whose database, sockets and daemons are in one temporary
folder. Everything is removed at the end. A machine or network namespace can run one such network at
a time.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

WITHIN_S = 60


def eventually(what: Callable[[], Any], doing: str, within_s: float = WITHIN_S) -> Any:
    """First true result of `what`. The limit is long enough for slow machines."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        answer = what()
        if answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"{doing}: not within {within_s:g} s")


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Bridges:
    """Bridges and the wires between them, until the end of `with`.

    A subclass sets `switches` (datapath ID of each) and `trunks` (the two ends of each link).
    """

    switches: dict[str, int]
    trunks: dict[str, tuple[str, str]]

    def __init__(self, folder: Path) -> None:
        self.folder, self.prefix = folder, f"x{os.getpid() % 100000}"
        self.of10_port, self.of13_port = free_port(), free_port()
        self.environment = {
            **os.environ,
            "OVS_RUNDIR": str(folder),
            "OVS_DBDIR": str(folder),
            "OVS_LOGDIR": str(folder),
        }
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._undo = undo
            self._build()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._undo.close()

    def _build(self) -> None:
        self._start_daemons()
        for switch, dpid in self.switches.items():
            self._add_bridge(switch, dpid)
        for a, b in self.trunks.values():
            self._add_trunk(a, b)

    def name(self, thing: str) -> str:
        """Name of a device or namespace; it differs between processes."""
        return f"{self.prefix}{thing}"

    def ofctl(self, command: str, switch: str, *more: str) -> str:
        return self._command("ovs-ofctl", "-O", "OpenFlow13", command, self.name(switch), *more)

    def limit_table(self, switch: str, entries: int | None) -> None:
        """Let table 1 refuse entries beyond this number; None lifts the limit."""
        bridge = self.name(switch)
        if entries is None:
            self._vsctl("clear", "bridge", bridge, "flow_tables")
            return
        table = ("--id=@t", "create", "flow_table", f"flow_limit={entries}")
        self._vsctl(
            *table, "overflow_policy=refuse", "--", "set", "bridge", bridge, "flow_tables:1=@t"
        )

    def meter_kbps(self, switch: str) -> int | None:
        """Rate of the only meter; None without a meter."""
        words = self.ofctl("dump-meters", switch).replace("=", " ").split()
        return int(words[words.index("rate") + 1]) if "rate" in words else None

    def outside(self, *argv: str) -> str:
        """Output of a command that runs outside of all hosts."""
        return self._command(*argv)

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
        self._undo.callback(end, process)

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

    def _command(self, *argv: str) -> str:
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=False, timeout=30
        )
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr.strip()}"
        return done.stdout

    def _quietly(self, *argv: str) -> None:
        subprocess.run(argv, env=self.environment, capture_output=True, check=False, timeout=30)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
