"""Which packets the queue in front of a link drops. Programs of the hosts import this module, so it
needs no other package."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["fifo", "codel", "fq_codel", "red"]


@dataclass(frozen=True)
class Discipline:
    """Which packets a queue drops. `target_ms` and `interval_ms` are CoDel's (RFC 8289). If
    `is_marking` is True, it marks packets of senders with ECN instead (RFC 3168).

    The others are RED's. Without `max_packets`, this is a quarter of the queue's size, and without
    `min_packets` a third of `max_packets`, as with tc. With `mark_packets`, RED is a step instead:
    it marks or drops every packet while so many wait, see `red`.
    """

    kind: Kind = "fifo"
    is_marking: bool = False
    target_ms: float = 5
    interval_ms: float = 100
    min_packets: int | None = None
    max_packets: int | None = None
    probability: float = 0.02
    mark_packets: int | None = None


FIFO = Discipline()  # drops what arrives while it is full


def of_kind(discipline: Discipline, kind: Kind) -> Discipline:
    """Return another kind of queue with the same parameters. It marks, unless `discipline` is one
    that could mark and does not."""
    marks = kind != "fifo" and (discipline.is_marking or discipline.kind == "fifo")
    return replace(discipline, kind=kind, is_marking=marks)


@dataclass(frozen=True)
class Red:
    """RED's parameters for a queue of a given size, as tc computes them. `burst` is the number of
    packets that may arrive at once without a drop."""

    min_packets: int
    max_packets: int
    burst: int

    @property
    def weight_log(self) -> int:
        """An arriving packet counts 1 / 2^`weight_log` of the average (iproute2,
        tc_red_eval_ewma)."""
        wanted = self.burst + 1 - self.min_packets
        logs = range(1, 32)
        return next(log for log in logs if wanted <= (1 - (1 - 0.5**log) ** self.burst) * 2**log)


def red(discipline: Discipline, packets: int) -> Red:
    """Return RED's parameters for a queue of `packets`. Raise `ValueError` if none are possible.

    Both thresholds of a step are the same. A packet then counts half of the average, the most that
    tc can set.
    """
    if (step := discipline.mark_packets) is not None:
        if step > packets:
            raise ValueError(f"mark_packets {step} is above the size of the queue, {packets}")
        return Red(step, step, step)
    most = packets // 4 if discipline.max_packets is None else discipline.max_packets
    least = most // 3 if discipline.min_packets is None else discipline.min_packets
    if not 2 <= least < most <= packets:
        raise ValueError(
            f"red needs 2 <= min_packets < max_packets <= packets, not {least}, {most}, {packets}"
        )
    return Red(least, most, (2 * least + most) // 3 + 1)
