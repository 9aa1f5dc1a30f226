"""Read the observation of a control step as an assignment of paths and rates.

A backup subflow has the rate 0. A connection is unassigned if one of its subflows has lost its
path, or has no rate although it is no backup. An arc is one direction of a link.
"""

from __future__ import annotations

from controller.graph import ArcPath, Graph, arc_path, hops_to
from controller.observation import Observation, Subflow
from controller.strategies.expected_throughput.assignment import Assignment, Connection
from controller.strategies.expected_throughput.exploration import Pair


def observed(
    graph: Graph, observation: Observation, fairness: float, most_subflows: int
) -> Assignment:
    """Return the paths and rates that the observation shows, as an assignment.

    A subflow at position `most_subflows` or later in its connection counts as having no path. In
    `Connection.pairs`, a subflow has None if one of its ends is not in the graph.
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
        within = list(zip(subflows, pairs, paths, strict=True))[:most_subflows]
        if any(_is_undecided(graph, *each) for each in within):
            unassigned.append(name)
    return Assignment(graph, fairness, most_subflows, found, tuple(unassigned))


def _pair(graph: Graph, subflow: Subflow) -> Pair | None:
    source, destination = (graph.vertex.get(end) for end in subflow.ends)
    return None if source is None or destination is None else (source, destination)


def _is_undecided(graph: Graph, subflow: Subflow, pair: Pair | None, path: ArcPath | None) -> bool:
    """Return whether a subflow needs a new path or rate.

    A normal subflow needs one if it has no path or no rate. A backup subflow needs one if it has no
    path although one to its destination exists.
    """
    if path is None:
        return not subflow.backup or (pair is not None and pair[0] in hops_to(graph, [pair[1]]))
    return subflow.expected_bps is None and not subflow.backup
