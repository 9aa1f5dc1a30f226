"""Find the place of each host address: the switch and the port that lead to it.

Places come from the topology file, or are learned from packets of hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.topology import Topology


@dataclass(frozen=True)
class Place:
    switch: str
    port: str
    mac: str | None = None


class Hosts:
    """The place of each host address: the switch and the port that lead to the address.

    If a station sends from another port, the place of its address changes.
    """

    def __init__(self, network: Topology) -> None:
        self.network = network
        self._trunks = {
            (switch, port) for switch in network.switches for port in network.trunk_ports(switch)
        }
        self._places: dict[str, Place] = {}
        self._owners: dict[str, str] = {}
        self._fixed: frozenset[str] = frozenset()
        for host, interfaces in network.hosts.items():
            for each in interfaces:
                for address in each.addresses:
                    self._places[address] = Place(
                        each.switch, each.port, each.mac and each.mac.lower()
                    )
                    self._owners[address] = host
        self._fixed = frozenset(self._places)

    def is_edge(self, switch: str, port: str) -> bool:
        """Return whether a port leads to hosts and not to another switch."""
        return (switch, port) not in self._trunks

    def learn(self, address: str, mac: str, switch: str, port: str) -> bool:
        """Store the place (switch and port) from which `address` sent; return True if it changed.

        An address of the topology file may only move from one access point to another of the same
        kind (WiFi or LTE). Frames from anywhere else are ignored: a host with several interfaces
        may send from the wrong one, and this is no handover.
        """
        before = self._places.get(address)
        stays = before is not None and (before.switch, before.port) == (switch, port)
        if (
            not self.is_edge(switch, port)
            or address == "0.0.0.0"  # noqa: S104 - compared, not listened on
            or not (stays or self._may_move(address, switch))
        ):
            return False
        self._places[address] = Place(switch, port, mac)
        if address not in self._owners:
            self._own(address, switch, port)
        return before is not None and not stays

    def _may_move(self, address: str, switch: str) -> bool:
        if address not in self._fixed:
            return True
        kinds = [
            self.network.aps[each].kind if each in self.network.aps else None
            for each in (self._places[address].switch, switch)
        ]
        return kinds[0] is not None and kinds[0] == kinds[1]

    def move(self, address: str, place: Place) -> None:
        """Store the new place (switch and port) of an address, after a handover of its station."""
        self._places[address] = place

    def place(self, address: str) -> Place | None:
        return self._places.get(address)

    def owner(self, address: str) -> str | None:
        return self._owners.get(address)

    def at(self, user: str, ap: str) -> tuple[str, ...]:
        return tuple(
            sorted(
                own
                for own, host in self._owners.items()
                if host == user and self._places[own].switch == ap
            )
        )

    def addresses(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, those of the topology file before the learned ones."""
        return tuple(own for own, owner in self._owners.items() if owner == host)

    def associations(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Map (user, access point) of each station to the addresses of the user there."""
        return {
            (user, ap): self.at(user, ap)
            for ap, line in self.network.aps.items()
            for user in line.stations
        }

    def _own(self, address: str, switch: str, port: str) -> None:
        """Store which host has the learned address, if the topology file allows only one host.

        The file allows only one host if it has exactly one interface at this port, and if it gives
        no address for this interface.
        """
        here = [
            (host, each)
            for host, ports in self.network.hosts.items()
            for each in ports
            if (each.switch, each.port) == (switch, port)
        ]
        nameless = [host for host, each in here if each.address is None]
        if len(nameless) == 1 and len(here) == 1:
            self._owners[address] = nameless[0]
