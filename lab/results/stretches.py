"""Divide a run into stretches: the intervals between its changes.

A mean over a whole run mixes the times before and after a change. A mean over one stretch describes
one state of the network. Changes within `TOGETHER_S` of each other begin one stretch together.
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
    """An interval of a run, from `start_s` to `end_s` in s since the start of the run."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s

    def mean(self, frames: Sequence[Frame], number: Number) -> float | None:
        """Return the mean of a number over the frames inside the interval; None if it was not
        measured.

        `number` is a function that returns the number of a frame.
        """
        times = [frame.t for frame in frames]
        found = intervals_between(times, self.start_s, self.end_s, whole=True)
        return mean((number(frames[index]) for index, _ in found), [length for _, length in found])


@dataclass(frozen=True)
class Stretch:
    """An interval of a run in which nothing was changed.

    `begun_by` has the indices of the changes with which the interval began. It is empty for the
    first interval if that began without a change.
    """

    span: Span
    begun_by: tuple[int, ...] = ()


def stretches(times: Sequence[float], end_s: float) -> list[Stretch]:
    """Return the intervals of a run between its changes.

    `end_s` is the end of the run, or the present time while the run goes on. `times` are the times
    of the changes in ascending order. A change at the start of the run begins the first interval.
    Changes at `end_s` or later begin none.
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
