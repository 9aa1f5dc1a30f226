"""What the connections of an observation have, and what they shall have: a draft that is worked on, then compared.

1) read: of every subflow the way it takes, and its rate, which is 0 for a backup. A connection waits to be settled when nothing
   was decided on one of its subflows yet, or the way of one has gone
2) settle: new ways for one connection (exploration), then new rates for it and for those it concerns (allocation)
3) share: new rates only; what somebody left is given out
4) level: who is poor beside the others gets another turn
5) a change that nobody waits for is kept only when it is worth it: the sum of the logarithms of all rates, eq (4), grows
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from controller.graph import Graph, Way, arcs_over, hops_to, use
from controller.observation import Observation, Subflow
from controller.strategies.expected_throughput.allocation import (
    Shares,
    Ways,
    arrive,
    neighbours,
    reached,
)
from controller.strategies.expected_throughput.estimation import most
from controller.strategies.expected_throughput.exploration import Asking, Pair, explore

SLACK = 0.02  # of a rate or a capacity: a smaller difference is no reason to act
WORTH = 0.05  # of a connection's rate: what a change must bring that nobody waits for


@dataclass(frozen=True)
class Standing:
    """A connection: its subflows, the places each joins, its way if it has one, and its rate in bit/s."""

    subflows: tuple[Subflow, ...]
    pairs: tuple[Pair | None, ...]
    ways: tuple[Way | None, ...]
    rates: tuple[float, ...]

    @property
    def routed(self) -> list[int]:
        """The positions of the subflows that have a way."""
        return [n for n, each in enumerate(self.ways) if each is not None]


@dataclass(frozen=True)
class Ledger:
    """The connections by name, in the order in which they appeared; those that wait count for nobody."""

    on: Graph
    fairness: float
    most_subflows: int
    connections: Mapping[str, Standing]
    waiting: tuple[str, ...]
    why: Mapping[str, str] = field(default_factory=dict)  # of what was changed

    def settled(self) -> tuple[Ways, Shares]:
        """Ways and rates of the settled connections, without subflows that have no way."""
        here = {
            name: each
            for name, each in self.connections.items()
            if name not in self.waiting and each.routed
        }
        ways = {
            name: [use(self.on, way) for way in each.ways if way is not None]
            for name, each in here.items()
        }
        return ways, {
            name: tuple(each.rates[n] for n in each.routed) for name, each in here.items()
        }

    def worth(self) -> float:
        """The sum of the logarithms of the settled connections' rates (eq (4))."""
        return sum(math.log(max(1.0, sum(rates))) for rates in self.settled()[1].values())

    def overloaded(self) -> list[str]:
        """Connections on an arc of which more is expected than it carries."""
        ways, shares = self.settled()
        full = {
            arc
            for arc, rate in load(ways, shares).items()
            if rate > (1 + SLACK) * self.on.capacity_bps[arc]
        }
        return [name for name, own in ways.items() if any(not full.isdisjoint(way) for way in own)]

    def with_room(self) -> Iterator[str]:
        """Connections that have nothing, or could have more without anybody having less, the poorest first."""
        ways, shares = self.settled()
        carried = load(ways, shares)
        for name in sorted(ways, key=lambda each: sum(shares[each])):
            own = load({name: ways[name]}, shares)
            room = {
                arc: self.on.capacity_bps[arc] - carried[arc] + rate for arc, rate in own.items()
            }
            if not any(shares[name]) or sum(most(ways[name], room)) > (1 + SLACK) * sum(
                shares[name]
            ):
                yield name

    def poor(self) -> list[str]:
        """Connections with less than `fairness` times the mean of all they share arcs with, directly or not, the poorest first."""
        ways, shares = self.settled()
        near, rate = neighbours(ways), {name: sum(rates) for name, rates in shares.items()}
        means = {name: _mean([rate[each] for each in reached(near, [name])]) for name in ways}
        return sorted(
            (name for name in ways if rate[name] < (self.fairness - SLACK) * means[name]),
            key=rate.__getitem__,
        )

    def levelled(self) -> Ledger:
        """Another turn for each that is poor: those whom the newest left alone, because it had enough itself."""  # 4
        draft = self
        for name in self.poor():
            draft = draft.share(
                name, f"{name} has less than {self.fairness:g} of what those beside it have"
            )
        return self.or_better(draft)

    def settle(self, name: str, why: str) -> Ledger:
        """New ways for one connection, and what follows."""  # 2
        standing = self.connections[name]
        ways, shares = self.settled()
        others = {each: own for each, own in ways.items() if each != name}
        ends = enumerate(standing.pairs[: self.most_subflows])
        asking = {n: Asking(pair, standing.ways[n]) for n, pair in ends if pair is not None}
        given = explore(
            self.on, list(asking.values()), others, {each: shares[each] for each in others}
        )
        at = dict(zip(asking, given, strict=True))
        found = [at.get(n) for n in range(len(standing.ways))]
        same = (
            way is not None and way == now for way, now in zip(found, standing.ways, strict=True)
        )
        kept = (rate if stays else 0.0 for rate, stays in zip(standing.rates, same, strict=True))
        moved = replace(standing, ways=tuple(found), rates=tuple(kept))
        waiting = tuple(each for each in self.waiting if each != name)
        settled = replace(
            self,
            connections={**self.connections, name: moved},
            waiting=waiting,
            why={**self.why, name: why},
        )
        return settled.share(name, why)

    def share(self, first: str, why: str) -> Ledger:
        """New rates, beginning with one connection."""  # 3
        ways, shares = self.settled()
        if first not in ways:
            return self
        given = arrive(self.on.capacity_bps, ways, shares, first, self.fairness)
        changed = {
            name: self._with(name, given[name]) for name in ways if given[name] != shares[name]
        }
        return replace(
            self,
            connections={**self.connections, **changed},
            why={**self.why, **dict.fromkeys(changed, why)},
        )

    def _with(self, name: str, rates: Collection[float]) -> Standing:
        standing = self.connections[name]
        given = dict(zip(standing.routed, rates, strict=True))
        return replace(standing, rates=tuple(given.get(n, 0.0) for n in range(len(standing.ways))))

    def or_better(self, other: Ledger) -> Ledger:
        """The other one where it is worth the change."""  # 5
        return other if other.worth() > self.worth() + math.log(1 + WORTH) else self


