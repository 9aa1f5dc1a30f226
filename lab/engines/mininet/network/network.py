"""Build the network of a topology from Mininet-WiFi nodes and links.

Each step is done for all nodes together, which is faster:

1) nodes: a namespace per host    2) radios, wires and their names    3) hostapd and bridges
4) addresses, routes, settings and Multipath TCP in every host
5) stations associate with their access points

Mininet-WiFi would limit the rates of links itself, again at every move of a station. This is
switched off, and links.py does it instead. While the network is built, Mininet-WiFi's nodes do not
run commands (nodes.py). So Mininet-WiFi does not know the addresses and associations;
`release_nodes` adds them at the end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.engines.mininet.kernel import netlink, shaping
from lab.engines.mininet.machine import open_vswitch, shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import host_setup, joins, wifi
from lab.engines.mininet.network.host_setup import KeptNamespaces
from lab.engines.mininet.network.real_medium import RealMedium
from lab.engines.mininet.network.wifi import Target
from lab.engines.mininet.programs import userspace_path_manager
from lab.scenario.interfaces import endpoint_of
from lab.scenario.schema import Multipath, Role
from lab.topologies.topology import Interface, Topology, Wiring, radio_port

PREFIX_LENGTH = 8  # all addresses are in 10.0.0.0/8
LOOPBACK = "127.0.0.1 localhost"
NAMES = Path("/etc/hosts")
CHANNEL_MHZ = {n: 2407 + 5 * n for n in (1, 6, 11)}
# of each host; all share a table by default, and listing the sockets of a host takes 4 ms in a VM
SOCKET_TABLE, SOCKET_TABLE_ENTRIES = "net.ipv4.tcp_child_ehash_entries", "1024"


class Network:
    def __init__(
        self,
        topology: Topology,
        wiring: Wiring,
        ledger: Ledger,
        scratch: Path,
        roles: Mapping[Interface, Role],
        multipath: Multipath,
    ) -> None:
        """Prepare a network.

        `create` then makes its nodes, and `build` connects and configures them.

        `wiring` lists the interfaces and ports of the topology. `ledger` records everything that is
        made, so that the clean-up removes it. `roles` says what the MPTCP endpoints of interfaces
        are for, where it is not the usual, and `multipath` has their limits. hostapd's files are
        written into the folder `scratch`.
        """
        self.topology, self.wiring, self.ledger, self.scratch = topology, wiring, ledger, scratch
        self._roles, self._multipath = roles, multipath
        self._net: Any = None
        self.medium: RealMedium | None = None
        self._moved_radios: list[wifi.Moved] = []
        aps = topology.ids("wifi")
        self._relays = [each for each in wiring.relays if each.link in aps]
        self._radios = [each for each in wiring.interfaces if each.link in aps] + self._relays
        self._wires = [each for each in wiring.interfaces if each not in self._radios]
        self._trunks = [each for each in wiring.trunks if not each.radio]
        stations = {each.node for each in self._radios if each not in self._relays}
        self._kept = KeptNamespaces(scratch, sorted(stations))

    def create(self) -> None:
        """Make all nodes, without links. Commands can then run inside the hosts."""
        from lab.engines.mininet.network import nodes  # importing Mininet-WiFi takes a second

        host_setup.set_until_clean_up(SOCKET_TABLE, SOCKET_TABLE_ENTRIES, self.ledger)
        self._net = nodes.empty(self.scratch)
        self._add_nodes()
        for node in self._net.values():
            node.wait_ready()
        self._record()
        self._kept.mount({host: self.pid(host) for host in self.hosts})

    def build(self) -> None:
        self._make_interfaces()
        if self.medium:
            self.medium.start(self.scratch)
        self._start_mininet()
        self._make_bridges()
        for host in self.hosts:
            self._configure_host(host)
        host_setup.without_offloads(self.ports(), lambda argv: argv)
        wifi.associate(self._radios, self.target, self.run)
        release_nodes(self._net, self.wiring, self.scratch)

    @property
    def net(self) -> Any:
        """Mininet-WiFi's network object, of its class `Mininet_wifi`.

        The nodes in this object run commands only after `build`.
        """
        return self._net

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of all users and servers."""
        return self.topology.ids("user", "server")

    def pid(self, node: str) -> int:
        """Return the ID of a process in the network namespace of the host `node`."""
        return int(self._net[node].pid)

    def pids(self) -> dict[str, int]:
        """Return the ID of a process in each host that has been made."""
        return {host: self.pid(host) for host in self.hosts if self._net and host in self._net}

    def run(self, node: str, argv: list[str], doing: str, stdin: str | None = None) -> str:
        """Run the command `argv` inside the host `node`, and return its standard output.

        `doing` says in error messages for what purpose. `stdin` is the text for standard input.
        Switches and access points have no namespace; for these, the command runs outside all hosts.
        Raises `CommandFailed` or `MachineLacks` (see `shell.run`).
        """
        return shell.run(self.inside(node, argv), doing, stdin=stdin)

    def inside(self, node: str, argv: list[str]) -> list[str]:
        """Return a command line that runs `argv` inside a host.

        For any other node, return `argv`.
        """
        return ["mnexec", "-a", str(self.pid(node)), *argv] if node in self.hosts else argv

    def set_interface(self, interface: Interface, up: bool, role: Role) -> None:
        """Remove the addresses and MPTCP endpoints of an interface of a host, or add them again.
        `role` says what the endpoints are for."""
        lines = (
            host_setup.bring_up(interface, self.wiring, role, self._is_fullmesh(interface))
            if up
            else host_setup.take_down(interface, self.wiring.of(interface.node), role)
        )
        doing = f"switch {interface.name} {'on' if up else 'off'}"
        self.run(interface.node, ["ip", "-batch", "-"], doing, stdin=shaping.batch(lines))

    def set_endpoint(self, interface: Interface, before: Role, role: Role) -> None:
        """Change what the MPTCP endpoints of an interface of a host are for."""
        own, is_fullmesh = self.wiring.of(interface.node), self._is_fullmesh(interface)
        lines = host_setup.endpoint_changes(interface, own, before, role, is_fullmesh)
        doing = f"let {interface.name} open {role}"
        self.run(interface.node, ["ip", "-batch", "-"], doing, stdin=shaping.batch(lines))

    def _is_fullmesh(self, interface: Interface) -> bool:
        said = endpoint_of(self._multipath, interface)
        return said is not None and said.is_fullmesh

    def connect_controller(self) -> None:
        open_vswitch.connect_controller(self.wiring.dpid)

    def move(self, user: str, x_m: float, y_m: float) -> None:
        """Tell Mininet-WiFi's objects the position of a user [m]. Nothing else changes.

        Mininet-WiFi's own method `setPosition` would also change the user's link and association.
        """
        self._net[user].position = [x_m, y_m, 0.0]

    def record_association(self, station: str, ap: str) -> None:
        record_in_objects(self._net, station, ap)

    def stop(self) -> None:
        """Take the radios out of the hosts, and end the processes of all nodes.

        The clean-up removes interfaces, radios and bridges later; they are listed in the ledger.
        """
        wifi.move_back(self._moved_radios)
        self._kept.unmount()
        for node in list(self._net.values()) if self._net else []:
            node.terminate()

    def ports(self) -> Iterator[str]:
        """Yield the names of the wired interfaces of all switches and access points."""
        for trunk in self._trunks:
            yield from (trunk.a_port, trunk.b_port)
        for each in self._wires:
            yield each.port

    def bridge_ports(self) -> Iterator[str]:
        """Yield the names of all ports of switches and access points, with their radios."""
        yield from self.ports()
        yield from self._outside()

    def _add_nodes(self) -> None:
        net, dpid = self._net, self.wiring.dpid
        places = {node.id: node.place_m for node in self.topology.nodes}
        for host in self.hosts:
            own = [each for each in self._radios if each.node == host]
            if own:
                macs, address = [each.mac for each in own], f"{own[0].address}/8"
                position = _position(places[host]) or "10,10,0"
                net.addStation(host, mac=macs, ip=address, position=position, wlans=len(own))
            else:
                net.addHost(host, ip=None, mac=None)
        for number, ap in enumerate(self.topology.ids("wifi")):
            channel = sorted(CHANNEL_MHZ)[number % len(CHANNEL_MHZ)]
            net.addAccessPoint(
                ap,
                dpid=f"{dpid[ap]:016x}",
                ssid=f"lab-{ap}",
                mode="g",
                channel=str(channel),
                position=_position(places[ap]) or "10,20,0",
                **({"config": self.medium.hostapd_lines(ap)} if self.medium else {}),
            )
        for switch in self.topology.ids("lte", "switch"):
            net.addSwitch(switch, dpid=f"{dpid[switch]:016x}")
        for name, place_m in places.items():
            if place_m is not None:  # Mininet-WiFi places only stations and access points
                self.move(name, *place_m)

    def _record(self) -> None:
        """Record all hosts, radios, interfaces and bridges in the ledger, before they are made.

        The clean-up removes them in reverse order. So it removes bridges while their ports still
        exist.
        """
        self.ledger.record("radios", prefix=self._radio_prefix)
        if aps := self.topology.ids("wifi"):
            wifi.record_hostapd(self.ledger, aps)
        for host in self.hosts:
            self.ledger.record("process", pid=self.pid(host))
        self._kept.record(self.ledger)
        for trunk in self._trunks:
            self.ledger.record("interface", name=trunk.a_port)
        for each in self._wires:
            self.ledger.record("interface", name=each.port)
        self.ledger.record("bridges", names=list(self.wiring.dpid))

    @property
    def _radio_prefix(self) -> str:
        return f"mn{os.getpid():05d}p"

    def _make_interfaces(self) -> None:
        self._moved_radios = wifi.make_radios(self._wanted_radios())
        lines = [
            f"link add {each.a_port} type veth peer name {each.b_port}" for each in self._trunks
        ]
        lines += [_pair(each, self.pid(each.node)) for each in self._wires]
        lines += [line for each in self._relays for line in host_setup.radio_mac(each)]
        lines += [f"link set dev {name} up" for name in self._outside()]
        lines += [f"link set dev {port} up gso_max_segs 1 txqueuelen 1000" for port in self.ports()]
        shell.run(["ip", "-batch", "-"], "make the links", stdin=shaping.batch(lines))

    def _wanted_radios(self) -> list[wifi.Radio]:
        inside = [each for each in self._radios if each not in self._relays]
        owners: list[tuple[str, int | None]] = [
            *((each.name, self.pid(each.node)) for each in inside),
            *((name, None) for name in self._outside()),
        ]
        return [
            wifi.Radio(f"{self._radio_prefix}{n:02d}", name, pid)
            for n, (name, pid) in enumerate(owners)
        ]

    def _outside(self) -> list[str]:
        """Return the radio interfaces outside all hosts: those of access points and switches."""
        return [
            *map(radio_port, self.topology.ids("wifi")),
            *(each.name for each in self._relays),
        ]

    def _start_mininet(self) -> None:
        """Add the wired links to Mininet-WiFi's network object, and let it start hostapd."""
        from lab.engines.mininet.network.nodes import Wire

        net = self._net
        net.configureNodes()
        for each in self._trunks:
            net.addLink(each.a, each.b, cls=Wire, intfName1=each.a_port, intfName2=each.b_port)
        for wire in self._wires:
            names = {"intfName1": wire.name, "intfName2": wire.port, "addr1": wire.mac}
            net.addLink(wire.node, wire.switch, cls=Wire, **names)
        net.build()

    def _make_bridges(self) -> None:
        ports = [
            pair for each in self._trunks for pair in ((each.a, each.a_port), (each.b, each.b_port))
        ]
        ports += [(each.switch, each.port) for each in self._wires]
        ports += [(each.node, each.name) for each in self._relays]
        ports += ((ap, radio_port(ap)) for ap in self.topology.ids("wifi"))
        open_vswitch.make_bridges(self.wiring.dpid, ports)

    def target(self, ap: str) -> Target:
        """Return SSID, frequency and MAC address of `ap`, which a station needs to associate."""
        radio = self._net[ap].wintfs[0]
        return Target(ap, radio.ssid, CHANNEL_MHZ[int(radio.channel)], radio.mac)

    def _configure_host(self, host: str) -> None:
        """Configure a host: interfaces, addresses, routing tables, sysctls and MPTCP endpoints.

        If a multipath user has more addresses than the kernel's path manager supports, it gets no
        endpoints. A path manager in user space then opens its subflows.
        """
        interfaces, multipath = self.wiring.of(host), host in self.topology.multipath
        userspace = host in joins.hosts_that_need_it(self.topology, self.wiring, self._multipath)
        lines = [
            line
            for each in interfaces
            if each in self._radios
            for line in host_setup.radio_mac(each)
        ]
        lines += [*host_setup.addresses(interfaces), *host_setup.neighbours(host, self.wiring)]
        self.run(host, ["ip", "-batch", "-"], f"configure {host}", stdin=shaping.batch(lines))
        names = [each.name for each in interfaces]
        settings = host_setup.settings(names) | host_setup.unpaced_default()
        if userspace:
            settings |= userspace_path_manager.SETTING

        def enter(argv: list[str]) -> list[str]:
            return self.inside(host, argv)

        def configure() -> None:
            host_setup.write_settings(settings, enter)
            host_setup.without_offloads(names, enter)
            is_server = host in self.topology.ids("server")
            if not userspace and (multipath or is_server):
                usual: Role = "none" if is_server else "subflow"
                roles = {each: self._roles.get(each, usual) for each in interfaces}
                host_setup.endpoints(interfaces, roles, self._multipath, enter)

        netlink.inside(self.pid(host), configure)


