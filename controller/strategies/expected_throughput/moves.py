"""Decide which connections leave the paths that hashing gave them (`moves: gains`).

Expected rates are max-min fair (module `max_min`). They say nothing about who waits in a queue. So
1) a connection moves only after it has had data all the time for a while (module `demand`), and
   sends at least half of its fair rate. Who sends less waits for something else than the network;
2) it does not enter an arc (direction of a link) of a connection for which 1) does not hold, or one
   that carries packets of no known connection, such as calls (`arcs_to_avoid`);
3) all moves together must help somebody, and harm nobody (`is_fairer`). If not, each move is
   judged alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from controller.graph import Graph, arc_path
from controller.observation import Observation
from controller.strategies.expected_throughput.assignment import SLACK, WORTH, Assignment
from controller.strategies.payoff import is_fairer

UNKNOWN_BPS = 20_000  # of the scenario; a call sends more, and what switches send is less


def with_moves(
    draft: Assignment,
    names: Iterable[str],
    needs_bps: Mapping[str, float],
    avoided: Collection[int],
) -> Assignment:
    """Return `draft` with new paths for those connections in `names` whose moves help. None enters
    an arc in `avoided`."""
    moved, before = draft, draft.expected_bps(needs_bps)
    names = [name for name in names if name in before]
    for name in names:
        moved = _moved(moved, name, avoided)
    if is_fairer(before, moved.expected_bps(needs_bps), WORTH, 1 - SLACK):
        return moved
    for name in names:
        moved = _moved(draft, name, avoided)
        after = moved.expected_bps(needs_bps)
        if is_fairer(before, after, WORTH, 1 - SLACK):
            draft, before = moved, after
    return draft


def _moved(draft: Assignment, name: str, avoided: Collection[int]) -> Assignment:
    user = draft.connections[name].subflows[0].user
    return draft.with_new_paths(name, f"other links have more room for {user}", avoided)


def arcs_to_avoid(
    graph: Graph, observation: Observation, waiting: Collection[str]
) -> frozenset[int]:
    """Return the arcs with a connection in `waiting`, and those that carry packets although no
    known connection sends there."""
    known: dict[int, float] = {}
    found = set[int]()
    for each in observation.subflows:
        path = arc_path(graph, each.ends[0], each.path, each.ends[1]) or ()
        found |= set(path) if each.connection in waiting else set()
        for arc in path:
            known[arc] = known.get(arc, 0.0) + (each.rate_bps or 0)
    for link in observation.arcs:
        unknown = link.used_bps > UNKNOWN_BPS * observation.rate_scale
        there = graph.between(graph.vertex[link.tail], graph.vertex[link.head])
        if unknown and there is not None and not known.get(there):
            found.add(there)
    return frozenset(found)
