"""Follow stations from one access point to another, as AP agents report them.

1) The addresses of the station are now located at the new access point, and its flows are moved to
   paths that lead there.
2) The station keeps its tier. If its traffic passed the meter of the old access point, it passes
   the meter of the new one, if there is a meter. The next control step may change both.
3) The number of flows that have moved is written into the decision log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from controller.agent_messages import ApReport
from controller.pox_ext.hosts import Place
from controller.pox_ext.observer import Observer
from controller.pox_ext.router import Router


class MovedMeters(Protocol):
    """Name the method of `Meters` that this module needs; importing `Meters` would import POX."""

    def hand_over(self, addresses: Iterable[str], old: str, new: str) -> None:
        """Take the traffic of `addresses` out of the meter of `old` and into the meter of `new`.

        `old` and `new` are switches.
        """


class Handovers:
    """Store the reports of AP agents, and move the stations that appear at another access point."""

    def __init__(
        self,
        observer: Observer,
        router: Router,
        meters: MovedMeters,
        reroute: Callable[[Iterable[Any]], int],
        write: Callable[[dict[str, Any]], None],
    ) -> None:
        """Store the parts of the controller that a handover changes.

        `reroute(flows)` moves flows to new paths and returns how many have moved. `write(line)`
        appends a line to the decision log.
        """
        self._observer, self._router = observer, router
        self._meters, self._reroute, self._write = meters, reroute, write

    def handle(self, report: ApReport) -> None:
        """Store a report; raise `ValueError` if its access point is unknown."""
        for user, old in self._observer.add_report(report):
            self._move(user, old, report.ap)

    def _move(self, user: str, old: str, new: str) -> None:
        plan = self._observer.plan.handed_over(user, old, new)
        if plan is None:
            return  # the port of the new access point is not known
        moved = [each for each in plan.hosts[user] if each.switch == new]
        addresses = {address for each in moved for address in each.addresses}
        for each in moved:
            for address in each.addresses:
                place = Place(new, each.port, each.mac and each.mac.lower())
                self._observer.hosts.move(address, place)
        self._observer.hand_over(plan, user, old, new)  # 2
        self._meters.hand_over(addresses, old, new)
        flows = [
            flow
            for flow in list(self._router.routes)
            if flow.source in addresses or flow.destination in addresses
        ]
        count = self._reroute(flows)  # 1
        line = {"kind": "association", "user": user, "from": old, "to": new, "flows_moved": count}
        self._write(line)  # 3
