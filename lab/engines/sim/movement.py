"""Move the users that walk: their positions, the rates there, and their WiFi cells.

Twice a second, in the order of the users:
1) move the user
2) if the user is on WiFi and nearer to another access point, hand it over
3) set the rate of each of its stations for the new position
A user keeps its networks: with LTE alone it stays on LTE, and with WiFi alone it takes the slowest
WiFi rate where the signal is too weak for a better one.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.engines.sim.cells import Cells
from lab.radio.cell import Cell
from lab.radio.mobility import Place, Walker, distance_m
from lab.radio.stations import station
from lab.scenario.schema import Mobility
from lab.topologies.topology import Topology

STEP_MEASUREMENTS = 5  # measurements of the access points between two steps
HandoverListener = Callable[[str, str, str, float], None]  # user, from, to, RSSI in dBm


class Movement:
    """Hold the position of each user; without mobility it is the topology's."""

    def __init__(
        self,
        topology: Topology,
        mobility: Mobility | None,
        seed: int,
        cells: Cells,
        on_handover: HandoverListener,
    ) -> None:
        """Place the users; `on_handover` is called after each handover."""
        self.cells, self._on_handover = cells, on_handover
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
        """Move every user to its position at this time."""
        for walker in self.walkers:
            user = walker.user
            self.places[user] = walker.at(now_s)  # 1
            for ap in [ap for ap, each in self.cells.stations if each == user]:
                best = self._nearest(user) if self._by_ap[ap].kind == "wifi" else ap
                self._serve(user, ap, best)

    def distance_m(self, user: str, ap: str) -> float:
        """Return the distance between a user and an access point in m."""
        return distance_m(self.places[user], self.places[ap])

    def _nearest(self, user: str) -> str:
        aps = [ap for ap, cell in self._by_ap.items() if cell.kind == "wifi"]
        return min(aps, key=lambda ap: self.distance_m(user, ap))

    def _serve(self, user: str, ap: str, best: str) -> None:
        radio = self._by_ap[best].radio
        assert radio is not None
        now = station(user, radio, self.distance_m(user, best))
        if best != ap:
            self.cells.hand_over(user, ap, best, now)  # 2, 3
            self._on_handover(user, ap, best, now.rssi_dbm or 0.0)
        else:
            self.cells.set_station(ap, now)  # 3
