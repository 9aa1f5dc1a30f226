"""The lifecycle of subflows: they join, change and end, and each of these becomes a line of decisions.jsonl.

1) a SYN/ACK (its tier must be known, at the first step at the latest), or the report of a server's host after this controller was started anew: a subflow has joined
2) its path, its priority or its expected rate is another than before: say so
3) its hosts do not have it any more, or nobody used its entries for long and no host reports: it is over
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
from controller.pox_ext.host_reports import HostReports
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.observer import Observer, to_user
from controller.pox_ext.router import Router
from controller.pox_ext.tracker import Fallback, Joined, Tracker

Logged = tuple[tuple[str, ...], bool, int | None]  # path, backup, expected rate


class SubflowLifecycle:
    """`write` takes a line, `changed()` is called when a subflow has come or gone."""

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
        self._rate_scale = rate_scale
        self._tracker, self._host_reports, self._observer, self._router, self._hosts = (
            tracker,
            host_reports,
            observer,
            router,
            hosts,
        )
        self._write, self._changed = write, changed
        self._written: dict[SubflowKey, Logged] = {}

    def handle_syn(self, packet: Ip) -> Fallback | None:
        """A SYN or SYN/ACK; the answer says that a connection fell back to TCP."""
        event = self._tracker.handle_syn(packet)
        if isinstance(event, Joined):
            self._joined(event)  # 1
        return event if isinstance(event, Fallback) else None

    def handle_report(self, report: HostReport) -> None:
        """A host's report."""
        if self._host_reports.add(report) and not self._is_user(report.host):
            known = {each.flow for each in self._tracker.subflows()}
            for token, flow in self._host_reports.subflows_at(report.host):
                if flow.back() not in known and self._hosts.place(flow.destination) is not None:
                    self._joined(self._tracker.adopt(token, flow.back()))

    def handle_idle_entry(self, cookie: int) -> None:
        """Nobody has used an entry for long."""
        for joined in self._tracker.subflows():
            here = cookie in (digest(joined.flow), digest(joined.flow.back()))
            if here and not self._host_reports.reports_any(self._hosts_of(joined.flow)):
                self._end(joined)  # 3

    def refresh(self, now_s: float) -> list[Subflow]:
        """The subflows that live; what has changed of them is said."""
        open_subflows = []
        for joined in self._tracker.subflows():
            subflow = self._observer.subflow(joined)
            if self._host_reports.is_over(to_user(subflow), self._hosts_of(joined.flow), now_s):
                self._end(joined)  # 3
            else:
                open_subflows.append(subflow)
                self._log(subflow)  # 2
        return open_subflows

    def flow(self, key: SubflowKey) -> Flow | None:
        """The 5-tuple of a subflow towards its user, if it lifecycle."""
        joined = self._tracker.find(*key)
        return None if joined is None else to_user(self._observer.subflow(joined))

    def restore(self, documents: Iterable[dict[str, Any]]) -> None:
        """Take over what an earlier controller of this run has seen."""
        for document in documents:
            joined = Counters.joined(document)
            self._tracker.restore(joined)
            subflow = self._observer.subflow(joined)
            if document["pinned"]:
                self._router.pin(to_user(subflow), tuple(document["path"]))
            for flow in (joined.flow, joined.flow.back()):
                self._router.routes.pop(flow, None)
                self._router.route(flow)
            self._written[joined.connection, joined.number] = _logged(
                self._observer.subflow(joined)
            )

    def documents(self) -> list[tuple[Joined, Subflow, bool]]:
        """Every subflow with how it joined, and whether its path was asked for."""
        found = [(joined, self._observer.subflow(joined)) for joined in self._tracker.subflows()]
        return [
            (joined, subflow, self._router.is_pinned(to_user(subflow))) for joined, subflow in found
        ]

    def _joined(self, joined: Joined) -> None:
        self._log(self._observer.subflow(joined))
        self._changed()

    def _end(self, joined: Joined) -> None:
        subflow = self._observer.subflow(joined)
        self._tracker.remove(joined)
        self._host_reports.forget(to_user(subflow))
        self._router.forget(joined.flow)
        if self._written.pop(subflow.key, None):
            self._write(lines.subflow_line(subflow, self._rate_scale, ended=True))
        self._changed()

    def _log(self, subflow: Subflow) -> None:
        if self._observer.knows_tier(subflow) and self._written.get(subflow.key) != _logged(
            subflow
        ):
            self._written[subflow.key] = _logged(subflow)
            self._write(lines.subflow_line(subflow, self._rate_scale))

    def _hosts_of(self, flow: Flow) -> list[str | None]:
        return [self._hosts.owner(address) for address in (flow.source, flow.destination)]

    def _is_user(self, host: str) -> bool:
        return self._observer.is_user(host)


def _logged(subflow: Subflow) -> Logged:
    return subflow.path, subflow.backup, subflow.expected_bps
