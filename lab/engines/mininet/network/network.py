"""The network itself: Mininet-WiFi nodes and links for a topology, built in a few large steps.

1) nodes: a namespace per host    2) radios, wires and their names    3) hostapd and bridges
4) addresses, routes, settings and Multipath TCP in every host        5) stations join their access points
Mininet-WiFi's own shaping, which it re-applies whenever a station moves, is switched off; links are shaped in `links.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import host_setup, radios, shaping
from lab.engines.mininet.programs import userspace_path_manager as opener
from lab.errors import LabError
from lab.topologies.topology import Interface, Topology, Wiring

OPENFLOW_PORTS = (6633, 6653)  # POX's own channel (1.0) and the one for meters (1.3)
CHANNEL_MHZ = {n: 2407 + 5 * n for n in (1, 6, 11)}
ASSOCIATION_TIMEOUT_S, ASK_AGAIN_S = 20, 2
BRIDGES_TIMEOUT_S = 120  # a busy machine needs seconds for each
# ms: a controller stopped for a while is not a lost one; an attempt to connect is given up after the backoff too, and many
# switches must not come back every second to a controller that is slow
PATIENCE = ("inactivity_probe=60000", "max_backoff=4000")
BRIDGE = (
    "fail_mode=secure",
    "protocols=OpenFlow10,OpenFlow13",
    "other_config:disable-in-band=true",
)


class Network:
    """A running network: hosts by id, and commands inside them."""

    def __init__(self, topology: Topology, wiring: Wiring, ledger: Ledger, scratch: Path) -> None:
        """`scratch` is a folder of this run for the files of hostapd."""
        self.topology, self.wiring, self.ledger, self.scratch = topology, wiring, ledger, scratch
        self._net: Any = None
        self._radios = [each for each in wiring.interfaces if each.name.endswith("wlan0")]
        self._wires = [each for each in wiring.interfaces if each not in self._radios]

    def create(self) -> None:
        """Make the nodes: hosts can be entered, but nothing joins them yet."""
        from lab.engines.mininet.network import (
            nodes,
        )  # it imports Mininet-WiFi, which takes a second

        self._net = nodes.empty()
        self._add_nodes()
        for node in self._net.values():
            node.settle()
        self._record()

    def build(self) -> None:
        """Join the nodes, start bridges and hostapd, configure the hosts, associate the stations."""
        made = self._make_interfaces()
        with _standing_in(self.scratch):
            self._tell_mininet()
        self._make_bridges()
        for host in self.hosts:
            self._configure_host(host, made)
        host_setup.without_offloads(self.ports(), lambda argv: argv)
        self._associate()

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
        """Point every bridge at POX: OpenFlow 1.0 on the first channel, 1.3 on the second.

        Open vSwitch 3.1 applies a connection's patience only when it is set after the connection was made.
        """
        argv: list[str] = []
        for switch in self.wiring.dpid:
            channels = [f"@{switch}-{port}" for port in OPENFLOW_PORTS]
            for channel, port in zip(channels, OPENFLOW_PORTS, strict=True):
                argv += [
                    "--",
                    f"--id={channel}",
                    "create",
                    "controller",
                    f'target="tcp:127.0.0.1:{port}"',
                ]
            argv += ["--", "set", "bridge", switch, f"controller={','.join(channels)}"]
        made = shell.run(["ovs-vsctl", *argv], "point the bridges at POX").split()
        patience = [word for uuid in made for word in ("--", "set", "controller", uuid, *PATIENCE)]
        shell.run(["ovs-vsctl", *patience], "make the bridges patient with POX")

    def move(self, user: str, x_m: float, y_m: float) -> None:
        """Move a station; its shaping stays as it is."""
        self._net[user].setPosition(f"{x_m},{y_m},0")

    def stop(self) -> None:
        """Stop the nodes; what they leave behind is the ledger's business."""
        for node in list(self._net.values()) if self._net else []:
            node.terminate()

    # --- nodes

    def _add_nodes(self) -> None:
        net, wiring = self._net, self.wiring
        radio_of = {each.node: each for each in self._radios}
        for host in self.hosts:
            if host in radio_of:
                net.addStation(
                    host,
                    mac=radio_of[host].mac,
                    ip=f"{radio_of[host].address}/8",
                    position="10,10,0",
                )
            else:
                net.addHost(host, ip=None, mac=None)
        for number, ap in enumerate(self.topology.ids("wifi")):
            channel = sorted(CHANNEL_MHZ)[number % len(CHANNEL_MHZ)]
            net.addAccessPoint(
                ap,
                dpid=f"{wiring.dpid[ap]:016x}",
                ssid=f"lab-{ap}",
                mode="g",
                channel=str(channel),
                position="10,20,0",
            )
        for switch in self.topology.ids("lte", "switch"):
            net.addSwitch(switch, dpid=f"{wiring.dpid[switch]:016x}")

    def _record(self) -> None:
        """Write into the ledger what is about to exist. Undone in reverse: bridges first, while their ports still exist."""
        count = len(self.topology.ids("wifi")) + len(self._radios)
        self.ledger.record("radios", prefix=self._radio_prefix, count=count)
        self.ledger.record(
            "daemon", program="hostapd", word=f"mn{os.getpid()}_"
        )  # in the names of its configuration files
        for host in self.hosts:
            self.ledger.record("process", pid=self.pid(host))
        for trunk in self.wiring.trunks:
            self.ledger.record("interface", name=trunk.a_port)
        for each in self._wires:
            self.ledger.record("interface", name=each.port)
        self.ledger.record("bridges", names=list(self.wiring.dpid))

    @property
    def _radio_prefix(self) -> str:
        return f"mn{os.getpid():05d}p"

    # --- what joins them

    def _make_interfaces(self) -> dict[str, str]:
        """Radios and pairs of interfaces; what the kernel called each radio's interface."""
        owners: list[tuple[str, int | None]] = [
            (each.name, self.pid(each.node)) for each in self._radios
        ]
        owners += [(f"{ap}-wlan1", None) for ap in self.topology.ids("wifi")]
        wanted = [
            radios.Radio(f"{self._radio_prefix}{n:02d}", name, pid)
            for n, (name, pid) in enumerate(owners)
        ]
        made = radios.create(wanted) if wanted else {}
        lines = [
            f"link add {trunk.a_port} type veth peer name {trunk.b_port}"
            for trunk in self.wiring.trunks
        ]
        lines += [_pair(each, self.pid(each.node)) for each in self._wires]
        for ap in self.topology.ids("wifi"):
            lines += [
                f"link set dev {made[f'{ap}-wlan1']} name {ap}-wlan1",
                f"link set dev {ap}-wlan1 up",
            ]
        lines += [f"link set dev {port} up gso_max_segs 1 txqueuelen 1000" for port in self.ports()]
        shell.run(["ip", "-batch", "-"], "make the links", stdin=shaping.batch(lines))
        return made

    def _tell_mininet(self) -> None:
        """Mininet-WiFi starts hostapd, and knows the links."""
        from lab.engines.mininet.network.nodes import Wire

        self._net.configureNodes()
        for trunk in self.wiring.trunks:
            self._net.addLink(
                trunk.a, trunk.b, cls=Wire, intfName1=trunk.a_port, intfName2=trunk.b_port
            )
        for each in self._wires:
            self._net.addLink(
                each.node,
                each.switch,
                cls=Wire,
                intfName1=each.name,
                intfName2=each.port,
                addr1=each.mac,
            )
        self._net.build()

    def _make_bridges(self) -> None:
        argv = ["ovs-vsctl", "--retry", f"--timeout={BRIDGES_TIMEOUT_S}"]
        for switch, dpid in self.wiring.dpid.items():
            argv += [
                "--",
                "add-br",
                switch,
                "--",
                "set",
                "bridge",
                switch,
                f"other_config:datapath-id={dpid:016x}",
                *BRIDGE,
            ]
        ports = [
            (end, port)
            for trunk in self.wiring.trunks
            for end, port in ((trunk.a, trunk.a_port), (trunk.b, trunk.b_port))
        ]
        ports += [(each.switch, each.port) for each in self._wires]
        ports += [(ap, f"{ap}-wlan1") for ap in self.topology.ids("wifi")]
        for switch, port in ports:
            argv += ["--", "add-port", switch, port]
        shell.run(argv, "make the bridges")

    def _associate(self) -> None:
        """Each station joins its access point by name, frequency and address, and is asked again if nothing comes of it."""
        waiting = {each.mac: each for each in self._radios}
        deadline, ask = time.monotonic() + ASSOCIATION_TIMEOUT_S, 0.0
        while waiting:
            if time.monotonic() > ask:
                self._join(waiting.values())
                ask = time.monotonic() + ASK_AGAIN_S
            for ap in {each.switch for each in waiting.values()}:
                seen = shell.run(
                    ["iw", "dev", f"{ap}-wlan1", "station", "dump"], f"list the stations of {ap}"
                ).split()
                waiting = {mac: each for mac, each in waiting.items() if mac not in seen}
            if waiting and time.monotonic() > deadline:
                names = ", ".join(f"{each.node} with {each.switch}" for each in waiting.values())
                raise LabError(
                    f"associate {names}: no answer from hostapd in {ASSOCIATION_TIMEOUT_S} s. Try: ./run_lab.sh clean, then run again"
                )

    def _join(self, stations: Iterable[Interface]) -> None:
        for each in stations:
            radio = self._net[each.switch].wintfs[0]
            argv = [
                "iw",
                "dev",
                each.name,
                "connect",
                radio.ssid,
                str(CHANNEL_MHZ[int(radio.channel)]),
                radio.mac,
            ]
            self.run(each.node, argv, f"associate {each.node} with {each.switch}")

    # --- configuration

    def _configure_host(self, host: str, made: dict[str, str]) -> None:
        """Names, addresses, one routing table per interface, sysctls, and an MPTCP endpoint per address of a multipath user."""
        interfaces = self.wiring.of(host)
        names, crowded = (
            [each.name for each in interfaces],
            host in opener.crowded(self.topology, self.wiring),
        )
        lines = [
            line
            for each in interfaces
            if each.name in made
            for line in host_setup.radio(made[each.name], each)
        ]
        lines += [*host_setup.addresses(interfaces), *host_setup.neighbours(host, self.wiring)]
        self.run(host, ["ip", "-batch", "-"], f"configure {host}", stdin=shaping.batch(lines))

        def enter(argv: list[str]) -> list[str]:
            return self.inside(host, argv)

        def configure() -> None:
            host_setup.write_settings(
                host_setup.settings(names) | (opener.SETTING if crowded else {}), enter
            )
            host_setup.without_offloads(names, enter)
            if not crowded and (
                host in self.topology.multipath or host in self.topology.ids("server")
            ):
                host_setup.endpoints(interfaces if host in self.topology.multipath else (), enter)

        netlink.inside(self.pid(host), configure)

    def ports(self) -> Iterator[str]:
        """Every switch port that is a wire."""
        for trunk in self.wiring.trunks:
            yield from (trunk.a_port, trunk.b_port)
        for each in self._wires:
            yield each.port


def _pair(each: Interface, pid: int) -> str:
    """A switch port, and at its other end a host's interface."""
    return f"link add {each.port} type veth peer name {each.name} address {each.mac} netns {pid}"


@contextmanager
def _standing_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
