"""What the agent of the access points does in the emulation: ten times a second it looks at the queues.

Where WiFi frames can collide, it also counts who contends for the air: of each access point on it and of each station, whether
it holds a frame at that moment, as a mean over about a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from controller.tiers import tier1_mean
from lab.engines.sim.core import layout as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.radio import contention
from lab.radio.cell import Cell, Station
from lab.radio.occupancy import bearer_occupancy, waiting_uploads, wifi_occupancy

REMEMBERED = 0.1  # the weight of one look at the contenders


class Cells:
    """Keeps the stations' rates, and who contends for the air."""

    def __init__(self, network: Network, cells: Iterable[Cell]) -> None:
        self.network, self.cells = network, list(cells)
        self.stations: dict[tuple[str, str], Station] = {
            (cell.ap, station.user): station for cell in self.cells for station in cell.stations
        }
        self.contenders: dict[str, float] = {
            cell.ap: 1.0 for cell in self.cells if cell.collisions and not cell.medium
        }

    def at(self, ap: str) -> list[Station]:
        """The stations of an access point now."""
        return [station for (where, _), station in self.stations.items() if where == ap]

    def look(self, tiers: Mapping[tuple[str, str], int]) -> dict[str, float]:
        """Every access point's MAC occupancy now; of LTE the mean over the bearers that carry Tier 1."""
        seen = {}
        for cell in self.cells:
            if cell.kind == "wifi":
                seen[cell.ap] = wifi_occupancy(
                    self.network.backlog(cell.ap), self._waiting_uploads(cell.ap)
                )
            else:
                seen[cell.ap] = self._bearers(cell, tiers)
        for air in self.contenders:
            self._contend(air)
        return seen

    # --- WiFi

    def _waiting_uploads(self, ap: str) -> int:
        """Return how many frames of uploads wait for the air."""
        rates_bps = [
            each.rate_bps
            for each in self.at(ap)
            if self.network.uploads(each.user) and self.network.sends_up(ap, each.user)
        ]
        return waiting_uploads(self.network.waits_up_ns(ap), rates_bps)

    def _contend(self, air: str) -> None:
        """Who holds a frame now; how often all must send theirs until the next look, and what they lose."""
        here = [cell for cell in self.cells if air in (cell.ap, cell.medium)]
        stations = [(cell.ap, each.user) for cell in here for each in self.at(cell.ap)]
        holding = sum(self.network.backlog(cell.ap) > 0 for cell in here)
        holding += sum(self.network.sends_up(*each) for each in stations)
        contenders = self.contenders[air] + REMEMBERED * (holding - self.contenders[air])
        self.contenders[air] = contenders
        p_sent, p_lost = contention.transmissions(contenders), contention.abandoned(contenders)
        for cell in here:
            loss = 1 - (1 - cell.loss_ppm / 1e6) * (1 - p_lost)
            self.network.set_collisions(
                cell.ap, p_sent, [each for each in stations if each[0] == cell.ap], loss
            )

    # --- LTE

    def _bearers(self, cell: Cell, tiers: Mapping[tuple[str, str], int]) -> float:
        bearers = {
            each.user: bearer_occupancy(self._queued(cell.ap, each.user)) for each in cell.stations
        }
        here = {user: tier for (user, ap), tier in tiers.items() if ap == cell.ap}
        return tier1_mean(bearers, here)

    def _queued(self, ap: str, user: str) -> list[int]:
        """Return the packets in a bearer's downlink queue, and with uploads in its uplink queue."""
        directions = (DOWN, UP) if self.network.uploads(user) else (DOWN,)
        return [
            self.network.station(ap, user, direction, at.QUEUE_COUNT) for direction in directions
        ]

    # --- changes

    def change(self, ap: str, user: str, rate_bps: int) -> None:
        """A station's rate when alone."""
        self.place(ap, replace(self.stations[ap, user], rate_bps=rate_bps))

    def place(self, ap: str, station: Station) -> None:
        """A station as it is from now on, or a new one."""
        self.stations[ap, station.user] = station
        self.network.set_station(ap, station)

    def hand_over(self, user: str, old: str, new: str, station: Station) -> None:
        """A station leaves one WiFi cell for another."""
        del self.stations[old, user]
        self.network.hand_over(user, old, new)
        self.place(new, station)
