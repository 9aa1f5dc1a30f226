"""Find the path of each subflow through the network, and the links that are down, from the events
of a run.

`dashboard/static/network_paths.js` does the same in the browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

from lab.results.flips import is_accepted
from lab.topologies.topology import Topology

Event = Mapping[str, Any]  # a line of events.jsonl
NodePath = tuple[str, ...]  # nodes, from the server to the user
DOWN = ("link.", ".up")  # begin and end of the parameter `link.ID.up`, which cuts or repairs a link


def graph_of(topology: Topology) -> nx.Graph:
    """Return the graph of a network.

    The edges of the graph are the links of the network, and the connections between each access
    point and its users.
    """
    graph = nx.Graph()
    graph.add_nodes_from(node.id for node in topology.nodes)
    graph.add_edges_from((link.a, link.b) for link in topology.links)
    graph.add_edges_from((cell.ap, each.user) for cell in topology.cells for each in cell.stations)
    return graph


class Paths:
    """The paths of all subflows of a run through the network, at one time of the run.

    Events name a connection by its flow ID or by its MPTCP token, but samples use flow IDs. The
    first token of a user belongs to the user's first connection, the second to the second, and so
    on.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.down: set[str] = set()
        self._reported: dict[str, NodePath] = {}
        self._connections: dict[str, list[str]] = {}
        self._shortest = shortest_paths(topology)
        self._switches = attached_switches(topology)

    def follow(self, events: Iterable[Event]) -> None:
        """Apply events in their order: new paths of subflows, and links that are cut or
        repaired."""
        for event in events:
            if event.get("kind") == "subflow":
                self._note(event)
            elif is_accepted(event):
                self._flip(str(event.get("target", "")), event.get("value"))

    def _note(self, event: Event) -> None:
        connection = str(event["connection"])
        known = self._connections.setdefault(str(event["user"]), [])
        if connection not in known:
            known.append(connection)
        self._reported[f"{connection}/{event['subflow']}"] = tuple(event.get("path") or ())

    def _flip(self, target: str, value: Any) -> None:
        if target.startswith(DOWN[0]) and target.endswith(DOWN[1]):
            link = target[len(DOWN[0]) : -len(DOWN[1])]
            (self.down.discard if value else self.down.add)(link)

    def of(self, name: str, sample: Mapping[str, Any]) -> NodePath:
        """Return the path of a subflow, from its server to its user.

        `name` and `sample` are the ID and the fields of the subflow in a frame. If the controller
        has not reported a path, the result is the shortest path. It is empty if the user is not
        known.
        """
        number = name.rpartition("/")[2]
        user, ordinal = owner(name, sample)
        if user not in self.topology.users:
            return ()
        path = self._reported.get(name)
        known = self._connections.get(user, [])
        if path is None and ordinal <= len(known):
            path = self._reported.get(f"{known[ordinal - 1]}/{number}")
        server = self.topology.server_of(user)
        attached = str(sample.get("ap") or "")  # an access point, or the link of an interface
        switch = self._switches.get(attached, attached)
        if path and switch and switch in self._shortest.get(server, {}) and path[-1] != switch:
            path = None  # the user has moved to another access point
        if not path:
            first = next(node.home for node in self.topology.nodes if node.id == user)
            end = switch or self._switches.get(first, first)
            path = self._shortest.get(server, {}).get(end, ())
        return (server, *path, user) if path else ()


def flow_names(events: Iterable[Event]) -> dict[str, str]:
    """Map each connection in the events to the name that samples use, such as `ue2-1`.

    Where the controller knows connections only by their MPTCP tokens, the first token of a user
    belongs to the user's first connection, the second to the second, and so on.
    """
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for event in events:
        if event.get("kind") == "subflow" and str(event["connection"]) not in names:
            connection, user = str(event["connection"]), str(event["user"])
            counts[user] = counts.get(user, 0) + 1
            is_flow = connection == user or connection.startswith(f"{user}-")
            names[connection] = connection if is_flow else f"{user}-{counts[user]}"
    return names


def owner(name: str, sample: Mapping[str, Any]) -> tuple[str, int]:
    """Return the user of a subflow, and the number of its connection.

    The connections of each user are counted from 1.
    """
    connection = name.rpartition("/")[0] or name
    user, dash, ordinal = connection.rpartition("-")
    numbered = bool(dash) and ordinal.isdigit()
    named = str(sample.get("user") or (user if numbered else connection))
    return named, int(ordinal) if numbered else 1


def shortest_paths(topology: Topology) -> dict[str, dict[str, NodePath]]:
    """Return the shortest path from each server to each switch, as `{server: {switch: path}}`.

    A path has all nodes after the server, up to and including the switch.
    """
    graph = graph_of(topology)
    inner = graph.subgraph(set(graph) - set(topology.users))
    found: dict[str, dict[str, NodePath]] = {}
    for server in topology.ids("server"):
        paths = nx.single_source_shortest_path(inner, server)
        found[server] = {end: tuple(path[1:]) for end, path in paths.items() if len(path) > 1}
    return found


def attached_switches(topology: Topology) -> dict[str, str]:
    """Map the ID of each user's link to the switch at the other end, and each access point to
    itself.
    """
    users = set(topology.users)
    found = {cell.ap: cell.ap for cell in topology.cells}
    for link in topology.links:
        if link.a in users or link.b in users:
            found[link.id] = link.b if link.a in users else link.a
    return found
