"""Which switches and ports a flow passes: pure, so that the same flow takes the same way after a restart.

1) find the places of both addresses
2) list the shortest paths between their switches over the links that are up
3) let the hash of the flow choose one; both directions choose the same
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
        self.routes: dict[Flow, Route] = {}

    def route(self, flow: Flow) -> Route | None:
        """The way of a flow, or None when an address or a way is unknown."""
        source, destination = self._hosts.place(flow.source), self._hosts.place(flow.destination)  # 1
        if source is None or destination is None:
            return None
        candidates = self._shortest(source.switch, destination.switch)  # 2
        if not candidates:
            return None
        path = paths.choose(candidates, flow)  # 3
        inner = (Hop(here, self._port(here, there)) for here, there in pairwise(path))  # 4
        route = (*inner, Hop(path[-1], destination.port, destination.mac))
        self._remember(flow, route)
        return route

    def path(self, flow: Flow) -> tuple[str, ...]:
        """The switches a flow passes; empty when it has no way."""
        return tuple(hop.switch for hop in self.routes.get(flow) or self.route(flow) or ())

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

    def changed(self, flows: Iterable[Flow] | None = None) -> list[tuple[Flow, Route]]:
        """The flows that now go another way, and that way; those that have none any more are forgotten."""
        found = []
        for flow in list(self.routes if flows is None else flows):
            before = self.routes.pop(flow)
            now = self.route(flow)
            if now is not None and now != before:
                found.append((flow, now))
        return found

    def _shortest(self, source: str, destination: str) -> list[paths.Path]:
        if (source, destination) not in self._paths:
            self._paths[source, destination] = paths.between(self._neighbours(), source, destination)
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
