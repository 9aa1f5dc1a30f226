"""Build WiFi, LTE and wired users behind one fat tree, a network on which every strategy acts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from controller.units import bps_from_mbps, ns_from_ms
from lab.topologies import fat_tree, wifi_lte
from lab.topologies.checks import check_names
from lab.topologies.parallel_paths import Delay, Rate
from lab.topologies.topology import Link, Node, Topology

PODS = 4


class Params(wifi_lte.Params):
    """The parameters of a topology with `kind: campus`: those of `wifi_lte`, and more for the fat
    tree.

    `wired` names users that are connected by two cables. `tree_mbps`, `tree_delay_ms` and
    `tree_queue_packets` are the rate, one-way delay and queue of every link between two switches of
    the tree. They also apply to every cable of a wired user.
    """

    wired: tuple[str, ...] = ("ue5", "ue6")
    tree_mbps: Rate = 40
    tree_delay_ms: Delay = 1
    tree_queue_packets: Annotated[int, Field(ge=1, le=10_000)] = 100

    @model_validator(mode="after")
    def names_differ(self) -> Params:
        check_names([*(user.id for user in self.users), *self.wired])
        return self


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return a fat tree of four pods, with users in pods 1 and 2 and servers in pods 3 and 4.

    The first user talks to srv1, the second to srv2, the third to srv1, and so on.

            c1    c2    c3    c4
       pod 1      pod 2      pod 3      pod 4
     e1x1  e1x2  e2x1  e2x2  e3x1       e4x1
      |     |     |     |     |          |
    wifi1   |   lte1    |    srv1       srv2
      ~     |     ~     |
    ue1-ue3 |  ue2-ue4  |
           ue5, ue6  ue5, ue6

    A server's edge switch has links to two aggregation switches. Each of these has links to two
    core switches. The network chooses a flow's path by hash, so some flows share links.
    """
    tree = fat_tree.Tree(
        rate_mbps=params.tree_mbps,
        delay_ms=params.tree_delay_ms,
        queue_packets=params.tree_queue_packets,
    )
    shape = (bps_from_mbps(params.tree_mbps * rate_scale), ns_from_ms(params.tree_delay_ms))
    homes = {user.id: f"{user.near}1" for user in params.users} | {
        user: f"e1x2-{user}" for user in params.wired
    }
    users = [
        Node(user, "user", home, server=f"srv{n % 2 + 1}")
        for n, (user, home) in enumerate(homes.items())
    ]
    links = fat_tree.switch_links(PODS, tree, rate_scale)
    links += [Link("server1", "e3x1", "srv1"), Link("server2", "e4x1", "srv2")]
    links += [Link("wifi", "e1x1", "wifi1"), Link("lte", "e2x1", "lte1")]
    links += [
        Link(f"{edge}-{user}", edge, user, *shape, queue_packets=params.tree_queue_packets)
        for user in params.wired
        for edge in ("e1x2", "e2x2")
    ]
    others = [
        Node("wifi1", "wifi"),
        Node("lte1", "lte"),
        *fat_tree.switches(PODS),
        Node("srv1", "server"),
        Node("srv2", "server"),
    ]
    cells = wifi_lte.cells(params, rate_scale)
    return Topology(
        "campus",
        (*users, *others),
        tuple(links),
        cells,
        (*params.multipath, *params.wired),
        traces=wifi_lte.traces(params),
        bearers=wifi_lte.bearers(params),
    )