def _position(place_m: tuple[float, float] | None) -> str:
    """Return a position (x, y) [m] in Mininet-WiFi's form "x,y,0", or "" for None."""
    return f"{place_m[0]},{place_m[1]},0" if place_m else ""


def _pair(each: Interface, pid: int) -> str:
    """Return the `ip -batch` line that makes the wired link between a switch port and a host.

    The host's end of the link is moved into the network namespace of the process `pid`.
    """
    return f"link add {each.port} type veth peer name {each.name} address {each.mac} netns {pid}"


def release_nodes(net: Any, wiring: Wiring, scratch: Path) -> None:
    """Let the nodes of a finished network run commands, and let the hosts know each other by name.

    This gives Mininet-WiFi's objects the addresses of hosts and the access points of stations. It
    writes one /etc/hosts for all hosts, as a file in the folder `scratch`.
    """
    names = scratch / "hosts"
    names.write_text(host_names(wiring))
    hosts = dict.fromkeys(each.node for each in wiring.interfaces)
    host_setup.bind_file([net[host].pid for host in hosts], names, NAMES)
    for each in wiring.interfaces:
        node = net[each.node]
        for interface in (*node.intfs.values(), *getattr(node, "wintfs", {}).values()):
            if interface.name == each.name:
                interface.ip, interface.mac = each.address, each.mac
                interface.prefixLen = interface.prefixLen or PREFIX_LENGTH
        if each.name in node.params.get("wlan", ()):
            record_in_objects(net, each.node, each.switch, each.name)
    for node in net.values():
        node.quiet = False


def host_names(wiring: Wiring) -> str:
    """Return the text of /etc/hosts for the hosts of a network.

    A host's name stands for the address of its first interface. The name of an interface, such as
    ue2-lte0, stands for the address of this interface.
    """
    lines, known = [LOOPBACK], set()
    for each in wiring.interfaces:
        names = [each.name] if each.node in known else [each.node, each.name]
        known.add(each.node)
        lines.append(" ".join([each.address, *names]))
    return "".join(f"{line}\n" for line in lines)


def record_in_objects(net: Any, station: str, ap: str, name: str = "") -> None:
    """Tell Mininet-WiFi's objects that a station is associated with an access point.

    This changes no radio. `name` is the radio interface of the station; the default is its first.
    """
    radio, air = net[station].getNameToWintf(name or f"{station}-wlan0"), net[ap].wintfs[0]
    if radio.associatedTo is not None and radio in radio.associatedTo.associatedStations:
        radio.associatedTo.associatedStations.remove(radio)
    radio.setConnected(air)
    radio.ssid, radio.channel, radio.freq = air.ssid, air.channel, air.freq
