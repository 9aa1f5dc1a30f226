"""From reports, counters and SYNs to one `Observation`, and to the lines that describe it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from controller.agent_messages import ApReport
from controller.observation import AccessPoint, Observation, Subflow, Tiers
from controller.paths import Flow
from controller.plan import Plan, Stations, StationState
from controller.pox_ext.arcs import Arcs
from controller.pox_ext.counters import Counters, PathDelay
from controller.pox_ext.host_reports import HostReports, ends
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.router import Router
from controller.pox_ext.tracker import Joined, Tracker
from controller.units import NS_PER_S, bps_from_mbps

if TYPE_CHECKING:  # it needs POX, and who tests this has none
    from controller.pox_ext.meters import Meters


class Observer:
    """Collects between two steps; knows neither a clock nor a file."""

    def __init__(
        self,
        plan: Plan,
        hosts: Hosts,
        router: Router,
        tracker: Tracker,
        meters: Meters,
        counters: Counters,
        host_reports: HostReports,
    ) -> None:
        self._plan, self._hosts, self._router, self._tracker, self._meters = (
            plan,
            hosts,
            router,
            tracker,
            meters,
        )
        self._counters, self._host_reports = counters, host_reports
        self._reports: dict[str, list[ApReport]] = {}
        self._stations = Stations()
        self.arcs = Arcs(plan, router, counters, self._stations)
        self.tiers: Tiers = {}

    def add_report(self, report: ApReport) -> None:
        """An agent's report; the latest says where stations are, all since the last step make the occupancy."""
        if report.ap not in self._plan.aps:
            raise ValueError(
                f"report of access point '{report.ap}', which is unknown: choose from {', '.join(self._plan.aps) or 'none'}"
            )
        self._reports.setdefault(report.ap, []).append(report)
        for user, station in report.stations.items():
            rate_bps = None if station.rate_mbps is None else bps_from_mbps(station.rate_mbps)
            self._stations.states[user, report.ap] = StationState(
                rate_bps, station.rssi_dbm, station.associated
            )

    def observe(self, now_ns: int) -> Observation:
        """Everything since the last call."""
        self._count(now_ns)
        reports, self._reports = self._reports, {}
        observation = Observation(
            now_ns,
            access_points=(),
            associations=self._stations.associations(self._plan, self._hosts.associations()),
            multipath=frozenset(self._plan.multipath),
            subflows=tuple(self.subflow(each) for each in self._tracker.subflows()),
            tiers=self.tiers,
            arcs=self.arcs.observed(),
            receive_buffer_bytes=self._plan.receive_buffer_kb * 1000,
        )
        aps = tuple(
            self._access_point(ap, reports.get(ap.id, []), observation)
            for ap in self._plan.access_points()
        )
        return replace(observation, access_points=aps)

    def _access_point(
        self, ap: AccessPoint, reports: list[ApReport], observation: Observation
    ) -> AccessPoint:
        primary = {
            user for (user, where), tier in self.tiers.items() if where == ap.id and tier == 1
        }
        return replace(
            ap,
            mac_occupancy=_mean([occupancy(report, ap.kind, primary) for report in reports]),
            tier2_bps=self._meters.tier2_bps(ap.id, observation.addresses(ap.id, tier=2)),
            meter_bps=self._meters.limit_bps(ap.id),
        )

    def _count(self, now_ns: int) -> None:
        """Ask the counters about both directions of every subflow."""
        paths = {}
        for joined in self._tracker.subflows():
            for flow in (joined.flow, joined.flow.back()):
                path = self._router.path(flow)
                paths[flow] = PathDelay(path, self.arcs.delay_s(path))
        self._counters.update(paths, now_ns / NS_PER_S)

    def subflow(self, joined: Joined) -> Subflow:
        """A subflow as observation towards its user; packets are those of the direction that carries more."""
        to_user = joined.flow.back() if self._is_user(joined.flow.source) else joined.flow
        user, place = (
            self._hosts.owner(to_user.destination) or to_user.destination,
            self._hosts.place(to_user.destination),
        )
        ap, count, confirmed = (
            place.switch if place else "",
            self._counters.data(to_user),
            self._host_reports.confirmed(to_user),
        )
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
        """Whether a subflow's association has been given a tier, if it is at an access point; the first step gives one to all."""
        return subflow.ap not in self._plan.aps or (subflow.user, subflow.ap) in self.tiers

    def is_user(self, host: str) -> bool:
        """Whether a host is a user, and no server."""
        return host in self._plan.multipath or any(
            host in line.stations for line in self._plan.aps.values()
        )

    def _is_user(self, address: str) -> bool:
        """Of a subflow's ends the user is the one with a radio, or else the one that opened it."""
        place = self._hosts.place(address)
        return (
            place is None
            or place.switch in self._plan.aps
            or self._hosts.owner(address) in self._plan.multipath
        )


def occupancy(report: ApReport, kind: str, primary: Iterable[str]) -> float:
    """Of a WiFi access point its queue's; of LTE the mean over the bearers that carry Tier 1, where they are reported."""
    own = [station.mac_occupancy for user, station in report.stations.items() if user in primary]
    known = [each for each in own if each is not None]
    return sum(known) / len(known) if kind == "lte" and known else report.mac_occupancy


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def to_user(subflow: Subflow) -> Flow:
    """The 5-tuple of a subflow in the direction of its user."""
    (source, source_port), (destination, port) = (
        end.rsplit(":", 1) for end in (subflow.source, subflow.destination)
    )
    return Flow(source, destination, 6, int(source_port), int(port))
