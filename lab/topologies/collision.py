"""Build paths of equal length on which subflows can collide, that is, take the same path (S-MPTCP,
Figure 2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from controller.units import bps_from_mbps, ns_from_ms
from lab.topologies.parallel_paths import Delay, Rate
from lab.topologies.topology import Link, Node, Topology


class Params(BaseModel):
    """The parameters of a topology with `kind: collision`.

    `among` says what can take the same path: two subflows of one connection, or two connections.
    The other parameters apply to every link, except the link between a server and its switch.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    among: Literal["subflows", "connections"] = "subflows"
    rate_mbps: Rate = 10
    delay_ms: Delay = 5
    queue_packets: Annotated[int, Field(ge=1, le=10_000)] = 100


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return the network of S-MPTCP, Figure 2(a) or 2(b).

    `among: subflows`, Figure 2(a): the two subflows of one connection can take the same path.

                  up1 -- c1 -- down1           access1
    srv1 -- s1 --+                  +-- s2 --+--------- ue1
                  up2 -- c2 -- down2         +--------- ue1
                                               access2

    `among: connections`, Figure 2(b): the first subflows of the two connections can take the same
    path, and so can the second subflows.

    srv1 -- e1 --in11-- a1 --up1-- c1 --down1-- b1 --access11-- ue1
              \\--in12-- a2  \\up2-- c2 --down2--/  \\-access21-- ue2
    srv2 -- e2 --in21-- a1
              \\--in22-- a2 --up3-- c3 --down3-- b2 --access12-- ue1
                           \\up4-- c4 --down4--/  \\-access22-- ue2
    """

    links = _Links(params, rate_scale)
    return links.of_subflows() if params.among == "subflows" else links.of_connections()


class _Links:
    """Builds the networks of S-MPTCP, Figure 2(a) and 2(b).

    All links have the rate, delay and queue in `params`, except the link between a server and its
    switch.
    """

    def __init__(self, params: Params, rate_scale: float) -> None:
        self.rate_bps = bps_from_mbps(params.rate_mbps * rate_scale)
        self.delay_ns = ns_from_ms(params.delay_ms)
        self.queue_packets = params.queue_packets

    def of_subflows(self) -> Topology:
        """Return the network of Figure 2(a), where subflows of one connection can take the same
        path."""
        links = [
            Link("server1", "s1", "srv1"),
            *self._paths((1, 2), "s1", "s2"),
            self._link("access1", "s2", "ue1"),
            self._link("access2", "s2", "ue1"),
        ]
        return _topology([Node("ue1", "user", "access1")], ("s1", "s2", "c1", "c2"), links)

    def of_connections(self) -> Topology:
        """Return the network of Figure 2(b), where two connections can take the same path."""
        ends = [(n, side) for n in (1, 2) for side in (1, 2)]
        links = [Link(f"server{n}", f"e{n}", f"srv{n}") for n in (1, 2)]
        links += [self._link(f"in{n}{side}", f"e{n}", f"a{side}") for n, side in ends]
        links += [*self._paths((1, 2), "a1", "b1"), *self._paths((3, 4), "a2", "b2")]
        links += [self._link(f"access{n}{side}", f"b{side}", f"ue{n}") for n, side in ends]
        users = [Node(f"ue{n}", "user", f"access{n}1", server=f"srv{n}") for n in (1, 2)]
        switches = ("e1", "e2", "a1", "a2", "b1", "b2", "c1", "c2", "c3", "c4")
        return _topology(users, switches, links)

    def _link(self, id: str, a: str, b: str) -> Link:
        return Link(id, a, b, self.rate_bps, self.delay_ns, queue_packets=self.queue_packets)

    def _paths(self, numbers: tuple[int, ...], a: str, b: str) -> list[Link]:
        return [
            each
            for n in numbers
            for each in (self._link(f"up{n}", a, f"c{n}"), self._link(f"down{n}", f"c{n}", b))
        ]


def _topology(users: list[Node], switches: tuple[str, ...], links: list[Link]) -> Topology:
    servers = [Node(f"srv{n}", "server") for n in range(1, len(users) + 1)]
    nodes = (*users, *(Node(name, "switch") for name in switches), *servers)
    return Topology("collision", nodes, tuple(links), multipath=tuple(user.id for user in users))
