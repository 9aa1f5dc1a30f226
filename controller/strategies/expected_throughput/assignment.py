"""The paths and rates of all connections: those of an observation, or a draft of new ones.

`observed` reads an assignment from an observation. Assignments are immutable; each change is a
copy:

1) `with_new_paths` chooses paths for one connection (module `exploration`), then rates for it and
   for the connections that share arcs with it (module `allocation`).
2) `with_new_rates` chooses only rates, for example to distribute the capacity that a closed
   connection left.
3) `with_poor_raised` starts an allocation at each connection whose rate is low compared with the
   rates of the connections that share its links.
4) `with_max_min_rates` computes max-min fair rates for all connections (module `max_min`), where
   connections may need less than their fair share (module `demand`).
5) `better_of` keeps an optional change only if the sum of the logarithms of all connections' rates
   (S-MPTCP, eq (4)) is clearly larger with it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum

from controller.graph import ArcPath, ArcUse, Graph, arc_path, arc_use, hops_to, wired_use
from controller.observation import Observation, Subflow, SubflowKey
from controller.strategies.expected_throughput.allocation import (
    Paths,
    Rates,
    Shares,
    Sharing,
    largest_rates,
    reallocate,
)
from controller.strategies.expected_throughput.exploration import Pair, PathRequest, explore

NO_NEEDS: Mapping[str, float] = {}  # every connection needs as much as it can get
SLACK = 0.02  # of a rate or a capacity; a smaller difference is no reason to act
SAME = 1e-4  # of a rate; a smaller difference is rounding
FREE = 2.0  # of what a path can carry; such a rate limits nothing
WORTH = 0.05  # of one connection's rate; an optional change must gain at least this


@dataclass(frozen=True)
class Connection:
    """The subflows of one connection, with the ends, the path and the rate of each subflow.

    Entry n of all tuples belongs to the same subflow. `pairs` has the graph vertices of source and
    destination. An entry of `paths` is None if the subflow has no path. `rates` are in bit/s.
    If the connection needs less than its fair share, `rates` are what it needs, which counts on the
    links, and `share` is the fair share, at which its subflows may send. Otherwise `share` is ().
    """

    subflows: tuple[Subflow, ...]
    pairs: tuple[Pair | None, ...]
    paths: tuple[ArcPath | None, ...]
    rates: tuple[float, ...]
    share: tuple[float, ...] = ()

    @property
    def pacing_bps(self) -> tuple[float, ...]:
        return self.share or self.rates

    @property
    def with_path(self) -> list[int]:
        return [n for n, each in enumerate(self.paths) if each is not None]


@dataclass(frozen=True)
class Assignment:
    """The paths and rates of all connections, by the name of the connection.

    `unassigned` names the connections that still need paths; they add no load. At most
    `most_subflows` subflows of a connection get a path. A connection with at least `fairness` times
    the mean rate takes no capacity from others. If a connection differs from the observation, `why`
    has the reason for the change. With `rivals_only`, stations do not share the capacity of radio
    channels, and only connections are paced whose limits help others (`unpaced`).
    """

    graph: Graph
    fairness: float
    most_subflows: int
    connections: Mapping[str, Connection]
    unassigned: tuple[str, ...]
    why: Mapping[str, str] = field(default_factory=dict)
    rivals_only: bool = False
    unpaced: frozenset[str] = frozenset()  # connections whose rates are not limits
    alone: frozenset[str] = frozenset()  # those of them that have no rival

    def use(self, path: ArcPath) -> ArcUse:
        return (wired_use if self.rivals_only else arc_use)(self.graph, path)

    @cached_property
    def paths_and_rates(self) -> tuple[Paths, Shares]:
        """The paths of the connections, and their rates in bit/s.

        For each connection, both have one entry per subflow with a path. Connections without any
        path, and those in `unassigned`, are missing.
        """
        here = {
            name: each
            for name, each in self.connections.items()
            if name not in self.unassigned and each.with_path
        }
        paths = {
            name: [self.use(path) for path in each.paths if path is not None]
            for name, each in here.items()
        }
        return paths, {
            name: tuple(each.rates[n] for n in each.with_path) for name, each in here.items()
        }

    @cached_property
    def sharing(self) -> Sharing:
        return Sharing(self.paths_and_rates[0])

    def utility(self) -> float:
        """Return the sum of the logarithms of the connections' rates in bit/s (S-MPTCP, eq (4))."""
        return sum(math.log(max(1.0, sum(rates))) for rates in self.paths_and_rates[1].values())

    def overloaded(self) -> list[str]:
        """Return the connections that use an overloaded arc (direction of a link).

        Overloaded means that the load is more than 102 % of the capacity.
        """
        paths, shares = self.paths_and_rates
        full = {
            arc
            for arc, rate in load(paths, shares).items()
            if rate > (1 + SLACK) * self.graph.capacity_bps[arc]
        }
        return [
            name for name, own in paths.items() if any(not full.isdisjoint(path) for path in own)
        ]

    def with_free_capacity(self) -> Iterator[str]:
        """Yield the connections that could get more without taking anything from others.

        These are connections without a rate, and connections that could get over 2 % more. The
        connection with the lowest rate comes first.
        """
        paths, shares = self.paths_and_rates
        carried = load(paths, shares)
        for name in sorted(paths, key=lambda each: sum(shares[each])):
            own = load({name: paths[name]}, shares)
            free = {
                arc: self.graph.capacity_bps[arc] - carried[arc] + rate for arc, rate in own.items()
            }
            largest = sum(largest_rates(paths[name], free))
            if not any(shares[name]) or largest > (1 + SLACK) * sum(shares[name]):
                yield name

    def with_potential_gain(self, rates_bps: Mapping[str, float] | None = None) -> list[str]:
        """Return the connections that might gain from other paths, the largest gain first.

        `rates_bps` has their rates, if these are not those of this assignment.
        A connection can gain at most log(capacity of its interfaces / its rate). Connections that
        share arcs, directly or through others, are taken together: if the sum of their gains is too
        small for `better_of`, all of them are left out.
        """
        shares = self.paths_and_rates[1]
        now = rates_bps or {name: sum(rates) for name, rates in shares.items()}
        potential = {
            name: math.log(max(1.0, self._most(name) / max(1.0, now[name]))) for name in shares
        }
        found = [
            name
            for together in self.sharing.sets()
            if fsum(potential[name] for name in together) > math.log(1 + WORTH)
            for name in together
        ]
        order = {name: n for n, name in enumerate(shares)}
        return sorted(found, key=lambda name: (-potential[name], order[name]))

    def _most(self, name: str) -> float:
        """Return the rate in bit/s that the interfaces of the connection can carry.

        Of the source's and the destination's interfaces, the smaller total capacity counts.
        """
        graph, pairs = self.graph, [pair for pair in self.connections[name].pairs if pair]
        out = {arc for source, _ in pairs for arc in graph.leaving[source]}
        into = {arc for _, destination in pairs for arc in graph.entering[destination]}
        return min(fsum(graph.capacity_bps[arc] for arc in arcs) for arcs in (out, into))

    def poor(self) -> list[str]:
        """Return the connections whose rate is far below the mean rate, the lowest rate first.

        Far below means less than (`fairness` - 0.02) times the mean. The mean is over the
        connection and all connections that share arcs with it, directly or through others.
        """
        paths, shares = self.paths_and_rates
        rate = {name: sum(rates) for name, rates in shares.items()}
        means: dict[str, float] = {}
        for together in self.sharing.sets():
            mean = fsum(rate[name] for name in together) / len(together)
            means |= dict.fromkeys(together, mean)
        return sorted(
            (name for name in paths if rate[name] < (self.fairness - SLACK) * means[name]),
            key=rate.__getitem__,
        )

    def with_poor_raised(self) -> Assignment:
        """Return an assignment with new rates for connections with a rate far below the mean.

        Such connections exist for this reason: when a new connection takes capacity from earlier
        ones, the computation of rates ends as soon as the new connection has enough. An earlier
        connection may then keep a low rate. If the new rates are not clearly better (`better_of`),
        return this assignment unchanged.
        """
        draft = self
        for name in self.poor():
            why = f"{name} has less than {self.fairness:g} of the mean rate on its links"
            draft = draft.with_new_rates(name, why)
        return self.better_of(draft)

    def with_new_paths(
        self, name: str, why: str, avoided: Container[int] | None = frozenset()
    ) -> Assignment:
        """Return a copy of the assignment with new paths and rates for the connection `name`.

        The rates of connections that share arcs with it can change too. `why` is the reason for the
        log. A subflow that has a path keeps it if its new one would enter an arc in `avoided`, or
        if this is None.
        """
        connection = self.connections[name]
        paths, shares = self.paths_and_rates
        others = {each: own for each, own in paths.items() if each != name}
        ends = enumerate(connection.pairs[: self.most_subflows])
        requests = {
            n: PathRequest(pair, connection.paths[n]) for n, pair in ends if pair is not None
        }
        given = explore(
            self.graph,
            list(requests.values()),
            others,
            {each: shares[each] for each in others},
            None if name in paths else self.sharing,
        )
        given = [
            path if path is None or _may_enter(path, each.present, avoided) else each.present
            for path, each in zip(given, requests.values(), strict=True)
        ]
        at = dict(zip(requests, given, strict=True))
        found = [at.get(n) for n in range(len(connection.paths))]
        same = (
            path is not None and path == present
            for path, present in zip(found, connection.paths, strict=True)
        )
        kept = (rate if stays else 0.0 for rate, stays in zip(connection.rates, same, strict=True))
        moved = replace(connection, paths=tuple(found), rates=tuple(kept))
        assigned = replace(
            self,
            connections={**self.connections, name: moved},
            unassigned=tuple(each for each in self.unassigned if each != name),
            why={**self.why, name: why},
        )
        return assigned.with_new_rates(name, why)

    def with_new_rates(self, first: str, why: str) -> Assignment:
        """Return a copy with new rates; their computation begins with the connection `first`.

        If `first` has no path, nothing changes. `why` is the reason for the log.
        """
        paths, shares = self.paths_and_rates
        if first not in paths:
            return self
        given = reallocate(
            self.graph.capacity_bps, paths, shares, first, self.fairness, self.sharing
        )
        changed = {
            name: self._with_rates(name, given[name])
            for name in paths
            if given[name] != shares[name]
        }
        return replace(
            self,
            connections={**self.connections, **changed},
            why={**dict.fromkeys(changed, why), **self.why},
        )

    def with_max_min_rates(
        self,
        present: Assignment,
        needs_bps: Mapping[str, float] = NO_NEEDS,
        modest: Collection[str] = (),
        at_times: Collection[str] = (),
    ) -> Assignment:
        """Return a copy in which all connections have max-min fair rates (module `max_min`).

        The rates differ as little as possible from those in `present`, the assignment that the
        hosts use now.

        A connection in `needs_bps` needs no more than this rate. The rates are then max-min fair
        over needs: others get what it leaves. Its own pacing rates are at least those that would be
        fair if all needed as much as they can get, so it can send more at once.

        With `rivals_only`, a limit must help somebody, now. So these connections are not paced:
        those without a rival, whose rate is then `FREE` times what their paths carry; those in
        `modest`, which need less than their share; and all those with a rival in `at_times`,
        because rates would follow too late what such a rival leaves and takes.
        """
        from controller.strategies.expected_throughput.max_min import competing, max_min_rates

        paths, _ = self.paths_and_rates
        capacity_bps = self.graph.capacity_bps
        now = {name: self._at_paths(name, present.connections[name].pacing_bps) for name in paths}
        fair = max_min_rates(capacity_bps, paths, now)
        given, needing = (
            dict(fair),
            {name: each for name, each in needs_bps.items() if name in paths},
        )
        if needing:
            given = max_min_rates(*_limited(capacity_bps, paths, needing), now)
        groups = competing(capacity_bps, paths) if self.rivals_only else []
        alone = {names[0] for names in groups if len(names) == 1}
        for name in alone:
            fair[name] = tuple(FREE * most_on(self.graph, path) for path in paths[name])
        unpaced = set(modest) & paths.keys() if groups else set[str]()
        for names in groups:
            if len(names) == 1 or not set(names).isdisjoint(at_times):
                unpaced |= set(names)
        found = {
            name: self._with_rates(name, given[name], _share(fair[name], given[name], now[name]))
            for name in paths
        }
        changed = [
            name
            for name, each in found.items()
            if self._at_paths(name, each.pacing_bps) != now[name]
        ]
        why = f"the fair rates of {len(changed)} connections differ from their present ones"
        return replace(
            self,
            connections={**self.connections, **found},
            unpaced=frozenset(unpaced),
            alone=frozenset(alone),
            why={**dict.fromkeys(changed, why), **self.why},
        )

    def cut_off(self) -> set[SubflowKey]:
        """Return the subflows whose path has failed, and for which there is no other. With
        `rivals_only` they stay as they are, to be used at once when the link is back."""
        return {
            subflow.key
            for each in self.connections.values()
            for subflow, path in list(zip(each.subflows, each.paths, strict=True))[
                : self.most_subflows
            ]
            if path is None and self.rivals_only
        }

    def expected_bps(self, needs_bps: Mapping[str, float]) -> dict[str, float]:
        """Return the max-min fair total rate of each connection that has a path."""
        from controller.strategies.expected_throughput.max_min import max_min_rates

        paths, now = self.paths_and_rates
        needing = {name: each for name, each in needs_bps.items() if name in paths}
        given = max_min_rates(*_limited(self.graph.capacity_bps, paths, needing), now)
        return {name: sum(rates) for name, rates in given.items()}

    def _at_paths(self, name: str, rates: Sequence[float]) -> Rates:
        return tuple(rates[n] for n in self.connections[name].with_path)

    def _with_rates(
        self, name: str, rates: Collection[float], share: Collection[float] = ()
    ) -> Connection:
        """Return the connection `name` with new rates, one for each subflow that has a path."""
        connection = self.connections[name]

        def of_all(some: Collection[float]) -> Rates:
            given = dict(zip(connection.with_path, some, strict=True))
            return tuple(given.get(n, 0.0) for n in range(len(connection.paths)))

        return replace(connection, rates=of_all(rates), share=of_all(share) if share else ())

    def better_of(self, other: Assignment) -> Assignment:
        """Return `other` if it is clearly better than this assignment, else this assignment.

        Clearly better means that the sum of the logarithms of the connections' rates is larger by
        more than log(1 + WORTH).
        """
        return other if other.utility() > self.utility() + math.log(1 + WORTH) else self


