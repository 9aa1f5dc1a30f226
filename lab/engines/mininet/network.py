"""The network itself: Mininet-WiFi nodes and links for a topology. The only place that imports mn_wifi.

Mininet-WiFi creates stations on hwsim radios, access points with hostapd, hosts, and Open vSwitch bridges. Shaping,
addresses beyond the first, routes and MPTCP are put on top here, so that what a link does is what the topology says:
Mininet-WiFi's own shaping, which it re-applies whenever a station moves, is switched off.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.engines.mininet import shaping, shell, upstream_imports
from lab.engines.mininet.ledger import Ledger
from lab.engines.mininet.upstreams import hwsim_mgmt
from lab.errors import LabError
from lab.topology import Topology, Wiring

OPENFLOW_PORTS = (6633, 6653)  # POX's own channel (1.0) and the one for meters (1.3)
CHANNEL_MHZ = {n: 2407 + 5 * n for n in (1, 6, 11)}
ASSOCIATION_TIMEOUT_S = 20
SOCKET_BUFFERS = "10240 87380 16777216"  # least, first and most [bytes], as Mininet sets them
INACTIVITY_PROBE_MS = 60_000  # a controller stopped for a while is not a lost controller


class Network:
    """A running network: hosts by id, and commands inside them."""

    def __init__(self, topology: Topology, wiring: Wiring, ledger: Ledger, scratch: Path) -> None:
        """`scratch` is a folder of this run for the files Mininet-WiFi writes where it stands."""
        self.topology, self.wiring, self.ledger, self.scratch = topology, wiring, ledger, scratch
        self._net: Any = None

    def start(self, upstreams: Path) -> None:
        """Build nodes and links, start bridges and hostapd, associate the stations, configure hosts."""
        with _standing_in(self.scratch):
            self._net = _mininet(upstreams)
            self._add_nodes()
            self._record()
            for build in (self._net.configureNodes, self._add_links, self._net.build, self._net.start):
                build()
        self._associate()
        for host in self.hosts:
            self._configure_host(host)
        self._configure_ports()

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.topology.ids("user", "server")

    def pid(self, node: str) -> int:
        """The process that holds a node's network namespace."""
        return int(self._net[node].pid)

    def run(self, node: str, argv: list[str], doing: str, stdin: str | None = None) -> str:
        """Run a command inside a host."""
        return shell.run(self.inside(node, argv), doing, stdin=stdin)

    def inside(self, node: str, argv: list[str]) -> list[str]:
        """The command line that runs `argv` inside a host; for switches and access points, on the machine itself."""
        return ["mnexec", "-a", str(self.pid(node)), *argv] if node in self.hosts else argv

    def connect_controller(self) -> None:
        """Point every bridge at POX: OpenFlow 1.0 on the first channel, 1.3 on the second."""
        argv: list[str] = []
        for switch in self.wiring.dpid:
            targets = [f"tcp:127.0.0.1:{port}" for port in OPENFLOW_PORTS]
            argv += ["--", "set-controller", switch, *targets]
        shell.run(["ovs-vsctl", *argv[1:]], "point the bridges at POX")
        probes = [
            part
            for uuid in shell.run(
                ["ovs-vsctl", "--bare", "--columns=_uuid", "list", "controller"], "list the controllers"
            ).split()
            for part in ("--", "set", "controller", uuid, f"inactivity_probe={INACTIVITY_PROBE_MS}", "max_backoff=1000")
        ]
        shell.run(["ovs-vsctl", *probes[1:]], "keep the bridges patient with POX")

    def move(self, user: str, x_m: float, y_m: float) -> None:
        """Move a station; its shaping stays as it is."""
        self._net[user].setPosition(f"{x_m},{y_m},0")

    def stop(self) -> None:
        """Stop the nodes; what Mininet-WiFi leaves behind is the ledger's business."""
        for node in list(self._net.values()) if self._net else []:
            node.terminate()

    # --- building

    def _add_nodes(self) -> None:
        net, wiring = self._net, self.wiring
        for host in self.hosts:
            radios = [each for each in wiring.of(host) if each.name.endswith("wlan0")]
            if radios:
                net.addStation(host, mac=radios[0].mac, ip=f"{radios[0].address}/8", position="10,10,0")
            else:
                net.addHost(host, ip=None, mac=None)
        for number, ap in enumerate(self.topology.ids("wifi")):
            channel = sorted(CHANNEL_MHZ)[number % len(CHANNEL_MHZ)]
            net.addAccessPoint(ap, dpid=f"{wiring.dpid[ap]:016x}", ssid=f"lab-{ap}", mode="g", channel=str(channel), position="10,20,0",
                               failMode="secure", protocols="OpenFlow10,OpenFlow13")  # fmt: skip
        for switch in self.topology.ids("lte", "switch"):
            net.addSwitch(switch, dpid=f"{wiring.dpid[switch]:016x}", failMode="secure", protocols="OpenFlow10,OpenFlow13")

    def _add_links(self) -> None:
        from mininet.link import Link

        for trunk in self.wiring.trunks:
            self._net.addLink(trunk.a, trunk.b, cls=Link, intfName1=trunk.a_port, intfName2=trunk.b_port)
        for each in self.wiring.interfaces:
            if not each.name.endswith("wlan0"):
                self._net.addLink(each.node, each.switch, cls=Link, intfName1=each.name, intfName2=each.port, addr1=each.mac)

    def _record(self) -> None:
        """Write into the ledger what is about to exist. Undone in reverse: bridges first, while their ports still exist."""
        radios = len(self.topology.ids("wifi")) + sum(each.name.endswith("wlan0") for each in self.wiring.interfaces)
        self.ledger.record("radios", prefix=f"mn{os.getpid():05d}p", count=radios)
        self.ledger.record("daemon", program="hostapd", word=f"mn{os.getpid()}_")  # in the names of its configuration files
        for node in self._net.values():
            self.ledger.record("process", pid=node.pid)
        for trunk in self.wiring.trunks:
            self.ledger.record("interface", name=trunk.a_port)
        for each in self.wiring.interfaces:
            if not each.name.endswith("wlan0"):
                self.ledger.record("interface", name=each.port)
        for switch in self.wiring.dpid:
            self.ledger.record("bridge", name=switch)

    def _associate(self) -> None:
        """Each station joins its access point by name, frequency and address; then all are waited for."""
        waiting = {}
        for each in self.wiring.interfaces:
            if each.name.endswith("wlan0"):
                radio = self._net[each.switch].wintfs[0]
                frequency = CHANNEL_MHZ[int(radio.channel)]
                self.run(
                    each.node,
                    ["iw", "dev", each.name, "connect", radio.ssid, str(frequency), radio.mac],
                    f"associate {each.node} with {each.switch}",
                )
                waiting[each.mac] = each
        deadline = time.monotonic() + ASSOCIATION_TIMEOUT_S
        while waiting:
            for ap in {each.switch for each in waiting.values()}:
                seen = shell.run(["iw", "dev", f"{ap}-wlan1", "station", "dump"], f"list the stations of {ap}").split()
                waiting = {mac: each for mac, each in waiting.items() if mac not in seen}
            if waiting and time.monotonic() > deadline:
                names = ", ".join(f"{each.node} with {each.switch}" for each in waiting.values())
                raise LabError(
                    f"associate {names}: no answer from hostapd in {ASSOCIATION_TIMEOUT_S} s. Try: ./run_lab.sh clean, then run again"
                )

    # --- configuration

    def _configure_host(self, host: str) -> None:
        """Addresses, one routing table per interface, sysctls, and an MPTCP endpoint per address of a multipath user."""
        interfaces = self.wiring.of(host)
        self.run(host, ["sysctl", "-qw", *_sysctls([each.name for each in interfaces])], f"set the sysctls of {host}")
        self.run(
            host,
            ["ip", "-batch", "-"],
            f"configure {host}",
            stdin=shaping.batch([*_addresses(host, interfaces), *_neighbours(host, self.wiring)]),
        )
        if host in self.topology.multipath or host in self.topology.ids("server"):
            self.run(
                host, ["ip", "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "0"], f"set MPTCP limits of {host}"
            )
        if host in self.topology.multipath:
            for each in interfaces:
                argv = ["ip", "mptcp", "endpoint", "add", each.address, "dev", each.name, "subflow"]
                self.run(host, argv, f"add an MPTCP endpoint of {host}")
        for each in interfaces:
            self.run(host, ["ethtool", "-K", each.name, *_offloads_off()], f"switch off the offloads of {each.name}")

    def _configure_ports(self) -> None:
        for port in self.ports():
            shell.run(["ethtool", "-K", port, *_offloads_off()], f"switch off the offloads of {port}")
        lines = shaping.batch(f"link set dev {port} gso_max_segs 1 txqueuelen 1000" for port in self.ports())
        shell.run(["ip", "-batch", "-"], "stop segmentation on the switch ports", stdin=lines)

    def ports(self) -> Iterator[str]:
        """Every switch port that is a wire."""
        for trunk in self.wiring.trunks:
            yield from (trunk.a_port, trunk.b_port)
        for each in self.wiring.interfaces:
            if not each.port.endswith("wlan1"):
                yield each.port


def _mininet(upstreams: Path) -> Any:
    """An empty Mininet-WiFi network that shapes nothing by itself."""
    os.environ["PATH"] = f"{hwsim_mgmt().parent}:{os.environ['PATH']}"  # Mininet-WiFi calls it by name
    upstream_imports.prepare(upstreams)
    from mininet.log import setLogLevel
    from mininet.net import Mininet
    from mn_wifi.link import IntfWireless
    from mn_wifi.module import Mac80211Hwsim
    from mn_wifi.net import Mininet_wifi

    setLogLevel("warning")
    Mac80211Hwsim.logging_to_file = _nothing  # it would send every log of this process to a file in /tmp
    Mininet.inited = True  # its `init` raises limits of the whole machine and leaves them; hosts get theirs in `_sysctls`
    for method in ("set_tc", "set_tc_ap", "set_tc_reorder", "configWLink"):
        setattr(IntfWireless, method, _nothing)  # a link's qdiscs are ours
    return Mininet_wifi(controller=None, autoAssociation=False, allAutoAssociation=False, ipBase="10.0.0.0/8", build=False)


def _nothing(*_args: Any, **_keywords: Any) -> None:
    """In place of what Mininet-WiFi shall not do."""


def _sysctls(interfaces: list[str]) -> list[str]:
    settings: dict[str, int | str] = {
        "net.mptcp.enabled": 1,
        "net.ipv4.tcp_no_metrics_save": 1,
        "net.ipv4.tcp_rmem": SOCKET_BUFFERS,
        "net.ipv4.tcp_wmem": SOCKET_BUFFERS,
        "net.ipv6.conf.all.disable_ipv6": 1,
        "net.ipv6.conf.default.disable_ipv6": 1,
    }
    for name in ("all", "default", *interfaces):
        settings |= {
            f"net.ipv4.conf.{name}.{key}": value for key, value in (("rp_filter", 0), ("arp_ignore", 1), ("arp_announce", 2))
        }
    return [f"{key}={value}" for key, value in settings.items()]


def _addresses(host: str, interfaces: tuple[Any, ...]) -> Iterator[str]:
    """Everything is on link in 10/8; a table per interface keeps a subflow on its own."""
    for table, each in enumerate(interfaces, 1):
        yield f"addr flush dev {each.name}"
        yield f"link set dev {each.name} up gso_max_segs 1"
        yield f"addr add {each.address}/32 dev {each.name}"
        yield f"route replace 10.0.0.0/8 dev {each.name} src {each.address} table {table}"
        yield f"rule add from {each.address} table {table}"
    yield f"route replace 10.0.0.0/8 dev {interfaces[0].name} src {interfaces[0].address}"


def _neighbours(host: str, wiring: Wiring) -> Iterator[str]:
    """Who has which hardware address, for good: a host must not have to ask a controller that stands still (ARP)."""
    for mine in wiring.of(host):
        for other in wiring.interfaces:
            if other.node != host:
                yield f"neigh replace {other.address} lladdr {other.mac} dev {mine.name} nud permanent"


def _offloads_off() -> list[str]:
    return ["tso", "off", "gso", "off", "gro", "off"]


@contextmanager
def _standing_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
