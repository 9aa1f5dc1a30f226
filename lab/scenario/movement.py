"""Move the users that walk, and those that are put somewhere during a run. A user's position
determines the user's radio rates and WiFi access point.

Twice a second for one walking user after the other, and at once for a user that is put somewhere:
1) move the user
2) if the user is on WiFi and another WiFi access point is nearer, hand the user over to it
3) set the radio rate of the user at each of the user's access points

Movement never changes which kinds of radio a user has. A user with LTE alone stays on LTE. A user
with WiFi alone stays on WiFi, at the slowest WiFi rate where the signal is too weak for a faster
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from lab.errors import RequestError, unknown
from lab.radio.cell import Cell, Station
from lab.radio.mobility import Place, Replay, Walker, distance_m
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
    """Moves the users. `places` has the position of each user and access point in m.

    Without mobility, users stay where the topology places them. A user that was put somewhere
    (`place`) stays there. `moves` is whether users may be at another access point than at first.
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
        self.places: dict[str, Place] = places_of(topology)
        self._by_ap: dict[str, Cell] = {
            cell.ap: cell for cell in topology.cells if cell.radio is not None
        }
        self.walkers: list[Walker | Replay] = []
        self.moves = mobility is not None
        self._standing: set[str] = set()  # users that were put somewhere
        if mobility is not None and mobility.walks:
            self.walkers = [Replay(user, points) for user, points in mobility.walks.items()]
        elif mobility is not None:
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
            if walker.user not in self._standing:
                self._move(walker.user, walker.at(now_s))

    def place(self, user: str, place: Place | None) -> None:
        """Put a user somewhere, where it stays. None lets a user walk again, from where it would be
        by then."""
        if place is None:
            self._standing.discard(user)
            return
        self.moves = True
        self._standing.add(user)
        self._move(user, place)

    def distance_m(self, user: str, ap: str) -> float:
        return distance_m(self.places[user], self.places[ap])

    def _move(self, user: str, place: Place) -> None:
        self.places[user] = place  # 1
        for ap in [ap for ap, each in self.cells.stations if each == user]:
            best = access_point(self._by_ap[ap], self._by_ap.values(), self.places, place)
            self._serve(user, ap, best)

    def _serve(self, user: str, ap: str, best: str) -> None:
        radio = self._by_ap[best].radio
        assert radio is not None
        now = station(user, radio, self.distance_m(user, best))
        if best != ap:
            self.cells.hand_over(user, ap, best, now)  # 2, 3
            self._on_handover(user, ap, best, now.rssi_dbm or 0.0)
        else:
            self.cells.set_station(ap, now)  # 3


def access_point(cell: Cell, cells: Iterable[Cell], places: Mapping[str, Place], at: Place) -> str:
    """Return the access point of a user of `cell` that is at the place `at` now: of the same kind,
    and the nearest one if this is WiFi. `cells` are all with a radio."""
    if cell.kind != "wifi":
        return cell.ap
    wifi = [each.ap for each in cells if each.kind == "wifi"]
    return min(wifi, key=lambda ap: distance_m(places[ap], at))


# Users that are put somewhere


def placeable(topology: Topology) -> dict[str, Place]:
    """Return the users that can be put somewhere during a run, and where they are at its start.

    Their radio rates follow from their places: they and all access points that they can reach have
    one, they have one WiFi radio at most, and no trace sets a rate of theirs.
    """
    places = places_of(topology)
    reached: dict[str, list[Cell]] = {}
    for cell in topology.cells:
        for each in cell.stations:
            reached.setdefault(each.user, []).append(cell)
    wifi = [cell for cell in topology.cells if cell.kind == "wifi" and cell.radio]
    traced = {each.target.split(".")[2] for each in topology.traces if each.target[:4] == "cell"}
    return {
        user: places[user]
        for user in topology.users
        if user in places.keys() & reached.keys() - traced
        and all(cell.radio and cell.ap in places for cell in (*reached[user], *wifi))
        and sum(cell.kind == "wifi" for cell in reached[user]) <= 1
    }


def with_place(topology: Topology, user: str, place: Place) -> Topology:
    """Return a network in which a user is somewhere else, with the radio rates and the WiFi access
    point that follow. The user must be one of `placeable`."""
    places = places_of(topology)
    with_radio = [cell for cell in topology.cells if cell.radio]
    now = {  # the access points before and after
        cell.ap: access_point(cell, with_radio, places, place)
        for cell in topology.cells
        if any(each.user == user for each in cell.stations)
    }

    def stations(cell: Cell) -> tuple[Station, ...]:
        present = {each.user: each for each in cell.stations}
        if cell.radio and cell.ap in now.values():
            present[user] = station(user, cell.radio, distance_m(places[cell.ap], place))
        else:
            present.pop(user, None)
        return tuple(present.values())

    return replace(
        topology,
        nodes=tuple(
            replace(node, place_m=place, home=now.get(node.home, node.home))
            if node.id == user
            else node
            for node in topology.nodes
        ),
        cells=tuple(replace(cell, stations=stations(cell)) for cell in topology.cells),
    )


def begun(network: Topology, mobility: Mobility) -> Topology:
    """Return a network whose users are where their recorded walks begin, if `mobility` has some.

    Raise `RequestError` if users cannot walk in this network, or a point is outside of its area.
    """
    if not places_of(network).keys() >= {*network.users}:
        raise RequestError(
            f"mobility: topology '{network.name}' gives nobody a position. Leave out mobility"
        )
    for user, points in mobility.walks.items():
        known = placeable(network)
        if user not in known:
            raise RequestError(f"mobility: walks: user {unknown(user, sorted(known))}")
        for t_s, *place in points:
            if max(place) > network.area_m:
                raise RequestError(
                    f"mobility: walks: {user} is at {place[0]:g}, {place[1]:g} m at {t_s:g} s, "
                    f"outside of the area of {network.area_m:g} m"
                )
        network = with_place(network, user, Replay(user, points).at(0))
    return network


def places_of(topology: Topology) -> dict[str, Place]:
    """Return the places [m] at the start of a run, of all nodes that have one."""
    return {node.id: node.place_m for node in topology.nodes if node.place_m is not None}
