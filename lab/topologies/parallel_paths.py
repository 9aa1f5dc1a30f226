"""One multihomed user and disjoint paths to a server (MPTCP-LA, section V; DTMC, section V)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from controller.units import bps_from_mbps, ns_from_ms, ppm_from_fraction
from lab.topologies.topology import Link, Node, Topology

Rate = Annotated[float, Field(gt=0, le=10_000)]
Delay = Annotated[float, Field(ge=0, le=5_000)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class Path(BaseModel):
    """One path. `loss` acts on the way to the user, `loss_both` in both directions; delays are one way."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    rate_mbps: Rate
    delay_ms: Delay = 10
    jitter_ms: Delay = 0
    loss: Fraction = 0
    loss_both: Fraction = 0
    queue_packets: Annotated[int, Field(ge=1, le=10_000)] = 100


class Params(BaseModel):
    """Parameters of `kind: parallel_paths`; the paths are called path1, path2, ... in the order of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    paths: tuple[Path, ...] = Field(min_length=1, max_length=15)


def either(first: float, second: float) -> float:
    """The probability that a packet is lost when two independent causes can lose it."""
    return 1 - (1 - first) * (1 - second)


def link(path: Path, id: str, a: str, b: str, rate_scale: float) -> Link:
    """The link of a path; data travels from `a` to `b`."""
    return Link(
        id,
        a,
        b,
        rate_bps=bps_from_mbps(path.rate_mbps * rate_scale),
        delay_ns=ns_from_ms(path.delay_ms),
        jitter_ns=ns_from_ms(path.jitter_ms),
        loss_ppm=ppm_from_fraction(either(path.loss, path.loss_both)),
        loss_back_ppm=ppm_from_fraction(path.loss_both),
        queue_packets=path.queue_packets,
    )


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """The shaped part of a path, `path1`, is between two switches: a queue at the sender itself would never fill.

              access1        path1
             /-------- p1 --------\\
        ue1 +                      s1 --- srv1
             \\-------- p2 --------/
              access2        path2
    """
    numbers = range(1, len(params.paths) + 1)
    nodes = [Node("ue1", "user", "access1"), *(Node(f"p{n}", "switch") for n in numbers)]
    links = [Link("server", "s1", "srv1"), *(Link(f"access{n}", f"p{n}", "ue1") for n in numbers)]
    links += [
        link(path, f"path{n}", "s1", f"p{n}", rate_scale) for n, path in enumerate(params.paths, 1)
    ]
    return Topology(
        name="parallel_paths",
        nodes=(*nodes, Node("s1", "switch"), Node("srv1", "server")),
        links=tuple(links),
        multipath=("ue1",) if len(params.paths) > 1 else (),
    )
