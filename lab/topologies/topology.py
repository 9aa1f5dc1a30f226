"""Networks as immutable data: nodes, the wired links between them, and the radio cells that connect
users to access points.

`wire` gives every interface a name, an address and a switch port. They are the same on every
machine and in both engines. `with_loss_on_data` applies the loss of each link to the directions in
which data travels. `as_json` returns the content of topology.json, the file that the controller
reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any, Literal

from controller import units
from controller.paths import hops_to
from lab.radio.cell import Cell, Station, Towards
from lab.topologies.bursts import Bursts
from lab.topologies.queues import FIFO, Discipline
from lab.topologies.trace import Traced, TraceStep

NodeKind = Literal["user", "server", "switch", "wifi", "lte"]
Direction = Literal["ab", "ba"]  # of a link: from its end `a` to its end `b`, or back
Directions = frozenset[Direction]
BOTH: Directions = frozenset(("ab", "ba"))
SUBNETS = {"wifi": "10.1.0", "lte": "10.2.0"}
SECOND_RADIO = 3  # the subnet of a user's second WiFi interface is 10.3.0
FIRST_WIRED = 16  # the subnets of a user's wired interfaces are 10.16.0, 10.17.0, ...


@dataclass(frozen=True)
class Node:
    """A user, a server, a switch, or an access point (a switch with a radio).

    `home`, `subflows` and `server` are only for users. `home` is the access point or link over
    which a user opens connections. `subflows` is the number of addresses of each interface: every
    subflow has its own. `server` is the id of the user's server; if it is empty, the first server
    of the topology is used.

    `place_m` is the position (x, y) at the start of a run, in m. It is None in topologies without
    positions.
    """

    id: str
    kind: NodeKind
    home: str = ""
    subflows: int = 1
    server: str = ""
    place_m: tuple[float, float] | None = None


@dataclass(frozen=True)
class OneWay:
    """What one direction of a link has of its own. None: what the link has."""

    rate_bps: int | None = None
    delay_ns: int | None = None
    loss_ppm: int | None = None
    queue_packets: int | None = None
    discipline: Discipline | None = None
    bursts: Bursts | None = None
    reorder_ppm: int | None = None
    duplicate_ppm: int | None = None


AS_THE_LINK = OneWay()


@dataclass(frozen=True)
class Bearer:
    """What one direction of an LTE station has of its own: its queue, its losses, and a delay
    beside that of the cell."""

    ap: str
    user: str
    towards: Towards
    own: OneWay


@dataclass(frozen=True)
class Link:
    """A wired link, which carries packets in both directions at once.

    `delay_ns` is the one-way delay. The losses are in millionths. After `with_loss_on_data` was
    called, `loss_ppm` is the loss from `a` to `b`, and `loss_back_ppm` the loss from `b` to `a`.

    Before that, `loss_ppm` is the loss of data, and `loss_back_ppm` the loss in the opposite
    direction: the function that builds a topology does not know yet in which direction data will
    travel.

    `words` say where the link is, if its id does not, such as `core 4 to pod 1`. `ab` and `ba` are
    what the directions from `a` to `b` and back have of their own.

    `bursts` is how data is lost if not each packet independently; `loss_ppm` is then the mean.
    After `with_loss_on_data`, only directions have bursts. `reorder_ppm` of the packets skip the
    delay, and `duplicate_ppm` arrive twice, in both directions.
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
    words: str = ""
    discipline: Discipline = FIFO
    bursts: Bursts | None = None
    reorder_ppm: int = 0
    duplicate_ppm: int = 0
    ab: OneWay = AS_THE_LINK
    ba: OneWay = AS_THE_LINK

    def own(self, side: Direction) -> OneWay:
        return self.ab if side == "ab" else self.ba

    def without_own(self, value: str) -> Directions:
        """Return the directions that have this value from the link."""
        return frozenset(side for side in BOTH if getattr(self.own(side), value) is None)

    def way(self, side: Direction) -> Link:
        """Return a link that has the values of one direction in both."""
        loss_ppm = self.loss_ppm if side == "ab" else self.loss_back_ppm
        own = {key: value for key, value in vars(self.own(side)).items() if value is not None}
        values = {"loss_ppm": loss_ppm, **own}
        back_ppm = values["loss_ppm"]
        return replace(self, **values, loss_back_ppm=back_ppm, ab=AS_THE_LINK, ba=AS_THE_LINK)

    def changed(self, sides: Directions, **values: Any) -> Link:
        """Return the link with new values in these directions, such as `rate_bps=1_000_000`."""
        if sides == BOTH:
            none = dict.fromkeys(values)
            return replace(self, **values, ab=replace(self.ab, **none), ba=replace(self.ba, **none))
        own: dict[str, Any] = {each: replace(self.own(each), **values) for each in sides}
        return replace(self, **own)


