"""Choose the path of each subflow, and find the hops of a path. A hop is one direction of a link or
of a user's radio channel.

A subflow takes the first of these paths that exists:
1) the path that the controller requested, if all of its links are up
2) one of the shortest paths over links that are up. It is chosen by a hash of addresses and ports,
   as in the emulation
3) one of the shortest paths over all links, chosen in the same way. Its packets are lost at the
   link that is down
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import pairwise

from controller import paths
from controller.paths import Path
from lab.engines.sim.core import state
from lab.errors import LabError
from lab.topologies.topology import Interface, Trunk, Wiring

DOWN, UP = "down", "up"
Hops = tuple[state.Hop, ...]


@dataclass(frozen=True, slots=True)
class Ends:
    """The interfaces of the server and of the user between which a subflow runs.

    `flow` has the addresses and ports of packets from the server to the user.
    """

    server: Interface
    user: Interface
    flow: paths.Flow


@dataclass(slots=True)
class Subflow:
    """A subflow of a simulated network.

    `record` is its state in the packet core (`core.state`). `data_direction` is
    "down" (to the user) or "up". `path` is the path in use, and `requested_path` is the path that
    the controller requested. Each path lists the switches from the server to the user. It is empty
    if there is no path. If the subflow `is_forgotten`, its connection is over, and `record` is a
    copy with the last numbers (`tables.Tables.forget`).
    """

    record: state.Subflow
    ends: Ends
    data_direction: str
    path: Path = ()
    requested_path: Path = ()
    is_forgotten: bool = False


class Routes:
    def __init__(
        self,
        wiring: Wiring,
        links: Mapping[tuple[str, str], state.Hop],
        stations: Mapping[tuple[str, str, str], state.Hop],
    ) -> None:
        """`links[link, node]` is the hop over `link` towards `node`. `stations[ap, user,
        direction]` is the hop of a radio channel, where `direction` is "down" or "up". All links
        are up at the start."""
        self._wiring, self._links, self._stations = wiring, links, stations
        self._trunks: dict[frozenset[str], list[Trunk]] = {}  # by the switches at the ends
        for each in wiring.trunks:
            self._trunks.setdefault(frozenset((each.a, each.b)), []).append(each)
        self._broken: set[str] = set()
        self._shortest: dict[tuple[str, str], list[Path]] = {}  # while no link changes

    def set_link(self, link: str, up: bool) -> None:
        (self._broken.discard if up else self._broken.add)(link)
        self._shortest.clear()

    def path(self, ends: Ends, requested: Path = ()) -> Path:
        """Return the switches from the server to the user. The path is `requested` if all its links
        are up, and otherwise one of the shortest paths (see the module docstring).

        Raise `LabError` if no links connect the two ends.
        """
        if requested:
            up = self._neighbours(self._broken)
            if all(there in up[here] for here, there in pairwise(requested)):  # 1
                return requested
        server, user = ends.server.switch, ends.user.switch
        if (server, user) not in self._shortest:
            self._shortest[server, user] = self._found(server, user)
        found = self._shortest[server, user]
        if not found:
            raise LabError(
                f"connect {ends.user.node} and {ends.server.node}: "
                f"no path leads from {server} to {user}"
            )
        return paths.choose(found, ends.flow)

    def _found(self, server: str, user: str) -> list[Path]:
        """Return the shortest paths over links that are up (2), or else over all links (3)."""
        return paths.between(self._neighbours(self._broken), server, user) or paths.between(
            self._neighbours(()), server, user
        )

    def hops(self, ends: Ends, path: Path) -> dict[str, Hops]:
        """Return the hops of a path. The key "down" has the hops from the server to the user, and
        "up" has the hops from the user to the server."""
        steps = [(self._trunk(here, there).link, here, there) for here, there in pairwise(path)]
        down = [
            self._links[ends.server.link, path[0]],
            *(self._links[link, there] for link, _, there in steps),
        ]
        up = [
            *(self._links[link, here] for link, here, _ in reversed(steps)),
            self._links[ends.server.link, ends.server.node],
        ]
        return {
            DOWN: (*down, self.user_hop(ends.user, DOWN)),
            UP: (self.user_hop(ends.user, UP), *up),
        }

    def is_broken(self, link: str) -> bool:
        return link in self._broken

    def user_hop(self, user: Interface, direction: str) -> state.Hop:
        """Return the hop between the user and the first switch or access point. `direction` is
        "down" or "up"."""
        if (user.link, user.node, direction) in self._stations:
            return self._stations[user.link, user.node, direction]
        return self._links[user.link, user.node if direction == DOWN else user.switch]

    def _trunk(self, here: str, there: str) -> Trunk:
        """Return the link between two switches. If there are several, return the first that is up,
        or simply the first if all are down."""
        found = self._trunks[frozenset((here, there))]
        return next((each for each in found if each.link not in self._broken), found[0])

    def _neighbours(self, broken: Container[str]) -> dict[str, set[str]]:
        """Return the neighbours of each switch over all links whose id is not in `broken`."""
        near: dict[str, set[str]] = {switch: set() for switch in self._wiring.dpid}
        for each in self._wiring.trunks:
            if each.link not in broken:
                near[each.a].add(each.b)
                near[each.b].add(each.a)
        return near
