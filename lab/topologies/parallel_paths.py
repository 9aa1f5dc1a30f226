"""Build disjoint paths between a server and one multihomed user (MPTCP-LA and DTMC, section V)."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from controller.units import bps_from_mbps, ns_from_ms, ppm_from_fraction
from lab.topologies import loss_keys, trace
from lab.topologies.loss_keys import Bursts, Fraction, Loss
from lab.topologies.queue_keys import Queue, check_size
from lab.topologies.queues import red
from lab.topologies.topology import Direction, Link, Node, OneWay, Topology, at_start
from lab.topologies.trace import Trace, Traced, TraceStep, check_jitter

Rate = Annotated[float, Field(gt=0, le=10_000)]
Delay = Annotated[float, Field(ge=0, le=5_000)]

USUAL_PACKETS = 100
NO_STEP = TraceStep(0, 1)
BinMs = Annotated[int, Field(ge=10, le=60_000)]


class Follower(BaseModel):
    """What can follow a trace, a file. The values of the trace are means over `trace_bin_ms`."""

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

    def traces(self, column: str) -> bool:
        """Return whether the trace has this column."""
        found = self.read_trace()
        return found is not None and column in found.columns


class Way(Follower):
    """What one direction of a link has of its own; what is left out is as the link has it.

    `loss` acts on all packets in this direction, data or not.
    """

    rate_mbps: Rate | None = None
    delay_ms: Delay | None = None
    loss: Loss | None = None
    queue_packets: Annotated[int, Field(ge=1, le=10_000)] | None = None
    queue: Queue | None = None
    reorder: Fraction | None = None
    duplicate: Fraction | None = None

    @model_validator(mode="after")
    def fits_together(self) -> Way:
        check_size(self.queue, self.queue_packets is not None)
        self.read_trace()
        return self

    @property
    def has_a_rate(self) -> bool:
        return self.rate_mbps is not None or self.traces("rate_mbps")

    def one_way(self, rate_scale: float) -> OneWay:
        """Return the values at the start of a run, on the wire."""
        found = self.read_trace()
        first = found.steps[0] if found else NO_STEP
        rate_bps = None if self.rate_mbps is None else bps_from_mbps(self.rate_mbps * rate_scale)
        delay_ms = self.delay_ms if first.delay_ms is None else first.delay_ms
        loss = self.loss if first.loss is None else first.loss
        return OneWay(
            first.rate_bps(rate_scale) if rate_bps is None else rate_bps,
            None if delay_ms is None else ns_from_ms(delay_ms),
            None if loss is None else ppm_from_fraction(loss_keys.mean(loss)),
            self.queue.packets if self.queue and self.queue.packets else self.queue_packets,
            self.queue.discipline() if self.queue else None,
            loss_keys.model(self.loss),
            None if self.reorder is None else ppm_from_fraction(self.reorder),
            None if self.duplicate is None else ppm_from_fraction(self.duplicate),
        )


class WithTrace(Follower):
    """The keys of a link that can follow a trace, of its queue, of what happens to its packets, and
    of its directions.

    `loss` acts on data only, `loss_both` on all packets, in addition. `reorder` and `duplicate` are
    the fractions of packets that skip the delay, and that arrive twice. `down` is the direction
    towards the users, `up` the other one. Each can follow a trace of its own.
    """

    queue: Queue = Queue()
    loss: Loss = 0
    loss_both: Fraction = 0
    reorder: Fraction = 0
    duplicate: Fraction = 0
    up: Way = Way()
    down: Way = Way()

    @property
    def has_directions(self) -> bool:
        return (self.up, self.down) != (Way(), Way())

    @model_validator(mode="after")
    def has_one_model_of_losses(self) -> WithTrace:
        if isinstance(self.loss, Bursts) and self.loss_both:
            raise ValueError(
                "loss_both: a link with losses in bursts has no other losses: leave one out, or "
                "give up and down a loss of their own"
            )
        return self

    def impaired(self, link: Link) -> Link:
        """Return the link with the losses, reordering and duplicates of these keys."""
        lost = combined_loss(loss_keys.mean(self.loss), self.loss_both)
        return replace(
            link,
            loss_ppm=ppm_from_fraction(lost),
            loss_back_ppm=ppm_from_fraction(self.loss_both),
            bursts=loss_keys.model(self.loss),
            reorder_ppm=ppm_from_fraction(self.reorder),
            duplicate_ppm=ppm_from_fraction(self.duplicate),
        )

    def directed(self, link: Link, down: Direction, rate_scale: float) -> Link:
        """Return the link with what its directions have of their own. `down` is the direction
        towards the users."""
        own = self.down.one_way(rate_scale), self.up.one_way(rate_scale)
        ab, ba = own if down == "ab" else own[::-1]
        return replace(link, ab=ab, ba=ba)

    def queued(self, link: Link) -> Link:
        """Return the link with the queue of these keys. `link.queue_packets` is its usual size."""
        size = self.queue.packets or link.queue_packets
        return replace(link, queue_packets=size, discipline=self.queue.discipline())

    def check_queue(self, has_rate: bool, queue_packets: int) -> None:
        """Raise `ValueError` if the queue does not fit to the rest of the link."""
        check_size(self.queue, queue_packets != USUAL_PACKETS)
        usual = self.queue.packets or queue_packets
        sizes = (("", self, usual), ("up.", self.up, self.up.queue_packets or usual))
        for name, way, packets in (*sizes, ("down.", self.down, self.down.queue_packets or usual)):
            if way.queue is None or way.queue.kind == "fifo":
                continue
            if not has_rate:
                raise ValueError(f"{name}queue: a link without a rate has no queue: add rate_mbps")
            if way.queue.kind == "red":
                red(way.queue.discipline(), way.queue.packets or packets)

    def check_directions(self, has_rate: bool, delay_ms: float, jitter_ms: float) -> None:
        """Raise `ValueError` if a direction does not fit to the rest of the link."""
        for name, way in (("up", self.up), ("down", self.down)):
            if way.has_a_rate and not has_rate:
                raise ValueError(f"{name}.rate_mbps: write the link's own rate_mbps, too")
            if (way.loss is not None or way.traces("loss")) and self.traces("loss"):
                raise ValueError(f"{name}.loss: the trace has its own loss: leave it out")
            if way.delay_ms is not None and way.delay_ms < jitter_ms:
                raise ValueError(f"jitter_ms {jitter_ms:g} is above {name}.delay_ms")
            check_jitter(way.read_trace(), jitter_ms)
            own_ms = delay_ms if way.delay_ms is None else way.delay_ms
            own = self.reorder if way.reorder is None else way.reorder
            follows = way.traces("delay_ms") or self.traces("delay_ms")
            if own and not own_ms and not follows:
                raise ValueError(
                    "reorder: packets overtake others by skipping the delay: add delay_ms"
                )

    def is_limited(self, rate_mbps: float | None) -> bool:
        """Return whether both directions have a rate, of which `rate_mbps` is that of the keys of
        the link."""
        both = self.up.has_a_rate and self.down.has_a_rate
        return rate_mbps is not None or self.traces("rate_mbps") or both

    def rate_bps(self, rate_mbps: float | None, rate_scale: float) -> int | None:
        """Return the rate of the link on the wire, without that of its trace. If only its
        directions have one, it is that of the direction towards the users."""
        if rate_mbps is not None:
            return bps_from_mbps(rate_mbps * rate_scale)
        return self.down.one_way(rate_scale).rate_bps if self.up.has_a_rate else None


class Path(WithTrace):
    """The parameters of one path; delay and jitter are one way. Without `rate_mbps`, a `trace` has
    the rate."""

    rate_mbps: Rate | None = None
    delay_ms: Delay = 10
    jitter_ms: Delay = 0
    queue_packets: Annotated[int, Field(ge=1, le=10_000)] = USUAL_PACKETS

    @model_validator(mode="after")
    def has_a_rate(self) -> Path:
        check_jitter(self.read_trace(), self.jitter_ms)
        if not self.is_limited(self.rate_mbps):
            raise ValueError("rate_mbps is missing: write it, or a trace with a rate")
        self.check_directions(True, self.delay_ms, self.jitter_ms)
        self.check_queue(True, self.queue_packets)
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
    """Return a link from `a`, which is nearer to the server, to `b` with what `path` says.

    The rate is multiplied by `rate_scale`. A trace's first values replace
    those of `path`.
    """
    shaped = Link(
        id,
        a,
        b,
        rate_bps=path.rate_bps(path.rate_mbps, rate_scale),
        delay_ns=ns_from_ms(path.delay_ms),
        jitter_ns=ns_from_ms(path.jitter_ms),
        queue_packets=path.queue_packets,
    )
    shaped, found = path.impaired(shaped), path.read_trace()
    if found:
        shaped = at_start(shaped, found.steps[0], rate_scale)
    return path.directed(path.queued(shaped), "ab", rate_scale)


def traces(links: Iterable[tuple[str, WithTrace]]) -> tuple[Traced, ...]:
    """Return the links, and directions of links, that follow a trace. `links` are their ids and
    parameters."""
    rows = (
        (f"link.{id}{way}", each.read_trace())
        for id, link in links
        for way, each in (("", link), (".up", link.up), (".down", link.down))
    )
    return tuple(Traced(target, found) for target, found in rows if found)


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