@dataclass(frozen=True)
class Topology:
    """The nodes, links and cells of a network.

    `multipath` names the users that send over all their interfaces at the same time. `area_m` is
    the side of the square that contains all nodes. It is 0 in topologies without positions.
    `traces` are the links and stations that follow a trace; they begin with its first values.
    `bearers` are the directions of LTE stations that have something of their own.
    """

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    cells: tuple[Cell, ...] = ()
    multipath: tuple[str, ...] = ()
    area_m: float = 0.0
    traces: tuple[Traced, ...] = ()
    bearers: tuple[Bearer, ...] = ()

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
        """The ids of the relays. A relay is a switch that is a station of a radio cell."""
        return tuple(
            each.user
            for cell in self.cells
            for each in cell.stations
            if each.user not in self.users
        )

    @property
    def sampled_links(self) -> tuple[Link, ...]:
        """The links that are measured in the samples of both engines: those between two switches.

        The links of hosts are left out, because they never have a queue (`kernel/shaping.py`). The
        links of relays are left out, because they stand for radio channels.
        """
        ends = {*self.ids("user", "server"), *self.relays}
        return tuple(link for link in self.links if not {link.a, link.b} & ends)

    def server_of(self, user: str) -> str:
        """Return the id of the user's server. If the user's node names none, this is the first
        server of the topology."""
        named = next(node.server for node in self.nodes if node.id == user)
        return named or self.ids("server")[0]

    def cell(self, ap: str) -> Cell:
        return next(cell for cell in self.cells if cell.ap == ap)

    def bearer(self, cell: Cell, station: Station, towards: Towards) -> OneWay:
        """Return rate, delay, losses and queue of one direction of a station of an LTE cell. The
        delay is beside that of the cell."""
        place = (cell.ap, station.user, towards)
        found = (each.own for each in self.bearers if (each.ap, each.user, each.towards) == place)
        own = next(found, AS_THE_LINK)
        return OneWay(
            station.way(towards).rate_bps,
            station.delay_ns if own.delay_ns is None else own.delay_ns,
            own.loss_ppm or 0,
            own.queue_packets or cell.queue_packets,
            own.discipline or FIFO,
            own.bursts,
        )

    def sha256(self) -> str:
        """Return the digest of the network at the start. Traces have digests of their own."""
        network = {key: value for key, value in asdict(self).items() if key != "traces"}
        for each in (*network["links"], *network["bearers"]):
            _leave_out_step(each)
        for link, own in zip(network["links"], self.links, strict=True):
            del link["words"]  # another text is no other network
            for way in (link["ab"], link["ba"]):
                for key in LATER_KEYS & {key for key in way if way[key] is None}:
                    del way[key]
            for key, usual in USUAL.items():
                if getattr(own, key) == usual:
                    del link[key]
        if not self.bearers:
            del network["bearers"]
        for cell in network["cells"]:
            for station in cell["stations"]:
                if station["up_bps"] is None:
                    del station["up_bps"]
            if cell["air"] != "dcf":
                del cell["standard"], cell["rate_scale"]
        return hashlib.sha256(json.dumps(network, sort_keys=True).encode()).hexdigest()


def _leave_out_step(data: dict[str, Any]) -> None:
    """Leave out that RED queues are no steps: older networks do not say so."""
    for key, each in list(data.items()):
        if isinstance(each, dict):
            _leave_out_step(each)
        elif key == "mark_packets" and each is None:
            del data[key]


