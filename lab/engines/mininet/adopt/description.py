"""Derive what POX must know from a network that somebody else's script has built with Mininet.

The script's `net` is an object of Mininet or Mininet-WiFi. Nothing here starts or changes anything:
the attributes of `net`, its nodes and its links are read. So a test can use plain objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from controller import paths
from lab.errors import RequestError
from lab.topologies.mininet_options import FAST_MBPS, QUEUE_PACKETS, shape

LARGEST_DPID = 2**64 - 1
Direction = Literal["down", "up"]


@dataclass(frozen=True)
class Seen:
    """What the kernel says about an interface of a host: its addresses and its MAC address."""

    addresses: tuple[str, ...] = ()
    mac: str = ""


@dataclass(frozen=True)
class Options:
    """What the user says about a network.

    `servers` are the hosts that accept connections. Without it, they are the hosts with one
    address. `data` is the direction of the users' data: "down" to the user, or "up".
    """

    servers: Sequence[str] = ()
    data: Direction = "down"


@dataclass(frozen=True)
class Port:
    """An interface of a host with its addresses, and the switch port to which it leads.

    `wlan` is True for a radio; `port` is then the radio of the access point. `shape` has the keys
    of a link in topology.json, as seen from the switch.
    """

    host: str
    name: str
    addresses: tuple[str, ...]
    mac: str
    switch: str
    port: str
    wlan: bool = False
    shape: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Trunk:
    """A link between two switches, with the port at each end."""

    a: str
    a_port: str
    b: str
    b_port: str
    shape: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """A network as POX needs it.

    `users` are the hosts with several addresses, whose subflows POX steers. `cells` are the access
    points. `notes` are sentences about what of the network is not used.
    """

    dpids: Mapping[str, int]
    ports: tuple[Port, ...]
    trunks: tuple[Trunk, ...]
    users: tuple[str, ...]
    servers: tuple[str, ...]
    cells: tuple[str, ...]
    data: Direction
    notes: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.host for each in self.ports))

    def of(self, host: str) -> tuple[Port, ...]:
        return tuple(each for each in self.ports if each.host == host)

    def stations(self, ap: str) -> tuple[Port, ...]:
        return tuple(each for each in self.ports if each.switch == ap and each.addresses)

    def to_json(self, rates_mbps: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Return the content of topology.json (docs/formats.md).

        `rates_mbps` maps the radio of an access point to the rate of its stations.
        """
        rates = rates_mbps or {}
        near: dict[str, dict[str, str]] = {switch: {} for switch in self.dpids}
        for trunk in self.trunks:
            near[trunk.a][trunk.b], near[trunk.b][trunk.a] = trunk.a_port, trunk.b_port
        return {
            "switches": {
                name: {"dpid": dpid, "ports": near[name]} for name, dpid in self.dpids.items()
            },
            "hosts": {host: [_host_port(each) for each in self.of(host)] for host in self.hosts},
            "trunks": [
                {
                    **{"link": f"{each.a}-{each.b}", "a": each.a, "a_port": each.a_port},
                    **{"b": each.b, "b_port": each.b_port, **each.shape},
                }
                for each in self.trunks
            ],
            "aps": {ap: self._ap(ap, rates) for ap in self.cells},
            "multipath": list(self.users),
            "data": {user: [self.data] for user in self.users},
        }

    def _ap(self, ap: str, rates: Mapping[str, float]) -> dict[str, Any]:
        own = {each.host: station_mbps(each, rates) for each in self.stations(ap)}
        return {
            "kind": "wifi",
            "capacity_mbps": max(own.values(), default=0),
            "stations": {host: {"rate_mbps": rate} for host, rate in own.items()},
            "port": self.radios.get(ap, ""),
        }

    @property
    def radios(self) -> dict[str, str]:
        """The radio of each access point that has a station by radio."""
        return {each.switch: each.port for each in self.ports if each.wlan}

    def loss_devices(self, port: Port) -> list[str]:
        """Return the interfaces that send the data of a user's interface, on the shortest path.

        The data comes from the first server that has a path to it, or goes to it with `data` "up".
        The list is empty if no server has one.
        """
        near: dict[str, set[str]] = {switch: set() for switch in self.dpids}
        for trunk in self.trunks:
            near[trunk.a].add(trunk.b)
            near[trunk.b].add(trunk.a)
        for server in (each for name in self.servers for each in self.of(name)):
            found = paths.between(near, server.switch, port.switch)
            if found:
                ends = (server, port) if self.data == "down" else (port, server)
                path = found[0] if self.data == "down" else found[0][::-1]
                return [ends[0].name, *self._sending(path), ends[1].port]
        return []

    def _sending(self, path: Sequence[str]) -> Iterator[str]:
        for here, there in pairwise(path):
            for trunk in self.trunks:
                if (trunk.a, trunk.b) == (here, there):
                    yield trunk.a_port
                elif (trunk.b, trunk.a) == (here, there):
                    yield trunk.b_port


