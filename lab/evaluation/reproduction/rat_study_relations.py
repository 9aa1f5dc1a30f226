"""Build the relations of the RAT study: orders and trends over its experiments.

A `Cell` is one experiment. The study gives no throughput in numbers, so every claim is an order or
a trend.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from lab.evaluation.reproduction.rat_study_runs import CUBIC, LIA, OLIA, ROMAN, Cell
from lab.evaluation.reproduction.relations import Operator, Relation, Value

CONGESTION_CONTROLS = (CUBIC, LIA, OLIA)
LETTERS = {CUBIC: "C", LIA: "A", OLIA: "O"}
CONNECTIONS = (1, 5, 10)
BUFFERS_KB = (640, 800, 1000, 1200)
Relations = tuple[Relation, ...]


def value(cell: Cell, number: str) -> Value:
    """Return a number of an experiment as a `Value`.

    Its title leaves out the parameters that most experiments have in common.
    """
    standard = "" if cell.wifi == "11n5" else f"{cell.wifi} "
    title = f"{ROMAN[cell.setup]} {standard}{number}_{LETTERS[cell.cc]}({cell.parallel})"
    title += f"[{cell.volume_mb}]" if cell.volume_mb != 15 else ""
    title += f"{{{cell.buffer_kb}}}" if cell.buffer_kb != 1000 else ""
    title += "" if cell.interfaces == "both" else f" {cell.interfaces} only"
    return Value(cell.name, number, title)


def relation(
    left: tuple[Cell, str], operator: Operator, right: tuple[Cell, str], times: float = 1.0
) -> Relation:
    """Relate two numbers, each given as a pair (experiment, name of the number)."""
    return Relation(value(*left), operator, value(*right), times)


def changed(base: Cell, cc: str, **changes: Any) -> Cell:
    """Return a copy of an experiment with another congestion control and other changed fields."""
    return replace(base, cc=cc, **changes)


def growing(
    base: Cell,
    number: str,
    key: str,
    values: Iterable[int],
    congestion_controls: Iterable[str] = CONGESTION_CONTROLS,
) -> Relations:
    """Claim that a number grows from each of `values` to the next, when `key` is set to them.

    The claim is made for each congestion control. For a number that falls, give `values` reversed.
    """
    steps = list(pairwise(values))
    return tuple(
        relation(
            (changed(base, cc, **{key: second}), number),
            ">",
            (changed(base, cc, **{key: first}), number),
        )
        for cc in congestion_controls
        for first, second in steps
    )


def ordered(base: Cell, order: str) -> Relations:
    """Claim an order of the goodput by congestion control, such as `cubic > olia >= lia`."""
    words = order.split()
    operators: dict[str, Operator] = {">": ">", ">=": ">=", "~": "~"}
    return tuple(
        relation((changed(base, a), "T"), operators[operator], (changed(base, b), "T"))
        for a, operator, b in zip(words[::2], words[1::2], words[2::2], strict=False)
    )


def each_pair(
    cells: Iterable[tuple[Cell, Cell]], number: str, operator: Operator = ">"
) -> Relations:
    """Claim, for each pair of experiments, the same relation between their numbers."""
    return tuple(relation((a, number), operator, (b, number)) for a, b in cells)


def each_cell(cells: Iterable[Cell], left: str, operator: Operator, right: str) -> Relations:
    """Claim, for each experiment, the same relation between two of its numbers."""
    return tuple(relation((cell, left), operator, (cell, right)) for cell in cells)
