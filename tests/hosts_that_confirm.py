"""A network whose hosts confirm every command at once, for strategies that steer subflows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count, pairwise

from networks import arcs_of, without

from controller.command import Decision, Expect, Route, SetBackup, checked, subflow_name
from controller.graph import arc_path, arc_use, build_graph, simple_paths, switches_on
from controller.observation import Arc, Observation, Subflow
from controller.paths import digest
from controller.strategies.base import Strategy
from lab.topologies.topology import Topology, wire

PORTS = count(40_000)


class Confirming:
    """Connections open and close at once; new subflows get a path by hash."""

    def __init__(self, topology: Topology, strategy: Strategy, rate_scale: float = 1.0) -> None:
        self.rate_scale = rate_scale
        self.topology, self.wiring, self.strategy = topology, wire(topology), strategy
        self.every = self.arcs = arcs_of(topology)
        self.subflows: dict[tuple[str, int], Subflow] = {}
        self.decided: list[Decision] = []
        self.now_s = 0.0

    def open(
        self, *users: str, only: int | None = None, ports: int | None = None
    ) -> list[Decision]:
        """Open connections (`only`: that many of their subflows), and make one step.

        `ports`: the first port of the users, for tests that need the same hashes twice.
        """
        numbers = PORTS if ports is None else count(ports)
        for user in users:
            server = self.wiring.of(self.topology.server_of(user))[0]
            for number, (link, address) in enumerate(self._addresses(user)[:only], 1):
                key = (f"{user}-1", number)
                if key not in self.subflows:
                    ends = (f"{server.address}:5001", f"{address}:{next(numbers)}")
                    self.subflows[key] = self._hashed(Subflow(*key, user, link, *ends))
        return self.step()

    def _addresses(self, user: str) -> list[tuple[str, str]]:
        return [
            (each.link, address)
            for each in self.wiring.of(user)
            for address in (each.address, *each.further)
        ]

    def close(self, user: str) -> list[Decision]:
        self.subflows = {key: each for key, each in self.subflows.items() if each.user != user}
        return self.step()

    def down(self, *links: str) -> list[Decision]:
        """Take these links down and all others up, and make one step."""
        self.arcs = without(self.every, *links)
        return self.step()

    def change(self, link: str, capacity_bps: int) -> list[Decision]:
        """Set the capacity of both directions, and make one step."""
        self.arcs = tuple(
            replace(arc, capacity_bps=capacity_bps) if arc.link == link else arc
            for arc in self.arcs
        )
        return self.step()

    def step(self) -> list[Decision]:
        """Let the strategy decide, check its commands, and carry them out."""
        self.decided = self.strategy.decide(self.observation())
        for decision in self.decided:
            self._carry_out(decision)
        return self.decided

    def withdraw(self) -> None:
        for decision in self.strategy.withdraw(self.observation()):
            self._carry_out(decision)

    def observation(self) -> Observation:
        return Observation(
            round(self.now_s * 1e9),
            subflows=tuple(self.subflows.values()),
            arcs=self.arcs,
            rate_scale=self.rate_scale,
            user_addresses={
                user: tuple(address for _, address in self._addresses(user))
                for user in self.topology.multipath
            },
        )

    def mbps(self, user: str) -> list[float]:
        """Expected rate of each subflow in Mb/s; 0 for backup subflows."""
        return [0.0 if each.backup else (each.expected_bps or 0) / 1e6 for each in self.of(user)]

    def paths(self, user: str) -> list[tuple[str, ...]]:
        return [each.path for each in self.of(user)]

    def of(self, user: str) -> list[Subflow]:
        return [each for each in self.subflows.values() if each.user == user]

    def overload(self) -> float:
        """Largest load of a link direction, divided by its capacity."""
        graph, carried = build_graph(self.arcs), dict[int, float]()
        for each in self.subflows.values():
            path = arc_path(graph, each.ends[0], each.path, each.ends[1])
            for arc, part in arc_use(graph, path).items() if path and not each.backup else ():
                carried[arc] = carried.get(arc, 0.0) + part * (each.expected_bps or 0)
        return max((rate / graph.capacity_bps[arc] for arc, rate in carried.items()), default=0.0)

    def _hashed(self, subflow: Subflow) -> Subflow:
        graph = build_graph(self.arcs)
        found = simple_paths(
            graph, graph.vertex[subflow.ends[0]], graph.vertex[subflow.ends[1]], extra_hops=0
        )
        return replace(subflow, path=switches_on(graph, found[digest(subflow.flow) % len(found)]))

    def _carry_out(self, decision: Decision) -> None:
        command = checked(decision.command, self.observation())
        assert decision.subject == subflow_name(command.subflow)
        assert any(
            letter.isdigit() for letter in decision.reason.replace(self.of_about(decision).user, "")
        ), decision.reason
        changes = {Route: "path", Expect: "rate_bps", SetBackup: "backup"}
        name = changes[type(command)]
        change = {"expected_bps" if name == "rate_bps" else name: getattr(command, name)}
        self.subflows[command.subflow] = replace(self.subflows[command.subflow], **change)

    def of_about(self, decision: Decision) -> Subflow:
        return next(
            each for each in self.subflows.values() if subflow_name(each.key) == decision.subject
        )


def commands(decisions: Iterable[Decision], kind: type) -> list[object]:
    return [each.command for each in decisions if isinstance(each.command, kind)]


def used_twice(paths: Iterable[tuple[str, ...]], arcs: Iterable[Arc]) -> set[str]:
    """Links that more than one of these paths crosses in the same direction."""
    links = {(arc.tail, arc.head): arc.link for arc in arcs}
    crossed = [links[ends] for path in paths for ends in pairwise(path)]
    return {link for link in crossed if crossed.count(link) > 1}
