"""Move subflows back to the paths that the network chooses by hash when no strategy runs."""

from __future__ import annotations

from controller import paths
from controller.command import Decision, Route, subflow_name
from controller.observation import Observation


def hashed_paths(observation: Observation) -> list[Decision]:
    """Return a route command for each subflow that is not on its hashed path.

    The hashed path is the one that the network uses without a strategy: one of the shortest paths,
    chosen by a hash of the subflow's addresses and ports. Paths over links that are down do not
    count. A subflow without any path to its destination gets no command. Strategies that choose
    paths call this function in `withdraw`.
    """
    near: dict[str, set[str]] = {}
    for arc in observation.arcs:  # hosts and the air are dead ends, so no path leads through them
        near.setdefault(arc.tail, set()).add(arc.head)
    decisions = []
    for each in observation.subflows:
        found = paths.between(near, each.path[0], each.path[-1]) if each.path else []
        path = paths.choose(found, each.flow) if found else each.path
        if path != each.path:
            text = f"strategy withdrawn: the hash of the subflow chooses path {' '.join(path)}"
            decisions.append(Decision(subflow_name(each.key), text, Route(each.key, path)))
    return decisions
