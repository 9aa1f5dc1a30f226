"""Hold what host agents report: the subflows of each host, and the loss on the path to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.host_messages import HostReport, SubflowState
from controller.paths import Flow
from controller.units import bps_from_mbps

TCP = 6
# A new subflow appears in the reports of its hosts within this time; slow hosts report late.
MISSING_AFTER_S, MISSING_AFTER_REPORTS = 5.0, 4


@dataclass(frozen=True)
class Confirmed:
    """Hold the settings of a subflow that the reports of its two hosts confirm.

    A setting that is None is not confirmed. The backup flag comes from the server's report: the
    user's host sends the flag (MP_PRIO), and its own report shows only what it has sent. A pacing
    rate is confirmed if every end that reports the subflow has the same rate.
    `retransmitted_packets` is the sum of both ends.
    """

    backup: bool | None = None
    expected_bps: int | None = None
    retransmitted_packets: int | None = None


class HostReports:
    """Store the latest report of every host."""

    def __init__(self) -> None:
        self._latest: dict[str, HostReport] = {}
        self._states: dict[tuple[str, str], SubflowState] = {}
        self._report_counts: Counter[str | None] = Counter()
        self._unreported_since: dict[Flow, tuple[float, int]] = {}

    def add(self, report: HostReport) -> bool:
        """Store a report and return True.

        If an earlier report of this host has the same or a larger `seq`, ignore the report and
        return False.
        """
        before = self._latest.get(report.host)
        if before is not None and report.seq <= before.seq:
            return False
        self._report_counts[report.host] += 1
        for state in before.subflows if before else ():
            self._states.pop((state.local, state.remote), None)
        self._latest[report.host] = report
        self._states |= {(state.local, state.remote): state for state in report.subflows}
        return True

    def confirmed(self, to_user: Flow) -> Confirmed:
        """Return the confirmed settings of a subflow.

        `to_user` is its 5-tuple in the direction to the user.
        """
        source, destination = ends(to_user)
        server, user = (
            self._states.get((source, destination)),
            self._states.get((destination, source)),
        )
        both = [state for state in (server, user) if state is not None]
        if not both:
            return Confirmed()
        rates = {state.expected_mbps for state in both}
        expected_mbps = rates.pop() if len(rates) == 1 else None
        return Confirmed(
            backup=(server or both[0]).backup,
            expected_bps=None if expected_mbps is None else bps_from_mbps(expected_mbps),
            retransmitted_packets=sum(state.retransmitted_packets for state in both),
        )

    def loss(self, address: str) -> float | None:
        """Return the loss on the path to an address as its host reports it.

        The loss is a fraction; None means that no host has reported it.
        """
        return next(
            (report.loss[address] for report in self._latest.values() if address in report.loss),
            None,
        )

    def reports_any(self, hosts: Iterable[str | None]) -> bool:
        """Return whether at least one of these hosts has sent a report."""
        return any(host in self._latest for host in hosts)

    def is_over(self, to_user: Flow, hosts: Iterable[str | None], now_s: float) -> bool:
        """Return whether a subflow has ended: none of its hosts lists it in its reports any more.

        `to_user` is its 5-tuple in the direction to the user, and `hosts` are the hosts at its
        ends. A new subflow may be missing for `MISSING_AFTER_S` and `MISSING_AFTER_REPORTS` before
        it counts as ended. The result is False if neither host sends reports.
        """
        ends_of = set(hosts)
        if not self.reports_any(ends_of):
            return False
        reports = sum(self._report_counts[host] for host in ends_of)
        if any(each in self._states for each in (ends(to_user), ends(to_user)[::-1])):
            self._unreported_since[to_user] = (
                now_s - 2 * MISSING_AFTER_S,
                reports - MISSING_AFTER_REPORTS,
            )
            return False
        since_s, before = self._unreported_since.setdefault(to_user, (now_s, reports))
        return now_s - since_s > MISSING_AFTER_S and reports - before >= MISSING_AFTER_REPORTS

    def forget(self, to_user: Flow) -> None:
        """Discard what is stored about the absence of a subflow from reports.

        The subflow has ended.
        """
        self._unreported_since.pop(to_user, None)

    def subflows_at(self, host: str) -> Iterator[tuple[str, Flow]]:
        """Yield the token and the 5-tuple of each subflow in the latest report of `host`.

        The source of the 5-tuple is `host`. A restarted controller learns its subflows here.
        """
        for state in self._latest[host].subflows if host in self._latest else ():
            (source, source_port), (destination, port) = (
                end.rsplit(":", 1) for end in (state.local, state.remote)
            )
            yield state.token, Flow(source, destination, TCP, int(source_port), int(port))


def ends(flow: Flow) -> tuple[str, str]:
    """Return source and destination of a flow, each as `address:port`."""
    return f"{flow.source}:{flow.source_port}", f"{flow.destination}:{flow.destination_port}"
