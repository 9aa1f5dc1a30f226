"""What a network is made of: frozen data, no input or output.

A topology names nodes, the wired links between them and the radio cells that join users to access
points. `wire` gives every interface its name, address and switch port, the same on every machine
and in both engines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from typing import Literal

from lab.errors import RequestError, unknown
from lab.radio.signal import Radio

NodeKind = Literal["user", "server", "switch", "wifi", "lte"]
SUBNETS = {
    "server": "10.0.0",
    "wifi": "10.1.0",
    "lte": "10.2.0",
}  # wired user interfaces take 10.16.0, 10.17.0, ...
SECOND_RADIO = 3  # a user's second WiFi interface takes 10.3.0


@dataclass(frozen=True)
class Node:
    """A user, a server, a switch, or an access point (`wifi` or `lte`), which is a switch with a radio.

    `home` is the access point or link over which a user opens its connections. `subflows` is how
    many addresses each of a user's interfaces has: a path of its own for every one. `server` is
    whom a user talks to, by default the first. `place_m` is x and y, for topologies with positions:
    of a user, where it is at first.
    """

    id: str
    kind: NodeKind
    home: str = ""
    subflows: int = 1
    server: str = ""
    place_m: tuple[float, float] | None = None


@dataclass(frozen=True)
class Link:
    """A duplex wired link. `delay_ns` is one way and applies in both directions; `loss_ppm` from `a` to `b` only."""

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
class Station:
    """One user's radio connection: its rate when alone on the cell, and its LTE resource weight (eq (3) of MP-SDN).

    `overhead` is the part of a full frame's time on the air that a shorter frame takes as well. A
    station may also be a switch, joined to the access point by a link without a shape: a relay, for
    hosts that do not end at the cell. `delay_ns`, one way, is of LTE only.
    """

    user: str
    rate_bps: int
    weight: float = 1.0
    overhead: float = 0.0
    rssi_dbm: float | None = None
    delay_ns: int = 0


@dataclass(frozen=True)
class Cell:
    """The air of one access point, shared by its stations; `delay_ns` and `jitter_ns` are one way, between AP and core.

    WiFi: with `collisions` every frame is sent as often as its contenders make it; `loss_ppm` is
    lost besides, both ways. `medium` is the access point on the same channel whose air this one
    uses too. `radio` says what users get where they are: stations of cells with a radio can move,
    and from one WiFi cell to the next.
    """

    ap: str
    kind: Literal["wifi", "lte"]
    stations: tuple[Station, ...]
    queue_packets: int = 150
    delay_ns: int = 0
    jitter_ns: int = 0
    collisions: bool = False
    loss_ppm: int = 0
    medium: str = ""
    radio: Radio | None = None
    best_bps: int = 0

    @property
    def capacity_bps(self) -> int:
        """The most the cell can carry: the rate of its best station alone, or where users move, of the best there can be."""
        return self.best_bps or max((station.rate_bps for station in self.stations), default=0)


@dataclass(frozen=True)
class Topology:
    """Nodes, links and cells; `multipath` names the users that use all their interfaces at once. With positions all are in a
    square of `area_m`."""

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    cells: tuple[Cell, ...] = ()
    multipath: tuple[str, ...] = ()
    area_m: float = 0.0

    def ids(self, *kinds: NodeKind) -> tuple[str, ...]:
        """The nodes of these kinds, in the order of the topology."""
        return tuple(node.id for node in self.nodes if node.kind in kinds)

    @property
    def users(self) -> tuple[str, ...]:
        return self.ids("user")

    @property
    def switches(self) -> tuple[str, ...]:
        return self.ids("switch", "wifi", "lte")

    @property
    def relays(self) -> tuple[str, ...]:
        """Stations that are switches."""
        return tuple(
            each.user
            for cell in self.cells
            for each in cell.stations
            if each.user not in self.users
        )

    def server_of(self, user: str) -> str:
        """The server a user talks to."""
        named = next(node.server for node in self.nodes if node.id == user)
        return named or self.ids("server")[0]

    def cell(self, ap: str) -> Cell:
        return next(cell for cell in self.cells if cell.ap == ap)

    def sha256(self) -> str:
        """A digest that names this very network."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Interface:
    """A host's interface and the switch port it ends at. `link` is a link's id, or the access point's for a radio.

    `further` are the addresses beyond the first, for users with several subflows on one interface.
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
    """A link between two switches, with the port at each end."""

    link: str
    a: str
    a_port: str
    b: str
    b_port: str


@dataclass(frozen=True)
class Wiring:
    """Names, addresses and ports of a topology. `dpid` numbers the switches from 1."""

    interfaces: tuple[Interface, ...]
    trunks: tuple[Trunk, ...]
    dpid: dict[str, int]

    def of(self, node: str) -> tuple[Interface, ...]:
        """The interfaces of a host; the first is the one over which it opens its connections."""
        return tuple(each for each in self.interfaces if each.node == node)

    def at(self, node: str, link: str) -> Interface:
        """A host's interface on a link or access point."""
        return next(each for each in self.of(node) if each.link == link)


