"""What the agent of the access points does in the emulation: ten times a second it looks at the queues and shares out LTE cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.engines.sim import layout as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.radio.lte import SMALLEST_BPS, Bearer, shares_bps
from lab.radio.occupancy import PERIOD_S, occupancy
from lab.topology import Cell, Station

WORTH_A_CHANGE = 0.01  # of a bearer's rate


class Cells:
    """Keeps the stations' rates, the bearers' shares, and the occupancies seen since each reader asked last."""

    def __init__(self, network: Network, cells: Iterable[Cell]) -> None:
        self.network, self.cells = network, list(cells)
        self.stations: dict[tuple[str, str], Station] = {
            (cell.ap, station.user): station for cell in self.cells for station in cell.stations
        }
        self._sent: dict[tuple[str, str, str], int] = dict.fromkeys(network.tables.stations, 0)
        self._granted: dict[tuple[str, str, str], int] = {}

    def look(self, tiers: Mapping[tuple[str, str], int]) -> dict[str, float]:
        """Every access point's MAC occupancy now; of LTE the mean over the bearers that carry Tier 1."""
        seen = {}
        for cell in self.cells:
            if cell.kind == "wifi":
                seen[cell.ap] = occupancy(self.network.backlog(cell.ap))
            else:
                for direction in (DOWN, UP):
                    self._share(cell, direction)
                seen[cell.ap] = self._bearers(cell, tiers)
        return seen

    def _bearers(self, cell: Cell, tiers: Mapping[tuple[str, str], int]) -> float:
        own = {each.user: occupancy(self._backlog(cell.ap, each.user, DOWN)) for each in cell.stations}
        primary = [each for user, each in own.items() if tiers.get((user, cell.ap), 1) == 1]
        counted = primary or list(own.values())
        return sum(counted) / max(1, len(counted))

    def _backlog(self, ap: str, user: str, direction: str) -> int:
        return self.network.station(ap, user, direction, at.QUEUE_COUNT)

    def _share(self, cell: Cell, direction: str) -> None:
        """Move the bearers to their proportional-fair shares."""
        bearers = {}
        for each in cell.stations:
            key = (cell.ap, each.user, direction)
            sent = self.network.station(*key, at.OUT_BYTES)
            used_bps = (sent - self._sent[key]) * 8 / PERIOD_S
            self._sent[key] = sent
            station = self.stations[cell.ap, each.user]
            bearers[each.user] = Bearer(station.rate_bps, station.weight, self._backlog(*key) > 0, used_bps)
        for user, share in shares_bps(bearers).items():
            key, rate_bps = (cell.ap, user, direction), max(SMALLEST_BPS, round(share))
            before = self._granted.get(key, 0)
            if abs(rate_bps - before) > WORTH_A_CHANGE * before:
                self.network.grant(*key, rate_bps)
                self._granted[key] = rate_bps

    def change(self, ap: str, user: str, rate_bps: int) -> None:
        """A station's rate when alone."""
        self.stations[ap, user] = Station(user, rate_bps, self.stations[ap, user].weight)
        self.network.set_station(ap, user, rate_bps)