def read(on: Graph, seen: Observation, fairness: float, most_subflows: int) -> Ledger:
    """The observation's connections; of a subflow no link leads to, the pair is None."""  # 1
    found: dict[str, Standing] = {}
    waiting = []
    for name, subflows in seen.connections().items():
        pairs = tuple(_pair(on, each) for each in subflows)
        ways = tuple(arcs_over(on, each.ends[0], each.path, each.ends[1]) for each in subflows)
        rates = tuple(0.0 if each.backup else float(each.expected_bps or 0) for each in subflows)
        beyond = len(ways[most_subflows:])
        ways = (*ways[:most_subflows], *[None] * beyond)
        found[name] = Standing(subflows, pairs, ways, rates)
        if any(
            _undecided(on, *each)
            for each in list(zip(subflows, pairs, ways, strict=True))[:most_subflows]
        ):
            waiting.append(name)
    return Ledger(on, fairness, most_subflows, found, tuple(waiting))


def _pair(on: Graph, subflow: Subflow) -> Pair | None:
    source, destination = (on.place.get(end) for end in subflow.ends)
    return None if source is None or destination is None else (source, destination)


def _undecided(on: Graph, subflow: Subflow, pair: Pair | None, way: Way | None) -> bool:
    """Whether something must be decided on a subflow; one that is backup because no way leads waits for a way."""
    if way is None:
        return not subflow.backup or (pair is not None and pair[0] in hops_to(on, [pair[1]]))
    return subflow.expected_bps is None and not subflow.backup


def _mean(rates: Collection[float]) -> float:
    return sum(rates) / len(rates)


def load(ways: Ways, shares: Shares) -> dict[int, float]:
    """What is expected on every arc, in bit/s."""
    carried: dict[int, float] = {}
    for name, own in ways.items():
        for way, rate in zip(own, shares[name], strict=True):
            for arc, part in way.items():
                carried[arc] = carried.get(arc, 0.0) + rate * part
    return carried
