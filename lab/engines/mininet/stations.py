"""Hold the present stations of all cells, and apply changes of stations to the network.

A station is a user at an access point. Changes go to the running WiFi cells and to the AP agent.
"""

from __future__ import annotations

from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

from lab.engines.mininet.network.links import Links
from lab.radio.cell import Station
from lab.topologies.topology import Interface, Topology, Wiring

if TYPE_CHECKING:
    from lab.engines.mininet.agents import ApAgentProcess


class Stations:
    """Hold the rate, weight and signal strength of each station, by access point and user.

    Two threads use this object: the one of the run and the one that moves users.
    """

    def __init__(self, topology: Topology, wiring: Wiring, links: Links) -> None:
        self.wiring, self._links = wiring, links
        self.agent: ApAgentProcess | None = None
        self.stations: dict[tuple[str, str], Station] = {
            (cell.ap, station.user): station for cell in topology.cells for station in cell.stations
        }
        self._wifi = {cell.ap for cell in topology.cells if cell.kind == "wifi"}
        self._leaving: set[str] = set()
        self._lock = RLock()

    def count(self, ap: str) -> int:
        """Return how many stations are at an access point now."""
        with self._lock:
            return sum(where == ap for where, _user in self.stations)

    def interface(self, user: str, ap: str) -> Interface:
        """Return the interface by which a user is connected to an access point now."""
        return self.wiring.at(user, ap)

    def set_rate(self, ap: str, user: str, rate_bps: int) -> None:
        """Set the rate in bit/s that a station has when it is alone at its access point."""
        with self._lock:
            self.set_station(ap, replace(self.stations[ap, user], rate_bps=rate_bps))

    def set_station(self, ap: str, station: Station) -> None:
        """Replace the values of a user at an access point; `station` names the user.

        The new rate is applied to the cell immediately, but not during a handover of the user.
        """
        with self._lock:
            if self.stations[ap, station.user] == station:
                return
            self.stations[ap, station.user] = station
            if ap in self._wifi and station.user in self._leaving:
                return
            self._links.set_station(ap, self.wiring.at(station.user, ap).address, station)
            if self.agent:
                self.agent.set_station(ap, station)

    def hand_over(self, user: str, old: str, new: str, station: Station) -> None:
        """Begin to move a user from WiFi access point `old` to `new`, where it becomes `station`.

        Until `associated` is called, the user's radio is in no cell.
        """
        with self._lock:
            if user not in self._leaving:
                self._links.remove_station(old, self.wiring.at(user, old).address)
            self._leaving.add(user)
            self.wiring = self.wiring.handed_over(user, old, new)
            del self.stations[old, user]
            self.stations[new, user] = station

    def associated(self, user: str, old: str, new: str) -> None:
        """Add a user to the cell of access point `new`, and notify the AP agent.

        `old` is the access point with which the user was associated before.
        """
        with self._lock:
            self._leaving.discard(user)
            station = self.stations[new, user]
            self._links.set_station(new, self.wiring.at(user, new).address, station)
            if self.agent:
                self.agent.hand_over(old, new, station)