UNKNOWN_MBPS = 54.0  # of a station whose rate nothing says: the fastest of 802.11g


def station_mbps(port: Port, rates_mbps: Mapping[str, float]) -> float:
    """Return the rate of a station if it sends alone: that of its access point's radio, or that of
    its link."""
    return rates_mbps.get(port.port) or port.shape.get("rate_mbps") or UNKNOWN_MBPS


def _host_port(each: Port) -> dict[str, Any]:
    first, *further = each.addresses or ("",)
    return {
        **{"name": each.name, "switch": each.switch, "port": each.port, "mac": each.mac or None},
        **{"address": first or None, "further": further},
        "link": each.switch if each.wlan else f"{each.switch}-{each.name}",
        **each.shape,
    }


def describe(
    net: Any, options: Options, seen: Mapping[str, Seen], forwards: Iterable[str] = ()
) -> Description:
    """Read `net`, the network of a script, and check that POX can control it.

    `seen` has what the kernel says about the interfaces of hosts, by name. `forwards` are the hosts
    whose kernel forwards packets. Raises `RequestError` with the reason and what to do.
    """
    aps = list(getattr(net, "aps", ()))
    switches = {each.name: each for each in (*net.switches, *aps)}
    radios = [*getattr(net, "stations", ()), *getattr(net, "cars", ())]
    hosts = {each.name: each for each in (*net.hosts, *radios)}
    _check_nodes(switches, hosts, options, forwards)
    trunks, ports = _links(net.links, switches, hosts, seen)
    ports += [port for each in radios for port in _radios(each, switches, seen)]
    _check_addresses(ports)
    trunks, notes = _without_parallel(trunks)
    notes += [
        f"{each.name} has no address, so nothing uses it. "
        f"Give it one in the script: {each.host}.setIP('10.9.0.1/24', intf='{each.name}')"
        for each in ports
        if not each.addresses
    ]
    users, servers = _roles(hosts, ports, options)
    cells = tuple(each.name for each in aps)
    dpids = {name: _dpid(each) for name, each in switches.items()}
    _check_dpids(dpids)
    used = tuple(each for each in ports if each.addresses)
    return Description(
        dpids, used, tuple(trunks), users, servers, cells, options.data, tuple(notes)
    )


def _check_nodes(
    switches: Mapping[str, Any],
    hosts: Mapping[str, Any],
    options: Options,
    forwards: Iterable[str],
) -> None:
    if not switches or not hosts:
        raise RequestError(
            "adopt: the network has no "
            f"{'switch' if not switches else 'host'} yet. Move the line net.adopt() in the script "
            "behind the lines that add nodes and start the network"
        )
    for name, node in switches.items():
        if not hasattr(node, "failMode"):
            raise RequestError(
                f"adopt: {name} is a {type(node).__name__}, and POX steers subflows in Open "
                "vSwitch only. Use OVSSwitch or OVSKernelAP in the script"
            )
    for name in forwards:
        raise RequestError(
            f"adopt: {name} is a router: it forwards packets (net.ipv4.ip_forward=1). POX knows "
            "only paths through switches, and no path leads through a host. Put a switch in its "
            f"place: net.addSwitch('{name}'), with all hosts' addresses as they are"
        )
    for name in options.servers:
        if name not in hosts:
            raise RequestError(f"adopt: no host is '{name}': choose from {', '.join(hosts)}")


def _links(
    links: Iterable[Any],
    switches: Mapping[str, Any],
    hosts: Mapping[str, Any],
    seen: Mapping[str, Seen],
) -> tuple[list[Trunk], list[Port]]:
    """Return the links between switches, and those between a switch and a host."""
    trunks, ports = [], []
    for link in links:
        ends: list[Any] = [getattr(link, each, None) for each in ("intf1", "intf2")]
        if not all(hasattr(each, "node") for each in ends):  # a radio: see `_radios`
            continue
        one, other = ends
        names = [each.node.name for each in (one, other)]
        if all(name in switches for name in names):
            there = _shape(one, other)
            trunks.append(Trunk(names[0], one.name, names[1], other.name, there))
        elif all(name in hosts for name in names):
            raise RequestError(
                f"adopt: the link from {one.name} to {other.name} joins two hosts, so "
                f"{_between(names, links)} is a router. POX knows only paths through switches. "
                "Put a switch in its place"
            )
        elif {*names} <= {*switches, *hosts}:
            near, far = (one, other) if names[0] in switches else (other, one)
            found = seen.get(far.name) or Seen()
            ends_of = (near.node.name, near.name)
            ports.append(
                Port(
                    far.node.name,
                    far.name,
                    found.addresses,
                    found.mac,
                    *ends_of,
                    shape=_shape(near, far),
                )
            )
    return trunks, ports


