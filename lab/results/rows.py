"""Runs as rows of six tables, each with one row for each observation (docs/results.md).

`results` has a row for each run, `samples` one for each access point, link, user and subflow in
each sample, `events` one for each event, `flows` one for each connection, `subflows` one for each
subflow of a connection, and `exchanges` one for each request that was answered. Units are in the
names of the columns.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.errors import RequestError
from lab.metrics import BUILT_IN, Metric
from lab.results import compare, run_folders, transfers
from lab.results.compare import Run
from lab.run.reading import GROUPS, Line, read_document, read_lines
from lab.run.report import ConnectionReport, SubflowReport
from lab.run.transfers import Transfer
from lab.scenario.clients import CLIENTS

TABLES = ("results", "samples", "events", "flows", "subflows", "exchanges")
Kind = type[str] | type[float] | type[int] | type[bool]
Columns = dict[str, Kind]
Row = dict[str, Any]
Read = Callable[[Path], Iterable[Line]]  # the lines of a file of a run

RUN: Columns = {
    "folder": str,
    "run_id": str,
    "scenario": str,
    "strategy": str,
    "cc": str,
    "seed": int,
    "engine": str,
}
RESULT: Columns = {"status": str, "overloaded": bool, "rate_scale": float}
SAMPLE: Columns = {"t_s": float, "interval_s": float, "kind": str, "id": str}
EVENT: Columns = {
    "t_s": float,
    **dict.fromkeys(("kind", "user", "ap", "link", "connection", "subflow"), str),
    **dict.fromkeys(("action", "target", "old", "value", "state"), str),
    "ok": bool,
    "reason": str,
    "text": str,
    "more": str,  # all other fields, as JSON
}
OF_TRANSFERS: Columns = {"traffic": str, "start_s": float, "size_mb": float, "slowdown": float}
TEXTS = ("id", "user", "path", "cc", "ap")  # fields of reports and samples that are no numbers
FLAGS = ("backup",)
SUBFLOW = "sf"  # in samples.jsonl
OF_THE_RUN = "run"  # in samples.jsonl: figures of the whole run, which have no owner
UNITS = {"Mb/s": "mbps", "%": "percent"}  # where the unit itself is no part of a name
NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")


def with_unit(name: str, unit: str) -> str:
    """Return the name of a column: `cwnd` in segments is `cwnd_segments`, `rtt_ms` stays."""
    suffix = UNITS.get(unit) or NOT_IN_A_NAME.sub("_", unit.lower()).strip("_")
    is_there = f"_{suffix}_" in f"_{name.rpartition('.')[2]}_"
    return name if not suffix or is_there else f"{name}_{suffix}"


@dataclass(frozen=True)
class Runs:
    """Finished runs whose tables can be made. `left_out` says which others cannot be used, and
    why."""

    runs: tuple[Run, ...]
    left_out: tuple[str, ...]

    @cached_property
    def varied(self) -> list[str]:
        """The keys of the scenario file in which the runs differ."""
        return [key for key in compare.varied(self.runs) if key not in RUN]

    def columns(self, table: str) -> Columns:
        """Return the type of each column of a table, by its name."""
        return {**RUN, **self._varied_columns, **COLUMNS[table](self.runs)}

    def rows(self, run: Run, table: str, read: Read = read_lines) -> Iterator[Row]:
        """Yield the rows of one run in a table. A column may be missing in a row, and None is a
        number that was not measured. `read` yields the lines of samples.jsonl and events.jsonl.

        A run with `--keep results` has no samples and events. Raise `RequestError` if a file cannot
        be read.
        """
        if table in ("samples", "events", "exchanges") and run.has_results_only:
            return
        first = self._first(run)
        for each in ROWS[table](run, read):
            yield first | each

    @cached_property
    def _varied_columns(self) -> Columns:
        return {key: self._kind(key) for key in self.varied}

    def _kind(self, key: str) -> Kind:
        found = {type(_value(run, key)) for run in self.runs} - {type(None)}
        if found <= {bool}:
            return bool
        return float if found <= {int, float} else str

    def _first(self, run: Run) -> Row:
        """The columns that all rows of a run share."""
        row: Row = {
            "folder": str(run.folder),
            "run_id": run.run_id,
            "scenario": run.scenario,
            "strategy": run.strategy,
            "cc": run.cc,
            "seed": run.seed,
            "engine": run.engine,
        }
        for key, kind in self._varied_columns.items():
            value = _value(run, key)
            row[key] = value if kind is not str or value is None else _text(value)
        return row


def found(where: Iterable[str | Path]) -> Runs:
    """Read the runs in folders, or in those that patterns such as `data/**` match.

    Raise `RequestError` if none can be used, or if some hold rates on the wire and others rates of
    the scenario.
    """
    runs, left_out = [], []
    for folder in dict.fromkeys(each for name in where for each in _folders(str(name))):
        try:
            runs.append(compare.read_run(folder))
        except RequestError as error:
            left_out.append(compare.left_out(folder, error))
    if not runs:
        raise RequestError("\n".join(left_out))
    compare.refuse_mixed_schemas(runs)
    return Runs(tuple(runs), tuple(left_out))


def _folders(name: str) -> Iterator[Path]:
    if Path(name).exists():
        yield from run_folders.below(Path(name))
        return
    matches = sorted(Path(each) for each in glob.glob(name, recursive=True))
    if not matches:
        raise RequestError(f"load {name}: there is no such folder: give one with runs, or data/**")
    done: set[Path] = set()
    for folder in filter(Path.is_dir, matches):
        if done.isdisjoint((folder, *folder.parents)):
            done.add(folder)
            yield from run_folders.below(folder)


def _value(run: Run, key: str) -> Any:
    return json.loads(run.settings.get(key, "null"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# Results


def _result_columns(runs: Sequence[Run]) -> Columns:
    names = dict.fromkeys(
        with_unit(path, compare.unit(path, run.own)) for run in runs for path in run.metrics
    )
    return {**RESULT, **dict.fromkeys(names, float)}


def _results(run: Run, read: Read) -> Iterator[Row]:
    row: Row = {"status": run.status, "overloaded": run.overloaded, "rate_scale": run.rate_scale}
    for path, value in run.metrics.items():
        row[with_unit(path, compare.unit(path, run.own))] = value
    yield row


# Samples


def _figures(own: Sequence[Metric]) -> dict[tuple[str, str], str]:
    """The column of each figure of a sample, by the kind of its owner and its name there."""
    known = (each for each in (*BUILT_IN, *own) if each.sampled)
    return {(each.of, each.name): with_unit(each.name, each.unit) for each in known}


def _sample_columns(runs: Sequence[Run]) -> Columns:
    names = dict.fromkeys(name for run in runs for name in _figures(run.own).values())
    figures: Columns = {name: bool if name in FLAGS else float for name in names}
    return {**SAMPLE, "user": str, "ap": str, **figures}


def _samples(run: Run, read: Read) -> Iterator[Row]:
    columns, before_s = _figures(run.own), 0.0
    for line in read(run.folder / "samples.jsonl"):
        interval_s = round(line["t"] - before_s, 9)
        before_s = line["t"]
        for of, owner, figures in _owners(line):
            row: Row = {"t_s": line["t"], "interval_s": interval_s}
            row |= {"kind": "subflow" if of == SUBFLOW else of, "id": owner}
            if of == SUBFLOW:
                row["user"] = figures.get("user") or owner.rpartition("/")[0].rpartition("-")[0]
                row["ap"] = figures.get("ap")
            shown = {key: columns[of, key] for key in figures if (of, key) in columns}
            yield row | {column: figures[key] for key, column in shown.items()}


def _owners(line: Line) -> Iterator[tuple[str, str, Line]]:
    for of in GROUPS:
        for owner, figures in line.get(of, {}).items():
            yield of, owner, figures
    if OF_THE_RUN in line:
        yield OF_THE_RUN, "", line[OF_THE_RUN]


# Events


def _event_columns(runs: Sequence[Run]) -> Columns:
    return EVENT


def _events(run: Run, read: Read) -> Iterator[Row]:
    for event in read(run.folder / "events.jsonl"):
        row: Row = {"t_s": event["t"], "more": None}
        named = {key: event[key] for key in EVENT if event.get(key) is not None}
        row |= {key: each if key == "ok" else _text(each) for key, each in named.items()}
        if more := {key: each for key, each in event.items() if key not in ("t", *EVENT)}:
            row["more"] = json.dumps(more)
        yield row


# Flows


def _fields(kind: type[ConnectionReport] | type[SubflowReport]) -> list[str]:
    return [each.name for each in fields(kind) if each.name not in ("id", "cc", "subflows")]


def _flow_columns(runs: Sequence[Run]) -> Columns:
    names = _fields(ConnectionReport)
    fields: Columns = {name: str if name in TEXTS else float for name in names}
    return {"connection": str, **fields, **OF_TRANSFERS}


def _flows(run: Run, read: Read) -> Iterator[Row]:
    connections = _connections(run)
    found = transfers.of_run(run.folder, connections)
    known = {each.connection: each for each in found if each.kind not in CLIENTS}
    for each in connections:
        row = {"connection": each["id"]}
        row |= {name: each.get(name) for name in _fields(ConnectionReport)}
        if own := known.get(each["id"]):
            row |= _of_transfer(own)
        yield row


def _of_transfer(each: Transfer) -> Row:
    return {
        "traffic": each.kind,
        "start_s": each.start_s,
        "size_mb": each.mb,
        "slowdown": each.slowdown,
    }


# Exchanges


def _exchange_columns(runs: Sequence[Run]) -> Columns:
    return {"connection": str, "user": str, "completion_s": float, **OF_TRANSFERS}


def _exchanges(run: Run, read: Read) -> Iterator[Row]:
    for each in transfers.of_run(run.folder, _connections(run)):
        if each.kind in CLIENTS:
            row = {"connection": each.connection, "user": each.user}
            yield row | {"completion_s": each.completion_s, **_of_transfer(each)}


# Subflows


def _subflow_columns(runs: Sequence[Run]) -> Columns:
    names = _fields(SubflowReport)
    texts: Columns = dict.fromkeys(("connection", "user", "subflow", "subflow_cc"), str)
    return {**texts, **{name: str if name in TEXTS else float for name in names}}


def _subflows(run: Run, read: Read) -> Iterator[Row]:
    for connection in _connections(run):
        for each in connection.get("subflows", ()):
            row = {"connection": connection["id"], "user": connection.get("user")}
            row |= {"subflow": each["id"], "subflow_cc": each.get("cc")}
            row |= {name: each.get(name) for name in _fields(SubflowReport)}
            yield row | {"path": " ".join(each.get("path") or ())}


def _connections(run: Run) -> list[Line]:
    found: list[Line] = read_document(run.folder, "result.json").get("connections", [])
    return found


COLUMNS = {
    "results": _result_columns,
    "samples": _sample_columns,
    "events": _event_columns,
    "flows": _flow_columns,
    "subflows": _subflow_columns,
    "exchanges": _exchange_columns,
}
ROWS = {
    "results": _results,
    "samples": _samples,
    "events": _events,
    "flows": _flows,
    "subflows": _subflows,
    "exchanges": _exchanges,
}
