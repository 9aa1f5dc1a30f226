"""Read JSON files of a run folder without failing at damaged files, and find numbers in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.bounded_json import JsonRefused
from lab import plain_file, summaries
from lab.run.reading import document


def figure(document: Any, path: str) -> float | None:
    """Return the number at `path` in a JSON document.

    A path consists of keys joined by `.`; entries of a list are counted from 1. Return None if the
    path does not exist or does not lead to a number.
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
    """Return (value, interval length in s) of the number at `path` in some samples.

    These are the samples whose time is after `start_s` and not after `end_s`. Samples in which the
    number is missing or null are left out.
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
    """Return the mean over time of the number at `path` in some samples.

    These are the samples whose time is after `start_s` and not after `end_s`. Return None if none
    of them has the number.
    """
    pairs = values_between(samples, path, start_s, end_s)
    return summaries.mean((value for value, _ in pairs), [length for _, length in pairs])


WIRE_RATES_SCHEMA = 1  # of a manifest and a result with rates on the wire
TIMED_HANDSHAKES_SCHEMA = 2  # a simulated subflow opened after a fixed time, without packets


@dataclass(frozen=True)
class FinishedRun:
    """A run that has ended: `result` is the content of result.json, `folder` the run folder."""

    result: Mapping[str, Any]
    folder: Path


def tolerant_document(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file of a run folder, or None if there is no file.

    If the file is damaged or cannot be read, the object has only the key `error`, which says what
    is wrong with the file. Raise `LabError` if the machine has run out of file descriptors or
    memory, because the file may be intact then.
    """
    try:
        return document(path)
    except plain_file.MISSING:
        return None
    except OSError as error:
        if error.errno in plain_file.SHORTAGES:
            raise plain_file.failure(path, error) from error
        problem = error.strerror or str(error)
    except JsonRefused as error:
        problem = str(error)
    return {"error": f"read {path.name}: {problem}"}
