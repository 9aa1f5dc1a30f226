"""Store what host agents, the programs on the hosts, report.

A report lists the subflows of its host, and the loss on the path to the host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.host_messages import NO_TOKEN, HostReport, SubflowState
from controller.paths import Flow
from controller.units import bps_from_mbps

TCP = 6
# A new subflow appears in the reports of its hosts within this time; slow hosts report late.
MISSING_AFTER_S, MISSING_AFTER_REPORTS = 5.0, 4


@dataclass(frozen=True)
class Confirmed:
    """Hold the settings of a subflow that the reports of its two hosts confirm.

    A setting is None if it is not confirmed. `backup` comes from the server's report: the user's
    host sends the flag (MP_PRIO), so its report would only show that the flag was sent. The pacing
    rate `expected_bps` is confirmed if every host that reports the subflow reports the same rate.
    `retransmitted_packets` is the sum over both hosts.
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

        If the stored report of this host has the same or a larger `seq`, ignore the new one and
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
        """Return the confirmed settings of a subflow; every setting is None if no host reports it.

        `to_user` is the 5-tuple of the subflow in the direction from the server to the user.
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
        """Return the loss on the path to `address`, a fraction, as a host reports it.

        Return None if no host has reported it.
        """
        return next(
            (report.loss[address] for report in self._latest.values() if address in report.loss),
            None,
        )

    def reports_any(self, hosts: Iterable[str | None]) -> bool:
        """Return whether at least one of these hosts has sent a report."""
        return any(host in self._latest for host in hosts)

    def is_over(self, to_user: Flow, hosts: Iterable[str | None], now_s: float) -> bool:
        """Return whether a subflow has ended: the reports of its hosts do not list it any more.

        `to_user` is the 5-tuple of the subflow in the direction to the user, and `hosts` are the
        two hosts at its ends. A subflow that no report has listed yet counts as ended only after
        `MISSING_AFTER_S` and `MISSING_AFTER_REPORTS` reports. Return False if neither host sends
        reports.
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
        """Forget how long reports have not listed the subflow `to_user`, because it has ended."""
        self._unreported_since.pop(to_user, None)

    def subflows_at(self, host: str) -> Iterator[tuple[str | None, Flow]]:
        """Yield the MPTCP token and the 5-tuple of each subflow in the latest report of `host`.

        The token is None for a connection without MPTCP. The 5-tuple is in the direction away from
        `host`. From these, a restarted controller learns the subflows that it does not track.
        """
        for state in self._latest[host].subflows if host in self._latest else ():
            (source, source_port), (destination, port) = (
                end.rsplit(":", 1) for end in (state.local, state.remote)
            )
            token = None if state.token == NO_TOKEN else state.token
            yield token, Flow(source, destination, TCP, int(source_port), int(port))


def ends(flow: Flow) -> tuple[str, str]:
    """Return the source and the destination of a flow, each as `address:port`."""
    return f"{flow.source}:{flow.source_port}", f"{flow.destination}:{flow.destination_port}"