def _may_enter(path: ArcPath, present: ArcPath | None, avoided: Container[int] | None) -> bool:
    if present is None:
        return True
    return avoided is not None and not any(arc in avoided for arc in path if arc not in present)


def _share(fair: Rates, given: Rates, present: Rates) -> Rates:
    """Return the rates at which a connection may send that gets the rates `given`, which it needs.

    They are those in `fair`, or () if it gets as much anyway. Rates that hardly differ from the
    present ones stay: in a kernel they are the same, and would be commanded again and again.
    """
    if sum(fair) <= sum(given):
        return ()
    stays = all(abs(a - b) <= SAME * b for a, b in zip(fair, present, strict=True))
    return present if stays else fair


def _limited(
    capacity_bps: Sequence[float], paths: Paths, needs_bps: Mapping[str, float]
) -> tuple[Sequence[float], Paths]:
    """Return capacities and paths with one more arc for each connection in `needs_bps`.

    All paths of the connection cross this arc, and its capacity is what the connection needs.
    """
    arcs = {name: len(capacity_bps) + n for n, name in enumerate(needs_bps)}
    further = {name: [{**path, arc: 1.0} for path in paths[name]] for name, arc in arcs.items()}
    return (*capacity_bps, *needs_bps.values()), {**paths, **further}


