"""Return subflows to the paths that the network chooses without a strategy."""

from __future__ import annotations

from controller import paths
from controller.command import Decision, Route, subflow_name
from controller.observation import Observation


def hashed_paths(observation: Observation) -> list[Decision]:
    """Return a route for each subflow that is not on the shortest path that its hash chooses.

    Only links that are up count. A subflow stays if no path leads to its destination. A strategy
    that chose paths calls this when it is withdrawn.
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
