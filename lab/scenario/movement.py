"""Move the users that walk. A user's position determines the user's radio rates and WiFi access
point.

Twice a second, for one user after the other:
1) move the user
2) if the user is on WiFi and another WiFi access point is nearer, hand the user over to it
3) set the radio rate of the user at each of the user's access points

Movement never changes which kinds of radio a user has. A user with LTE alone stays on LTE. A user
with WiFi alone stays on WiFi, at the slowest WiFi rate where the signal is too weak for a faster
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from lab.radio.cell import Cell, Station
from lab.radio.mobility import Place, Walker, distance_m
from lab.radio.stations import station
from lab.scenario.schema import Mobility
from lab.topologies.topology import Topology

STEP_S = 0.5  # between two steps
HandoverListener = Callable[[str, str, str, float], None]  # user, from, to, RSSI in dBm


class Stations(Protocol):
    """The part of an engine that `Movement` uses. A station is a user at an access point."""

    @property
    def stations(self) -> Mapping[tuple[str, str], Station]:
        """The present stations, with their radio rates, by (access point, user)."""

    def set_station(self, ap: str, station: Station) -> None:
        """Set the radio rate of the user `station.user` at an access point."""

    def hand_over(self, user: str, old: str, new: str, station: Station) -> None:
        """Move a user from the WiFi access point `old` to `new`.

        `station` has the user's radio rate at `new`.
        """


class Movement:
    """Moves the users. `places` has the position of each user in m.

    Without mobility, users stay where the topology places them.
    """

    def __init__(
        self,
        topology: Topology,
        mobility: Mobility | None,
        seed: int,
        cells: Stations,
        on_handover: HandoverListener,
    ) -> None:
        """Place all users. If `mobility` is given, `step` moves them.

        After each handover, `on_handover` is called with the user, the old and the new access
        point, and the signal strength in dBm.
        """
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
        """Move each walking user to the position at `now_s`, and set the user's radio rates.

        A user on WiFi is handed over if another WiFi access point is nearer.
        """
        for walker in self.walkers:
            user = walker.user
            self.places[user] = walker.at(now_s)  # 1
            for ap in [ap for ap, each in self.cells.stations if each == user]:
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
            self.cells.hand_over(user, ap, best, now)  # 2, 3
            self._on_handover(user, ap, best, now.rssi_dbm or 0.0)
        else:
            self.cells.set_station(ap, now)  # 3