# what links got later, and its usual values: a network without it keeps its digest
LATER_KEYS = {"bursts", "reorder_ppm", "duplicate_ppm"}
USUAL: dict[str, Any] = {
    "ab": AS_THE_LINK,
    "ba": AS_THE_LINK,
    "discipline": FIFO,
    "bursts": None,
    "reorder_ppm": 0,
    "duplicate_ppm": 0,
}


def at_start(link: Link, step: TraceStep, rate_scale: float) -> Link:
    """Return a link with the values of the first step of its trace. As for every link at this time,
    the loss is that of data."""
    rate_bps = step.rate_bps(rate_scale)
    return replace(
        link,
        rate_bps=link.rate_bps if rate_bps is None else rate_bps,
        delay_ns=link.delay_ns if step.delay_ms is None else units.ns_from_ms(step.delay_ms),
        loss_ppm=link.loss_ppm if step.loss is None else units.ppm_from_fraction(step.loss),
    )


# Interfaces and switch ports, which `wire` assigns


@dataclass(frozen=True)
class Interface:
    """A network interface of a host, and the switch and port to which it is connected.

    `node` is the id of the host. `link` is the id of the wired link or, for a radio, the id of the
    access point. `further` has the other addresses if the interface has more than one.
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

    If `radio` is True, the link stands for the radio channel between an access point and a relay. A
    relay is a switch that is a station of the access point's cell. The ports at both ends are then
    radios.
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

    `dpid` maps each switch to its OpenFlow datapath id, counted from 1.

    A relay is a switch that is a station of a radio cell. `relays` has one entry for each relay and
    cell. In this entry, `node` is the relay, and `name` is its port to the access point. The
    addresses are those of the first host behind the relay, or empty if there is no host.
    """

    interfaces: tuple[Interface, ...]
    trunks: tuple[Trunk, ...]
    dpid: dict[str, int]
    relays: tuple[Interface, ...] = ()

    def of(self, node: str) -> tuple[Interface, ...]:
        """Return the interfaces of a host. The host opens its connections over the first one."""
        return tuple(each for each in self.interfaces if each.node == node)

    def addresses(self, node: str) -> int:
        """Return how many addresses a host has.

        A connection of a multipath user should have one subflow per address.
        """
        return sum(1 + len(each.further) for each in self.of(node))

    def at(self, node: str, link: str) -> Interface:
        """Return the interface of the host `node`, or the entry of the relay `node` in `relays`.

        `link` is the id of the wired link. For a radio or a relay it is the id of the access point.
        """
        own = (*self.of(node), *(each for each in self.relays if each.node == node))
        return next(each for each in own if each.link == link)

    def hosts_behind(self, switch: str) -> tuple[Interface, ...]:
        return tuple(each for each in self.interfaces if each.switch == switch)

    def handed_over(self, user: str, old: str, new: str) -> Wiring:
        """Return the wiring after a user has moved its radio from access point `old` to `new`. The
        radio keeps its name and its addresses."""
        interface = self.at(user, old)
        moved = replace(interface, switch=new, port=radio_port(new), link=new)
        interfaces = tuple(moved if each is interface else each for each in self.interfaces)
        return replace(self, interfaces=interfaces)


def radio_port(ap: str) -> str:
    """Return the name of a WiFi access point's radio, which is a port of the access point's
    switch."""
    return f"{ap}-wlan1"


def link_delay_ns(link: Link, cells: Iterable[Cell]) -> tuple[int, int]:
    """Return the one-way delay and the jitter of a wired link, including those of a radio cell at
    one of its ends.

    The delay of a cell lies between its access point and the rest of the network. It is therefore
    added to each wired link of the access point. An exception is a link to a relay, a switch that
    is a station of the cell. This link stands for the radio channel, and both values are 0. Both
    engines and topology.json use these values.
    """
    here = [cell for cell in cells if cell.ap in (link.a, link.b)]
    if any(station.user in (link.a, link.b) for cell in here for station in cell.stations):
        return 0, 0
    return (
        link.delay_ns + sum(cell.delay_ns for cell in here),
        link.jitter_ns + sum(cell.jitter_ns for cell in here),
    )


