"""Route the subflows of each connection over shortest paths that share as few links as possible.

This is a baseline of S-MPTCP (section VI-C, "disjoint"). The steps below run for each connection as
soon as one of its subflows opens or closes, and every `interval_s`:
1) The first subflow stays on its path.
2) The other subflows are treated in the order of their numbers. For each shortest path of the
   subflow, count the links that also belong to a path of an earlier subflow. If no path has fewer
   such links than the subflow's present path, the subflow stays.
3) Otherwise it moves to the path with the fewest such links. If several paths have equally few, a
   hash of the subflow's addresses and ports chooses one of them.
No rate is limited, and the paths of other connections are ignored.
"""

from __future__ import annotations

from collections import Counter

from controller.command import Decision, Route, subflow_name
from controller.graph import ArcPath, Graph, arc_path, build_graph, simple_paths, switches_on
from controller.observation import Observation, Subflow
from controller.paths import digest
from controller.strategies.base import Strategy, hashed_paths, without_subflows
from controller.topology import Topology


class Disjoint(Strategy):
    """Routes the subflows of each connection over paths that share few links.

    Nothing is stored between two decisions: the present paths are in the observation.
    """

    name = "disjoint"
    wakes_on_subflows = True

    @classmethod
    def unfit(cls, network: Topology) -> str | None:
        return without_subflows(network)

    def decide(self, observation: Observation) -> list[Decision]:
        graph = build_graph(observation.arcs)
        return [
            decision
            for subflows in observation.connections().values()
            for decision in _moves(graph, subflows)
        ]

    def withdraw(self, observation: Observation) -> list[Decision]:
        return hashed_paths(observation)


def _moves(graph: Graph, subflows: tuple[Subflow, ...]) -> list[Decision]:
    used: Counter[int] = Counter()
    decisions = []
    for subflow in subflows:
        present = arc_path(graph, subflow.ends[0], subflow.path, subflow.ends[1])
        chosen = _path(graph, subflow, present, used)
        if chosen is not None and chosen != present:
            path = switches_on(graph, chosen)
            shared = _shared(chosen, used)
            links = f"{shared} link{'' if shared == 1 else 's'}"
            text = f"path {' '.join(path)} shares {links} with other subflows of the connection"
            text += f", the present path {_shared(present, used)}" if present else ""
            decisions.append(Decision(subflow_name(subflow.key), text, Route(subflow.key, path)))
        used.update(chosen or ())
    return decisions


def _path(
    graph: Graph, subflow: Subflow, present: ArcPath | None, used: Counter[int]
) -> ArcPath | None:
    """Choose a path for a subflow: a shortest path that shares few arcs with earlier subflows.

    An arc is one direction of a link. `used` counts the arcs on the paths of the connection's
    earlier subflows. The result is `present` if no shortest path shares fewer arcs, and None if no
    path leads to the destination.
    """
    if not used and present is not None:  # 1
        return present
    source, destination = (graph.vertex.get(end) for end in subflow.ends)
    if source is None or destination is None:
        return None
    found = simple_paths(graph, source, destination, extra_hops=0)
    if not found:
        return None
    fewest = min(_shared(path, used) for path in found)
    if present is not None and _shared(present, used) <= fewest:  # 2
        return present
    best = [path for path in found if _shared(path, used) == fewest]  # 3
    return best[digest(subflow.flow) % len(best)]


def _shared(path: ArcPath, used: Counter[int]) -> int:
    return sum(arc in used for arc in path)
