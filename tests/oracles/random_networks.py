"""Random wired networks, and the loads of their links, computed without the code of the
strategies."""

from __future__ import annotations

import random
from itertools import pairwise

from hosts_that_confirm import Confirming

from controller.command import LOWEST_LIMIT_BPS
from controller.strategies.expected_throughput import ExpectedThroughput
from lab.topologies.topology import Link, Node, Topology

MBPS = 1_000_000
Wire = tuple[str, str]  # a link, and the switch at which data enters it, or "host"


def topology(rng: random.Random) -> Topology:
    """3 to 8 switches, 1 or 2 servers, and 2 to 6 users with 1 to 3 interfaces each."""

    def rate() -> int:
        return rng.randint(1, 50) * MBPS

    switches = [f"s{n}" for n in range(1, rng.randint(4, 9))]
    joined = {(rng.choice(switches[:n]), switches[n]) for n in range(1, len(switches))}
    for _ in range(rng.randint(1, 2 * len(switches))):
        a, b = sorted(rng.sample(switches, 2))
        joined.add((a, b))
    links = [Link(f"{a}-{b}", a, b, rate()) for a, b in sorted(joined)]
    servers = [f"srv{n}" for n in range(1, rng.randint(2, 3))]
    nodes = [Node(name, "switch") for name in switches] + [Node(each, "server") for each in servers]
    links += [Link(f"to_{each}", rng.choice(switches), each, 100 * MBPS) for each in servers]
    users = [f"ue{n}" for n in range(1, rng.randint(3, 7))]
    for user in users:
        own = [f"{user}_{n}" for n in range(1, rng.randint(2, 4))]
        links += [Link(name, rng.choice(switches), user, rate()) for name in own]
        nodes.append(Node(user, "user", own[0], rng.randint(1, 2), rng.choice(servers)))
    return Topology("random", tuple(nodes), tuple(links), multipath=tuple(users))


class Watched(Confirming):
    """Each link's load after each command, relative to what it may carry.

    `worst` is the largest such load so far. A link may carry its capacity, or what it carried
    before the step if that was more.
    """

    def __init__(self, network: Topology, **params: object) -> None:
        super().__init__(network, ExpectedThroughput(ExpectedThroughput.Params(**params)))
        self.worst = 0.0
        self._allowed: dict[Wire, float] = {}

    def step(self):
        before = self.carried()
        self._allowed = {
            wire: max(capacity, before.get(wire, 0.0)) for wire, capacity in self.capacity().items()
        }
        return super().step()

    def _carry_out(self, decision):
        super()._carry_out(decision)
        for wire, rate in self.carried().items():
            if rate:
                self.worst = max(self.worst, rate / self._allowed.get(wire, 1e-9))

    def wires(self, subflow) -> list[Wire] | None:
        """What a subflow crosses; None if its path is broken."""
        at = {(arc.tail, arc.head): arc.link for arc in self.arcs}
        (source, destination), path = subflow.ends, subflow.path
        stops = [source, *path, destination]
        hops = list(pairwise(stops))
        if not path or any(hop not in at for hop in hops):
            return None
        return [(at[hop], hop[0] if hop[0] in path else "host") for hop in hops]

    def capacity(self) -> dict[Wire, float]:
        switches = set(self.topology.switches)
        return {
            (arc.link, arc.tail if arc.tail in switches else "host"): float(arc.capacity_bps)
            for arc in self.arcs
        }

    def carried(self) -> dict[Wire, float]:
        """Load of each link in bit/s.

        A subflow at the lowest pacing rate does not count: a strategy cannot request less for it.
        """
        found: dict[Wire, float] = {}
        for each in self.subflows.values():
            for wire in () if each.backup else self.wires(each) or ():
                rate = float(each.expected_bps or 0)
                found[wire] = found.get(wire, 0.0) + (rate if rate > LOWEST_LIMIT_BPS else 0.0)
        return found

    def routes(self) -> dict[str, list[list[Wire]]]:
        """Links of each connection's subflows that have a path."""
        found: dict[str, list[list[Wire]]] = {}
        for each in self.subflows.values():
            wires = self.wires(each)
            if wires is not None:
                found.setdefault(each.connection, []).append(wires)
        return found

    def rates(self) -> dict[str, float]:
        """Rate of each connection in bit/s."""
        found: dict[str, float] = {}
        for each in self.subflows.values():
            rate = 0.0 if each.backup or self.wires(each) is None else float(each.expected_bps or 0)
            found[each.connection] = found.get(each.connection, 0.0) + rate
        return found


def events(network: Watched, rng: random.Random, count: int):
    """Open all connections in a random order, then change `count` things; yield after each."""
    users = list(network.topology.users)
    rng.shuffle(users)
    for user in users:
        network.open(user)
        yield
    links = [each for each in network.topology.links if not each.id.startswith("to_")]
    for _ in range(count):
        act, link = rng.choice(("change", "down", "up", "close", "open")), rng.choice(links)
        if act == "change":
            network.change(link.id, rng.randint(1, 50) * MBPS)
        elif act == "down":
            network.down(link.id)
        elif act == "up":
            network.down()
        elif act == "close":
            network.close(rng.choice(users))
        else:
            network.down()
            network.open(rng.choice(users))
        yield
