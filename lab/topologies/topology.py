"""Networks as frozen data: nodes, the wired links between them, and the radio cells that join users
to access points.

`wire` gives every interface a name, an address and a switch port. The result is the same on every
machine and in both engines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Literal

from lab.radio.cell import Cell

# Interfaces and switch ports, which `wire` assigns


@dataclass(frozen=True)
class Interface:
    """An interface of a host, and the switch and port to which it is connected.

    `node` is the id of the host. `link` is the id of the wired link or, for a radio, of the access
    point. `further` has the other addresses of an interface with one address per subflow.
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
    """A link between two switches, with the name of the port at each end.

    If `radio` is True, the link is the radio channel between an access point and a relay, a switch
    that is a station of its WiFi cell. Its ports are then radios, not ends of a wire.
    """

    link: str
    a: str
    a_port: str
    b: str
    b_port: str
    radio: bool = False


@dataclass(frozen=True)
class Wiring:
    """All interfaces of hosts, and all links between switches with their ports.

    `dpid` maps each switch to its OpenFlow datapath id, counted from 1. A relay is a switch that is
    a station of a radio cell. `relays` has an entry for each cell of each relay: `node` is the
    relay, and `name` is its port to the access point. The addresses of the entry are those of the
    first host behind the relay, empty if there is none.
    """

    interfaces: tuple[Interface, ...]
    trunks: tuple[Trunk, ...]
    dpid: dict[str, int]
    relays: tuple[Interface, ...] = ()

    def of(self, node: str) -> tuple[Interface, ...]:
        """Return the interfaces of a host, the one over which it opens its connections first."""
        return tuple(each for each in self.interfaces if each.node == node)

    def addresses(self, node: str) -> int:
        """Return how many addresses a host has, that is, how many subflows its connections should
        have."""
        return sum(1 + len(each.further) for each in self.of(node))

    def at(self, node: str, link: str) -> Interface:
        """Return the interface of a host on this link, or of a relay in this cell. For a radio and
        for a relay, `link` is the access point's id."""
        own = (*self.of(node), *(each for each in self.relays if each.node == node))
        return next(each for each in own if each.link == link)

    def hosts_behind(self, switch: str) -> tuple[Interface, ...]:
        return tuple(each for each in self.interfaces if each.switch == switch)

    def handed_over(self, user: str, old: str, new: str) -> Wiring:
        """Return the wiring after a user has moved its radio from access point `old` to `new`. The
        interface keeps its name and its addresses."""
        interface = self.at(user, old)
        moved = replace(interface, switch=new, port=radio_port(new), link=new)
        interfaces = tuple(moved if each is interface else each for each in self.interfaces)
        return replace(self, interfaces=interfaces)


def radio_port(ap: str) -> str:
    """Return the name of a WiFi access point's radio, which is a port of its switch."""
    return f"{ap}-wlan1"


def link_delay_ns(link: Link, cells: Iterable[Cell]) -> tuple[int, int]:
    """Return the one-way delay and the jitter of a wired link, including those of a radio cell at
    one of its ends.

    The delay of a cell lies between its access point and the core. It is therefore added to each
    wired link of the access point, except a link to a relay. A relay is a switch that is a station
    of the cell: its link stands for the radio channel, and both values are 0. Both engines and
    topology.json use these values.
    """
    here = [cell for cell in cells if cell.ap in (link.a, link.b)]
    if any(station.user in (link.a, link.b) for cell in here for station in cell.stations):
        return 0, 0
    return (
        link.delay_ns + sum(cell.delay_ns for cell in here),
        link.jitter_ns + sum(cell.jitter_ns for cell in here),
    )


__all__ = ["Interface", "Link", "Node", "Topology", "Trunk", "Wiring", "radio_port", "wire"]

NodeKind = Literal["user", "server", "switch", "wifi", "lte"]
SUBNETS = {"server": "10.0.0", "wifi": "10.1.0", "lte": "10.2.0"}
SECOND_RADIO = 3  # the subnet of a user's second WiFi interface is 10.3.0
FIRST_WIRED = 16  # the subnets of a user's wired interfaces are 10.16.0, 10.17.0, ...


@dataclass(frozen=True)
class Node:
    """A user, a server, a switch, or an access point (a switch with a radio).

    `home`, `subflows` and `server` are for users. `home` is the access point or link over which a
    user opens its connections. `subflows` is the number of addresses of each interface, one for
    each subflow. `server` is the server of the user; empty for the first server of the topology.

    `place_m` is the position (x, y) in topologies with positions; a user may move from there.
    """

    id: str
    kind: NodeKind
    home: str = ""
    subflows: int = 1
    server: str = ""
    place_m: tuple[float, float] | None = None


