"""Users that walk: where they are, what their access points give them there, and which WiFi cell they are on.

Twice a second, in the order of the users:
1) everybody takes a step            2) who is on WiFi and nearer to another access point is handed over
3) every station gets the rate of its place
A user keeps its networks: who has only LTE stays on it, who has only WiFi takes its slowest rate where nothing better is heard.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.engines.sim.cells import Cells
from lab.radio.cell import Cell
from lab.radio.mobility import Place, Walker, distance_m
from lab.radio.stations import station
from lab.scenario.schema import Mobility
from lab.topologies.topology import Topology

EVERY_LOOKS = 5
HandedOver = Callable[[str, str, str, float], None]  # user, from, to, RSSI in dBm


class Movement:
    """Everybody's place; without mobility that at which the topology has put them."""

    def __init__(
        self,
        topology: Topology,
        mobility: Mobility | None,
        seed: int,
        cells: Cells,
        tell: HandedOver,
    ) -> None:
        self.cells, self.tell = cells, tell
        self.places: dict[str, Place] = {
            node.id: node.place_m for node in topology.nodes if node.place_m is not None
        }
        self._by_ap: dict[str, Cell] = {
            cell.ap: cell for cell in topology.cells if cell.radio is not None
        }
        self.walkers: list[Walker] = []
        if mobility is not None:
            speeds = (mobility.speed_min_mps, mobility.speed_max_mps)
            self.walkers = [
                Walker(user, seed, self.places[user], topology.area_m, speeds, mobility.pause_s)
                for user in topology.users
            ]

    def step(self, now_s: float) -> None:
        """Move everybody to where they are at this time."""
        for walker in self.walkers:
            user = walker.user
            self.places[user] = walker.at(now_s)
            for ap in [where for where, who in self.cells.stations if who == user]:
                best = self._nearest(user) if self._by_ap[ap].kind == "wifi" else ap
                self._serve(user, ap, best)

    def distance_m(self, user: str, ap: str) -> float:
        return distance_m(self.places[user], self.places[ap])

    def _nearest(self, user: str) -> str:
        aps = [ap for ap, cell in self._by_ap.items() if cell.kind == "wifi"]
        return min(aps, key=lambda ap: self.distance_m(user, ap))

    def _serve(self, user: str, ap: str, best: str) -> None:
        radio = self._by_ap[best].radio
        assert radio is not None
        now = station(user, radio, self.distance_m(user, best))
        if best != ap:
            self.cells.hand_over(user, ap, best, now)  # 2
            self.tell(user, ap, best, now.rssi_dbm or 0.0)
        else:
            self.cells.place(ap, now)  # 3
