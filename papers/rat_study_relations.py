"""Relations for the claims of the RAT study (RAT: radio access technology).

The study prints no throughput values, so every claim is an order or a trend. A `Cell` is one
experiment of the study. Three numbers are measured in it: T is the goodput per node, W the part of
T over WiFi, and L the part over LTE.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from papers.rat_study_runs import CUBIC, LIA, OLIA, ROMAN, Cell
from papers.relations import Operator, Quotient, Relation, Value

CONGESTION_CONTROLS = (CUBIC, LIA, OLIA)
LETTERS = {CUBIC: "C", LIA: "A", OLIA: "O"}
CONNECTIONS = (1, 5, 10)
BUFFERS_KB, VOLUMES_MB = (640, 800, 1000, 1200), (5, 10, 15)
SETUP_1, SETUP_2, SETUP_2_11G = Cell(1, "11n5", 5), Cell(2, "11n5", 5), Cell(2, "11g", 5)
Relations = tuple[Relation, ...]


def value(cell: Cell, number: str) -> Value:
    """Return a number of an experiment (T, W or L) as one side of a relation. The title of the
    result mentions only those parameters of the experiment that are not the usual ones."""
    standard = "" if cell.wifi == "11n5" else f"{cell.wifi} "
    title = f"{ROMAN[cell.setup]} {standard}{number}_{LETTERS[cell.cc]}({cell.parallel})"
    title += f"[{cell.volume_mb}]" if cell.volume_mb != 15 else ""
    title += f"{{{cell.buffer_kb}}}" if cell.buffer_kb != 1000 else ""
    title += "" if cell.interfaces == "both" else f" {cell.interfaces} only"
    return Value(cell.name, number, title)


def relation(
    left: tuple[Cell, str], operator: Operator, right: tuple[Cell, str], times: float = 1.0
) -> Relation:
    return Relation(value(*left), operator, value(*right), times)


def changed(base: Cell, cc: str, **changes: Any) -> Cell:
    """Return a copy of an experiment with the congestion control `cc`. `changes` replace other
    fields."""
    return replace(base, cc=cc, **changes)


def with_connections(base: Cell, parallel: int) -> Cell:
    return replace(base, parallel=parallel)


def share(cell: Cell, number: str) -> Quotient:
    """Return the share of the volume that one path carried: `number` divided by T. `number` is W
    (WiFi) or L (LTE)."""
    part = value(cell, number)
    return Quotient(part, value(cell, "T"), f"{part.title}/T")


def growing(
    base: Cell,
    number: str,
    key: str,
    values: Iterable[int],
    congestion_controls: Iterable[str] = CONGESTION_CONTROLS,
) -> Relations:
    """Return one relation for each congestion control and each step from one of `values` to the
    next. The relation says that a number (T, W or L) grows when the field `key` of the experiment
    takes this step. For a falling number, give `values` in reverse order."""
    return _steps(base, number, ">", key, values, congestion_controls)


def alike(
    base: Cell,
    number: str,
    key: str,
    values: Iterable[int],
    congestion_controls: Iterable[str] = CONGESTION_CONTROLS,
) -> Relations:
    """Return one relation for each congestion control and each step from one of `values` to the
    next. The relation says that a number (T, W or L) changes by at most 5 % when the field `key` of
    the experiment takes this step."""
    return _steps(base, number, "~", key, values, congestion_controls)


def _steps(
    base: Cell,
    number: str,
    operator: Operator,
    key: str,
    values: Iterable[int],
    congestion_controls: Iterable[str],
) -> Relations:
    """Return relations between neighbours in `values`, for each congestion control. Each compares
    `number` at a value of the field `key` (left side) with `number` at the value before (right
    side)."""
    steps = list(pairwise(values))
    return tuple(
        relation(
            (changed(base, cc, **{key: second}), number),
            operator,
            (changed(base, cc, **{key: first}), number),
        )
        for cc in congestion_controls
        for first, second in steps
    )


def highest(cell: Cell, number: str) -> Relations:
    """Return relations that say: `number` is higher in this experiment than in the same experiment
    with any other receive buffer."""
    others = [replace(cell, buffer_kb=kb) for kb in BUFFERS_KB if kb != cell.buffer_kb]
    return each_pair([(cell, other) for other in others], number)


def together(groups: Iterable[Relations]) -> Relations:
    return tuple(each for group in groups for each in group)


def ordered(base: Cell, order: str) -> Relations:
    """Return relations that say: the goodputs of congestion controls have the given order, such as
    `cubic > olia >= lia`. All other fields of the experiments are those of `base`."""
    words = order.split()
    operators: dict[str, Operator] = {">": ">", ">=": ">=", "~": "~"}
    return tuple(
        relation((changed(base, a), "T"), operators[operator], (changed(base, b), "T"))
        for a, operator, b in zip(words[::2], words[1::2], words[2::2], strict=False)
    )


def each_pair(
    cells: Iterable[tuple[Cell, Cell]], number: str, operator: Operator = ">"
) -> Relations:
    """Return one relation for each pair of experiments. It compares `number` (T, W or L) of the
    first with `number` of the second."""
    return tuple(relation((a, number), operator, (b, number)) for a, b in cells)


def each_cell(cells: Iterable[Cell], left: str, operator: Operator, right: str) -> Relations:
    """Return one relation for each experiment. It compares two numbers of the experiment, `left`
    and `right`, such as W and L."""
    return tuple(relation((cell, left), operator, (cell, right)) for cell in cells)
