"""Hosts in network namespaces with Multipath TCP, at bridges in user space."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from userspace_bridges import Bridges, end

USER = {
    "wifi": ("10.1.0.1", "02:00:0a:01:00:01", "wifi1"),
    "lte": ("10.2.0.1", "02:00:0a:02:00:01", "lte1"),
}
SERVER = ("10.0.0.1", "02:00:0a:00:00:01", "s1")


class Hosts(Bridges):
    """A user with two interfaces, and a server. `_ended` ends their programs, `_hosts` removes
    them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._ended, self._hosts = ExitStack(), ExitStack()

    def __exit__(self, *_exception: object) -> None:
        self._ended.close()
        super().__exit__()

    def _build(self) -> None:
        super()._build()
        self._undo.callback(lambda: self._hosts.close())
        self._make_hosts()

    def inside(self, host: str, *argv: str) -> str:
        return self._command("ip", "netns", "exec", self.name(host), *argv)

    def start_inside(
        self, host: str, script: str, *argv: str, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Run a Python script until `reset`."""
        command = ["ip", "netns", "exec", self.name(host), sys.executable, "-c", script, *argv]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
        self._ended.callback(end, process)
        return process

    def spawn_inside(self, host: str, *argv: str, cwd: Path) -> subprocess.Popen[str]:
        """Run a program that reads commands and writes answers, until `reset`."""
        command = ["ip", "netns", "exec", self.name(host), *argv]
        process = self._ended.enter_context(
            subprocess.Popen(command, cwd=cwd, stdin=-1, stdout=-1, text=True)
        )
        self._ended.callback(end, process)
        return process

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
        """Connect a host to a switch by a veth pair; each interface has its own routing table."""
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
        # POX answers ARP requests. Known addresses stay valid for an hour, also while POX is
        # stopped.
        reachable = f"net.ipv4.neigh.{interface}.base_reachable_time_ms=3600000"
        self.inside(host, "sysctl", "-qw", reachable)
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
