"""Define the parts of a check: the tree that `language.parse` returns.

A check is a condition over the runs of one student. `run` is the id of a run step of the worksheet,
or "" for the run that the check step names. Times are in s since the start of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Literal

Fold = Literal["mean", "min", "max", "last"]


@dataclass(frozen=True)
class Number:
    """Hold a number that is written in the check."""

    value: float


@dataclass(frozen=True)
class Sampled:
    """Describe one number made from a figure of the samples between `start_s` and `end_s`.

    `path` leads to the figure in a sample, such as `ap.wifi1.tier2_mbps`. `fold` says how its
    values become one number: their mean over time, the least, the largest, or the last.
    """

    fold: Fold
    path: str
    start_s: float
    end_s: float
    run: str


@dataclass(frozen=True)
class Measured:
    """Describe the figure of result.json at `path`, such as `users.ue1.throughput_mbps`."""

    path: str
    run: str


@dataclass(frozen=True)
class Occurrence:
    """Describe the events of one `kind` whose fields have the given values, all as text.

    As a condition it holds if there is such an event. A flip that was refused does not count.
    """

    kind: str
    where: tuple[tuple[str, str], ...]
    run: str


@dataclass(frozen=True)
class Time:
    """Describe the time of the first event that matches `event`."""

    event: Occurrence


@dataclass(frozen=True)
class Count:
    """Describe the number of events that match `event`."""

    event: Occurrence


@dataclass(frozen=True)
class Multipath:
    """Hold if Multipath TCP was verified in a run: extra subflows, and no fallback to TCP."""

    run: str


@dataclass(frozen=True)
class Magnitude:
    """Describe the absolute value of a number."""

    of: Numeric


@dataclass(frozen=True)
class Arithmetic:
    """Describe `left` + `right`, or another of the four operations."""

    operator: str
    left: Numeric
    right: Numeric


@dataclass(frozen=True)
class Comparison:
    """Hold if `left` is less than `right`, or another of the four comparisons."""

    operator: str
    left: Numeric
    right: Numeric


@dataclass(frozen=True)
class Before:
    """Hold if the first event of `left` comes before the first event of `right`.

    Both events must exist.
    """

    left: Occurrence
    right: Occurrence


@dataclass(frozen=True)
class Not:
    """Hold if `of` does not hold."""

    of: Condition


@dataclass(frozen=True)
class Both:
    """Hold if `left` and `right` hold; with `either`, if at least one of them does."""

    left: Condition
    right: Condition
    either: bool = False


Numeric = Number | Sampled | Measured | Time | Count | Magnitude | Arithmetic
Condition = Comparison | Before | Occurrence | Multipath | Not | Both
Expression = Numeric | Condition


def parts(tree: Expression) -> Iterator[Expression]:
    """Yield `tree` and all expressions inside it, each before its own parts."""
    yield tree
    for field in fields(tree):
        inner = getattr(tree, field.name)
        if is_dataclass(inner):
            yield from parts(inner)  # type: ignore[arg-type]
