"""Compute the current properties and the traffic of every arc, that is one direction of a link.

The properties are rate, delay and loss. The plan, which is the content of the topology file, lists
the links and their initial settings. Links that are down are left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from controller.agent_messages import LinkState
from controller.observation import Arc, air
from controller.paths import Flow, Path
from controller.plan import HostPort, Plan
from controller.pox_ext.counters import Counters
from controller.pox_ext.router import Route, Router
from controller.station_states import Stations
from controller.units import bps_from_mbps

Ends = tuple[str, str, str]  # identifies an arc: link, tail, head


class Arcs:
    """Hold the arcs of the plan and the changed link settings, and compute the arcs' traffic."""

    def __init__(self, plan: Plan, router: Router, counters: Counters, stations: Stations) -> None:
        self._router, self._counters, self._stations = router, counters, stations
        self._rate_scale = plan.rate_scale
        self._link_states: dict[str, LinkState] = {}
        self.replace_plan(plan)

    def replace_plan(self, plan: Plan) -> None:
        """Compute the arcs anew from `plan`, in which a station is at another access point."""
        self._arcs = plan.arcs()
        self._between: defaultdict[tuple[str, str], list[Arc]] = defaultdict(list)
        for arc in self._arcs:
            self._between[arc.tail, arc.head].append(arc)
        self._departures = {
            end: each.link
            for each in plan.trunks
            for end in ((each.a, each.a_port), (each.b, each.b_port))
        }
        self._links = {
            address: port.link for port in _host_ports(plan) for address in port.addresses
        }
        self._stations_at = {ap: list(line.stations) for ap, line in plan.aps.items()}
        self._owner = {
            address: host
            for host, ports in plan.hosts.items()
            for each in ports
            for address in each.addresses
        }
        self._backwards = {(each.link, each.b) for each in plan.trunks}
        self._backwards |= {
            (port.link, address) for port in _host_ports(plan) for address in port.addresses
        }

    def change_link(self, state: LinkState) -> None:
        """Store the new settings of a link; a setting that `state` leaves out stays as it is."""
        before = self._link_states.get(state.link, LinkState(link=state.link))
        self._link_states[state.link] = before.model_copy(
            update=state.model_dump(exclude_unset=True)
        )

    def documents(self) -> list[dict[str, Any]]:
        """Return the changed link settings as rows of the table `links` in the statistics file.

        Rates are in scenario units: wire rates divided by the rate scale of the plan. A restarted
        controller restores the link settings from these rows.
        """
        return [
            state.scaled(1 / self._rate_scale).model_dump(exclude_none=True)
            for state in self._link_states.values()
        ]

    def observed(self) -> tuple[Arc, ...]:
        """Return every arc whose link is up, with its current settings and its mean rate.

        The mean is over the time between the last two readings of the flow counters.
        """
        used = self._used()
        return tuple(
            self._now(arc, used[arc.link, arc.tail, arc.head])
            for arc in self._arcs
            if self._is_up(arc)
        )

    def delay_s(self, path: Path) -> float:
        """Return the sum of the link delays, in s, from the first to the last switch of `path`."""
        return sum(
            self._shaped(arc).delay_s
            for hop in dict.fromkeys(pairwise(path))
            if hop in self._between
            for arc in self._between[hop]
        )

    def _is_up(self, arc: Arc) -> bool:
        state = self._link_states.get(arc.link)
        return self._router.is_up(arc.link) and (state is None or state.up is not False)

    def _now(self, arc: Arc, used_bps: int) -> Arc:
        arc = self._shaped(arc)
        arc = replace(arc, used_bps=used_bps) if used_bps != arc.used_bps else arc
        users = self._users(arc)
        if not users:
            return arc
        rates = [
            self._stations.states[user, arc.link].rate_bps
            for user in users
            if (user, arc.link) in self._stations.states
        ]
        return replace(
            arc, capacity_bps=max((rate for rate in rates if rate), default=arc.capacity_bps)
        )

    def _shaped(self, arc: Arc) -> Arc:
        state = self._link_states.get(arc.link)
        if state is None:
            return arc
        loss = state.loss_back if (arc.link, arc.tail) in self._backwards else state.loss
        return replace(
            arc,
            capacity_bps=arc.capacity_bps
            if state.rate_mbps is None
            else bps_from_mbps(state.rate_mbps),
            delay_s=arc.delay_s if state.delay_ms is None else state.delay_ms / 1000,
            loss=arc.loss if loss is None else loss,
        )

    def _users(self, arc: Arc) -> list[str]:
        """Return the users whose station rates determine the capacity of this arc.

        The air of an access point is the node where the arcs of all its stations meet. For the arc
        between the air and one station, return the user of this station. For the arc between an
        access point and its air, return the users of all its stations. For a wired link, return an
        empty list.
        """
        if air(arc.link) not in (arc.tail, arc.head):
            return []
        owner = self._owner.get(arc.head) or self._owner.get(arc.tail)
        return [owner] if owner else self._stations_at[arc.link]

    def _used(self) -> Counter[Ends]:
        """Return the sum of the rates of all flows on each arc, in bit/s.

        On a link between two switches, a flow is counted at the switch where it leaves the link. On
        the link of a host, it is counted at the switch of this host. The sum includes flows whose
        path a strategy chose; a strategy that needs the other traffic subtracts them. Port counters
        are not used: Open vSwitch updates flow counters only twice a second, so differences between
        flow and port counters would be noise.
        """
        used: Counter[Ends] = Counter()
        for flow, route in self._router.routes.items():
            for ends, switch in self._over(flow, route):
                rate_bps = self._counters.flow_bps(switch, flow)
                if rate_bps:
                    used[ends] += rate_bps
        return used

    def _over(self, flow: Flow, route: Route) -> Iterator[tuple[Ends, str]]:
        """Yield each arc on the route of a flow, with the switch that counts the flow there."""
        first, last = route[0].switch, route[-1].switch
        yield from ((ends, first) for ends in self._joining(flow.source, first, ends_at_host=False))
        for hop, after in pairwise(route):
            yield (
                (self._departures.get((hop.switch, hop.port), ""), hop.switch, after.switch),
                after.switch,
            )
        yield from (
            (ends, last) for ends in self._joining(flow.destination, last, ends_at_host=True)
        )

    def _joining(self, address: str, switch: str, ends_at_host: bool) -> Iterator[Ends]:
        """Yield the arcs between the host with this `address` and its `switch`.

        A wired host has one arc. A station has two, which meet at the air of its access point. The
        arcs lead to the host if `ends_at_host`, else away from the host.
        """
        link = self._links.get(address, "")
        nodes = (
            (switch, air(switch), address)
            if switch in self._stations_at and link == switch
            else (switch, address)
        )
        yield from (
            (link, tail, head) for tail, head in pairwise(nodes if ends_at_host else nodes[::-1])
        )


def _host_ports(plan: Plan) -> Iterator[HostPort]:
    return (port for ports in plan.hosts.values() for port in ports)
