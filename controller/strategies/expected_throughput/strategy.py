"""Choose a path and a pacing rate for every subflow so that connections get equal rates (S-MPTCP).

Source: S-MPTCP, sections III to V. As soon as a subflow opens or closes, and every `interval_s`:
0) A new connection whose subflows are not all open yet is left alone, for 1 s at most
   (`Arrivals`).
1) A connection with a new subflow, or with a subflow that has lost its path, gets new paths and
   rates. The oldest connection comes first.
2) A connection on a link whose load is larger than the link's capacity gets new paths and rates
   too.
3) When a link came up or its capacity grew, try new paths for each connection that could gain.
4) Distribute free capacity, to the poorest connection first.
5) If a connection has a rate far below the rates of the connections that share its links, compute
   new rates, beginning with this connection (module `allocation`). This step is not in the paper:
   there, new rates are computed only until the newest connection has enough, so an older
   connection that gave up capacity to the newest one can stay poor.
   With `allocation: max_min`, all connections get the max-min fair rates on their paths instead of
   steps 4 and 5 (module `max_min`).
6) Each difference from the observation becomes a command. A subflow with a rate of 0 becomes
   backup, unless it is the last normal one of its connection. No command overloads a link (module
   `decisions`).
A change of steps 3 to 5 is kept only if the sum of the logarithms of all rates grows enough. The
present paths and rates are those that the hosts confirm, so a restarted controller reads them from
the observation and changes nothing.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from importlib import import_module
from typing import Literal

from controller.command import Decision, Expect, SetBackup, subflow_name
from controller.graph import Graph, build_graph
from controller.observation import Observation
from controller.strategies.base import Strategy, StrategyParams, hashed_paths, param
from controller.strategies.expected_throughput.assignment import SLACK, Assignment, observed
from controller.strategies.expected_throughput.decisions import decisions
from controller.units import NS_PER_S, rate_text

SLIGHTEST_RAISE = 1e-4  # of a rate; a smaller difference between max-min rates is rounding
MOST_TRIES = 16  # connections per step, so that a step stays short in a large network


class ExpectedThroughputParams(StrategyParams):
    """`fairness` is from S-MPTCP. Subflows of a connection beyond `max_subflows` are backup."""

    interval_s: float = param(
        2.0, "s", "Time between two control steps if no subflow opens or closes", ge=0.2, le=60
    )
    fairness: float = param(
        0.9,
        "fraction",
        "A connection with at least this part of the mean rate takes nothing from others",
        gt=0,
        le=1,
    )
    allocation: Literal["paper", "max_min"] = param(
        "paper", "choice", "How to compute rates: the paper's water filling, or max-min fair rates"
    )
    max_subflows: int = param(
        8, "subflows", "How many subflows of a connection get a path", ge=1, le=16
    )


class ExpectedThroughput(Strategy):
    """Chooses a path and a pacing rate for every subflow (S-MPTCP).

    Between two decisions it stores the graph of the network, to notice when a link's capacity
    grows, and when it first saw each connection, to limit how long it waits for further subflows.
    """

    name = "expected_throughput"
    wakes_on_subflows = True
    Params = ExpectedThroughputParams
    improved = {"allocation": "max_min"}
    params: ExpectedThroughputParams

    def __init__(self, params: StrategyParams) -> None:
        super().__init__(params)
        self._graph: Graph | None = None
        self._to_try: list[str] = []
        self._arrivals = Arrivals()
        if self.params.allocation == "max_min":  # loads scipy, which takes a part of a second
            import_module("controller.strategies.expected_throughput.max_min")

    def decide(self, observation: Observation) -> list[Decision]:
        if not observation.arcs:  # the network is not known yet
            return []
        graph = build_graph(observation.arcs)
        waiting = self._arrivals.waiting(graph, observation, self.params.max_subflows)  # 0
        before = draft = observed(
            graph,
            _without(observation, waiting),
            self.params.fairness,
            self.params.max_subflows,
        )
        for name in draft.unassigned:  # 1
            draft = draft.with_new_paths(name, f"{_user(draft, name)} needs a path")
        for name in draft.overloaded():  # 2
            if name in draft.overloaded():
                draft = draft.with_new_paths(name, f"a link of {_user(draft, name)} is overloaded")
        draft = self._with_better_paths(draft)  # 3
        if self.params.allocation == "max_min":
            after = draft.with_max_min_rates(before)
            return decisions(before, after, observation.rate_scale, SLIGHTEST_RAISE)
        for name in list(draft.with_free_capacity()):  # 4
            why = f"capacity is free for {_user(draft, name)}"
            draft = draft.better_of(draft.with_new_rates(name, why))
        return decisions(before, draft.with_poor_raised(), observation.rate_scale)  # 5, 6

    def wake_at_ns(self) -> int | None:
        return self._arrivals.next_ns

    def withdraw(self, observation: Observation) -> list[Decision]:
        why = "strategy withdrawn"
        paced = [
            Decision(
                subflow_name(each.key),
                f"{why}: pacing at {rate_text(each.expected_bps, observation.rate_scale)} ends",
                Expect(each.key, None),
            )
            for each in observation.subflows
            if each.expected_bps is not None
        ]
        backups = [
            Decision(
                subflow_name(each.key),
                f"{why}: subflow {each.number} is backup no longer",
                SetBackup(each.key, False),
            )
            for each in observation.subflows
            if each.backup
        ]
        return hashed_paths(observation) + paced + backups

    def _with_better_paths(self, draft: Assignment) -> Assignment:
        """Return the assignment with new paths for connections that get more on them.

        At most `MOST_TRIES` connections are tried in one step, in the order in which they appeared.
        The others follow in the next steps.
        """
        if self._capacity_grew(draft.graph):
            self._to_try = draft.with_room_to_gain()
        tried, self._to_try = set(self._to_try[:MOST_TRIES]), self._to_try[MOST_TRIES:]
        for name in draft.connections:
            if name in tried:
                why = f"other links have more room for {_user(draft, name)}"
                draft = draft.better_of(draft.with_new_paths(name, why))
        return draft

    def _capacity_grew(self, graph: Graph) -> bool:
        """Return whether a link is new since the last step, or has a larger capacity than then.

        The result is False at the first step.
        """
        before, self._graph = self._graph, graph
        if before is None or before is graph:
            return False
        capacities = before.capacities()
        return any(
            capacity > (1 + SLACK) * capacities.get(ends, 0)
            for ends, capacity in graph.capacities().items()
        )


def _without(observation: Observation, connections: Container[str]) -> Observation:
    left = tuple(each for each in observation.subflows if each.connection not in connections)
    return replace(observation, subflows=left)


def _user(draft: Assignment, name: str) -> str:
    subflows = draft.connections[name].subflows
    return subflows[0].user if subflows else name


# Why new connections wait until all their subflows are open, for one second at most
#
# S-MPTCP allocates rates per connection, with all its subflows. The subflows of a connection open
# one after the other, each after a handshake of its own. An allocation that sees only the first of
# them divides the capacity differently, and the difference stays.
#
# A multipath connection opens one subflow per address of its user, because the path manager makes
# each address an endpoint. So as many subflows are expected as the user has addresses with a link
# that is up, at most `most_subflows`. A connection is held back while it has fewer subflows and
# none of them has a pacing rate, until it has been known for `LONGEST_WAIT_NS`. A subflow can be
# missing for longer, for example because the server refuses it: the connection is then allocated
# with the subflows that it has.


LONGEST_WAIT_NS = NS_PER_S


class Arrivals:
    """Decides which new connections wait until all their subflows are open.

    `next_ns` is the time in ns at which the earliest wait ends, None if no connection waits.
    """

    def __init__(self) -> None:
        self.next_ns: int | None = None
        self._first_seen_ns: dict[str, int] = {}

    def waiting(self, graph: Graph, observation: Observation, most_subflows: int) -> frozenset[str]:
        """Return the names of the connections that wait at this moment.

        At most `most_subflows` subflows of a connection are expected.
        """
        connections = observation.connections()
        self._first_seen_ns = {
            name: self._first_seen_ns.get(name, observation.now_ns) for name in connections
        }
        ends_ns = {
            name: self._first_seen_ns[name] + LONGEST_WAIT_NS
            for name, subflows in connections.items()
            if not any(each.backup or each.expected_bps is not None for each in subflows)
            and len(subflows)
            < min(most_subflows, _reachable_addresses(graph, observation, subflows[0].user))
        }
        waiting = {name: end for name, end in ends_ns.items() if end > observation.now_ns}
        self.next_ns = min(waiting.values(), default=None)
        return frozenset(waiting)


def _reachable_addresses(graph: Graph, observation: Observation, user: str) -> int:
    return sum(each in graph.vertex for each in observation.user_addresses.get(user, ()))
