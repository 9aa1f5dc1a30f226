"""The commands `class`, `class wipe` and `grade`, for classes of students."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click
from filelock import FileLock, Timeout

from lab.batch.repeat import repeat
from lab.classroom import folder, grades
from lab.classroom.folder import ClassFolder
from lab.classroom.grades import Difference, Record, Submission
from lab.classroom.state import ClassRun, ClassState
from lab.cli.dilation import dilation_option
from lab.cli.own_files import forwarded_with_option, with_arguments, with_option
from lab.errors import LabError, RequestError
from lab.isolation import python
from lab.results.tables import text_table
from lab.run.manifest import present
from lab.scenario import engine_table


@click.command()
@click.argument("name", metavar="CLASS")
@click.option("--again", is_flag=True, help="Mark all answers and runs again; list differences.")
@click.option(
    "--repeat-runs",
    is_flag=True,
    help="Repeat the simulated runs that were marked; list those with other bytes.",
)
@click.option(
    "--csv",
    "table",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the grades as a table for a learning management system.",
)
@click.option(
    "--columns",
    type=click.Choice(grades.COLUMNS),
    default=grades.COLUMNS[0],
    show_default=True,
    help="The columns of the table.",
)
@click.option(
    "--digest",
    metavar="DIGEST",
    help="What the class printed at its end, or the column Journal of a table: the journal must "
    "still have these lines.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the submissions as JSON.")
@with_option
@click.pass_context
def grade(
    ctx: click.Context,
    name: str,
    again: bool,
    repeat_runs: bool,
    table: Path | None,
    columns: str,
    digest: str | None,
    as_json: bool,
) -> None:
    """Print the grades of a class, from its files.

    With --again, the saved answers and runs are marked again; no run is started. Exit code 4: a
    line of the journal or the files of a run were changed, or the points of a step differ. A line
    that was changed does not count.
    """
    found = folder.find(name, folder.CLASSES)
    record = grades.read_record(found)
    handed_in = grades.submissions(found, record.state)
    if table is not None:
        _write(table, _csv(columns, found, handed_in, record))
    if as_json:
        head = record.log.head
        click.echo(json.dumps([_document(each, head) for each in handed_in], indent=1))
    elif table is None:
        _print(found, handed_in)
    lines = list(_faults(record, digest))
    lines += [_line(each) for one in handed_in for each in grades.impossible(one)]
    lines += list(_differences(found, record.state, handed_in)) if again else []
    lines += list(_repeated(found, record.state, handed_in)) if repeat_runs else []
    for line in lines:
        click.echo(line, err=as_json)
    ctx.exit(4 if lines else 0)


def _print(found: ClassFolder, handed_in: Sequence[Submission]) -> None:
    head = ("seat", "people", "worksheet", "points", "of")
    rows = [
        (each.seat, " and ".join(each.people), each.worksheet, each.points, each.of)
        for each in handed_in
    ]
    if not rows:
        click.echo(f"class '{found.name}': nobody has opened a worksheet")
        return
    click.echo(text_table(head, rows))


def _faults(record: Record, digest: str | None) -> Iterator[str]:
    """Say which lines of the journal are wrong, and whether it still has the line of `digest`."""
    log = record.log
    click.echo(f"journal: {log.count} lines, the last one with the digest {log.head}", err=True)
    if log.older:
        text = f"journal: an older version wrote lines 1 to {log.older}, without digests: "
        click.echo(text + "changes in them cannot be seen", err=True)
    for fault in record.faults:
        yield f"journal, {fault}"
    if digest is not None and digest not in log.heads | {log.head}:
        yield f"journal: it does not have the line {digest}: lines were changed or removed since"


def _line(difference: Difference) -> str:
    work = difference.submission
    who = " and ".join(work.people)
    return f"{work.seat} {who}, {work.worksheet}, {difference.step}: {difference.text}"


def _differences(
    found: ClassFolder, state: ClassState, handed_in: Sequence[Submission]
) -> Iterator[str]:
    """Mark all work again, and yield one line of text for each difference.

    Print which versions of the lab marked the work before and now.
    """
    before = sorted({step.checker for each in handed_in for step in each.steps if step.checker})
    for version in before:
        if version != present():
            click.echo(f"marked by version {version}, and again by {present()}", err=True)
    count = 0
    for each in handed_in:
        for difference in grades.mark_again(found, state, each):
            count += 1
            yield _line(difference)
    steps = sum(step.passed is not None for each in handed_in for step in each.steps)
    click.echo(f"again: {steps} marked steps, {count} differences", err=True)


def _repeated(
    found: ClassFolder, state: ClassState, handed_in: Sequence[Submission]
) -> Iterator[str]:
    """Repeat each simulated run that was used for marking.

    Yield one line for each run whose files differ from the original, and for each run that cannot
    be repeated.
    """
    used = {run.id: run for each in handed_in for run in grades.runs_used(state, each)}
    simulated = [each for each in used.values() if not engine_table.entry(each.engine).real_time]
    same = 0
    for run in simulated:
        if line := _repeat(found, run):
            yield line
        else:
            same += 1
    left_out = len(used) - len(simulated)
    note = f"; {left_out} of the emulation left out" if left_out else ""
    click.echo(f"repeated: {same} of {len(simulated)} runs have the same bytes{note}", err=True)


def _repeat(found: ClassFolder, run: ClassRun) -> str:
    try:
        differing = repeat(found.runs / run.id)
    except LabError as error:
        return str(error)
    return f"repeat run {run.id}: other bytes in {', '.join(differing)}" if differing else ""


def _csv(columns: str, found: ClassFolder, handed_in: Sequence[Submission], record: Record) -> str:
    people = {seat.id: seat.names for seat in record.state.listed()}
    head = record.log.head
    return grades.to_csv(columns, found.worksheets, handed_in, people, found.roster, head)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"write {path}: {error.strerror}") from error
    click.echo(f"{path} is written", err=True)


def _document(handed_in: Submission, head: str) -> dict[str, Any]:
    return {
        "journal": head,
        "seat": handed_in.seat,
        "people": list(handed_in.people),
        "worksheet": handed_in.worksheet,
        "points": handed_in.points,
        "of": handed_in.of,
        "steps": [
            {
                "step": each.step,
                "answer": each.answer,
                "passed": each.passed,
                "points": each.points,
                "of": each.of,
                "by_hand": each.by_hand,
                "checker": each.checker,
                "runs": {
                    step: {"run": run, "digest": handed_in.digests.get(run)}
                    for step, run in each.runs.items()
                },
            }
            for each in handed_in.steps
        ],
    }


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(name="class", invoke_without_command=True)
@click.option("--name", metavar="NAME", help="Name of the class. Default: the date of today.")
@click.option(
    "--host",
    metavar="ADDRESS",
    help="Address of this machine in the network of the room. Default: this machine only.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Default: 8080, or the next free port.")
@click.option(
    "--roster",
    type=FILE,
    metavar="FILE",
    help="CSV file of the students: column name, and pin if they have one.",
)
@click.option(
    "--worksheet",
    multiple=True,
    metavar="NAME|FILE",
    help="A worksheet of the class; can be given several times. Default: all that come with the "
    "lab.",
)
@click.option("--certificate", type=FILE, metavar="FILE", help="Certificate for TLS (PEM).")
@click.option("--key", type=FILE, metavar="FILE", help="Private key of the certificate (PEM).")
@click.option(
    "--speed",
    metavar="1|10|max",
    help="Simulated seconds per real second of the students' runs. Default: 1.",
)
@click.option("--vm", is_flag=True, help="Run emulations inside a virtual machine; needs no root.")
@dilation_option
@forwarded_with_option
@click.pass_context
def classroom(
    ctx: click.Context,
    /,
    vm: bool,
    extension_folders: tuple[str, ...],
    **options: str | int | Path | None,
) -> None:
    """Serve a class: students work on worksheets in their browsers.

    Print the link and the code for students, and the instructor's own link. Ctrl-C ends the server;
    the same command continues the class.
    """
    if ctx.invoked_subcommand is not None:
        return
    options["name"] = options["name"] or f"{date.today():%Y-%m-%d}"
    argv = python("-m", "dashboard.classroom", *["--vm"] * vm)
    argv += with_arguments(extension_folders)
    for name, value in options.items():
        for each in value if isinstance(value, tuple) else [value]:
            argv += [] if each is None else [f"--{name}", str(each)]
    sys.stdout.flush()
    os.execv(sys.executable, argv)  # noqa: S606 - it replaces this process


@classroom.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def wipe(name: str, yes: bool) -> None:
    """Delete a class after asking: its answers, grades, runs and roster."""
    classes = folder.CLASSES
    path = classes / folder.checked(name)
    if name not in folder.names(classes):
        raise folder.no_such_class(name, classes)
    if not yes:
        click.confirm(f"Delete {path} with all answers and runs?", abort=True)
    try:
        with FileLock(path / folder.LOCK, timeout=0):
            folder.wipe(name, classes)
    except Timeout as error:
        raise RequestError(f"class '{name}' is being served: end that first") from error
    click.echo(f"{path} is deleted")
