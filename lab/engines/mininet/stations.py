"""Hold the present stations of all cells, and apply their changes to cells and AP agent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lab.engines.mininet.network.links import Links
from lab.radio.cell import Station
from lab.topologies.topology import Topology, Wiring

if TYPE_CHECKING:
    from lab.engines.mininet.ap_agent_process import ApAgentProcess


class Stations:
    """Hold the rate, weight and signal strength of each station, by access point and user."""

    def __init__(self, topology: Topology, wiring: Wiring, links: Links) -> None:
        self.wiring, self._links = wiring, links
        self.agent: ApAgentProcess | None = None
        self.stations: dict[tuple[str, str], Station] = {
            (cell.ap, station.user): station for cell in topology.cells for station in cell.stations
        }

    def count(self, ap: str) -> int:
        """Return how many stations are at an access point now."""
        return sum(where == ap for where, _user in self.stations)

    def set_rate(self, ap: str, user: str, rate_bps: int) -> None:
        """Set the rate in bit/s that a station has when it is alone at its access point."""
        self.set_station(ap, replace(self.stations[ap, user], rate_bps=rate_bps))

    def set_station(self, ap: str, station: Station) -> None:
        """Replace the user's station at an access point."""
        if self.stations[ap, station.user] == station:
            return
        self.stations[ap, station.user] = station
        self._links.set_station(ap, self.wiring.at(station.user, ap).address, station)
        if self.agent:
            self.agent.set_station(ap, station)
