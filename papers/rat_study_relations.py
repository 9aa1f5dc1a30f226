"""Build the relations of the RAT study (RAT: radio access technology): orders and trends of
measured numbers.

The study prints no throughput values, so every claim is an order or a trend. A `Cell` is one
experiment. Its numbers are T (goodput per node), W (the part over WiFi) and L (the part over LTE).
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
    """Return the number `number` (T, W or L) of an experiment as one side of a relation.

    The title for tables mentions only parameters that differ from the usual ones.
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
    """Return a relation between two numbers. Each is given as a pair: the experiment, and the name
    of the number (T, W or L)."""
    return Relation(value(*left), operator, value(*right), times)


def changed(base: Cell, cc: str, **changes: Any) -> Cell:
    """Return a copy of an experiment with the congestion control `cc` and the field values in
    `changes`."""
    return replace(base, cc=cc, **changes)


def with_connections(base: Cell, parallel: int) -> Cell:
    """Return a copy of an experiment with another number of connections per node."""
    return replace(base, parallel=parallel)


def share(cell: Cell, number: str) -> Quotient:
    """Return the share of the volume that a path carried: `number` (W or L) divided by T."""
    part = value(cell, number)
    return Quotient(part, value(cell, "T"), f"{part.title}/T")


def growing(
    base: Cell,
    number: str,
    key: str,
    values: Iterable[int],
    congestion_controls: Iterable[str] = CONGESTION_CONTROLS,
) -> Relations:
    """Return relations that state: `number` grows when the field `key` of the experiment goes
    through `values`, from each value to the next.

    There is one series of relations for each congestion control. To state that the number falls,
    give `values` in reverse order.
    """
    return _steps(base, number, ">", key, values, congestion_controls)


def alike(
    base: Cell,
    number: str,
    key: str,
    values: Iterable[int],
    congestion_controls: Iterable[str] = CONGESTION_CONTROLS,
) -> Relations:
    """Return relations that state: `number` is within 5 % from each value of the field `key` to the
    next, for each congestion control."""
    return _steps(base, number, "~", key, values, congestion_controls)


def _steps(
    base: Cell,
    number: str,
    operator: Operator,
    key: str,
    values: Iterable[int],
    congestion_controls: Iterable[str],
) -> Relations:
    """Return relations that compare `number` at each value of the field `key` with the value
    before, for each congestion control."""
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
    """Return relations that state: `number` is higher in the experiment than in each copy with
    another receive buffer."""
    others = [replace(cell, buffer_kb=kb) for kb in BUFFERS_KB if kb != cell.buffer_kb]
    return each_pair([(cell, other) for other in others], number)


def together(groups: Iterable[Relations]) -> Relations:
    """Return all relations of several groups."""
    return tuple(each for group in groups for each in group)


def ordered(base: Cell, order: str) -> Relations:
    """Return relations that state an order of the goodput by congestion control. `order` is a text
    such as `cubic > olia >= lia`. The other parameters are those of the experiment `base`."""
    words = order.split()
    operators: dict[str, Operator] = {">": ">", ">=": ">=", "~": "~"}
    return tuple(
        relation((changed(base, a), "T"), operators[operator], (changed(base, b), "T"))
        for a, operator, b in zip(words[::2], words[1::2], words[2::2], strict=False)
    )


def each_pair(
    cells: Iterable[tuple[Cell, Cell]], number: str, operator: Operator = ">"
) -> Relations:
    """Return one relation for each pair of experiments: `number` of the first experiment is
    compared by `operator` with `number` of the second."""
    return tuple(relation((a, number), operator, (b, number)) for a, b in cells)


def each_cell(cells: Iterable[Cell], left: str, operator: Operator, right: str) -> Relations:
    """Return one relation for each experiment: its number `left` is compared by `operator` with its
    number `right`."""
    return tuple(relation((cell, left), operator, (cell, right)) for cell in cells)