@dataclass(frozen=True)
class Link:
    """A wired link, which carries packets in both directions at once.

    `delay_ns` is one way and the same in both directions. `loss_ppm` applies from `a` to `b`,
    `loss_back_ppm` from `b` to `a`. A topology builder does not know where data travels: it sets
    `loss_ppm` to the loss of data and `loss_back_ppm` to the loss of the opposite direction.
    `data_directions.with_loss_on_data` then assigns the two values to the right directions.
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
    """The nodes, links and cells of a network.

    `multipath` names the users that send over all their interfaces at the same time. In topologies
    with positions, all nodes are in a square with a side of `area_m`.
    """

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    cells: tuple[Cell, ...] = ()
    multipath: tuple[str, ...] = ()
    area_m: float = 0.0

    def ids(self, *kinds: NodeKind) -> tuple[str, ...]:
        """Return the ids of the nodes of these kinds, in the order of `nodes`."""
        return tuple(node.id for node in self.nodes if node.kind in kinds)

    @property
    def users(self) -> tuple[str, ...]:
        return self.ids("user")

    @property
    def switches(self) -> tuple[str, ...]:
        """The ids of the switches, access points included."""
        return self.ids("switch", "wifi", "lte")

    @property
    def relays(self) -> tuple[str, ...]:
        """The ids of the relays: switches that are stations of a radio cell."""
        return tuple(
            each.user
            for cell in self.cells
            for each in cell.stations
            if each.user not in self.users
        )

    def server_of(self, user: str) -> str:
        """Return the id of the user's server: the one in the user's node or, if that is empty, the
        first server of the topology."""
        named = next(node.server for node in self.nodes if node.id == user)
        return named or self.ids("server")[0]

    def cell(self, ap: str) -> Cell:
        return next(cell for cell in self.cells if cell.ap == ap)

    def sha256(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def wire(topology: Topology) -> Wiring:
    """Assign names, addresses and ports to all interfaces of a topology.

    Servers and users are each counted from 1, and n is the number of a host. A server has address
    10.0.0.n. A user has 10.1.0.n on WiFi, 10.2.0.n on LTE, and 10.(16+i).0.n on its wired link i,
    where i counts from 0. All WiFi access points share one subnet, so that a handover keeps the
    address; a second WiFi radio has 10.3.0.n. If a user has several addresses on an interface, the
    further ones are n + N, n + 2N, ... in the same subnet, where N is the number of users.

    Interfaces have Mininet's names: `s1-eth1`, and `wifi1-wlan1` for a radio. A relay's radio is
    called `n1-wlan0`.
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
    wiring = Wiring(tuple(interfaces), tuple(names.trunks), dpid)
    relays = [_relay(wiring, each, topology) for each in names.trunks]
    return replace(wiring, relays=tuple(each for each in relays if each))


def _relay(wiring: Wiring, trunk: Trunk, topology: Topology) -> Interface | None:
    """Return the entry of `Wiring.relays` for a link to a relay, a switch that is a station of a
    radio cell; None if the link leads to no relay."""
    near, far = (trunk.a, trunk.a_port), (trunk.b, trunk.b_port)
    for (relay, port), (ap, ap_port) in ((near, far), (far, near)):
        if (ap, relay) in _stations(topology):
            behind = wiring.hosts_behind(relay)
            address, mac, further = (
                (behind[0].address, behind[0].mac, behind[0].further) if behind else ("", "", ())
            )
            return Interface(relay, port, address, mac, ap, ap_port, ap, further)
    return None


def _stations(topology: Topology) -> set[tuple[str, str]]:
    return {(cell.ap, station.user) for cell in topology.cells for station in cell.stations}


class _Names:
    """Assigns names, addresses and ports, by counting the links and cells of each node in order."""

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
        self.next_radio = {node.id: count(0) for node in topology.nodes}
        self.aps = topology.ids("wifi")
        self.on_the_air = {
            frozenset((ap, station)) for ap, station in _stations(topology) if ap in self.aps
        }

    def add_link(self, link: Link) -> None:
        ends = [end for end in (link.a, link.b) if end in self.hosts]
        if not ends:
            radio = frozenset((link.a, link.b)) in self.on_the_air
            name = self._radio if radio else self._port
            ports = name(link.a), name(link.b)
            self.trunks.append(Trunk(link.id, link.a, ports[0], link.b, ports[1], radio))
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
            self._attach(user, subnet, f"{user}-wlan{radio}", ap, radio_port(ap), ap)

    def _port(self, node: str) -> str:
        return f"{node}-eth{next(self.next_port[node])}"

    def _radio(self, node: str) -> str:
        """Return the name of an access point's only radio, or of the next radio of a relay."""
        return radio_port(node) if node in self.aps else f"{node}-wlan{next(self.next_radio[node])}"

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
