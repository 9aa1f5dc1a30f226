"""Derive the commands that turn one assignment into another, each with its reason in numbers.

The order of the commands:
1) Routes. A new subflow gets a route even if its path stays, so that the network does not hash it
   to another path when a link breaks elsewhere.
2) Lower rates, then higher rates, so that no arc is overloaded in between.
3) Subflows that become normal.
4) Subflows that become backup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from controller.command import (
    Decision,
    Expect,
    Route,
    SetBackup,
    SubflowCommand,
    effective_floor_bps,
    subflow_name,
)
from controller.graph import arc_use, switches_on
from controller.observation import Subflow
from controller.strategies.expected_throughput.allocation import neighbours, sharing_set
from controller.strategies.expected_throughput.assignment import Assignment, Connection, load
from controller.units import rate_text

SMALLEST_CHANGE = (
    0.01  # of a rate: a smaller change is not sent to the hosts (S-MPTCP, section V-C)
)
SMALLEST_PART = 0.01  # of a connection's rate: a subflow with less becomes backup
Ranked = tuple[int, Decision]
ROUTE, LOWER, HIGHER, NORMAL, BACKUP = range(5)


def decisions(before: Assignment, after: Assignment, rate_scale: float) -> list[Decision]:
    """Return the commands that turn `before` into `after`: routes first, then rates, then backups.

    Connections that did not change get no command. Reasons show rates in scenario units (wire rate
    divided by `rate_scale`).
    """
    return _Comparison(before, after, rate_scale).decisions()


@dataclass(frozen=True)
class _Comparison:
    before: Assignment
    after: Assignment
    rate_scale: float

    def decisions(self) -> list[Decision]:
        found: list[Ranked] = []
        for name, why in self.after.why.items():
            found += self._routes(name, why)
            found += self._rates(self.after.connections[name], f"{why}: {self._share(name)}")
        return [decision for _, decision in sorted(found, key=lambda each: each[0])]

    def _routes(self, name: str, why: str) -> Iterator[Ranked]:
        graph, after = self.after.graph, self.after.connections[name]
        carried = load(*self.after.paths_and_rates())
        for subflow, present, path, rate in zip(
            after.subflows,
            self.before.connections[name].paths,
            after.paths,
            after.rates,
            strict=True,
        ):
            is_new = subflow.expected_bps is None and not subflow.backup
            if path is not None and (path != present or is_new):
                switches = switches_on(graph, path)
                free_bps, arc = min(
                    (graph.capacity_bps[arc] - carried[arc] + rate * part, arc)
                    for arc, part in arc_use(graph, path).items()
                )
                text = (
                    f"{why}: on path {' '.join(switches)} other connections leave "
                    f"{self._text(free_bps)} of {self._text(graph.capacity_bps[arc])}"
                )
                yield ROUTE, _decision(subflow, text, Route(subflow.key, switches))

    def _rates(self, connection: Connection, why: str) -> Iterator[Ranked]:
        whole = sum(connection.rates)
        idle = [rate <= SMALLEST_PART * whole for rate in connection.rates]
        if all(idle):  # the last subflow never becomes backup
            idle[0] = False
        for subflow, rate, nothing in zip(connection.subflows, connection.rates, idle, strict=True):
            then = None if nothing or rate < 1 else effective_floor_bps(round(rate))
            if _differs(subflow.expected_bps, then):
                rank = HIGHER if then is None or then > (subflow.expected_bps or 0) else LOWER
                text = f"{why}, {self._text(rate if then is None else then)} on this subflow"
                yield rank, _decision(subflow, text, Expect(subflow.key, then))
            if nothing != subflow.backup:
                text = (
                    f"{why}, nothing on this subflow"
                    if nothing
                    else f"{why}, {self._text(rate)} on this subflow, which was backup"
                )
                yield (
                    BACKUP if nothing else NORMAL,
                    _decision(subflow, text, SetBackup(subflow.key, nothing)),
                )

    def _share(self, name: str) -> str:
        """Return a text with the rate of the connection `name`, compared with other connections.

        The comparison is with the mean rate over this connection and all that share arcs with it,
        directly or through others.
        """
        paths, shares = self.after.paths_and_rates()
        together = sharing_set(neighbours(paths), [name]) if name in paths else {name}
        own = sum(self.after.connections[name].rates)
        if len(together) < 2:
            return f"the connection gets {self._text(own)} and shares no link"
        mean = sum(sum(shares[each]) for each in together) / len(together)
        return (
            f"the connection gets {self._text(own)} (mean of the {len(together)} connections "
            f"that share links: {self._text(mean)})"
        )

    def _text(self, rate_bps: float) -> str:
        return rate_text(rate_bps, self.rate_scale)


def _differs(present_bps: int | None, then_bps: int | None) -> bool:
    if present_bps is None or then_bps is None:
        return present_bps != then_bps
    return abs(then_bps - present_bps) > SMALLEST_CHANGE * present_bps


def _decision(subflow: Subflow, reason: str, command: SubflowCommand) -> Decision:
    return Decision(subflow_name(subflow.key), reason, command)