def wire(topology: Topology) -> Wiring:
    """Assign names, addresses and ports to all interfaces of a topology.

    Servers and users are each counted from 1. A host with number n has these addresses:
    - a server: 10.0.0.n, and 10.0.i.n on its further link number i
    - a user on WiFi: 10.1.0.n, and 10.3.0.n with its second radio
    - a user on LTE: 10.2.0.n
    - a user on a wired link: 10.(16+i).0.n on link number i of the user, counted from 0

    All WiFi access points share one subnet, so that a handover keeps the address. If a user has
    several addresses on an interface, the further ones end with n + N, n + 2N, ..., where N is the
    number of users.

    Interfaces have Mininet's names: `s1-eth1`, and `wifi1-wlan1` for a radio. The radio of a switch
    that is a WiFi station is called `n1-wlan0`.
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
    """Return the entry of `Wiring.relays` for a link, or None if the link leads to no relay. A
    relay is a switch that is a station of a radio cell."""
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
    """Assigns names, addresses and ports.

    Interfaces and ports are numbered separately at each node, in the order of links and cells.
    """

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
        self.next_wired |= {server: count(0) for server in topology.ids("server")}
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
        number = next(self.next_wired[host])
        subnet = f"10.0.{number}" if server else f"10.{number}.0"
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
        """Return a name for a radio of `node`.

        An access point has only one radio, so its name is always the same. Any other node gets the
        name of its next radio.
        """
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


# In which directions of each link the data of a scenario travels: `loss` acts there
#
# A link has two directions: "ab" from its end `a` to its end `b`, and "ba" back. The function that
# builds a topology does not know in which direction data will travel. It sets a link's `loss_ppm`
# to the loss in the direction of data, and `loss_back_ppm` to the loss in the opposite direction.
# `with_loss_on_data` then assigns both values to the directions in which the scenario's data
# really travels.
#
# Only shortest paths between the server of a flow and each interface of its user count. The
# network hashes flows to these paths, and every strategy prefers them. Longer paths do not count,
# although the strategy `expected_throughput` may choose one: in a mesh such as a fat tree, longer
# paths cross nearly every link in both directions, so that `loss` would act on the
# acknowledgements too. If a link is on no shortest path, both of its directions count as
# directions of data: data takes the link only on a detour, which may cross it either way.


Step = tuple[str, str]  # two neighbouring nodes, in the direction of the data


def data_directions(topology: Topology, flows: Iterable[tuple[str, str]]) -> dict[str, Directions]:
    """Map the id of each link to the directions in which data can cross the link. "ab" is the
    direction from end `a` to end `b`, and "ba" is the opposite one.

    Each of `flows` is a user and the direction of the user's data, "down" (to the user) or "up". A
    link that is on no shortest path of these flows gets both directions.
    """
    wiring = wire(topology)
    near = neighbours(wiring)
    crossed: set[Step] = set()
    for user, direction in dict.fromkeys(flows):
        for step in _steps_down(topology, wiring, near, user):
            crossed.add(step if direction == "down" else step[::-1])
    return {link.id: _directions(link, crossed) or BOTH for link in topology.links}


def with_loss(
    link: Link, directions: Directions, loss_ppm: int, bursts: Bursts | None = None
) -> Link:
    """Return the link with the loss `loss_ppm`, perhaps in bursts, in the given directions. The
    other directions keep their loss."""
    ab, ba = (
        replace(own, bursts=bursts) if side in directions else own
        for side, own in (("ab", link.ab), ("ba", link.ba))
    )
    return replace(
        link,
        loss_ppm=loss_ppm if "ab" in directions else link.loss_ppm,
        loss_back_ppm=loss_ppm if "ba" in directions else link.loss_back_ppm,
        ab=ab,
        ba=ba,
    )


def with_loss_on_data(topology: Topology, flows: Iterable[tuple[str, str]]) -> Topology:
    """Return the topology with the loss of each link in the directions in which data travels.

    Each of `flows` is a user and the direction of the user's data, "down" (to the user) or "up".
    Call this only once for a topology. In the topology given, `loss_ppm` of a link must be the loss
    of data, and `loss_back_ppm` the loss in the opposite direction.
    """
    is_settled = all(
        link.loss_ppm == link.loss_back_ppm
        and link.bursts is None
        and link.without_own("loss_ppm") == BOTH
        for link in topology.links
    )
    if is_settled:
        return topology
    directions = data_directions(topology, flows)
    links = (_with_loss_on_data(link, directions[link.id]) for link in topology.links)
    return replace(topology, links=tuple(links))


def _with_loss_on_data(link: Link, directions: Directions) -> Link:
    own = directions & link.without_own("loss_ppm")
    shared = with_loss(
        replace(link, loss_ppm=link.loss_back_ppm, bursts=None), own, link.loss_ppm, link.bursts
    )
    return replace(
        shared,
        loss_ppm=shared.way("ab").loss_ppm,
        loss_back_ppm=shared.way("ba").loss_ppm,
        ab=replace(shared.ab, loss_ppm=None),
        ba=replace(shared.ba, loss_ppm=None),
    )


def down_directions(topology: Topology) -> dict[str, Direction]:
    """Return which direction of each link leads to the users. Links are left out over which data
    reaches users both ways, or none does."""
    found = data_directions(topology, [(user, "down") for user in topology.users])
    return {link: next(iter(sides)) for link, sides in found.items() if len(sides) == 1}


def _directions(link: Link, crossed: set[Step]) -> Directions:
    found: dict[Direction, Step] = {"ab": (link.a, link.b), "ba": (link.b, link.a)}
    return frozenset(name for name, step in found.items() if step in crossed)


def neighbours(wiring: Wiring) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {switch: set() for switch in wiring.dpid}
    for trunk in wiring.trunks:
        found[trunk.a].add(trunk.b)
        found[trunk.b].add(trunk.a)
    return found


def _steps_down(
    topology: Topology, wiring: Wiring, neighbours: Mapping[str, set[str]], user: str
) -> Iterator[Step]:
    """Yield each hop (a pair of neighbouring nodes) of all shortest paths from the user's server to
    the user."""
    own = wiring.of(topology.server_of(user))
    for server in own if user in topology.multipath else own[:1]:
        yield server.node, server.switch
        for interface in used(topology, wiring, user):
            for switch in _may_attach_to(topology, interface):
                yield from _between(neighbours, server.switch, switch)
            yield interface.switch, user


def used(topology: Topology, wiring: Wiring, user: str) -> tuple[Interface, ...]:
    """Return the interfaces over which a user sends data: all if the user is multipath, otherwise
    only the first."""
    own = wiring.of(user)
    return own if user in topology.multipath else own[:1]


def _may_attach_to(topology: Topology, interface: Interface) -> list[str]:
    """Return the switches or access points to which an interface can be connected during a run.

    By a handover, a WiFi interface can move between all WiFi cells that have a radio model. Any
    other interface stays where it is.
    """
    cells = {cell.ap: cell for cell in topology.cells}
    here = cells.get(interface.switch)
    if here is None or not _hands_over(here):
        return [interface.switch]
    return [cell.ap for cell in topology.cells if _hands_over(cell)]


def _hands_over(cell: Cell) -> bool:
    return cell.kind == "wifi" and cell.radio is not None


def _between(neighbours: Mapping[str, set[str]], source: str, destination: str) -> Iterator[Step]:
    """Yield the hops (pairs of neighbouring switches) of all shortest paths between two switches.

    A hop that is part of several paths is yielded once.
    """
    hops = hops_to(neighbours, destination)
    here = {source} if source in hops else set()
    while here:
        steps = [
            (switch, near)
            for switch in here
            for near in neighbours[switch]
            if hops[near] == hops[switch] - 1
        ]
        yield from steps
        here = {near for _, near in steps}


# A network as topology.json, the file that the controller reads: the same from both engines


MILLION = 1_000_000


def as_json(
    topology: Topology,
    wiring: Wiring,
    receive_buffer_kb: int = 4000,
    rate_scale: float = 1.0,
    flows: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Return the network as plain data, as it is written to topology.json.
    `controller.topology.Topology` validates this data.

    `receive_buffer_kb` is the receive buffer of every connection. Rates are those of the running
    network: rates of the scenario file multiplied by `rate_scale`. Each of `flows` is a user and
    the direction of the user's data, "down" (to the user) or "up".
    """
    data: dict[str, set[str]] = {}
    for user, direction in flows:
        data.setdefault(user, set()).add(direction)
    ports: dict[str, dict[str, str]] = {switch: {} for switch in wiring.dpid}
    for trunk in wiring.trunks:
        ports[trunk.a][trunk.b], ports[trunk.b][trunk.a] = trunk.a_port, trunk.b_port
    hosts = topology.ids("user", "server")
    return {
        "switches": {
            switch: {"dpid": dpid, "ports": ports[switch]} for switch, dpid in wiring.dpid.items()
        },
        "hosts": {host: [_interface(topology, each) for each in wiring.of(host)] for host in hosts},
        "trunks": [_trunk(topology, each) for each in wiring.trunks],
        "aps": {cell.ap: _ap(cell, topology.users) for cell in topology.cells},
        "multipath": list(topology.multipath),
        "data": {user: sorted(directions) for user, directions in data.items()},
        "receive_buffer_kb": receive_buffer_kb,
        "rate_scale": rate_scale,
    }


