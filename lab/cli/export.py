"""The command `export`: write the tables of runs as CSV or Parquet files, or runs as an archive."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lab.errors import LabError, MachineLacks, RequestError
from lab.results import rows
from lab.results.compare import Parts, few
from lab.results.frames import INSTALL
from lab.results.rows import TABLES, Columns, Row
from lab.results.zips import packing

if TYPE_CHECKING:
    import pyarrow

AT_ONCE = 20_000  # rows of a Parquet file that are in memory together


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="RUN...")
@click.option("--csv", "csv_folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--parquet", "parquet_folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "-o",
    "zip_file",
    type=click.Path(path_type=Path),
    metavar="X.zip",
    help="Write the run folders into an archive that others can check with `verify`.",
)
def export(
    folders: tuple[str, ...],
    csv_folder: Path | None,
    parquet_folder: Path | None,
    zip_file: Path | None,
) -> None:
    """Write all runs in RUN... as tables (results, samples, events, flows and subflows), or as one
    zip archive.

    RUN is a run folder, or a folder with runs below it, such as that of a grid. --csv and --parquet
    name the folder for the tables. docs/results.md describes the columns and the archive.
    """
    if csv_folder is None and parquet_folder is None and zip_file is None:
        raise RequestError(
            "export: add --csv DIR or --parquet DIR, the folder for the tables, or -o X.zip"
        )
    if zip_file is not None:
        _refuse_file(zip_file)
    if parquet_folder is not None:
        _check_pyarrow()
    targets = [
        (folder, suffix)
        for folder, suffix in ((csv_folder, ".csv"), (parquet_folder, ".parquet"))
        if folder is not None
    ]
    for folder, suffix in targets:
        _refuse_existing(folder, suffix)
    if targets:
        runs = rows.found(folders)
        _say_left_out(runs.left_out)
        _say_what_is_missing(runs)
        for folder, suffix in targets:
            _write_tables(runs, folder, suffix)
    if zip_file is not None:
        chosen = packing.chosen(folders)
        _say_left_out(chosen.left_out)
        packing.write(zip_file, chosen.folders)
        click.echo(f"{zip_file}: {len(chosen.folders)} runs. Check it: ./run_lab.sh verify FILE")


def _say_left_out(texts: Sequence[str]) -> None:
    for text in few(texts):
        click.echo(f"careful: {text}", err=True)


def _say_what_is_missing(runs: rows.Runs) -> None:
    if without := sum(each.has_results_only for each in runs.runs):
        click.echo(
            f"careful: {without} of {len(runs.runs)} runs have no samples and events, because of "
            "--keep results",
            err=True,
        )


def _refuse_file(path: Path) -> None:
    if path.suffix != ".zip":
        raise RequestError(f"export -o {path}: it must end in .zip: write {path}.zip")
    if path.exists():
        raise RequestError(f"export: {path} is there already: choose another name, or remove it")


def _check_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MachineLacks(f"--parquet: this needs pyarrow. Type: {INSTALL}") from error


def _refuse_existing(folder: Path, suffix: str) -> None:
    for table in TABLES:
        if (folder / f"{table}{suffix}").exists():
            raise RequestError(
                f"export: {folder / table}{suffix} is there already: choose another folder"
            )


def _write_tables(runs: rows.Runs, folder: Path, suffix: str) -> None:
    for table in TABLES:
        path = folder / f"{table}{suffix}"
        each = chain.from_iterable(runs.rows(run, table) for run in runs.runs)
        click.echo(f"{path}: {_written(path, suffix, runs.columns(table), each)} rows")


def _written(path: Path, suffix: str, columns: Columns, each: Iterator[Row]) -> int:
    """Write rows into a file and return how many."""
    write = {".csv": _write_csv, ".parquet": _write_parquet}[suffix]
    return int(written_whole(path, lambda part: write(part, columns, each)))


def written_whole(path: Path, write: Callable[[Path], Any]) -> Any:
    """Let `write` write a file. It gets its name when it is complete."""
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        found = write(part)
        part.replace(path)
    except OSError as error:
        raise LabError(f"write {path}: {error.strerror}: choose another folder") from error
    finally:
        with suppress(OSError):  # it has its name now, or was never there
            part.unlink()
    return found


COMPARISON: Columns = {
    **dict.fromkeys(("group", "metric"), str),
    "n": int,
    **dict.fromkeys(("mean", "low", "high"), float),
    "verdict": str,
}


def check_files(csv_file: Path | None, parquet_file: Path | None) -> dict[str, Path]:
    """Return the files for the table of a comparison, by their suffix. Refuse those that exist, and
    Parquet without pyarrow."""
    if parquet_file is not None:
        _check_pyarrow()
    files = {".csv": csv_file, ".parquet": parquet_file}
    found = {suffix: path for suffix, path in files.items() if path is not None}
    for path in found.values():
        if path.exists():
            raise RequestError(f"compare: {path} is there already: choose another file")
    return found


def write_comparison(parts: Parts, files: dict[str, Path]) -> None:
    """Write one row for each group and metric. The keys of `--by` are the first columns."""
    columns: Columns = {**dict.fromkeys(parts[0][0], str), **COMPARISON}
    for suffix, path in files.items():
        _written(path, suffix, columns, _rows_of(parts))


def _rows_of(parts: Parts) -> Iterator[Row]:
    for by, found in parts:
        for metric, estimates in found.estimates.items():
            for group, each in zip(found.groups, estimates, strict=True):
                verdict = found.verdicts.get(group.label, {}).get(metric)
                row: Row = {"group": group.label, "metric": metric, **asdict(each)}
                yield {**by, **row, "verdict": verdict.text if verdict else None}


def _write_csv(path: Path, columns: Columns, each: Iterator[Row]) -> int:
    """Write rows into a new file; return how many. What is missing or None is an empty cell."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
        writer.writeheader()
        for count, row in enumerate(each, 1):  # noqa: B007 - it is returned
            writer.writerow(row)
    return count


def _write_parquet(path: Path, columns: Columns, each: Iterator[Row]) -> int:
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    schema, count = _schema(columns), 0
    with path.open("wb") as file, ParquetWriter(file, schema) as writer:
        while several := list(islice(each, AT_ONCE)):
            count += len(several)
            writer.write_table(pyarrow.Table.from_pylist(several, schema))
    return count


def _schema(columns: Columns) -> pyarrow.Schema:
    import pyarrow

    types = {
        str: pyarrow.string(),
        float: pyarrow.float64(),
        int: pyarrow.int64(),
        bool: pyarrow.bool_(),
    }
    return pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
