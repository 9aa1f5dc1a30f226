"""Build three connections that share links in a chain (S-MPTCP, Figure 1 and Table 2).

This network shows whether the capacity that one connection leaves free helps the others.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from controller.units import bps_from_mbps, ns_from_ms
from lab.topologies.parallel_paths import Delay, Rate
from lab.topologies.topology import Link, Node, Topology

PATHS = (  # the links of every subflow, connection by connection (Table 2)
    ((1, 2, 3), (4, 5, 6)),
    ((7, 5, 8), (9, 10, 11)),
    ((12, 10, 13), (14, 15, 16)),
)
MIDDLE = (2, 5, 10, 15)


class Params(BaseModel):
    """The parameters of a topology with `kind: pooling`.

    `middle_mbps` has the rates of link2, link5, link10 and link15. `outer_mbps` is the rate of all
    other links. `path_delay_ms` is the one-way delay of a path; each of its three links has a third
    of it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    middle_mbps: tuple[Rate, ...] = Field((9, 9, 9, 9), min_length=4, max_length=4)
    outer_mbps: Rate = 10
    path_delay_ms: Delay = 15
    queue_packets: Annotated[int, Field(ge=1, le=10_000)] = 100


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return the network of S-MPTCP, Figure 1.

    The links are called link1 to link16, as in Table 2; link2, link5, link10 and link15 are the
    middle ones.

    srv1 -- e1 --link1--- a1 ==link2=== b1 --link3--- ue1
              \\--link4--- a2 ==link5=== b2 --link6--- ue1
    srv2 -- e2 --link7--/              \\--link8--- ue2
              \\--link9--- a3 ==link10== b3 --link11-- ue2
    srv3 -- e3 --link12-/              \\--link13-- ue3
              \\--link14-- a4 ==link15== b4 --link16-- ue3
    """
    delay_ns = ns_from_ms(params.path_delay_ms / 3)

    def link(number: int, a: str, b: str) -> Link:
        mbps = params.middle_mbps[MIDDLE.index(number)] if number in MIDDLE else params.outer_mbps
        return Link(
            f"link{number}",
            a,
            b,
            bps_from_mbps(mbps * rate_scale),
            delay_ns,
            queue_packets=params.queue_packets,
        )

    nodes: list[Node] = []
    links = [link(number, f"a{n}", f"b{n}") for n, number in enumerate(MIDDLE, 1)]
    for n, subflows in enumerate(PATHS, 1):
        nodes += [
            Node(f"ue{n}", "user", f"link{subflows[0][-1]}", server=f"srv{n}"),
            Node(f"e{n}", "switch"),
            Node(f"srv{n}", "server"),
        ]
        links.append(Link(f"server{n}", f"e{n}", f"srv{n}"))
        for first, middle, last in subflows:
            place = MIDDLE.index(middle) + 1
            links += [link(first, f"e{n}", f"a{place}"), link(last, f"b{place}", f"ue{n}")]
    switches = [Node(f"{side}{n}", "switch") for side in "ab" for n in range(1, len(MIDDLE) + 1)]
    return Topology("pooling", (*nodes, *switches), tuple(links), multipath=("ue1", "ue2", "ue3"))
