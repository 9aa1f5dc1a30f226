"""Ways through the network, and the hops of each.

1) the way the controller has asked for, while all of its links are up
2) else of the shortest ways the one that the hash of addresses and ports says, as in the emulation
3) where none is left, one over links that are down: what takes it is lost
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import pairwise

from controller import paths
from controller.paths import Path
from lab.errors import LabError
from lab.topologies.topology import Interface, Trunk, Wiring

DOWN, UP = "down", "up"
Hops = tuple[int, ...]


@dataclass(frozen=True)
class Ends:
    """The interfaces that a subflow joins, and its addresses and ports as seen towards its user."""

    server: Interface
    user: Interface
    flow: paths.Flow


@dataclass
class Subflow:
    """A subflow's row in its table, its ends, the direction of its data, the switches it passes towards its user, and those asked for."""

    place: int
    ends: Ends
    data: str
    way: Path = ()
    asked: Path = ()


class Routes:
    """Knows which links are up, and where each of their directions stands in the table of hops."""

    def __init__(
        self,
        wiring: Wiring,
        links: Mapping[tuple[str, str], int],
        stations: Mapping[tuple[str, str, str], int],
    ) -> None:
        """`links` by link and the node it leads to, `stations` by access point, user and direction."""
        self._wiring, self._links, self._stations = wiring, links, stations
        self._broken: set[str] = set()

    def set_link(self, link: str, up: bool) -> None:
        """A link came back or went down."""
        (self._broken.discard if up else self._broken.add)(link)

    def way(self, ends: Ends, asked: Path = ()) -> Path:
        """The switches from the server to the user."""
        up = self._neighbours(self._broken)
        if asked and all(there in up[here] for here, there in pairwise(asked)):  # 1
            return asked
        between = ends.server.switch, ends.user.switch
        found = paths.between(up, *between) or paths.between(self._neighbours(()), *between)  # 2, 3
        if not found:
            raise LabError(
                f"connect {ends.user.node} and {ends.server.node}: no way leads from {between[0]} to {between[1]}"
            )
        return paths.choose(found, ends.flow)

    def hops(self, ends: Ends, way: Path) -> dict[str, Hops]:
        """The hops of a way towards the user and back."""
        steps = [(self._trunk(here, there).link, here, there) for here, there in pairwise(way)]
        down = [
            self._links[ends.server.link, way[0]],
            *(self._links[link, there] for link, _, there in steps),
        ]
        up = [
            *(self._links[link, here] for link, here, _ in reversed(steps)),
            self._links[ends.server.link, ends.server.node],
        ]
        return {DOWN: (*down, self._last(ends.user, DOWN)), UP: (self._last(ends.user, UP), *up)}

    def _last(self, user: Interface, direction: str) -> int:
        if (user.link, user.node, direction) in self._stations:
            return self._stations[user.link, user.node, direction]
        return self._links[user.link, user.node if direction == DOWN else user.switch]

    def _trunk(self, here: str, there: str) -> Trunk:
        """The first link between two switches, one that is up if there is any."""
        found = [each for each in self._wiring.trunks if {each.a, each.b} == {here, there}]
        return next((each for each in found if each.link not in self._broken), found[0])

    def _neighbours(self, broken: Container[str]) -> dict[str, set[str]]:
        near: dict[str, set[str]] = {switch: set() for switch in self._wiring.dpid}
        for each in self._wiring.trunks:
            if each.link not in broken:
                near[each.a].add(each.b)
                near[each.b].add(each.a)
        return near
