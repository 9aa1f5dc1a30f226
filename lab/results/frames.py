"""Runs as pandas frames, for a notebook. Each frame is made when it is first asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lab import installed
from lab.errors import MachineLacks
from lab.results import rows, thinning
from lab.results.compare import few
from lab.results.rows import Kind, Runs
from lab.run.reading import Line, read_lines, size_of

if TYPE_CHECKING:
    from pandas import DataFrame

INSTALL = (
    installed.how_to_add("figures")
    or ".venv/bin/python -m pip install --require-hashes -r locks/figures.txt"
)
TYPES: dict[Kind, str] = {str: "object", float: "float64", int: "int64", bool: "boolean"}


class Frames:
    """The tables of some runs, as docs/results.md describes them.

    `left_out` has a sentence about each run that cannot be used. Of a run whose samples.jsonl is
    larger than `thinning.FULL_BYTES`, `samples` has means over several samples, and `events` has
    not all decisions (docs/formats.md, long runs).
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.left_out = list(runs.left_out)
        self.varied = runs.varied

    @cached_property
    def results(self) -> DataFrame:
        return self._frame("results")

    @cached_property
    def samples(self) -> DataFrame:
        return self._frame("samples")

    @cached_property
    def events(self) -> DataFrame:
        return self._frame("events")

    @cached_property
    def flows(self) -> DataFrame:
        return self._frame("flows")

    @cached_property
    def subflows(self) -> DataFrame:
        return self._frame("subflows")

    @cached_property
    def exchanges(self) -> DataFrame:
        return self._frame("exchanges")

    def _frame(self, table: str) -> DataFrame:
        import pandas

        columns = self._runs.columns(table)
        types = {name: TYPES[kind] for name, kind in columns.items()}
        empty = pandas.DataFrame(columns=list(columns)).astype(types)
        parts = (
            pandas.DataFrame.from_records(several, columns=list(columns)).astype(types)
            for run in self._runs.runs
            if (several := list(self._runs.rows(run, table, _bounded)))
        )
        whole = list(parts)  # the rows of one run at a time are dictionaries
        return pandas.concat(whole, ignore_index=True) if whole else empty


def load(where: Sequence[str | Path]) -> Frames:
    """Return the runs in some folders. Warn about those that are left out."""
    try:
        import pandas  # noqa: F401 - said before the runs are read
    except ImportError as error:
        raise MachineLacks(f"load runs: this needs pandas. Type: {INSTALL}") from error
    runs = rows.found(where)
    for text in few(runs.left_out):
        warnings.warn(text, stacklevel=3)
    return Frames(runs)


def _bounded(path: Path) -> Iterable[Line]:
    if size_of(path) <= thinning.FULL_BYTES:
        return read_lines(path)
    if path.name == "samples.jsonl":
        return thinning.means(path.parent)
    return (each for each in thinning.events(path.parent) if each.get("kind") != thinning.LEFT_OUT)
