"""Which switches and ports a flow passes: pure, so that the same flow takes the same way after a restart.

1) find the places of both addresses
2) take the path the flow is pinned to, if it joins them and all its links are up
3) else list the shortest paths between their switches over the links that are up, and let the hash of the flow choose one;
   both directions choose the same
4) name the port at each switch, and the MAC address to write at the last
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from controller import paths
from controller.paths import Flow
from controller.plan import Plan
from controller.pox_ext.hosts import Hosts

MOST_ROUTES = 8192


@dataclass(frozen=True)
class Hop:
    """Leave `switch` by `port`; before the last link the destination MAC is written, where it is known."""

    switch: str
    port: str
    mac: str | None = None


Route = tuple[Hop, ...]


class Router:
    """Routes of flows over a plan; remembers those in use, the oldest forgotten first (they are found again)."""

    def __init__(self, plan: Plan, hosts: Hosts) -> None:
        self._plan, self._hosts = plan, hosts
        self._down: set[str] = set()
        self._paths: dict[tuple[str, str], list[paths.Path]] = {}
        self._pins: dict[Flow, paths.Path] = {}
        self.routes: dict[Flow, Route] = {}

    def route(self, flow: Flow) -> Route | None:
        """The way of a flow, or None when an address or a way is unknown."""
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
        """The switches a flow passes; empty when it has no way."""
        return tuple(hop.switch for hop in self.routes.get(flow) or self.route(flow) or ())

    def pin(self, flow: Flow, path: paths.Path) -> None:
        """A flow and its opposite direction take this path from now on, while its links are up; an empty one lets them go."""
        for each, way in ((flow, path), (flow.back(), path[::-1])):
            self._pins.pop(each, None)
            if path:
                self._pins[each] = way

    def is_pinned(self, flow: Flow) -> bool:
        """Whether a path was asked for."""
        return flow in self._pins

    def switches(self, flow: Flow) -> set[str]:
        """The switches of a flow's route in use."""
        return {hop.switch for hop in self.routes.get(flow, ())}

    def forget(self, flow: Flow) -> None:
        """A flow and its opposite direction are over."""
        self.pin(flow, ())
        for each in (flow, flow.back()):
            self.routes.pop(each, None)

    def is_up(self, link: str) -> bool:
        return link not in self._down

    def set_link(self, link: str, up: bool) -> bool:
        """A link of the plan went down or came back; True when that changed anything."""
        before = set(self._down)
        (self._down.discard if up else self._down.add)(link)
        self._paths.clear()
        return before != self._down

    def ends(self, link: str) -> list[tuple[str, str]]:
        """The switches and ports at the ends of a link between switches."""
        found = [each for each in self._plan.trunks if each.link == link]
        return [end for each in found for end in ((each.a, each.a_port), (each.b, each.b_port))]

    def changed(self, flows: Iterable[Flow] | None = None) -> list[tuple[Flow, Route, Route]]:
        """The flows that now go another way, the old and the new one; those that have none any more are forgotten."""
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
        near: dict[str, set[str]] = {switch: set() for switch in self._plan.switches}
        for each in self._plan.trunks:
            if each.link not in self._down:
                near[each.a].add(each.b)
                near[each.b].add(each.a)
        return near

    def _port(self, here: str, there: str) -> str:
        """The first trunk in service between two switches."""
        for each in self._plan.trunks:
            if each.link not in self._down and {each.a, each.b} == {here, there}:
                return each.a_port if each.a == here else each.b_port
        raise KeyError(f"no link between {here} and {there} is up")

    def _remember(self, flow: Flow, route: Route) -> None:
        self.routes[flow] = route
        while len(self.routes) > MOST_ROUTES:
            del self.routes[next(iter(self.routes))]
