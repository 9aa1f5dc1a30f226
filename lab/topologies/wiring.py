"""Describe as frozen data how the interfaces of a network are connected.

`topology.wire` makes this description: names, addresses and switch ports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Interface:
    """Describe an interface of a host, and the switch and port to which it is connected.

    `node` is the id of the host. `link` is the id of the wired link, or for a radio the id of the
    access point. If the interface has several addresses, one per subflow, `further` holds all
    except the first, `address`.
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
    """Describe a link between two switches, with the name of the port at each end.

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
    """Hold all interfaces of hosts, and all links between switches with their ports.

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
        """Return the interfaces of the host `node`.

        The first in the list is the interface over which the host opens its connections.
        """
        return tuple(each for each in self.interfaces if each.node == node)

    def addresses(self, node: str) -> int:
        """Return how many addresses a host has.

        A connection should have as many subflows as its user has addresses.
        """
        return sum(1 + len(each.further) for each in self.of(node))

    def at(self, node: str, link: str) -> Interface:
        """Return the interface of a host on this link, or of a relay in this cell.

        For a radio and for a relay, `link` is the access point's id.
        """
        own = (*self.of(node), *(each for each in self.relays if each.node == node))
        return next(each for each in own if each.link == link)

    def hosts_behind(self, switch: str) -> tuple[Interface, ...]:
        """Return the interfaces of all hosts that are connected to this switch."""
        return tuple(each for each in self.interfaces if each.switch == switch)

    def handed_over(self, user: str, old: str, new: str) -> Wiring:
        """Return the wiring after a user has moved its radio from access point `old` to `new`.

        The interface keeps its name and its addresses.
        """
        interface = self.at(user, old)
        moved = replace(interface, switch=new, port=radio_port(new), link=new)
        interfaces = tuple(moved if each is interface else each for each in self.interfaces)
        return replace(self, interfaces=interfaces)


def radio_port(ap: str) -> str:
    """Return the name of the radio of a WiFi access point, which is a port of its switch."""
    return f"{ap}-wlan1"
