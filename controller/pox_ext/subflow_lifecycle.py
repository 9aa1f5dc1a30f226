"""Follow each subflow from handshake to end, and write a line to the decision log at each change.

1) A SYN/ACK completes the handshake of a subflow. Its line is written when its tier (1 or 2) is
   known, at the first control step at the latest. After a restart, the controller learns older
   subflows from the report of the server's host agent, the program that runs on this host.
2) When its path, its backup flag or its pacing rate has changed, write a line.
3) A subflow has ended when the reports of its hosts no longer list it. If neither host sends
   reports, it has ended when its flow entry was removed because no packet used it. Write a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from controller import decision_log as lines
from controller.host_messages import HostReport
from controller.observation import Subflow, SubflowKey
from controller.paths import Flow, digest
from controller.pox_ext.counters import Counters
from controller.pox_ext.frames import Ip
from controller.pox_ext.host_agents import HostReports
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.observer import Observer
from controller.pox_ext.router import Router
from controller.pox_ext.tracker import Fallback, Joined, Tracker

Logged = tuple[tuple[str, ...], bool, int | None]  # path, backup, expected rate


class SubflowLifecycle:
    """Tracks when subflows begin, change and end, and logs each such event."""

    def __init__(
        self,
        tracker: Tracker,
        host_reports: HostReports,
        observer: Observer,
        router: Router,
        hosts: Hosts,
        write: Callable[[dict[str, Any]], None],
        changed: Callable[[], None],
        rate_scale: float,
    ) -> None:
        """`write(line)` appends a line to the decision log.

        `changed()` is called when a subflow begins or ends.
        """
        self._rate_scale = rate_scale
        self._tracker, self._host_reports, self._observer = tracker, host_reports, observer
        self._router, self._hosts = router, hosts
        self._write, self._changed = write, changed
        self._written: dict[SubflowKey, Logged] = {}

    def handle_syn(self, packet: Ip) -> Fallback | None:
        """Handle a SYN or SYN/ACK, which may establish a new subflow.

        Return a `Fallback` if the packet shows that MPTCP fell back to plain TCP, else None.
        """
        event = self._tracker.handle_syn(packet)
        if event is not None:
            self._joined(event.joined if isinstance(event, Fallback) else event)  # 1
        return event if isinstance(event, Fallback) else None

    def handle_report(self, report: HostReport) -> None:
        """Store the report of a host agent.

        If the host is a server, begin to track those reported subflows that are not tracked yet.
        """
        if self._host_reports.add(report) and not self._is_user(report.host):
            known = {each.flow for each in self._tracker.subflows()}
            for token, flow in self._host_reports.subflows_at(report.host):
                if flow.back() not in known and self._hosts.place(flow.destination) is not None:
                    self._joined(self._tracker.adopt(token, flow.back()))

    def handle_idle_entry(self, cookie: int) -> None:
        """End the subflow of a flow entry that was removed because no packet used it.

        `cookie` identifies the flow entry. If a host of the subflow sends reports, do nothing: the
        reports show when the subflow ends.
        """
        for joined in self._tracker.subflows():
            here = cookie in (digest(joined.flow), digest(joined.flow.back()))
            if here and not self._host_reports.reports_any(self._hosts_of(joined.flow)):
                self._end(joined)  # 3

    def refresh(self, now_s: float) -> list[Subflow]:
        """Return the open subflows, and log each subflow that has changed or ended."""
        open_subflows = []
        for joined in self._tracker.subflows():
            subflow = self._observer.subflow(joined)
            if self._host_reports.is_over(subflow.flow, self._hosts_of(joined.flow), now_s):
                self._end(joined)  # 3
            else:
                open_subflows.append(subflow)
                self._log(subflow)  # 2
        return open_subflows

    def flow(self, key: SubflowKey) -> Flow | None:
        """Return the 5-tuple of a subflow in the direction to its user; None if it is not open."""
        joined = self._tracker.find(*key)
        return None if joined is None else self._observer.subflow(joined).flow

    def restore(self, documents: Iterable[dict[str, Any]]) -> None:
        """Restore the subflows that were open before a restart.

        `documents` are the rows of the table `subflows` of the statistics file.
        """
        for document in documents:
            joined = Counters.joined(document)
            self._tracker.restore(joined)
            subflow = self._observer.subflow(joined)
            if document["pinned"]:
                self._router.pin(subflow.flow, tuple(document["path"]))
            for flow in (joined.flow, joined.flow.back()):
                self._router.routes.pop(flow, None)
                self._router.route(flow)
            self._written[joined.connection, joined.number] = _logged(
                self._observer.subflow(joined)
            )

    def documents(self) -> list[tuple[Joined, Subflow, bool]]:
        """Return all open subflows, for the statistics file.

        Each element has three parts: the subflow as tracked from its SYN packets, the subflow as
        strategies observe it, and True if a strategy chose its path.
        """
        found = [(joined, self._observer.subflow(joined)) for joined in self._tracker.subflows()]
        return [
            (joined, subflow, self._router.is_pinned(subflow.flow)) for joined, subflow in found
        ]

    def _joined(self, joined: Joined) -> None:
        self._log(self._observer.subflow(joined))
        self._changed()

    def _end(self, joined: Joined) -> None:
        subflow = self._observer.subflow(joined)
        self._tracker.remove(joined)
        self._host_reports.forget(subflow.flow)
        self._router.forget(joined.flow)
        if self._written.pop(subflow.key, None):
            self._write(lines.subflow_line(subflow, self._rate_scale, ended=True))
        self._changed()

    def _log(self, subflow: Subflow) -> None:
        state = _logged(subflow)
        if self._observer.knows_tier(subflow) and self._written.get(subflow.key) != state:
            self._written[subflow.key] = state
            self._write(lines.subflow_line(subflow, self._rate_scale))

    def _hosts_of(self, flow: Flow) -> list[str | None]:
        return [self._hosts.owner(address) for address in (flow.source, flow.destination)]

    def _is_user(self, host: str) -> bool:
        return self._observer.is_user(host)


def _logged(subflow: Subflow) -> Logged:
    return subflow.path, subflow.backup, subflow.expected_bps
