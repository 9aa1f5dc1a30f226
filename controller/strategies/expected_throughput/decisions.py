"""Derive the commands that turn one assignment into another, each with its reason in numbers.

1) A new subflow gets a route even if its path stays, so that the network does not hash it to
   another path when a link breaks elsewhere.
2) A subflow with hardly any rate becomes backup, but never the last one of its connection.
3) A higher rate is commanded only if it is clearly higher, by 1 % in S-MPTCP. A lower one is always
   commanded, because another subflow may get the difference.
4) The commands are sorted so that no link is overloaded between two of them (`crowded`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from controller.command import (
    Decision,
    Expect,
    Route,
    SetBackup,
    SubflowCommand,
    effective_floor_bps,
    subflow_name,
)
from controller.graph import ArcPath, ArcUse, Graph, arc_use, switches_on
from controller.observation import Subflow
from controller.strategies.expected_throughput.assignment import Assignment, Connection, load
from controller.units import rate_text

SMALLEST_RAISE = 0.01  # of a rate; a smaller raise is not sent to the hosts (S-MPTCP, section V-C)
SMALLEST_PART = 0.007  # of a connection's rate; its backup subflows lose at most this together
Ranked = tuple[int, Decision]
LOWER, ROUTE, NORMAL, BACKUP, RAISE = range(5)


def decisions(
    before: Assignment,
    after: Assignment,
    rate_scale: float,
    smallest_raise: float = SMALLEST_RAISE,
) -> list[Decision]:
    """Return the commands that turn `before` into `after`, in the order in which to carry them out.

    Connections that did not change get no command. A rate stays if it would rise by less than the
    fraction `smallest_raise`. Reasons show rates in scenario units (wire rate / `rate_scale`).
    """
    return _Comparison(before, after, rate_scale, smallest_raise).decisions()


@dataclass(frozen=True)
class _Target:
    """The path, the pacing rate and the backup flag that one subflow shall have after the step.

    `present` is its path before the step. `change` compares its load before and after the step.
    """

    subflow: Subflow
    present: ArcPath | None
    path: ArcPath | None
    rate_bps: int | None
    backup: bool
    change: Change

    @property
    def gets_route(self) -> bool:
        is_new = self.subflow.expected_bps is None and not self.subflow.backup
        return self.path is not None and (self.path != self.present or is_new)


@dataclass(frozen=True)
class _Comparison:
    before: Assignment
    after: Assignment
    rate_scale: float
    smallest_raise: float

    def decisions(self) -> list[Decision]:
        targets = {name: self._targets(name) for name in self.after.connections}
        every = [each for own in targets.values() for each in own]
        halved = crowded(self.after.graph.capacity_bps, [each.change for each in every])
        slow = {each.subflow.key for each, half in zip(every, halved, strict=True) if half}
        found: list[Ranked] = []
        for name, why in self.after.why.items():
            found += self._routes(name, targets[name], why)
            shares = f"{why}: {self._share(name)}"
            for target in targets[name]:
                found += self._commands(target, target.subflow.key in slow, shares)
        return [decision for _, decision in sorted(found, key=lambda each: each[0])]

    def _targets(self, name: str) -> list[_Target]:
        graph, connection = self.after.graph, self.after.connections[name]
        present = self.before.connections[name].paths
        ends: list[tuple[int | None, bool]] = [
            (each.expected_bps, each.backup) for each in connection.subflows
        ]
        if name in self.after.why:
            rates = _pacing(connection, self.smallest_raise)
            ends = list(zip(rates, _backups(connection.rates), strict=True))
        stays = any(
            not each.backup and not backup
            for each, (_, backup) in zip(connection.subflows, ends, strict=True)
        )
        return [
            _Target(
                subflow,
                old,
                path,
                rate,
                backup,
                Change(
                    _load(graph, old, subflow.expected_bps, subflow.backup),
                    _load(graph, path, rate, backup),
                    not stays,
                ),
            )
            for subflow, old, path, (rate, backup) in zip(
                connection.subflows, present, connection.paths, ends, strict=True
            )
        ]

    def _routes(self, name: str, targets: Sequence[_Target], why: str) -> Iterator[Ranked]:
        graph, connection = self.after.graph, self.after.connections[name]
        for each, own_bps in zip(targets, connection.rates, strict=True):
            if each.path is not None and each.gets_route:
                switches = switches_on(graph, each.path)
                free_bps, arc = min(
                    (graph.capacity_bps[arc] - self._carried[arc] + own_bps * part, arc)
                    for arc, part in arc_use(graph, each.path).items()
                )
                text = (
                    f"{why}: on path {' '.join(switches)} other connections leave "
                    f"{self._text(free_bps)} of {self._text(graph.capacity_bps[arc])}"
                )
                rank = RAISE if each.change.leaves_late else ROUTE
                yield rank, _decision(each.subflow, text, Route(each.subflow.key, switches))

    @cached_property
    def _carried(self) -> dict[int, float]:
        return load(*self.after.paths_and_rates)

    def _commands(self, target: _Target, half: bool, why: str) -> Iterator[Ranked]:
        """Yield the commands that set pacing rate and backup flag of one subflow, with their ranks.

        `half` is True if the subflow must have half its rate while paths change.
        """
        subflow, change = target.subflow, target.change
        if target.backup:
            rank = BACKUP if change.leaves_late else LOWER
            if half and change.leaves_late:
                yield LOWER, self._pace(subflow, round(change.leaving_bps / 2), f"{why}, for now")
            if not subflow.backup:
                text = f"{why}, nothing on this subflow"
                yield rank, _decision(subflow, text, SetBackup(subflow.key, True))
            if subflow.expected_bps is not None:
                yield rank, self._pace(subflow, None, f"{why}, a backup subflow is not paced")
            return
        present, then = subflow.expected_bps, target.rate_bps
        if half and then is not None:
            now = round((change.coming_bps if subflow.backup else change.staying_bps) / 2)
            rank = NORMAL if subflow.backup else LOWER
            yield rank, self._pace(subflow, now, f"{why}, half of its rate while paths change")
            present = now
        if present != then:
            lower = then is not None and present is not None and then < present
            rank = NORMAL if subflow.backup and not half else LOWER if lower else RAISE
            text = f"{why}, {self._text(change.after.rate_bps)} on this subflow"
            yield rank, self._pace(subflow, then, text)
        if subflow.backup:
            text = f"{why}, {self._text(change.after.rate_bps)} on this subflow, which was backup"
            yield NORMAL, _decision(subflow, text, SetBackup(subflow.key, False))

    def _pace(self, subflow: Subflow, rate_bps: int | None, text: str) -> Decision:
        return _decision(subflow, text, Expect(subflow.key, rate_bps))

    def _share(self, name: str) -> str:
        """Return a text with the rate of the connection `name`, compared with other connections.

        The comparison is with the mean rate over this connection and all that share arcs with it,
        directly or through others.
        """
        paths, shares = self.after.paths_and_rates
        together = self.after.sharing.together([name]) if name in paths else {name}
        own = sum(self.after.connections[name].rates)
        if len(together) < 2:
            return f"the connection gets {self._text(own)} and shares no link"
        mean = fsum(sum(shares[each]) for each in together) / len(together)
        return (
            f"the connection gets {self._text(own)} (mean of the {len(together)} connections "
            f"that share links: {self._text(mean)})"
        )

    def _text(self, rate_bps: float) -> str:
        return rate_text(rate_bps, self.rate_scale)


def _load(graph: Graph, path: ArcPath | None, rate_bps: int | None, backup: bool) -> Load:
    use = NOWHERE if path is None else arc_use(graph, path)
    return Load(use, 0.0 if backup else float(rate_bps or 0), backup)


def _backups(rates: Sequence[float]) -> list[bool]:
    """Return for each subflow of a connection, given their rates, whether it becomes backup.

    Those with the smallest rates do, as long as their sum is at most `SMALLEST_PART` of the whole.
    If no rate is above 0, the first subflow stays normal.
    """
    backups, lost = [False] * len(rates), 0.0
    for n in sorted(range(len(rates)), key=rates.__getitem__):
        lost += rates[n]
        backups[n] = lost <= SMALLEST_PART * sum(rates)
    return [not all(backups) and backups[0], *backups[1:]] if backups else []


def _pacing(connection: Connection, smallest_raise: float) -> list[int | None]:
    return [
        None if backup or rate < 1 else _pacing_rate(each.expected_bps, rate, smallest_raise)
        for each, rate, backup in zip(
            connection.subflows, connection.rates, _backups(connection.rates), strict=True
        )
    ]


def _pacing_rate(present_bps: int | None, rate_bps: float, smallest_raise: float) -> int:
    then = effective_floor_bps(round(rate_bps))
    if present_bps is not None and present_bps <= then <= (1 + smallest_raise) * present_bps:
        return present_bps
    return then


def _decision(subflow: Subflow, reason: str, command: SubflowCommand) -> Decision:
    return Decision(subflow_name(subflow.key), reason, command)


# Order of the commands of one step, in which they never overload a link
#
# The commands are carried out one after the other. The load of an arc (one direction of a link) is
# the sum of the pacing rates of the normal subflows that cross it; a backup subflow and one
# without a pacing rate do not count. If no arc is overloaded before the first and after the last
# command, none is in between:
# 1) Lower rates. A subflow that loses its rate becomes backup first, then its pacing ends. It
#    keeps its rate for now if it is the only normal subflow of its connection.
# 2) Set paths, make subflows normal, and make the remaining ones backup. A subflow that is to get
#    more than it has keeps the lower rate.
# 3) Raise rates. A subflow that became backup last in phase 2 gets its new path only now.
# In phase 2, some subflows have left their old arcs and others have not. If an arc cannot carry
# both, all subflows that leave it or come to it have half their rate until phase 3. This is enough:
# the load is then at most the mean of the loads before and after, and neither is too large.


ROUNDING = 1e-9  # of a capacity; a smaller overload is a rounding error
NOWHERE: ArcUse = {}


@dataclass(frozen=True)
class Load:
    """The load that one subflow puts on arcs: its rate times the part in `use` for each arc.

    `rate_bps` is 0 for a backup subflow and for a subflow without a pacing rate.
    """

    use: ArcUse
    rate_bps: float
    backup: bool

    def on_arcs(self, rate_bps: float) -> Iterable[tuple[int, float]]:
        return ((arc, part * rate_bps) for arc, part in self.use.items())


@dataclass(frozen=True)
class Change:
    """The load of one subflow before and after the commands of a step.

    `alone` is True if no subflow of the connection is normal both before and after the step.
    """

    before: Load
    after: Load
    alone: bool = False

    @property
    def leaves_late(self) -> bool:
        """Whether the subflow becomes backup only after another one became normal."""
        return self.alone and self.after.backup and not self.before.backup

    @property
    def moves(self) -> bool:
        """Whether an arc gets or loses load of the subflow while paths and backup flags change."""
        return (
            self.leaves_late
            or self.before.use != self.after.use
            or (self.before.backup and not self.after.backup)
        )

    @property
    def leaving_bps(self) -> float:
        """The rate in bit/s on the old path while paths change, if it is not halved."""
        return self.before.rate_bps if self.leaves_late else self.staying_bps

    @property
    def coming_bps(self) -> float:
        """The rate in bit/s on the new path while paths change, if it is not halved."""
        return self.after.rate_bps if self.before.backup else self.staying_bps

    @property
    def staying_bps(self) -> float:
        return min(self.before.rate_bps, self.after.rate_bps)


def crowded(capacity_bps: Sequence[float], changes: Iterable[Change]) -> list[bool]:
    """Return for each subflow whether it must halve its rate while paths change.

    Otherwise an arc would be overloaded while some subflows have left it and others have not.
    `changes` holds all subflows of the network, also those that stay as they are.
    """
    changes = list(changes)
    most: dict[int, float] = {}
    for each in changes:
        if each.moves:
            _add(most, each.before.on_arcs(each.leaving_bps))
            _add(most, each.after.on_arcs(each.coming_bps))
        else:
            _add(most, each.before.on_arcs(each.staying_bps))
    full = {arc for arc, rate in most.items() if rate > (1 + ROUNDING) * capacity_bps[arc]}
    return [
        each.moves
        and any(
            arc in full and rate > 0
            for load, bps in ((each.before, each.leaving_bps), (each.after, each.coming_bps))
            for arc, rate in load.on_arcs(bps)
        )
        for each in changes
    ]


def _add(load: dict[int, float], more: Iterable[tuple[int, float]]) -> None:
    for arc, rate in more:
        load[arc] = load.get(arc, 0.0) + rate
