"""Ways as the network gives them without a strategy: what one that chose ways leaves behind when it is withdrawn."""

from __future__ import annotations

from controller import paths
from controller.command import Decision, Route, about
from controller.observation import Observation


def released(seen: Observation) -> list[Decision]:
    """Every subflow takes the shortest way that its hash says over the links that are up; who has none stays."""
    near: dict[str, set[str]] = {}
    for arc in seen.arcs:  # hosts and the air are dead ends, so that no way leads through them
        near.setdefault(arc.tail, set()).add(arc.head)
    decisions = []
    for each in seen.subflows:
        found = paths.between(near, each.path[0], each.path[-1]) if each.path else []
        way = paths.choose(found, each.flow) if found else each.path
        if way != each.path:
            text = f"the strategy was withdrawn: its hash says {' '.join(way)}"
            decisions.append(Decision(about(each.key), text, Route(each.key, way)))
    return decisions
