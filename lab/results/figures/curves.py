"""Curves of repeated runs: a metric over time with 95 % intervals, and completion times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.frame import Frame
from lab.metrics import Metric, Samples
from lab.results.compare import Window, numbers
from lab.results.statistics import Estimate, estimate
from lab.run.reading import read_document, read_lines
from lab.run.result import sections
from lab.summaries import EPSILON_S, intervals

MOST_POINTS = 60  # of a curve over time; samples between two points are averaged


@dataclass(frozen=True)
class Curve:
    name: str
    places: tuple[float, ...]  # on the x axis
    estimates: tuple[Estimate, ...]


def over_time(
    name: str, folders: Sequence[Path], metric: str, own: Sequence[Metric], window: Window
) -> Curve:
    """Return the mean of a metric over the runs of a group, at up to `MOST_POINTS` times in s.

    Each point is what `compare` says of the samples around it. The curve is empty if the metric
    does not follow from samples.
    """
    runs = [_frames(folder, window) for folder in folders]
    step = max(1, math.ceil(max(map(len, runs), default=0) / MOST_POINTS))
    found: dict[float, list[float]] = {}
    for folder, frames in zip(folders, runs, strict=True):
        for middle_s, value in _values(folder, frames, step, metric, own):
            found.setdefault(middle_s, []).append(value)
    places = tuple(sorted(found))
    return Curve(name, places, tuple(estimate(found[each]) for each in places))


def _frames(folder: Path, window: Window) -> list[tuple[Frame, float]]:
    """The samples of a run in a window, each with the length of its interval in s."""
    frames = [Frame.from_json(line) for line in read_lines(folder / "samples.jsonl")]
    lengths = intervals([frame.t for frame in frames])
    return [
        (frame, length_s)
        for frame, length_s in zip(frames, lengths, strict=True)
        if window.start_s + EPSILON_S < frame.t <= window.end_s + EPSILON_S
    ]


def _values(
    folder: Path,
    frames: Sequence[tuple[Frame, float]],
    step: int,
    metric: str,
    own: Sequence[Metric],
) -> list[tuple[float, float]]:
    from lab.results.explain.present import network  # imported here: it loads networkx

    topology, found = network(folder), []
    for first in range(0, len(frames), step):
        several, lengths = zip(*frames[first : first + step], strict=True)
        samples = Samples(several, lengths, topology)
        result = {"connections": [], **sections(samples), "convergence_s": None}
        middle_s = round(several[-1].t - sum(lengths) / 2, 6)
        if (value := numbers(result, own).get(metric)) is not None:
            found.append((middle_s, value))
    return found


def completion_times(folders: Sequence[Path]) -> list[float | None]:
    """Return the time in s of each file of some runs; None if it was not complete at the end.

    Return an empty list if none was complete: the runs may have had no files then.
    """
    found = [
        each.get("completion_s")
        for folder in folders
        for each in read_document(folder, "result.json").get("connections", [])
    ]
    return found if any(each is not None for each in found) else []


def distribution(name: str, times: Sequence[float | None]) -> Curve:
    """Return the fraction of files that were complete after each time.

    Files that were never complete count, so that the curve may end below 1.
    """
    known = sorted(each for each in times if each is not None)
    heights = (Estimate(n / len(times), None, None, len(times)) for n in range(1, len(known) + 1))
    return Curve(name, tuple(known), tuple(heights))
