"""Leave Multipath TCP to the kernel: no meter, no pacing, no route, no backup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from controller.command import Decision, Route, Unthrottle, subflow_name
from controller.graph import ArcPath, Graph, arc_path, build_graph, simple_paths, switches_on
from controller.observation import Observation, Subflow
from controller.paths import digest
from controller.plan import Plan
from controller.strategies.base import Strategy, hashed_paths, param, without_subflows
from controller.strategies.subflow_selection.forecast import Model, PathQuality
from controller.strategies.subflow_selection.selecting import Selecting, SelectingParams
from controller.strategies.subflow_selection.selection import Choice, exhaustive


class NoStrategy(Strategy):
    """Change no subflow. Remove any limit that an earlier strategy has left at an access point."""

    name = "none"

    def decide(self, observation: Observation) -> list[Decision]:
        why = "strategy none limits nothing: a limit that was left behind is lifted"
        return [
            Decision(ap.id, why, Unthrottle(ap.id))
            for ap in observation.access_points
            if ap.meter_bps is not None
        ]

    def withdraw(self, observation: Observation) -> list[Decision]:
        return []


# Route the subflows of each connection over shortest paths that share as few links as possible.
#
# This is a baseline of S-MPTCP (section VI-C, "disjoint"). The steps below run for each connection
# as soon as one of its subflows opens or closes, and every `interval_s`:
# 1) The first subflow stays on its path.
# 2) The other subflows are treated in the order of their numbers. For each shortest path of the
#    subflow, count the links that also belong to a path of an earlier subflow. If no path has
#    fewer such links than the subflow's present path, the subflow stays.
# 3) Otherwise it moves to the path with the fewest such links. If several paths have equally few,
#    a hash of the subflow's addresses and ports chooses one of them. No rate is limited, and the
#    paths of other connections are ignored.


class Disjoint(Strategy):
    """Keep the subflows of a connection on separate paths.

    The strategy stores nothing between two decisions: the present paths are part of the
    observation.
    """

    name = "disjoint"
    wakes_on_subflows = True

    @classmethod
    def unfit(cls, plan: Plan) -> str | None:
        return without_subflows(plan)

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
    """Return a route command for each subflow of one connection that must change its path."""
    used: Counter[int] = Counter()
    decisions = []
    for subflow in subflows:
        present = arc_path(graph, subflow.ends[0], subflow.path, subflow.ends[1])
        chosen = _path(graph, subflow, present, used)
        if chosen is not None and chosen != present:
            path = switches_on(graph, chosen)
            shared = _shared(chosen, used)
            text = (
                f"path {' '.join(path)} shares {shared} links with other subflows of the connection"
            )
            text += f", the present path {_shared(present, used)}" if present else ""
            decisions.append(Decision(subflow_name(subflow.key), text, Route(subflow.key, path)))
        used.update(chosen or ())
    return decisions


def _path(
    graph: Graph, subflow: Subflow, present: ArcPath | None, used: Counter[int]
) -> ArcPath | None:
    """Return a shortest path for a subflow that has as few arcs in common with `used` as possible.

    `used` counts the arcs on the paths of the connection's earlier subflows. The subflow keeps its
    path `present` if `used` is empty, if no shortest path has fewer arcs in common, or if no path
    leads to its destination.
    """
    if not used and present is not None:  # 1
        return present
    source, destination = (graph.vertex.get(end) for end in subflow.ends)
    if source is None or destination is None:
        return present
    found = simple_paths(graph, source, destination, extra_hops=0)
    if not found:
        return present
    fewest = min(_shared(path, used) for path in found)
    if present is not None and _shared(present, used) <= fewest:  # 2
        return present
    best = [path for path in found if _shared(path, used) == fewest]  # 3
    return best[digest(subflow.flow) % len(best)]


def _shared(path: ArcPath, used: Counter[int]) -> int:
    return sum(arc in used for arc in path)


# Choose the best of all sets of subflows by the forecast of DTMC selection (baseline).
#
# The result shows how far the greedy search of the strategy `subflow_selection` is from the best
# set (DTMC selection, section V-B: the optimal path manager). Only the search differs; everything
# else is in `controller/strategies/subflow_selection`.


class OptimumParams(SelectingParams):
    """Hold the parameters of every subflow selection, and `most_paths` to limit the search."""

    most_paths: int = param(
        6,
        "subflows",
        "Largest set that the search tries; more subflows rarely bring more throughput",
        ge=1,
        le=15,
    )


class Optimum(Selecting):
    """Search all sets of subflows for the one with the largest forecast throughput.

    A set is skipped if the upper bound of its throughput is not above the best throughput found.
    """

    name = "optimum"
    Params = OptimumParams
    params: OptimumParams

    def search(self, paths: Sequence[PathQuality], model: Model, rl_max_bytes: float) -> Choice:
        return exhaustive(tuple(paths), model, rl_max_bytes, self.params.most_paths)
