"""Read single numbers of result.json and of samples.jsonl by their path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab import summaries


def figure(document: Any, path: str) -> float | None:
    """Return the number at `path`: keys joined by `.`, list entries counted from 1.

    Return None if the path does not exist or does not lead to a number.
    """
    value = document
    for step in path.split("."):
        if isinstance(value, list) and step.isdigit() and 1 <= int(step) <= len(value):
            value = value[int(step) - 1]
        elif isinstance(value, Mapping):
            value = value.get(step)
        else:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def values_between(
    samples: Sequence[Mapping[str, Any]], path: str, start_s: float, end_s: float
) -> list[tuple[float, float]]:
    """Return (value, interval length in s) for the samples after `start_s` and up to `end_s`.

    Samples in which the number is missing or null are left out.
    """
    times = [sample["t"] for sample in samples]
    found = (
        (figure(samples[index], path), length)
        for index, length in summaries.intervals_between(times, start_s, end_s)
    )
    return [(value, length) for value, length in found if value is not None]


def mean_between(
    samples: Sequence[Mapping[str, Any]], path: str, start_s: float, end_s: float
) -> float | None:
    """Return the mean over time of a number in the samples after `start_s` and up to `end_s`.

    Return None if no sample there has the number.
    """
    pairs = values_between(samples, path, start_s, end_s)
    return summaries.mean((value for value, _ in pairs), [length for _, length in pairs])
