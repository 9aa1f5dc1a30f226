"""A baseline that S-MPTCP is compared with: the subflows of one connection take shortest ways that share as little as possible.

At once when a subflow comes or goes, and every `interval_s`, for every connection (S-MPTCP, section VI-C, "disjoint"):
1) its first subflow stays where it is
2) each further one, by number, stays if no other shortest way shares fewer links with the ways of those before it
3) else it takes one that does; of several the hash of its addresses and ports chooses, since each connection is looked at alone
Nobody's rate is limited.
"""

from __future__ import annotations

from collections import Counter

from controller.command import Decision, Route, about
from controller.graph import Graph, Way, arcs_over, graph, switches, ways
from controller.observation import Observation, Subflow
from controller.paths import digest
from controller.plan import Plan
from controller.strategies.base import Strategy, without_subflows
from controller.strategies.hashed import released


class Disjoint(Strategy):
    """Keeps no state: the ways come with the observation."""

    name = "disjoint"
    wakes_on_subflows = True

    @classmethod
    def unfit(cls, plan: Plan) -> str | None:
        return without_subflows(plan)

    def decide(self, seen: Observation) -> list[Decision]:
        on = graph(seen.arcs)
        return [
            decision
            for subflows in seen.connections().values()
            for decision in _apart(on, subflows)
        ]

    def withdraw(self, seen: Observation) -> list[Decision]:
        return released(seen)


def _apart(on: Graph, subflows: tuple[Subflow, ...]) -> list[Decision]:
    """The moves of one connection's subflows."""
    used: Counter[int] = Counter()
    decisions = []
    for subflow in subflows:
        now = arcs_over(on, subflow.ends[0], subflow.path, subflow.ends[1])
        chosen = _way(on, subflow, now, used)
        if chosen is not None and chosen != now:
            there = _shared(chosen, used)
            text = f"this way shares {there} links with the connection's other subflows"
            text += (
                f", the one before {_shared(now, used)}" if now else ", and there was none before"
            )
            decisions.append(
                Decision(about(subflow.key), text, Route(subflow.key, switches(on, chosen)))
            )
        used.update(chosen or ())
    return decisions


def _way(on: Graph, subflow: Subflow, now: Way | None, used: Counter[int]) -> Way | None:
    """Where a subflow belongs beside the ways that are in use; None when no way leads."""
    if not used and now is not None:  # 1
        return now
    source, destination = (on.place.get(end) for end in subflow.ends)
    found = [] if source is None or destination is None else ways(on, source, destination, more=0)
    if not found:
        return now
    fewest = min(_shared(way, used) for way in found)
    if now is not None and _shared(now, used) <= fewest:  # 2
        return now
    best = [way for way in found if _shared(way, used) == fewest]  # 3
    return best[digest(subflow.flow) % len(best)]


def _shared(way: Way, used: Counter[int]) -> int:
    return sum(arc in used for arc in way)