def _interface(topology: Topology, interface: Interface) -> dict[str, Any]:
    """Return the fields of a host's interface. For a wired interface, they include rate, delay and
    losses of its link. The rates of a radio interface are in the entry of its access point."""
    named = {
        key: getattr(interface, key) for key in ("name", "address", "mac", "switch", "port", "link")
    }
    named["further"] = list(interface.further)
    link = next((each for each in topology.links if each.id == interface.link), None)
    return named | link_shape(link, topology.cells, interface.switch) if link else named


def _trunk(topology: Topology, trunk: Trunk) -> dict[str, Any]:
    link = next(each for each in topology.links if each.id == trunk.link)
    ends = {
        "link": trunk.link,
        "a": trunk.a,
        "a_port": trunk.a_port,
        "b": trunk.b,
        "b_port": trunk.b_port,
    }
    return ends | link_shape(link, topology.cells, trunk.a)


def link_shape(link: Link, cells: Iterable[Cell], near: str) -> dict[str, Any]:
    """Return rate, delay, jitter and losses of a link as plain data.

    `near` is the node at one end of the link. In the result, `loss` is for packets that leave this
    node, and `loss_back` is for packets towards this node. So are rate and delay; those back are
    left out if they are the same.
    """
    sides: tuple[Direction, Direction] = ("ab", "ba") if near == link.a else ("ba", "ab")
    there, back = (link.way(side) for side in sides)
    delay_ns, jitter_ns = link_delay_ns(there, cells)
    delay_back_ns, _ = link_delay_ns(back, cells)
    shape = {
        "rate_mbps": units.mbps_from_bps(there.rate_bps) if there.rate_bps else None,
        "delay_ms": units.ms_from_ns(delay_ns),
        "jitter_ms": units.ms_from_ns(jitter_ns),
        "loss": there.loss_ppm / MILLION,
        "loss_back": back.loss_ppm / MILLION,
    }
    if there.rate_bps and back.rate_bps and back.rate_bps != there.rate_bps:
        shape["rate_back_mbps"] = units.mbps_from_bps(back.rate_bps)
    if delay_back_ns != delay_ns:
        shape["delay_back_ms"] = units.ms_from_ns(delay_back_ns)
    return shape


def _ap(cell: Cell, users: Container[str]) -> dict[str, Any]:
    stations = {
        each.user: {"rate_mbps": units.mbps_from_bps(each.rate_bps), "weight": each.weight}
        for each in cell.stations
        if each.user in users
    }
    return {
        "kind": cell.kind,
        "capacity_mbps": units.mbps_from_bps(cell.capacity_bps),
        "stations": stations,
        **({"port": radio_port(cell.ap)} if cell.kind == "wifi" else {}),
        **({"is_measured": False} if cell.air == "wmediumd" else {}),
    }
