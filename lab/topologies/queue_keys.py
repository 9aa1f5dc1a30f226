"""The keys of a queue in a scenario file."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lab.topologies.queues import FIFO, Discipline, Kind

Packets = Annotated[int, Field(ge=1, le=10_000)]
Milliseconds = Annotated[float, Field(gt=0, le=10_000)]
OWN_KEYS = {
    "target_ms": ("codel", "fq_codel"),
    "interval_ms": ("codel", "fq_codel"),
    "min_packets": ("red",),
    "max_packets": ("red",),
    "probability": ("red",),
    "mark_packets": ("red",),
}


class Queue(BaseModel):
    """The keys of a queue. Without `packets`, its size is that of `queue_packets`.

    `codel` and `fq_codel` have the target and the interval of RFC 8289, `red` the thresholds of the
    average queue and the probability with which it drops just below the upper one, or with
    `mark_packets` one threshold for all. With `ecn: false` they drop what they would mark.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: Kind = "fifo"
    packets: Packets | None = None
    ecn: bool | None = None
    target_ms: Milliseconds | None = None
    interval_ms: Milliseconds | None = None
    min_packets: Packets | None = None
    max_packets: Packets | None = None
    probability: Annotated[float, Field(ge=0.001, le=1)] | None = None
    mark_packets: Packets | None = None

    @model_validator(mode="after")
    def fits_its_kind(self) -> Queue:
        if self.kind == "fifo" and self.ecn:
            raise ValueError("ecn: a fifo queue marks nothing: choose codel, fq_codel or red")
        for key, kinds in OWN_KEYS.items():
            if getattr(self, key) is not None and self.kind not in kinds:
                raise ValueError(f"{key} is for {' and '.join(kinds)}, not for {self.kind}")
        if self.mark_packets is not None:
            if self.ecn is False:
                raise ValueError("mark_packets marks: leave out ecn: false")
            for key in ("min_packets", "max_packets", "probability"):
                if getattr(self, key) is not None:
                    raise ValueError(f"mark_packets is the only threshold: leave out {key}")
        discipline = self.discipline()
        if discipline.target_ms >= discipline.interval_ms:
            raise ValueError(
                f"target_ms {discipline.target_ms:g} is not below interval_ms "
                f"{discipline.interval_ms:g}"
            )
        return self

    def discipline(self) -> Discipline:
        return Discipline(
            self.kind,
            self.kind != "fifo" and self.ecn is not False,
            FIFO.target_ms if self.target_ms is None else self.target_ms,
            FIFO.interval_ms if self.interval_ms is None else self.interval_ms,
            self.min_packets,
            self.max_packets,
            FIFO.probability if self.probability is None else self.probability,
            self.mark_packets,
        )


def check_size(queue: Queue | None, has_packets: bool) -> None:
    """Raise `ValueError` if `queue` has a size, and so has `queue_packets`."""
    if queue and queue.packets is not None and has_packets:
        raise ValueError("queue_packets is the short form of queue.packets: leave one out")
