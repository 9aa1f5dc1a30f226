"""Build the `Observation` of each control step from reports, counters and tracked subflows.

The observation is all that a strategy knows about the network.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from controller.agent_messages import ApReport
from controller.observation import AccessPoint, Observation, Subflow, Tiers
from controller.plan import Plan
from controller.pox_ext.arcs import Arcs
from controller.pox_ext.counters import Counters, PathDelay
from controller.pox_ext.host_reports import HostReports, ends
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.router import Router
from controller.pox_ext.tracker import Joined, Tracker
from controller.station_states import Stations, StationState
from controller.units import NS_PER_S, bps_from_mbps

if TYPE_CHECKING:  # `Meters` imports POX, which is missing in unit tests
    from controller.pox_ext.meters import Meters


class Observer:
    """Collect reports of access points between two control steps, and build observations.

    This class reads neither a clock nor a file.
    """

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
        self.plan, self.hosts, self._router = plan, hosts, router
        self._tracker, self._meters = tracker, meters
        self._counters, self._host_reports = counters, host_reports
        self._reports: dict[str, list[ApReport]] = {}
        self._stations = Stations()
        self.arcs = Arcs(plan, router, counters, self._stations)
        self.tiers: Tiers = {}
        self._observations = 0
        self._first_observed: dict[str, int] = {}  # connection: number of its first observation

    def add_report(self, report: ApReport) -> list[tuple[str, str]]:
        """Store the report of an access point, and return the users that have come there.

        Each returned element is a user and the access point that the user has left. From now on,
        rate, signal strength and association of a station are those of the latest report. The MAC
        occupancy of an access point is the mean over its reports since the last control step. Raise
        `ValueError` if the access point is unknown.
        """
        if report.ap not in self.plan.aps:
            known = ", ".join(self.plan.aps) or "none"
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
        left = [(user, self.plan.left_by(user, report.ap)) for user in present]
        return [(user, old) for user, old in left if old is not None]

    def hand_over(self, plan: Plan, user: str, old: str, new: str) -> None:
        """Count a user as a station of access point `new` from now on. The user keeps its tier.

        `plan` is the plan after this change; `old` is the access point that the user has left.
        """
        self.plan = self.hosts.plan = plan
        self.arcs.replace_plan(plan)
        self.tiers = {
            (each, new if (each, ap) == (user, old) else ap): tier
            for (each, ap), tier in self.tiers.items()
        }

    def observe(self, now_ns: int) -> Observation:
        """Return the observation for the control step at the time `now_ns`.

        The reports of access points since the previous call are included.
        """
        self._count(now_ns)
        reports, self._reports = self._reports, {}
        observation = Observation(
            now_ns,
            access_points=(),
            associations=self._stations.associations(self.plan, self.hosts.associations()),
            multipath=frozenset(self.plan.multipath),
            subflows=self._subflows(),
            tiers=self.tiers,
            arcs=self.arcs.observed(),
            receive_buffer_bytes=self.plan.receive_buffer_kb * 1000,
            user_addresses={user: self.hosts.addresses(user) for user in self.plan.multipath},
        )
        aps = tuple(
            self._access_point(ap, reports.get(ap.id, []), observation)
            for ap in self.plan.access_points()
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
        """Return the tracked subflows by connection, in the order of first observation.

        Connections that are first observed together are sorted by user, in the order of the plan.
        Some strategies serve connections in turn. The order in which connections of one time have
        opened depends on how fast the machine is, and must not change what a strategy decides.
        """
        found = [self.subflow(each) for each in self._tracker.subflows()]
        self._observations += 1
        self._first_observed = {
            each.connection: self._first_observed.get(each.connection, self._observations)
            for each in found
        }
        users = {user: n for n, user in enumerate(self.plan.hosts)}
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
        """Convert a tracked subflow to the `Subflow` that strategies observe.

        Its source is the server and its destination the user. The packet counts are those of the
        direction that carries more bytes.
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
        """Return whether the tier (1 or 2) of a subflow is known, or the subflow needs none.

        A subflow needs no tier if its user's address is at no access point. The first control step
        divides all pairs of user and access point into tiers.
        """
        return subflow.ap not in self.plan.aps or (subflow.user, subflow.ap) in self.tiers

    def is_user(self, host: str) -> bool:
        """Return whether `host` is a user: a host that uses MPTCP or is a station.

        Every other host is a server.
        """
        return host in self.plan.multipath or any(
            host in line.stations for line in self.plan.aps.values()
        )

    def _is_user(self, address: str) -> bool:
        """Return whether `address`, one end of a subflow, is the user's end and not the server's.

        This is so if the address is at an access point, if its host uses MPTCP, or if its switch is
        unknown.
        """
        place = self.hosts.place(address)
        return (
            place is None
            or place.switch in self.plan.aps
            or self.hosts.owner(address) in self.plan.multipath
        )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
