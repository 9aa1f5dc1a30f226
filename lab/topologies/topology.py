"""Describe networks as frozen data, without input or output.

A topology has nodes, the wired links between them, and the radio cells that join users to access
points. `wire` gives every interface its name, address and switch port, the same on every machine
and in both engines.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from itertools import count
from typing import Literal

from lab.radio.cell import Cell

NodeKind = Literal["user", "server", "switch", "wifi", "lte"]
SUBNETS = {"server": "10.0.0", "wifi": "10.1.0", "lte": "10.2.0"}
SECOND_RADIO = 3  # the subnet of a user's second WiFi interface is 10.3.0
FIRST_WIRED = 16  # the subnets of a user's wired interfaces are 10.16.0, 10.17.0, ...


@dataclass(frozen=True)
class Node:
    """Describe a user, a server, a switch, or an access point, which is a switch with a radio.

    `home` is the access point or link over which a user opens its connections. `subflows` is the
    number of addresses of each interface of a user; each address is for one subflow. `server` is
    the server of a user, by default the first. `place_m` is x and y in topologies with positions; a
    user is there at the start.
    """

    id: str
    kind: NodeKind
    home: str = ""
    subflows: int = 1
    server: str = ""
    place_m: tuple[float, float] | None = None


@dataclass(frozen=True)
class Link:
    """Describe a duplex wired link.

    `delay_ns` is one way and applies in both directions. `loss_ppm` applies from `a` to `b`,
    `loss_back_ppm` from `b` to `a`. A builder sets `loss_ppm` to the loss of data and
    `loss_back_ppm` to that of the other direction; `data_directions.with_loss_on_data` turns them
    to the directions in which data travels.
    """

    id: str
    a: str
    b: str
    rate_bps: int | None = None  # counts Ethernet frames; None: not shaped
    delay_ns: int = 0
    jitter_ns: int = 0
    loss_ppm: int = 0
    loss_back_ppm: int = 0
    queue_packets: int = 100


@dataclass(frozen=True)
class Topology:
    """Hold nodes, links and cells.

    `multipath` names the users that use all their interfaces at once.

    In topologies with positions all nodes are in a square of `area_m`.
    """

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    cells: tuple[Cell, ...] = ()
    multipath: tuple[str, ...] = ()
    area_m: float = 0.0

    def ids(self, *kinds: NodeKind) -> tuple[str, ...]:
        """Return the nodes of these kinds, in the order of the topology."""
        return tuple(node.id for node in self.nodes if node.kind in kinds)

    @property
    def users(self) -> tuple[str, ...]:
        """Return the users, in the order of the topology."""
        return self.ids("user")

    @property
    def switches(self) -> tuple[str, ...]:
        """Return the switches, access points included."""
        return self.ids("switch", "wifi", "lte")

    @property
    def relays(self) -> tuple[str, ...]:
        """Return the stations that are switches."""
        return tuple(
            each.user
            for cell in self.cells
            for each in cell.stations
            if each.user not in self.users
        )

    def server_of(self, user: str) -> str:
        """Return the server of a user."""
        named = next(node.server for node in self.nodes if node.id == user)
        return named or self.ids("server")[0]

    def cell(self, ap: str) -> Cell:
        """Return the cell of an access point."""
        return next(cell for cell in self.cells if cell.ap == ap)

    def sha256(self) -> str:
        """Return a digest of everything in this topology."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Interface:
    """Describe a host's interface and the switch port at the other end.

    `link` is the id of the link, or of the access point for a radio. `further` are the addresses
    beyond the first, for users with several subflows on one interface.
    """

    node: str
    name: str
    address: str
    mac: str
    switch: str
    port: str
    link: str
    further: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trunk:
    """Describe a link between two switches, with the port at each end."""

    link: str
    a: str
    a_port: str
    b: str
    b_port: str


