"""Hold back new connections until all their subflows are open, for one second at most.

S-MPTCP allocates rates per connection, with all its subflows. The subflows of a connection open one
after the other, each after a handshake of its own. An allocation that sees only the first of them
divides the capacity differently, and the difference stays.

A multipath connection opens one subflow per address of its user, because the path manager makes
each address an endpoint. So as many subflows are expected as the user has addresses with a link
that is up, at most `most_subflows`. A connection is held back while it has fewer subflows and none
of them has a pacing rate, until it has been known for `LONGEST_WAIT_NS`. A subflow can be missing
for longer, for example because the server refuses it: the connection is then allocated with the
subflows that it has.
"""

from __future__ import annotations

from controller.graph import Graph
from controller.observation import Observation
from controller.units import NS_PER_S

LONGEST_WAIT_NS = NS_PER_S


class Arrivals:
    """Find the connections to hold back, and hold the time at which each connection was first seen.

    `next_ns` is the time in ns at which the earliest wait ends, None if no connection waits.
    """

    def __init__(self) -> None:
        self.next_ns: int | None = None
        self._first_seen_ns: dict[str, int] = {}

    def waiting(self, graph: Graph, observation: Observation, most_subflows: int) -> frozenset[str]:
        """Return the names of the connections to hold back at this moment.

        `graph` is the network of the observation. At most `most_subflows` subflows of a connection
        are expected.
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
