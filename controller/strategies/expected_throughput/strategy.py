"""Choose a path and a pacing rate for every subflow so that connections get equal rates (S-MPTCP).

Source: S-MPTCP, sections III to V. As soon as a subflow opens or closes, and every `interval_s`:
0) A new connection whose subflows are not all open yet is left alone, for 1 s at most
   (`Arrivals`).
1) A connection with a new subflow, or with a subflow that has lost its path, gets new paths and
   rates. The oldest connection comes first.
2) A connection on a link whose load is larger than the link's capacity gets new paths and rates
   too.
3) When a link came up or its capacity grew, try new paths for each connection that could gain.
4) Distribute free capacity, to the poorest connection first.
5) If a connection has a rate far below the rates of the connections that share its links, compute
   new rates, beginning with this connection (module `allocation`). This step is not in the paper:
   there, new rates are computed only until the newest connection has enough, so an older
   connection that gave up capacity to the newest one can stay poor.
   With `allocation: max_min`, all connections get the max-min fair rates on their paths instead of
   steps 4 and 5 (module `max_min`). With `demand: measured` in addition, others get what a
   connection does not use of its fair rate (module `demand`). Its pacing rate stays the fair one,
   so pacing rates together can exceed a link's capacity by what was given to others.
   With `pacing: rivals`, stations have no rates for radio channels: a channel divides its air
   itself, and equal rates would give most of it to the slowest station. Only connections are paced
   whose limits help others now (`Assignment.with_max_min_rates`, `Unlimited`).
   With `moves: gains`, a subflow keeps the path that hashing gave it instead of steps 1 to 3. It
   leaves it only where that helps somebody, and harms nobody (module `moves`). Rates are limits
   only while that pays off, as measured (module `payoff`).
6) Each difference from the observation becomes a command. A subflow with a rate of 0 becomes
   backup, unless all others of its connection are backup. No command overloads a link by what
   connections need (function `decisions`).
A change of steps 3 to 5 is kept only if the sum of the logarithms of all rates grows enough. The
present paths and rates are those that the hosts confirm, so a restarted controller reads them from
the observation and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from math import fsum
from typing import Literal

from controller.command import (
    Decision,
    Expect,
    Route,
    SetBackup,
    SubflowCommand,
    effective_floor_bps,
    subflow_name,
)
from controller.graph import ArcPath, ArcUse, Graph, build_graph, switches_on
from controller.observation import Observation, Subflow, SubflowKey
from controller.strategies.base import Strategy, StrategyParams, choice, hashed_paths, param
from controller.strategies.expected_throughput.assignment import (
    NO_NEEDS,
    SLACK,
    Assignment,
    Connection,
    load,
    observed,
)
from controller.strategies.expected_throughput.demand import Demands
from controller.strategies.expected_throughput.moves import arcs_to_avoid, with_moves
from controller.strategies.payoff import Payoff, is_fairer
from controller.units import NS_PER_S, rate_text

# The commands that turn one assignment into another, each with its reason in numbers.
#
# 1) A new subflow gets a route even if its path stays, so that the network does not hash it to
#    another path when a link breaks elsewhere.
# 2) A subflow with hardly any rate becomes backup, but never the last one of its connection.
# 3) A higher rate is commanded only if it is clearly higher, by 1 % in S-MPTCP. A lower one is
#    always commanded, because another subflow may get the difference.
# 4) The commands are sorted so that no link is overloaded between two of them (`crowded`).


SMALLEST_SENT_RAISE = 0.01  # fraction; a smaller raise is not sent to hosts (S-MPTCP, section V-C)
SMALLEST_PART = 0.007  # of a connection's rate; its backup subflows lose at most this together
Ranked = tuple[int, Decision]
LOWER, ROUTE, NORMAL, BACKUP, RAISE = range(5)


def decisions(
    before: Assignment,
    after: Assignment,
    rate_scale: float,
    smallest_raise: float = SMALLEST_SENT_RAISE,
) -> list[Decision]:
    """Return the commands that change paths and rates from `before` to `after`, in a safe order.

    In this order no link is overloaded between two commands. Connections that did not change get no
    command. A rate stays if it would rise by less than the fraction `smallest_raise`. The reasons
    show rates in Mb/s as in the scenario file (rate on the wire / `rate_scale`).
    """
    return _Comparison(before, after, rate_scale, smallest_raise).decisions()


@dataclass(frozen=True)
class _Target:
    """The path, the pacing rate and the backup flag that a subflow will have after this step.

    `present` is its path before. `change` has its load on the links before and after.
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
        use, connection = self.after.use, self.after.connections[name]
        present = self.before.connections[name].paths
        ends: list[tuple[int | None, bool]] = [
            (each.expected_bps, each.backup) for each in connection.subflows
        ]
        if name in self.after.why:
            rates = _pacing(connection, self.smallest_raise)
            ends = list(zip(rates, _backups(connection.pacing_bps), strict=True))
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
                    _load(use, old, subflow.expected_bps, subflow.backup),
                    _load(use, path, rate, backup),
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
                    for arc, part in self.after.use(each.path).items()
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
        """Yield the commands that set the pacing rate and the backup flag of one subflow.

        Each command has a rank; commands with a lower rank are carried out first. `half` is True if
        the subflow must have half its rate while paths change.
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
        """Return a text that compares the rate of the connection `name` with a mean rate.

        The mean is over this connection and all connections that share arcs with it, directly or
        through others.
        """
        paths, shares = self.after.paths_and_rates
        together = self.after.sharing.together([name]) if name in paths else {name}
        connection = self.after.connections[name]
        own = sum(connection.pacing_bps)
        needed = f", of which it needs {self._text(sum(connection.rates))}"
        needs = needed if connection.share else ""
        if len(together) < 2:
            return f"the connection gets {self._text(own)}{needs} and shares no link"
        mean = fsum(sum(shares[each]) for each in together) / len(together)
        return (
            f"the connection gets {self._text(own)}{needs} (mean of the {len(together)} "
            f"connections that share links: {self._text(mean)})"
        )

    def _text(self, rate_bps: float) -> str:
        return rate_text(rate_bps, self.rate_scale)


def _load(
    use: Callable[[ArcPath], ArcUse], path: ArcPath | None, rate_bps: int | None, backup: bool
) -> Load:
    taken = NOWHERE if path is None else use(path)
    return Load(taken, 0.0 if backup else float(rate_bps or 0), backup)


def _backups(rates: Sequence[float]) -> list[bool]:
    """Return for each subflow of a connection whether it becomes backup.

    `rates` has the rate of each subflow. The subflows with the smallest rates become backup, as
    long as these rates together are at most `SMALLEST_PART` of the total. If no rate is above 0,
    the first subflow does not become backup.
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
            connection.subflows,
            connection.pacing_bps,
            _backups(connection.pacing_bps),
            strict=True,
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
    """The load that one subflow puts on links.

    `use` maps each arc (direction of a link) on the path to the capacity that one bit/s takes
    there. `rate_bps` is 0 for a backup subflow and for a subflow without a pacing rate.
    """

    use: ArcUse
    rate_bps: float
    backup: bool

    def on_arcs(self, rate_bps: float) -> Iterable[tuple[int, float]]:
        return ((arc, part * rate_bps) for arc, part in self.use.items())