def load(paths: Paths, shares: Shares) -> dict[int, float]:
    """Return the load of every arc (direction of a link) in bit/s.

    It is the sum of the rates on all paths that cross the arc. On a radio channel, a slow station
    takes more capacity than its rate (see `arc_use`).
    """
    carried: dict[int, float] = {}
    for name, own in paths.items():
        for path, rate in zip(own, shares[name], strict=True):
            for arc, part in path.items():
                carried[arc] = carried.get(arc, 0.0) + rate * part
    return carried


def observed(
    graph: Graph,
    observation: Observation,
    fairness: float,
    most_subflows: int,
    needs_bps: Mapping[str, float] = NO_NEEDS,
    rivals_only: bool = False,
) -> Assignment:
    """Return the present paths and rates, as the observation shows them.

    A connection in `needs_bps` counts with this rate, if its pacing rates add up to more.

    A backup subflow has the rate 0. Only the first `most_subflows` subflows of a connection can
    have a path. If one of these needs a new path or a first rate (`_is_undecided`), the connection
    is unassigned. In `Connection.pairs`, a subflow has None if one of its ends is not in the graph.
    """
    found: dict[str, Connection] = {}
    unassigned = []
    for name, subflows in observation.connections().items():
        pairs = tuple(_pair(graph, each) for each in subflows)
        paths = tuple(arc_path(graph, each.ends[0], each.path, each.ends[1]) for each in subflows)
        rates = tuple(0.0 if each.backup else float(each.expected_bps or 0) for each in subflows)
        beyond = len(paths[most_subflows:])
        paths = (*paths[:most_subflows], *[None] * beyond)
        found[name] = Connection(subflows, pairs, paths, rates)
        used = _carried(graph, paths, rates) if rivals_only else rates
        if sum(used) > (need := needs_bps.get(name, math.inf)):
            used = tuple(each * need / sum(used) for each in used)
        if used != rates:
            found[name] = replace(found[name], rates=used, share=rates)
        within = list(zip(subflows, pairs, paths, strict=True))[:most_subflows]
        if any(_is_undecided(graph, *each, rivals_only) for each in within):
            unassigned.append(name)
    return Assignment(
        graph, fairness, most_subflows, found, tuple(unassigned), rivals_only=rivals_only
    )