@dataclass(frozen=True)
class Wiring:
    """Hold the names, addresses and ports of a topology; `dpid` numbers the switches from 1."""

    interfaces: tuple[Interface, ...]
    trunks: tuple[Trunk, ...]
    dpid: dict[str, int]

    def of(self, node: str) -> tuple[Interface, ...]:
        """Return the interfaces of a host, the one over which it opens its connections first."""
        return tuple(each for each in self.interfaces if each.node == node)

    def addresses(self, node: str) -> int:
        """Count the addresses of a host: how many subflows a connection of it should have."""
        return sum(1 + len(each.further) for each in self.of(node))

    def at(self, node: str, link: str) -> Interface:
        """Return a host's interface on a link or at an access point."""
        return next(each for each in self.of(node) if each.link == link)


def wire(topology: Topology) -> Wiring:
    """Return names and addresses for every interface and port.

    A server has address 10.0.0.n. A user has 10.1.0.n on WiFi, 10.2.0.n on LTE, and 10.(16+i).0.n
    on its i-th wired link; n counts the hosts of the kind from 1. All WiFi access points share one
    subnet, so that a handover keeps the address; a second WiFi radio has 10.3.0.n. A user's further
    addresses on an interface are n + N, n + 2N, ... in the same subnet, with N the number of users.
    Ports have Mininet's names: `s1-eth1`, and `wifi1-wlan1` for a radio.
    """
    names = _Names(topology)
    for link in topology.links:
        names.add_link(link)
    for cell in topology.cells:
        names.add_cell(cell)
    order = {node.id: (position, node.home) for position, node in enumerate(topology.nodes)}
    interfaces = sorted(
        names.interfaces,
        key=lambda each: (order[each.node][0], each.link != order[each.node][1], each.address),
    )
    dpid = {switch: n for n, switch in enumerate(topology.switches, 1)}
    return Wiring(tuple(interfaces), tuple(names.trunks), dpid)


class _Names:
    """Name interfaces and ports in the order of the links and cells."""

    def __init__(self, topology: Topology) -> None:
        self.interfaces: list[Interface] = []
        self.trunks: list[Trunk] = []
        self.users = len(topology.users)
        self.hosts = {
            node.id: node.kind for node in topology.nodes if node.kind in ("user", "server")
        }
        self.number = {user: n for n, user in enumerate(topology.users, 1)}
        self.number |= {server: n for n, server in enumerate(topology.ids("server"), 1)}
        self.subflows = {node.id: node.subflows for node in topology.nodes}
        self.next_port = {node.id: count(1) for node in topology.nodes}
        self.next_wired = {user: count(FIRST_WIRED) for user in topology.users}
        self.next_radio = {user: count(0) for user in topology.users}

    def add_link(self, link: Link) -> None:
        ends = [end for end in (link.a, link.b) if end in self.hosts]
        if not ends:
            ports = self._port(link.a), self._port(link.b)
            self.trunks.append(Trunk(link.id, link.a, ports[0], link.b, ports[1]))
            return
        host = ends[0]
        switch = link.b if host == link.a else link.a
        server = self.hosts[host] == "server"
        subnet = SUBNETS["server"] if server else f"10.{next(self.next_wired[host])}.0"
        self._attach(host, subnet, self._port(host), switch, self._port(switch), link.id)

    def add_cell(self, cell: Cell) -> None:
        ap = cell.ap
        for user in (each.user for each in cell.stations if each.user in self.hosts):
            if cell.kind == "lte":
                self._attach(user, SUBNETS["lte"], f"{user}-lte0", ap, self._port(ap), ap)
                continue
            radio = next(self.next_radio[user])
            subnet = SUBNETS["wifi"] if radio == 0 else f"10.{SECOND_RADIO + radio - 1}.0"
            self._attach(user, subnet, f"{user}-wlan{radio}", ap, f"{ap}-wlan1", ap)

    def _port(self, node: str) -> str:
        return f"{node}-eth{next(self.next_port[node])}"

    def _attach(
        self, host: str, subnet: str, name: str, switch: str, switch_port: str, link: str
    ) -> None:
        number = self.number[host]
        address = f"{subnet}.{number}"
        mac = "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))
        further = tuple(
            f"{subnet}.{number + k * self.users}" for k in range(1, self.subflows[host])
        )
        self.interfaces.append(
            Interface(host, name, address, mac, switch, switch_port, link, further)
        )
