"""Choose the route of each flow: the switches that it passes, and its port at each.

The choice depends only on the inputs, so a flow gets the same route after a restart.

1) Find the switches and ports of both addresses.
2) Take the path that a strategy chose, if it joins these switches and all its links are up.
3) Otherwise list the shortest paths between the switches over links that are up, and choose one by
   a hash of the flow; both directions get the same path.
4) Find the port at each switch, and the MAC address to write at the last switch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from controller import paths
from controller.paths import Flow
from controller.pox_ext.hosts import Hosts
from controller.topology import Topology

MOST_ROUTES = 8192


@dataclass(frozen=True)
class Hop:
    """A switch on a route, and the port by which the flow leaves this switch.

    `mac` is only set at the last switch: the destination MAC address to write into the frames.
    """

    switch: str
    port: str
    mac: str | None = None


Route = tuple[Hop, ...]


class Router:
    """Chooses the routes of flows, and stores at most `MOST_ROUTES` of them."""

    def __init__(self, network: Topology, hosts: Hosts) -> None:
        self._network, self._hosts = network, hosts
        self._down: set[str] = set()
        self._paths: dict[tuple[str, str], list[paths.Path]] = {}
        self._pins: dict[Flow, paths.Path] = {}
        self.routes: dict[Flow, Route] = {}

    def route(self, flow: Flow) -> Route | None:
        """Choose and store the route of a flow.

        Return None if the switch of one of its two addresses is unknown, or if no path leads to the
        destination.
        """
        source, destination = (
            self._hosts.place(flow.source),
            self._hosts.place(flow.destination),
        )  # 1
        if source is None or destination is None:
            return None
        path = self._pinned(flow, source.switch, destination.switch)  # 2
        if path is None:
            candidates = self._shortest(source.switch, destination.switch)  # 3
            if not candidates:
                return None
            path = paths.choose(candidates, flow)
        inner = (Hop(here, self._port(here, there)) for here, there in pairwise(path))  # 4
        route = (*inner, Hop(path[-1], destination.port, destination.mac))
        self._remember(flow, route)
        return route

    def path(self, flow: Flow) -> tuple[str, ...]:
        """Return the switches that a flow passes, in order; empty if the flow has no route."""
        return tuple(hop.switch for hop in self.routes.get(flow) or self.route(flow) or ())

    def pin(self, flow: Flow, path: paths.Path) -> None:
        """Use `path` for a flow, and `path` reversed for its opposite direction.

        While a link of the path is down, the router chooses another path. An empty `path` removes
        an earlier one.
        """
        for each, its_path in ((flow, path), (flow.back(), path[::-1])):
            self._pins.pop(each, None)
            if path:
                self._pins[each] = its_path

    def is_pinned(self, flow: Flow) -> bool:
        """Return whether a strategy has chosen a path for this flow."""
        return flow in self._pins

    def switches(self, flow: Flow) -> set[str]:
        """Return the switches on the stored route of a flow; empty if no route is stored."""
        return {hop.switch for hop in self.routes.get(flow, ())}

    def forget(self, flow: Flow) -> None:
        """Forget the route of an ended flow and the path chosen for it, in both directions."""
        self.pin(flow, ())
        for each in (flow, flow.back()):
            self.routes.pop(each, None)

    def is_up(self, link: str) -> bool:
        return link not in self._down

    def set_link(self, link: str, up: bool) -> bool:
        """Mark a link as up or down; return whether this changed its state."""
        before = set(self._down)
        (self._down.discard if up else self._down.add)(link)
        self._paths.clear()
        return before != self._down

    def ends(self, link: str) -> list[tuple[str, str]]:
        """Return both ends of a link as (switch, port); empty if it does not join two switches."""
        found = [each for each in self._network.trunks if each.link == link]
        return [end for each in found for end in ((each.a, each.a_port), (each.b, each.b_port))]

    def changed(self, flows: Iterable[Flow] | None = None) -> list[tuple[Flow, Route, Route]]:
        """Choose new routes for `flows`; return (flow, old route, new route) for each change.

        If `flows` is None, do this for all flows that have a stored route. The old route is empty
        if the flow had none. If no path leads to the destination any more, the stored route is
        removed and the flow is not in the result.
        """
        found = []
        for flow in list(self.routes if flows is None else flows):
            before = self.routes.pop(flow, ())
            now = self.route(flow)
            if now is not None and now != before:
                found.append((flow, before, now))
        return found

    def _pinned(self, flow: Flow, source: str, destination: str) -> paths.Path | None:
        path = self._pins.get(flow)
        if path is None or (path[0], path[-1]) != (source, destination):
            return None
        near = self._neighbours()
        return path if all(there in near[here] for here, there in pairwise(path)) else None

    def _shortest(self, source: str, destination: str) -> list[paths.Path]:
        if (source, destination) not in self._paths:
            self._paths[source, destination] = paths.between(
                self._neighbours(), source, destination
            )
        return self._paths[source, destination]

    def _neighbours(self) -> dict[str, set[str]]:
        near: dict[str, set[str]] = {switch: set() for switch in self._network.switches}
        for each in self._network.trunks:
            if each.link not in self._down:
                near[each.a].add(each.b)
                near[each.b].add(each.a)
        return near

    def _port(self, here: str, there: str) -> str:
        """Return the port of switch `here` on the first link to switch `there` that is up."""
        for each in self._network.trunks:
            if each.link not in self._down and {each.a, each.b} == {here, there}:
                return each.a_port if each.a == here else each.b_port
        raise KeyError(f"no link between {here} and {there} is up")

    def _remember(self, flow: Flow, route: Route) -> None:
        self.routes[flow] = route
        while len(self.routes) > MOST_ROUTES:
            del self.routes[next(iter(self.routes))]