def most_on(graph: Graph, use: ArcUse) -> float:
    """Return the largest rate in bit/s of a path without other load."""
    return min((graph.capacity_bps[arc] / part for arc, part in use.items()), default=0.0)


def _carried(graph: Graph, paths: Sequence[ArcPath | None], rates: Rates) -> Rates:
    """Return the rates in bit/s, each at most what its path can carry."""
    return tuple(
        rate if path is None else min(rate, most_on(graph, wired_use(graph, path)))
        for path, rate in zip(paths, rates, strict=True)
    )


def _pair(graph: Graph, subflow: Subflow) -> Pair | None:
    source, destination = (graph.vertex.get(end) for end in subflow.ends)
    return None if source is None or destination is None else (source, destination)


def _is_undecided(
    graph: Graph, subflow: Subflow, pair: Pair | None, path: ArcPath | None, waits: bool
) -> bool:
    """Return whether a subflow needs a new path or a first rate.

    A subflow that is not backup needs a path and a rate. A backup subflow needs no rate. It needs a
    path only if the graph has one between its two ends; if `waits`, this holds for all.
    """
    if path is None:
        there_is_one = pair is not None and pair[0] in hops_to(graph, [pair[1]])
        return there_is_one or not (waits or subflow.backup)
    return subflow.expected_bps is None and not subflow.backup
