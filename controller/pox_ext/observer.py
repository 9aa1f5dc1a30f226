"""Build the `Observation` of each control step from reports, counters and tracked subflows.

`Arcs` has the state of the links, and `Stations` the state of the stations as AP agents report it.
`Handovers` moves stations that appear at another access point.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from controller.agent_messages import ApReport, LinkState
from controller.observation import AccessPoint, Arc, Association, Observation, Subflow, Tiers, air
from controller.paths import Flow, Path
from controller.pox_ext.counters import Counters, PathDelay
from controller.pox_ext.host_agents import HostReports, ends
from controller.pox_ext.hosts import Hosts, Place
from controller.pox_ext.meters import Meters
from controller.pox_ext.router import Route, Router
from controller.pox_ext.tracker import Joined, Tracker
from controller.topology import HostPort, Topology
from controller.units import NS_PER_S, bps_from_mbps


class Observer:
    """Builds the observations for strategies. It reads neither a clock nor a file."""

    def __init__(
        self,
        network: Topology,
        hosts: Hosts,
        router: Router,
        tracker: Tracker,
        meters: Meters,
        counters: Counters,
        host_reports: HostReports,
    ) -> None:
        self.network, self.hosts, self._router = network, hosts, router
        self._tracker, self._meters = tracker, meters
        self._counters, self._host_reports = counters, host_reports
        self._reports: dict[str, list[ApReport]] = {}
        self._stations = Stations()
        self.arcs = Arcs(network, router, counters, self._stations)
        self.tiers: Tiers = {}
        self._observations = 0
        self._first_observed: dict[str, int] = {}  # connection: number of its first observation

    def add_report(self, report: ApReport) -> list[tuple[str, str]]:
        """Store an access point's report; return the users that have moved to this access point.

        Each element is a pair: the user, and the access point that the user has left. Rate, signal
        strength and association of a station are those of the latest report. The MAC occupancy is
        the mean over all reports since the last observation. Raise `ValueError` if the access point
        is unknown.
        """
        if report.ap not in self.network.aps:
            known = ", ".join(self.network.aps) or "none"
            raise ValueError(
                f"report of access point '{report.ap}', which is unknown: choose from {known}"
            )
        self._reports.setdefault(report.ap, []).append(report)
        for user, station in report.stations.items():
            rate_bps = None if station.rate_mbps is None else bps_from_mbps(station.rate_mbps)
            self._stations.states[user, report.ap] = StationState(
                rate_bps, station.rssi_dbm, station.associated
            )

        present = [user for user, each in report.stations.items() if each.associated]
        left = [(user, self.network.left_by(user, report.ap)) for user in present]
        return [(user, old) for user, old in left if old is not None]

    def hand_over(self, network: Topology, user: str, old: str, new: str) -> None:
        """Record that a user has moved from access point `old` to `new`. The user keeps its tier.

        `network` is the network after the move.
        """
        self.network = self.hosts.network = network
        self.arcs.replace_network(network)
        self.tiers = {
            (each, new if (each, ap) == (user, old) else ap): tier
            for (each, ap), tier in self.tiers.items()
        }

    def observe(self, now_ns: int) -> Observation:
        """Return an observation; it includes the reports since the previous call."""
        self._count(now_ns)
        reports, self._reports = self._reports, {}
        observation = Observation(
            now_ns,
            access_points=(),
            associations=self._stations.associations(self.network, self.hosts.associations()),
            multipath=frozenset(self.network.multipath),
            subflows=self._subflows(),
            tiers=self.tiers,
            arcs=self.arcs.observed(),
            receive_buffer_bytes=self.network.receive_buffer_kb * 1000,
            user_addresses={user: self.hosts.addresses(user) for user in self.network.multipath},
        )
        aps = tuple(
            self._access_point(ap, reports.get(ap.id, []), observation)
            for ap in self.network.access_points()
        )
        return replace(observation, access_points=aps)

    def _access_point(
        self, ap: AccessPoint, reports: list[ApReport], observation: Observation
    ) -> AccessPoint:
        tiers = {user: tier for (user, where), tier in self.tiers.items() if where == ap.id}
        return replace(
            ap,
            mac_occupancy=_mean([report.occupancy(tiers) for report in reports]),
            tier2_bps=self._meters.tier2_bps(ap.id, observation.addresses(ap.id, tier=2)),
            meter_bps=self._meters.limit_bps(ap.id),
        )

    def _count(self, now_ns: int) -> None:
        """Update the packet counts of both directions of every subflow."""
        paths = {}
        for joined in self._tracker.subflows():
            for flow in (joined.flow, joined.flow.back()):
                path = self._router.path(flow)
                paths[flow] = PathDelay(path, self.arcs.delay_s(path))
        self._counters.update(paths, now_ns / NS_PER_S)

    def _subflows(self) -> tuple[Subflow, ...]:
        """Return the tracked subflows. Connections that were observed earlier come first.

        Connections that were first observed together are sorted by user, in the order of the
        topology file. Their real order depends on the speed of the machine, and must not change a
        decision.
        """
        found = [self.subflow(each) for each in self._tracker.subflows()]
        self._observations += 1
        self._first_observed = {
            each.connection: self._first_observed.get(each.connection, self._observations)
            for each in found
        }
        users = {user: n for n, user in enumerate(self.network.hosts)}
        return tuple(
            sorted(
                found,
                key=lambda each: (
                    self._first_observed[each.connection],
                    users.get(each.user, len(users)),
                ),
            )
        )

    def subflow(self, joined: Joined) -> Subflow:
        """Convert a tracked subflow to the form that strategies observe.

        The source is the server and the destination the user. The packet counts are those of the
        direction with more bytes.
        """
        to_user = joined.flow.back() if self._is_user(joined.flow.source) else joined.flow
        place = self.hosts.place(to_user.destination)
        user = self.hosts.owner(to_user.destination) or to_user.destination
        ap = place.switch if place else ""
        count, confirmed = self._counters.data(to_user), self._host_reports.confirmed(to_user)
        return Subflow(
            joined.connection,
            joined.number,
            user,
            ap,
            *ends(to_user),
            self.tiers.get((user, ap), 1),
            self._router.path(to_user),
            backup=joined.backup if confirmed.backup is None else confirmed.backup,
            expected_bps=confirmed.expected_bps,
            rate_bps=count.rate_bps if count else None,
            sent_packets=count.sent if count else None,
            lost_packets=count.lost if count else None,
            retransmitted_packets=confirmed.retransmitted_packets,
            device_loss=self._host_reports.loss(to_user.destination),
        )

    def knows_tier(self, subflow: Subflow) -> bool:
        """Return whether the tier of a subflow is known, or the subflow is at no access point.

        The tier is 1 for primary and 2 for secondary subflows. The tier of a new user is not known
        before the next control step. A subflow that is at no access point needs no tier.
        """
        return subflow.ap not in self.network.aps or (subflow.user, subflow.ap) in self.tiers

    def is_user(self, host: str) -> bool:
        """Return whether a host is a user and not a server.

        Users are the hosts that use MPTCP, and all stations of access points.
        """
        return host in self.network.multipath or any(
            host in line.stations for line in self.network.aps.values()
        )

    def _is_user(self, address: str) -> bool:
        """Return whether `address`, one end of a subflow, is the user's end and not the server's.

        The result is True if the switch of the address is unknown, if that switch is an access
        point, or if the host with this address uses MPTCP.
        """
        place = self.hosts.place(address)
        return (
            place is None
            or place.switch in self.network.aps
            or self.hosts.owner(address) in self.network.multipath
        )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


# Handovers of stations from one access point to another
#
# 1) The addresses of the station are now located at the new access point, and its flows are moved
#    to paths that lead there.
# 2) The station keeps its tier. If its traffic passed the meter of the old access point, it passes
#    the meter of the new one, if there is a meter. The next control step may change both.
# 3) The number of flows that have moved is written into the decision log.


class Handovers:
    """Stores the reports of AP agents, and moves stations that appear at another access point."""

    def __init__(
        self,
        observer: Observer,
        router: Router,
        meters: Meters,
        reroute: Callable[[Iterable[Any]], int],
        write: Callable[[dict[str, Any]], None],
    ) -> None:
        """`reroute(flows)` moves flows to new paths and returns how many have moved.

        `write(line)` appends a line to the decision log.
        """
        self._observer, self._router = observer, router
        self._meters, self._reroute, self._write = meters, reroute, write

    def handle(self, report: ApReport) -> None:
        """Store a report of an AP agent, and move the stations that are new at its access point.

        Raise `ValueError` if the access point is unknown.
        """
        for user, old in self._observer.add_report(report):
            self._move(user, old, report.ap)

    def _move(self, user: str, old: str, new: str) -> None:
        network = self._observer.network.handed_over(user, old, new)
        if network is None:
            return  # the port of the new access point is not known
        moved = [each for each in network.hosts[user] if each.switch == new]
        addresses = {address for each in moved for address in each.addresses}
        for each in moved:
            for address in each.addresses:
                place = Place(new, each.port, each.mac and each.mac.lower())
                self._observer.hosts.move(address, place)
        self._observer.hand_over(network, user, old, new)  # 2
        self._meters.hand_over(addresses, old, new)
        flows = [
            flow
            for flow in list(self._router.routes)
            if flow.source in addresses or flow.destination in addresses
        ]
        count = self._reroute(flows)  # 1
        line = {"kind": "association", "user": user, "from": old, "to": new, "flows_moved": count}
        self._write(line)  # 3


Ends = tuple[str, str, str]  # identifies an arc: link, tail, head


class Arcs:
    """The arcs (directions of links) of the network, with their present settings and traffic.

    The topology file lists the links and their initial settings. Links that are down are left out.
    """

    def __init__(
        self, network: Topology, router: Router, counters: Counters, stations: Stations
    ) -> None:
        self._router, self._counters, self._stations = router, counters, stations
        self._rate_scale = network.rate_scale
        self._link_states: dict[str, LinkState] = {}
        self.replace_network(network)

    def replace_network(self, network: Topology) -> None:
        """Compute the arcs anew from `network`, for example after a handover of a station."""
        self._arcs = network.arcs()
        self._between: defaultdict[tuple[str, str], list[Arc]] = defaultdict(list)
        for arc in self._arcs:
            self._between[arc.tail, arc.head].append(arc)
        self._departures = {
            end: each.link
            for each in network.trunks
            for end in ((each.a, each.a_port), (each.b, each.b_port))
        }
        self._links = {
            address: port.link for port in _host_ports(network) for address in port.addresses
        }
        self._stations_at = {ap: list(line.stations) for ap, line in network.aps.items()}
        self._owner = {
            address: host
            for host, ports in network.hosts.items()
            for each in ports
            for address in each.addresses
        }
        self._backwards = {(each.link, each.b) for each in network.trunks}
        self._backwards |= {
            (port.link, address) for port in _host_ports(network) for address in port.addresses
        }

    def change_link(self, state: LinkState) -> None:
        """Store new settings of a link. A setting that is missing in `state` stays as it is."""
        before = self._link_states.get(state.link, LinkState(link=state.link))
        new = state.model_dump(exclude_unset=True)
        for key, back in (("rate_mbps", "rate_back_mbps"), ("delay_ms", "delay_back_ms")):
            if key in new:
                new.setdefault(back, None)  # both directions have the same
        self._link_states[state.link] = before.model_copy(update=new)

    def documents(self) -> list[dict[str, Any]]:
        """Return the changed link settings as rows of the table `links` of the statistics file.

        A restarted controller restores the settings from these rows. Rates are in Mb/s as in the
        scenario file.
        """
        return [
            state.scaled(1 / self._rate_scale).model_dump(exclude_none=True)
            for state in self._link_states.values()
        ]

    def observed(self) -> tuple[Arc, ...]:
        """Return all arcs whose links are up, with their present settings and mean rates.

        The mean is over the time between the last two readings of the flow counters.
        """
        used = self._used()
        return tuple(
            self._now(arc, used[arc.link, arc.tail, arc.head])
            for arc in self._arcs
            if self._is_up(arc)
        )

    def delay_s(self, path: Path) -> float:
        """Return the sum of the link delays from the first to the last switch of `path`."""
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
        rate_mbps, delay_ms, loss = state.rate_mbps, state.delay_ms, state.loss
        if (arc.link, arc.tail) in self._backwards:
            rate_mbps = state.rate_back_mbps or rate_mbps
            delay_ms = delay_ms if state.delay_back_ms is None else state.delay_back_ms
            loss = state.loss_back
        return replace(
            arc,
            capacity_bps=arc.capacity_bps if rate_mbps is None else bps_from_mbps(rate_mbps),
            delay_s=arc.delay_s if delay_ms is None else delay_ms / 1000,
            loss=arc.loss if loss is None else loss,
        )

    def _users(self, arc: Arc) -> list[str]:
        """Return the users whose station rates determine the capacity of this arc.

        The radio channel of an access point is a node of its own. For the arc between the access
        point and this node, the result is the users of all stations. For the arc between this node
        and a station, it is the user of the station. For a wired link it is empty.
        """
        if air(arc.link) not in (arc.tail, arc.head):
            return []
        owner = self._owner.get(arc.head) or self._owner.get(arc.tail)
        return [owner] if owner else self._stations_at[arc.link]

    def _used(self) -> Counter[Ends]:
        """Return the sum of the rates of all flows on each arc, in bit/s.

        The switch at the end of a link counts the flow. On the link of a host, the host's switch
        counts it. Flows whose path a strategy chose are included. Port counters are not used: Open
        vSwitch updates flow counters only twice a second, so differences between port and flow
        counters would be noise.
        """
        used: Counter[Ends] = Counter()
        for flow, route in self._router.routes.items():
            for arc, switch in self._over(flow, route):
                rate_bps = self._counters.flow_bps(switch, flow)
                if rate_bps:
                    used[arc] += rate_bps
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

        A wired host has one arc. A station has two, which meet at the node for the radio channel.
        The arcs lead to the host if `ends_at_host` is True, else away from the host.
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


def _host_ports(network: Topology) -> Iterator[HostPort]:
    return (port for ports in network.hosts.values() for port in ports)


@dataclass
class StationState:
    """What an AP agent has reported about a station.

    The values replace those of the topology file. A rate or signal strength that is None has not
    been reported.
    """

    rate_bps: int | None = None
    rssi_dbm: float | None = None
    associated: bool = True


@dataclass
class Stations:
    """The latest reported state of every station; the keys are pairs (user, access point)."""

    states: dict[tuple[str, str], StationState] = field(default_factory=dict)

    def associations(
        self, network: Topology, addresses: dict[tuple[str, str], tuple[str, ...]]
    ) -> tuple[Association, ...]:
        """Return the associations of all stations that have not been reported as gone.

        `addresses` maps (user, access point) to the user's addresses at that access point.
        """
        found = []
        for ap, planned in network.aps.items():
            for user, station in planned.stations.items():
                state = self.states.get((user, ap), StationState())
                rate_bps = state.rate_bps or bps_from_mbps(station.rate_mbps)
                if state.associated:
                    own = addresses.get((user, ap), ())
                    found.append(
                        Association(user, ap, rate_bps, station.weight, own, state.rssi_dbm)
                    )
        return tuple(found)
