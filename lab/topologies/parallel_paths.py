"""Build disjoint paths between a server and one multihomed user (MPTCP-LA and DTMC, section V)."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from controller.units import bps_from_mbps, ns_from_ms, ppm_from_fraction
from lab.topologies import trace
from lab.topologies.topology import Link, Node, Topology, at_start, checked_loss
from lab.topologies.trace import Trace, Traced, check_jitter

Rate = Annotated[float, Field(gt=0, le=10_000)]
Delay = Annotated[float, Field(ge=0, le=5_000)]

Fraction = Annotated[float, Field(ge=0, le=1), AfterValidator(checked_loss)]


BinMs = Annotated[int, Field(ge=10, le=60_000)]


class WithTrace(BaseModel):
    """The keys of a link that can follow a trace.

    `trace` is a file. The values of the trace are means over `trace_bin_ms`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    trace: pathlib.Path | None = None
    trace_bin_ms: BinMs = 100

    def read_trace(self) -> Trace | None:
        """Return the trace, or None without one. Raise `ValueError` if it sets a value that is also
        set by a key."""
        if self.trace is None:
            return None
        found = trace.read(self.trace, self.trace_bin_ms)
        for column in found.columns:
            keys = {column, "loss_both"} if column == "loss" else {column}
            for key in sorted(keys & {*type(self).model_fields}):
                if getattr(self, key) != type(self).model_fields[key].default:
                    raise ValueError(f"{key}: {self.trace.name} has its own {column}: leave it out")
        return found


class Path(WithTrace):
    """The parameters of one path; delay and jitter are one way. Without `rate_mbps`, a `trace` has
    the rate.

    `loss` is a loss probability in the direction of the data only. `loss_both` is an additional
    loss probability in both directions.
    """

    rate_mbps: Rate | None = None
    delay_ms: Delay = 10
    jitter_ms: Delay = 0
    loss: Fraction = 0
    loss_both: Fraction = 0
    queue_packets: Annotated[int, Field(ge=1, le=10_000)] = 100

    @model_validator(mode="after")
    def has_a_rate(self) -> Path:
        found = self.read_trace()
        check_jitter(found, self.jitter_ms)
        if self.rate_mbps is None and (found is None or "rate_mbps" not in found.columns):
            raise ValueError("rate_mbps is missing: write it, or a trace with a rate")
        return self


class Params(BaseModel):
    """The parameters of a topology with `kind: parallel_paths`.

    `paths` has the parameters of each path. The paths are called path1, path2, ... in this order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    paths: tuple[Path, ...] = Field(min_length=1, max_length=15)


def combined_loss(first: float, second: float) -> float:
    """Return the probability that at least one of two independent causes loses a packet."""
    return 1 - (1 - first) * (1 - second)


def link(path: Path, id: str, a: str, b: str, rate_scale: float) -> Link:
    """Return a link from `a` to `b` with the rate, delay, jitter, losses and queue of `path`.

    The loss from `a` to `b` combines `loss` and `loss_both` of the path. The loss from `b` to `a`
    is only `loss_both`. The rate is multiplied by `rate_scale`. A trace's first values replace
    those of `path`.
    """
    shaped = Link(
        id,
        a,
        b,
        rate_bps=bps_from_mbps(path.rate_mbps * rate_scale) if path.rate_mbps else None,
        delay_ns=ns_from_ms(path.delay_ms),
        jitter_ns=ns_from_ms(path.jitter_ms),
        loss_ppm=ppm_from_fraction(combined_loss(path.loss, path.loss_both)),
        loss_back_ppm=ppm_from_fraction(path.loss_both),
        queue_packets=path.queue_packets,
    )
    found = path.read_trace()
    return at_start(shaped, found.steps[0], rate_scale) if found else shaped


def traces(links: Iterable[tuple[str, WithTrace]]) -> tuple[Traced, ...]:
    """Return the links that follow a trace. `links` are their ids and parameters."""
    read = ((id, link.read_trace()) for id, link in links)
    return tuple(Traced(f"link.{id}", found) for id, found in read if found)


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return a network with separate paths between srv1 and ue1.

    The link that limits a path (path1, path2, ...) is between two switches, because a queue at the
    sender itself would never fill.

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
        traces=traces((f"path{n}", path) for n, path in enumerate(params.paths, 1)),
    )