@dataclass(frozen=True)
class Change:
    """The load of one subflow before and after the commands of a control step.

    `alone` is True if no subflow of the connection stays in use: each one is backup before the
    commands, after them, or both.
    """

    before: Load
    after: Load
    alone: bool = False

    @property
    def leaves_late(self) -> bool:
        """Whether the subflow becomes backup only after another subflow is in use."""
        return self.alone and self.after.backup and not self.before.backup

    @property
    def moves(self) -> bool:
        """Whether this change of path and backup flag changes the load of the subflow on any
        arc."""
        return (
            self.leaves_late
            or self.before.use != self.after.use
            or (self.before.backup and not self.after.backup)
        )

    @property
    def leaving_bps(self) -> float:
        """The rate in bit/s on the old path while paths change, if it is not halved (`crowded`)."""
        return self.before.rate_bps if self.leaves_late else self.staying_bps

    @property
    def coming_bps(self) -> float:
        """The rate in bit/s on the new path while paths change, if it is not halved (`crowded`)."""
        return self.after.rate_bps if self.before.backup else self.staying_bps

    @property
    def staying_bps(self) -> float:
        return min(self.before.rate_bps, self.after.rate_bps)


def crowded(capacity_bps: Sequence[float], changes: Iterable[Change]) -> list[bool]:
    """Return for each subflow whether it must halve its rate while paths change.

    Subflows can come to a link before others have left it. If this would overload the link, all
    subflows that come to it or leave it must halve their rates. `changes` has one entry for every
    subflow of the network, also for unchanged ones.
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


SMALLEST_MAX_MIN_RAISE = 1e-4  # fraction; a smaller difference of max-min rates is rounding
LITTLE = 0.5  # of a fair rate: who sends less does not move (module `moves`)
MOST_TRIES = 16  # connections per step, so that a step stays short in a large network


class ExpectedThroughputParams(StrategyParams):
    """Parameters of the strategy `expected_throughput`; `fairness` is from S-MPTCP.

    Subflows of a connection beyond `max_subflows` are backup.
    """

    interval_s: float = param(
        2.0, "s", "Time between two control steps if no subflow opens or closes", ge=0.2, le=60
    )
    fairness: float = param(
        0.9,
        "fraction",
        "A connection with at least this part of the mean rate takes nothing from others",
        gt=0,
        le=1,
    )
    allocation: Literal["paper", "max_min"] = choice(
        "paper", "How to compute rates: the paper's water filling, or max-min fair rates"
    )
    demand: Literal["unlimited", "measured"] = choice(
        "unlimited",
        "measured: with max_min, others get what a connection does not use of its rate",
    )
    pacing: Literal["all", "rivals"] = choice(
        "all",
        "rivals: with max_min, limit only connections that share a full cable with others",
    )
    moves: Literal["all", "gains"] = choice(
        "all",
        "gains: with max_min, leave the path of the hash only where that helps and harms nobody",
    )
    max_subflows: int = param(
        8, "subflows", "How many subflows of a connection get a path", ge=1, le=16
    )


class ExpectedThroughput(Strategy):
    """Chooses a path and a pacing rate for every subflow (S-MPTCP).

    Between two decisions it stores the graph of the network, to notice when a link's capacity
    grows; when it first saw each connection, to limit how long the connection waits for further
    subflows; and what each connection has sent, to know how much it needs (`demand: measured`).
    """

    name = "expected_throughput"
    wakes_on_subflows = True
    Params = ExpectedThroughputParams
    improved = {
        "allocation": "max_min",
        "demand": "measured",
        "pacing": "rivals",
        "moves": "gains",
        "interval_s": 1.0,
    }
    params: ExpectedThroughputParams

    def __init__(self, params: StrategyParams) -> None:
        super().__init__(params)
        self._graph: Graph | None = None
        self._to_try: list[str] = []
        self._steady: Set[str] = frozenset()
        self._arrivals = Arrivals()
        self._demands = Demands()
        self._unlimited = Unlimited()
        self._payoff = Payoff()
        if self.params.allocation == "max_min":  # loads scipy, which takes a part of a second
            import_module("controller.strategies.expected_throughput.max_min")

    def decide(self, observation: Observation) -> list[Decision]:
        if not observation.arcs:  # the network is not known yet
            return []
        needs_bps = self._needs_bps(self._unlimited.seen(observation, with_rivals=True))
        observation = self._unlimited.seen(observation)
        graph = build_graph(observation.arcs)
        waiting = self._arrivals.waiting(graph, observation, self.params.max_subflows)  # 0
        before = draft = observed(
            graph,
            _without(observation, waiting),
            self.params.fairness,
            self.params.max_subflows,
            needs_bps,
            self.params.pacing == "rivals",
        )
        stays = self.params.moves == "gains"
        for name in draft.unassigned:  # 1
            why = f"{_user(draft, name)} needs a path"
            draft = draft.with_new_paths(name, why, None if stays else frozenset())
        if stays:
            draft = self._with_moves(draft, observation, needs_bps)
        else:
            for name in draft.overloaded():  # 2
                if name in draft.overloaded():
                    why = f"a link of {_user(draft, name)} is overloaded"
                    draft = draft.with_new_paths(name, why)
            draft = self._with_better_paths(draft)  # 3
        if self.params.allocation == "max_min":
            after = draft.with_max_min_rates(
                before, needs_bps, self._demands.modest, self._demands.at_times
            )
            if stays:
                after = self._where_limits_pay_off(after, observation)
            found = decisions(before, after, observation.rate_scale, SMALLEST_MAX_MIN_RAISE)
            return self._unlimited.commands(after, found, observation.rate_scale)
        for name in list(draft.with_free_capacity()):  # 4
            why = f"capacity is free for {_user(draft, name)}"
            draft = draft.better_of(draft.with_new_rates(name, why))
        return decisions(before, draft.with_poor_raised(), observation.rate_scale)  # 5, 6

    def _needs_bps(self, observation: Observation) -> Mapping[str, float]:
        if self.params.allocation != "max_min" or self.params.demand != "measured":
            return NO_NEEDS
        self._demands.observe(observation)
        return self._demands.needs_bps

    def wake_at_ns(self) -> int | None:
        return self._arrivals.next_ns

    def withdraw(self, observation: Observation) -> list[Decision]:
        why = "strategy withdrawn"
        paced = [
            Decision(
                subflow_name(each.key),
                f"{why}: pacing at {rate_text(each.expected_bps, observation.rate_scale)} ends",
                Expect(each.key, None),
            )
            for each in observation.subflows
            if each.expected_bps is not None
        ]
        backups = [
            Decision(
                subflow_name(each.key),
                f"{why}: subflow {each.number} is backup no longer",
                SetBackup(each.key, False),
            )
            for each in observation.subflows
            if each.backup
        ]
        return hashed_paths(observation) + paced + backups

    def _with_better_paths(self, draft: Assignment) -> Assignment:
        """Return `draft`, with new paths for connections that get clearly more on them.

        Paths are tried after a link came up or its capacity grew. At most `MOST_TRIES` connections
        are tried in one control step; the others follow in the next steps.
        """
        if self._capacity_grew(draft.graph):
            self._to_try = draft.with_potential_gain()
        tried, self._to_try = set(self._to_try[:MOST_TRIES]), self._to_try[MOST_TRIES:]
        for name in draft.connections:
            if name in tried:
                why = f"other links have more room for {_user(draft, name)}"
                draft = draft.better_of(draft.with_new_paths(name, why))
        return draft

    def _with_moves(
        self, draft: Assignment, observation: Observation, needs_bps: Mapping[str, float]
    ) -> Assignment:
        """Return `draft` with the moves that help (module `moves`). They are tried after a link
        came up, its capacity grew, or a connection has come to use what the network gives it."""
        waiting = self._demands.at_times | self._asking_for_little(draft)
        steady = draft.connections.keys() - waiting
        new, self._steady = steady - self._steady, steady
        needs_bps = {name: each for name, each in needs_bps.items() if name in waiting}
        if self._capacity_grew(draft.graph) or new:
            found = draft.with_potential_gain(draft.expected_bps(needs_bps))
            self._to_try = [name for name in found if name in steady]
        tried, self._to_try = self._to_try[:MOST_TRIES], self._to_try[MOST_TRIES:]
        if not tried:
            return draft
        avoided = arcs_to_avoid(draft.graph, observation, waiting)
        return with_moves(draft, tried, needs_bps, avoided)

    def _asking_for_little(self, draft: Assignment) -> Set[str]:
        """Return the connections that send less than `LITTLE` of their fair rates: something else
        than the network limits them, such as answers that they wait for."""
        fair_bps = draft.expected_bps(NO_NEEDS)
        sent_bps = self._demands.sent_bps
        return {name for name in fair_bps if sent_bps.get(name, 0.0) < LITTLE * fair_bps[name]}

    def _where_limits_pay_off(self, after: Assignment, observation: Observation) -> Assignment:
        """Return `after`, in which nobody is paced unless a trial is under way or was passed."""
        names = after.paths_and_rates[0].keys()
        if not names - after.unpaced:
            self._payoff.pause(observation, "it would help nobody now")
        elif self._payoff.step(observation, True, is_fairer):
            return after
        return replace(after, unpaced=frozenset(names))

    def _capacity_grew(self, graph: Graph) -> bool:
        """Return whether a link is new, or has more capacity than in the previous control step.

        The result is False in the first step.
        """
        before, self._graph = self._graph, graph
        if before is None or before is graph:
            return False
        capacities = before.capacities()
        return any(
            capacity > (1 + SLACK) * capacities.get(ends, 0)
            for ends, capacity in graph.capacities().items()
        )


class Unlimited:
    """Removes the pacing of connections whose limit helps nobody (`Assignment.unpaced`).

    For the rest of the strategy, their subflows have a pacing rate, which is stored here. A
    restarted controller chooses their paths once more.
    """

    def __init__(self) -> None:
        self._rates_bps: dict[SubflowKey, int] = {}
        self._with_rivals: frozenset[SubflowKey] = frozenset()
        self._paced: dict[SubflowKey, int] = {}  # in the network

    def seen(self, observation: Observation, with_rivals: bool = False) -> Observation:
        """Return the observation with the stored pacing rates. With `with_rivals`, only connections
        that have rivals get theirs, which is their fair share: do they send less than that?"""
        shown = self._with_rivals if with_rivals else self._rates_bps.keys()
        self._paced = {
            each.key: each.expected_bps
            for each in observation.subflows
            if each.expected_bps is not None
        }
        subflows = tuple(
            replace(each, expected_bps=self._rates_bps[each.key])
            if each.key in shown and each.key not in self._paced and not each.backup
            else each
            for each in observation.subflows
        )
        return replace(observation, subflows=subflows)

    def commands(
        self, after: Assignment, found: Iterable[Decision], rate_scale: float
    ) -> list[Decision]:
        before = self._rates_bps
        self._rates_bps, rates_bps, backups = {}, dict[SubflowKey, int](), set[SubflowKey]()
        with_rivals = set[SubflowKey]()
        for name, connection in after.connections.items():
            paced = _pacing(connection, SMALLEST_MAX_MIN_RAISE)
            for each, path, rate in zip(connection.subflows, connection.paths, paced, strict=True):
                if name not in after.unpaced and rate is not None:
                    rates_bps[each.key] = rate
                if name in after.unpaced and path is not None:
                    self._rates_bps[each.key] = effective_floor_bps(rate or 0)
                    with_rivals |= set() if name in after.alone else {each.key}
                    backups |= {each.key} if each.backup else set()
        self._with_rivals = frozenset(with_rivals)
        free = self._rates_bps.keys() | after.cut_off()
        kept = [each for each in found if not _is_limit(each, free)]
        limits = {each.command.subflow for each in kept if isinstance(each.command, Expect)}
        begins = (before.keys() & rates_bps.keys()) - self._paced.keys() - limits
        ends = self._paced.keys() & self._rates_bps.keys()
        return [
            *kept,
            *(_end(key, self._paced[key], rate_scale) for key in sorted(ends)),
            *(_normal(key) for key in sorted(backups)),
            *(_begin(key, rates_bps[key], rate_scale) for key in sorted(begins)),
        ]


def _is_limit(decision: Decision, of: Container[SubflowKey]) -> bool:
    command = decision.command
    return isinstance(command, Expect | SetBackup) and command.subflow in of


def _end(key: SubflowKey, rate_bps: int, rate_scale: float) -> Decision:
    text = f"a limit of {rate_text(rate_bps, rate_scale)} helps nobody now: not paced"
    return Decision(subflow_name(key), text, Expect(key, None))


def _begin(key: SubflowKey, rate_bps: int, rate_scale: float) -> Decision:
    text = f"a limit of {rate_text(rate_bps, rate_scale)} helps others"
    return Decision(subflow_name(key), text, Expect(key, rate_bps))


def _normal(key: SubflowKey) -> Decision:
    text = f"its connection is not paced: subflow {key[1]} is backup no longer"
    return Decision(subflow_name(key), text, SetBackup(key, False))


def _without(observation: Observation, connections: Container[str]) -> Observation:
    left = tuple(each for each in observation.subflows if each.connection not in connections)
    return replace(observation, subflows=left)


def _user(draft: Assignment, name: str) -> str:
    subflows = draft.connections[name].subflows
    return subflows[0].user if subflows else name


# Why new connections wait until all their subflows are open, for one second at most
#
# S-MPTCP allocates rates per connection, with all its subflows. The subflows of a connection open
# one after the other, each after a handshake of its own. An allocation that sees only the first of
# them divides the capacity differently, and the difference stays.
#
# A multipath connection opens one subflow per address of its user, because the path manager makes
# each address an endpoint. So as many subflows are expected as the user has addresses with a link
# that is up, at most `most_subflows`. A connection is held back while it has fewer subflows and
# none of them has a pacing rate, until it has been known for `LONGEST_WAIT_NS`. A subflow can be
# missing for longer, for example because the server refuses it: the connection is then allocated
# with the subflows that it has.


LONGEST_WAIT_NS = NS_PER_S


class Arrivals:
    """Decides which new connections wait until all their subflows are open.

    `next_ns` is the time in ns at which the first of these waits ends. It is None if no connection
    waits.
    """

    def __init__(self) -> None:
        self.next_ns: int | None = None
        self._first_seen_ns: dict[str, int] = {}

    def waiting(self, graph: Graph, observation: Observation, most_subflows: int) -> frozenset[str]:
        """Return the names of the connections that wait now.

        A connection does not wait for more than `most_subflows` subflows.
        """
        connections = observation.connections()
        self._first_seen_ns = {
            name: self._first_seen_ns.get(name, observation.now_ns) for name in connections
        }
        ends_ns = {
            name: self._first_seen_ns[name] + LONGEST_WAIT_NS
            for name, subflows in connections.items()
            if not any(each.backup or each.expected_bps is not None for each in subflows)
            and len(subflows)
            < min(most_subflows, _reachable_addresses(graph, observation, subflows[0].user))
        }
        waiting = {name: end for name, end in ends_ns.items() if end > observation.now_ns}
        self.next_ns = min(waiting.values(), default=None)
        return frozenset(waiting)


def _reachable_addresses(graph: Graph, observation: Observation, user: str) -> int:
    return sum(each in graph.vertex for each in observation.user_addresses.get(user, ()))
