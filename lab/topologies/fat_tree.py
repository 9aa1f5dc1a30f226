"""Build a fat tree of k-port switches: many paths of equal length between pods (S-MPTCP, Table 4).

Source: M. Al-Fares, A. Loukissas, A. Vahdat, A Scalable, Commodity Data Center Network
Architecture, SIGCOMM 2008, section 3.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from controller.units import bps_from_mbps, ns_from_ms
from lab.topologies.parallel_paths import Delay, Rate
from lab.topologies.topology import Link, Node, Topology


class Tree(BaseModel):
    """The rate, one-way delay and queue of each link between two switches of a fat tree."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rate_mbps: Rate = 10
    delay_ms: Delay = 1
    queue_packets: Annotated[int, Field(ge=1, le=10_000)] = 100


class Params(Tree):
    """The parameters of a topology with `kind: fat_tree`.

    `k` is the number of ports of a switch. `host_mbps` is the rate of the link between a server or
    user and its switch. `subflows` is the number of subflows of each connection. With `one_server`,
    all users talk to srv1, whose switch two links lead to (with k = 4).
    """

    k: Annotated[int, Field(ge=2, le=32)] = 4
    host_mbps: Rate = 20
    subflows: Annotated[int, Field(ge=1, le=8)] = 2
    one_server: bool = False

    @field_validator("k")
    @classmethod
    def is_even(cls, k: int) -> int:
        if k % 2:
            raise ValueError(
                f"{k} is odd: half of a switch's ports lead up, so write {k - 1} or {k + 1}"
            )
        return k


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return a fat tree with servers in the first half of the pods and users in the second half.

    ue1 talks to srv1, ue2 to srv2, and so on, all through the core; or all to srv1.

        c1   c2     c3   c4        (k/2)^2 core switches
        |  \\/  |     |  \\/  |      c1-a1x1, c2-a1x1, c3-a1x2, ...
      a1x1  a1x2   a2x1  a2x2      k/2 aggregation switches in each of k pods
        |  \\/  |     |  \\/  |      a1x1-e1x1, a1x1-e1x2, ...
      e1x1  e1x2   e2x1  e2x2      k/2 edge switches
      /  \\  /  \\   /  \\  /  \\     server1, server2, ... access1, access2, ...
     srv1 .. srv4 ...  ..  ue8     k/2 hosts at each

    Each host has one interface, as in a data centre. A user's interface has one address per
    subflow, so that the network can send each subflow over a different core switch. By default, a
    host's link is twice as fast as a link of the tree, so that two paths together can carry more
    than one path.
    """
    half = params.k // 2
    servers, users = [], []
    links = switch_links(params.k, params, rate_scale)
    shape = (bps_from_mbps(params.host_mbps * rate_scale), ns_from_ms(params.delay_ms))
    for number in range(half**3):
        pod, edge = number // half**2 + 1, number // half % half + 1
        server, user = f"srv{number + 1}", f"ue{number + 1}"
        servers.append(Node(server, "server"))
        own = "srv1" if params.one_server else server
        users.append(Node(user, "user", f"access{number + 1}", params.subflows, own))
        links.append(
            Link(
                f"server{number + 1}",
                f"e{pod}x{edge}",
                server,
                *shape,
                queue_packets=params.queue_packets,
            )
        )
        links.append(
            Link(
                f"access{number + 1}",
                f"e{pod + half}x{edge}",
                user,
                *shape,
                queue_packets=params.queue_packets,
            )
        )
    multipath = tuple(user.id for user in users) if params.subflows > 1 else ()
    return Topology(
        "fat_tree", (*users, *switches(params.k), *servers), tuple(links), multipath=multipath
    )


def switches(k: int) -> list[Node]:
    """Return all switches of a fat tree with k-port switches: first the core switches, then the
    aggregation and edge switches of each pod."""
    names = [f"c{n}" for n in range(1, k * k // 4 + 1)]
    names += [
        f"{layer}{pod}x{n}"
        for pod in range(1, k + 1)
        for layer in "ae"
        for n in range(1, k // 2 + 1)
    ]
    return [Node(name, "switch") for name in names]


def switch_links(k: int, tree: Tree, rate_scale: float) -> list[Link]:
    """Return all links between switches of a fat tree with k-port switches.

    Every aggregation switch has links to k/2 core switches and to the k/2 edge switches of its pod.
    """
    half, found = k // 2, []
    for pod in range(1, k + 1):
        for n in range(1, half + 1):
            above = [f"c{(n - 1) * half + core}" for core in range(1, half + 1)]
            here, below = f"a{pod}x{n}", [f"e{pod}x{edge}" for edge in range(1, half + 1)]
            found += [(high, here, f"core {high[1:]} to pod {pod}") for high in above]
            found += [(here, low, f"within pod {pod}") for low in below]
    shape = (bps_from_mbps(tree.rate_mbps * rate_scale), ns_from_ms(tree.delay_ms))
    return [
        Link(f"{a}-{b}", a, b, *shape, queue_packets=tree.queue_packets, words=words)
        for a, b, words in found
    ]