def wire(topology: Topology) -> Wiring:
    """Name every interface and port.

    A server's address is 10.0.0.n, a user's 10.1.0.n on WiFi (one subnet for all access points, so
    that a handover keeps the address; 10.3.0.n where it has a second radio), 10.2.0.n on LTE,
    10.(16+i).0.n on its i-th wired link; n counts the hosts of the kind from 1. A user's further
    addresses on an interface are n + N, n + 2N, ... in the same subnet, with N the number of users.
    Ports are called as Mininet calls them: `s1-eth1`, and `wifi1-wlan1` for an access point's
    radio.
    """
    hosts = {node.id: node.kind for node in topology.nodes if node.kind in ("user", "server")}
    number = {user: n for n, user in enumerate(topology.users, 1)}
    number |= {server: n for n, server in enumerate(topology.ids("server"), 1)}
    subflows = {node.id: node.subflows for node in topology.nodes}
    next_port = {node.id: count(1) for node in topology.nodes}
    next_wired = {user: count(16) for user in topology.users}
    next_radio = {user: count(0) for user in topology.users}
    interfaces, trunks = [], []

    def port(node: str) -> str:
        return f"{node}-eth{next(next_port[node])}"

    def attach(host: str, subnet: str, name: str, switch: str, switch_port: str, link: str) -> None:
        address = f"{subnet}.{number[host]}"
        mac = "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))
        further = tuple(
            f"{subnet}.{number[host] + k * len(topology.users)}" for k in range(1, subflows[host])
        )
        interfaces.append(Interface(host, name, address, mac, switch, switch_port, link, further))

    for link in topology.links:
        ends = [end for end in (link.a, link.b) if end in hosts]
        if not ends:
            trunks.append(Trunk(link.id, link.a, port(link.a), link.b, port(link.b)))
            continue
        host = ends[0]
        switch = link.b if host == link.a else link.a
        subnet = SUBNETS["server"] if hosts[host] == "server" else f"10.{next(next_wired[host])}.0"
        attach(host, subnet, port(host), switch, port(switch), link.id)
    for cell in topology.cells:
        for user in (each.user for each in cell.stations if each.user in hosts):
            if cell.kind == "lte":
                attach(user, SUBNETS["lte"], f"{user}-lte0", cell.ap, port(cell.ap), cell.ap)
                continue
            radio = next(next_radio[user])
            subnet = SUBNETS["wifi"] if radio == 0 else f"10.{SECOND_RADIO + radio - 1}.0"
            attach(user, subnet, f"{user}-wlan{radio}", cell.ap, f"{cell.ap}-wlan1", cell.ap)
    order = {node.id: (position, node.home) for position, node in enumerate(topology.nodes)}
    interfaces.sort(
        key=lambda each: (order[each.node][0], each.link != order[each.node][1], each.address)
    )
    return Wiring(
        tuple(interfaces),
        tuple(trunks),
        {switch: n for n, switch in enumerate(topology.switches, 1)},
    )


def check(topology: Topology) -> Topology:
    """The topology itself, or one `RequestError` that names what cannot be built."""
    for problem in _problems(topology):
        raise RequestError(f"topology {topology.name}: {problem}")
    return topology


def _problems(topology: Topology) -> Iterator[str]:
    ids = [node.id for node in topology.nodes]
    for node in topology.nodes:
        if ids.count(node.id) > 1:
            yield f"two nodes are called '{node.id}': give each a name of its own"
        if not (node.id.isalnum() and node.id[0].isalpha() and len(node.id) <= 9):
            yield f"'{node.id}' cannot name an interface: use a letter and then letters or digits, 9 at most"
    for link in topology.links:
        for end in (link.a, link.b):
            if end not in ids:
                yield f"link '{link.id}' ends at '{end}', which is no node: choose from {', '.join(ids)}"
    for cell in topology.cells:
        if cell.medium and cell.medium not in (
            each.ap for each in topology.cells if each.kind == "wifi" == cell.kind
        ):
            yield f"'{cell.ap}' shares the air of '{cell.medium}', which is no other WiFi access point"
        if cell.kind == "wifi" and any(each.delay_ns for each in cell.stations):
            yield f"a station of '{cell.ap}' has a delay, which is of LTE only: give it to the cell"
    for user in topology.multipath:
        if user not in topology.users:
            yield f"multipath user {unknown(user, topology.users)}"
    if len(topology.users) * max((node.subflows for node in topology.nodes), default=1) > 250:
        yield "its users need more than the 250 addresses of a subnet: take fewer users or fewer subflows"
    servers = topology.ids("server")
    if not servers:
        yield "it has no server: add one"
    for node in topology.nodes:
        if node.server and node.server not in servers:
            yield f"user '{node.id}' talks to '{node.server}', which is no server: choose from {', '.join(servers)}"
    for server in servers:
        links = sum(server in (link.a, link.b) for link in topology.links)
        if links != 1:
            yield f"server '{server}' has {links} links and one address: give it one link, to a switch that has more"
