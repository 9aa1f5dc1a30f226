"""Stretches of a run: the times between its changes.

A mean over a whole run mixes the times before and after a change, so it is true of neither. The
mean of a stretch is true of one state of the run. Changes within `TOGETHER_S` begin one stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.frame import Frame
from lab.summaries import EPSILON_S, intervals_between, mean

TOGETHER_S = 1.0
Number = Callable[[Frame], float | None]  # takes one number out of a frame


@dataclass(frozen=True)
class Span:
    """A part of a run, from `start_s` to `end_s` in s since its start."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    def mean(self, frames: Sequence[Frame], number: Number) -> float | None:
        """Return the mean of a number over the frames inside the span; None if it was never
        measured."""
        times = [frame.t for frame in frames]
        found = intervals_between(times, self.start_s, self.end_s, whole=True)
        return mean((number(frames[index]) for index, _ in found), [length for _, length in found])


@dataclass(frozen=True)
class Stretch:
    """A part of a run without changes. `begun_by` has the indices of the changes at its start, if
    any."""

    span: Span
    begun_by: tuple[int, ...] = ()


def stretches(times: Sequence[float], end_s: float) -> list[Stretch]:
    """Return the stretches of a run that ended, or is now, at `end_s`.

    `times` are the times of its changes in ascending order. A change at the start of the run begins
    the first stretch. Changes at `end_s` or later begin none.
    """
    starts: list[list[float]] = [[0.0]]
    begun: list[list[int]] = [[]]
    for index, t in enumerate(times):
        if t > end_s - EPSILON_S:
            continue
        if t - starts[-1][-1] > TOGETHER_S:
            starts.append([])
            begun.append([])
        starts[-1].append(t)
        begun[-1].append(index)
    ends = [*(each[0] for each in starts[1:]), end_s]
    return [
        Stretch(Span(start[-1], end), tuple(indices))
        for start, end, indices in zip(starts, ends, begun, strict=True)
    ]