def _between(names: list[str], links: Iterable[Any]) -> str:
    """Return which of two hosts has more links: the router between them."""

    def count(name: str) -> int:
        ends = [getattr(each, end, None) for each in list(links) for end in ("intf1", "intf2")]
        return sum(getattr(getattr(each, "node", None), "name", "") == name for each in ends)

    return max(names, key=count)


def _shape(near: Any, far: Any) -> dict[str, float]:
    """Return rate, delay, jitter and losses of a link in the keys of topology.json.

    `loss` is that of packets which `near` sends.
    """
    name = f"{near.name} to {far.name}"
    there, back = (shape(getattr(each, "params", {}), name, QUEUE_PACKETS) for each in (near, far))
    found: dict[str, float] = {}
    for way, suffix in ((there, ""), (back, "_back")):
        rate, delay = way.get("rate_mbps"), way.get("delay_ms", 0.0)
        if rate is not None and float(rate) <= FAST_MBPS:  # Mininet limits no faster link
            found[f"rate{suffix}_mbps"] = float(rate)
        found[f"delay{suffix}_ms"] = float(delay)
        found[f"loss{suffix}"] = float(way.get("loss_both", 0.0))
    return found | {"jitter_ms": float(there.get("jitter_ms", 0.0))}


def _radios(station: Any, switches: Mapping[str, Any], seen: Mapping[str, Seen]) -> Iterator[Port]:
    """Yield the radios of a station, each with the access point with which it is associated."""
    wintfs = getattr(station, "wintfs", None) or {}
    for radio in wintfs.values():
        found = seen.get(radio.name) or Seen()
        ap: Any = getattr(radio, "associatedTo", None)
        node = getattr(getattr(ap, "node", None), "name", None)
        if node in switches:
            yield Port(
                station.name, radio.name, found.addresses, found.mac, str(node), ap.name, True
            )
        elif found.addresses:
            raise RequestError(
                f"adopt: {radio.name} is associated with no access point, and POX knows no other "
                "radio. Place the station within reach of one (position=...), or join them: "
                f"net.addLink({station.name}, ap1)"
            )


def _check_addresses(ports: Iterable[Port]) -> None:
    owners: dict[str, str] = {}
    for each in ports:
        for address in each.addresses:
            if address in owners:
                raise RequestError(
                    f"adopt: {owners[address]} and {each.name} both have the address {address}. "
                    "Give every interface its own"
                )
            owners[address] = each.name


def _without_parallel(trunks: Iterable[Trunk]) -> tuple[list[Trunk], list[str]]:
    """Return one link for each pair of switches, the fastest, and sentences about the others."""
    fastest: dict[frozenset[str], Trunk] = {}
    left_out = []
    for trunk in trunks:
        pair = frozenset((trunk.a, trunk.b))
        before = fastest.setdefault(pair, trunk)
        if before is not trunk:
            if _rate(trunk) > _rate(before):
                fastest[pair], before, trunk = trunk, trunk, before
            left_out.append(
                f"{trunk.a} and {trunk.b} have several links, and a path is a list of switches: "
                f"POX uses {before.a_port} to {before.b_port}, not {trunk.a_port} to "
                f"{trunk.b_port}. Put a switch into the other"
            )
    return list(fastest.values()), left_out


def _rate(trunk: Trunk) -> float:
    return trunk.shape.get("rate_mbps", float("inf"))


def _roles(
    hosts: Mapping[str, Any], ports: Iterable[Port], options: Options
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the users with several addresses, and the servers."""
    count = dict.fromkeys(hosts, 0)
    for each in ports:
        count[each.host] += len(each.addresses)
    several = [name for name in hosts if count[name] > 1]
    servers = options.servers or [name for name in hosts if count[name] == 1]
    users = tuple(name for name in several if name not in servers)
    if several and not servers:
        raise RequestError(
            f"adopt: {' and '.join(several)} have several addresses each. Say which host accepts "
            f"the connections: --server {several[-1]}"
        )
    return users, tuple(servers)


def _dpid(switch: Any) -> int:
    """Return the OpenFlow datapath ID of a switch, which Mininet has as hexadecimal text."""
    text = str(switch.dpid).replace(":", "")
    try:
        dpid = int(text, 16)
    except ValueError:
        dpid = 0
    if not 0 < dpid <= LARGEST_DPID:
        raise RequestError(
            f"adopt: the dpid of {switch.name} is '{switch.dpid}'. Write up to 16 hexadecimal "
            "digits that are not all 0"
        )
    return dpid


def _check_dpids(dpids: Mapping[str, int]) -> None:
    names: dict[int, str] = {}
    for name, dpid in dpids.items():
        if dpid in names:
            raise RequestError(
                f"adopt: {names[dpid]} and {name} have the same dpid {dpid:x}. Give one of them "
                f"another: dpid='{dpid + 0x100:x}'"
            )
        names[dpid] = name
