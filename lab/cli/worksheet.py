"""The commands `worksheet check`, `worksheet try`, `worksheet print` and `worksheet new`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from lab import installed
from lab.cli.dilation import dilation_option
from lab.cli.own_files import with_option
from lab.cli.terminal import Terminal
from lab.errors import RequestError
from lab.isolation import python
from lab.worksheets import drafting, loading, trial
from lab.worksheets.drafting import Asked
from lab.worksheets.marking import Mark
from lab.worksheets.planning import Seat
from lab.worksheets.trial import Making, Tried

RUNS = installed.DATA / "worksheets"
WORDS = {True: "passed", False: "failed", None: "open"}
TRIAL_SECRET = b"worksheet try"  # a trial has no class, so its seats need no secret


@click.group()
def worksheet() -> None:
    """Make, check, try and print worksheets, which are exercises that the lab marks."""


@worksheet.command()
@click.option(
    "--from",
    "run",
    required=True,
    metavar="RUN",
    help="A finished run: its folder, or its name in data/runs.",
)
@click.option(
    "--figure",
    "numbers",
    multiple=True,
    metavar="FIGURE",
    help="Let students predict this number, and read it in their run; may be given several times. "
    "'list figures RUN' names them. Default: the throughput of the first user.",
)
@click.option(
    "--curve",
    "curves",
    multiple=True,
    metavar="FIGURE",
    help="The same, but students draw its course before the run.",
)
@click.option("--title", default="", metavar="TEXT", help="Default: the title of the scenario.")
@click.option(
    "--minutes",
    type=click.IntRange(1, 240),
    default=drafting.MINUTES,
    show_default=True,
    help="How long students may take.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Default: standard output.",
)
@with_option
def new(
    run: str,
    numbers: tuple[str, ...],
    curves: tuple[str, ...],
    title: str,
    minutes: int,
    out: Path | None,
) -> None:
    """Make a worksheet from a finished run.

    Students predict the figures, make the run, and read the figures in their own run. Texts and
    figures can be edited in the file afterwards.
    """
    folder = drafting.find(run)
    asked = [Asked(each) for each in numbers] + [Asked(each, curve=True) for each in curves]
    text = drafting.draft(folder, asked or [drafting.usual(folder)], title, minutes)
    if out is None:
        click.echo(text, nl=False)
        return
    if out.exists():
        raise RequestError(f"write {out}: it is there already. Give another name")
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"write {out}: {error.strerror}") from error
    click.echo(f"{out} is written. Next: ./run_lab.sh worksheet try {out}", err=True)


@worksheet.command()
@click.argument("file")
@with_option
def check(file: str) -> None:
    """Check that a worksheet is valid: its keys, questions and checks.

    FILE is a file, or a name of `list worksheets`. Nothing is started.
    """
    found = loading.load(file)
    click.echo(f"{file}: valid. {found.title}, {found.minutes} min, {found.points} points")


@worksheet.command(name="try")
@click.argument("name")
@click.option(
    "--seat",
    "chosen",
    multiple=True,
    default=("example",),
    metavar="NAME",
    help="Use this seat's variant; may be given several times.  [default: example]",
)
@click.option(
    "--seats",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Use the variants of N seats, with the names seat1, seat2 and so on.",
)
@click.option("--engine", help="Make all runs in this engine.")
@click.option("--vm", is_flag=True, help="Make runs of the emulation in the virtual machine.")
@dilation_option
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=RUNS,
    metavar="DIR",
    help="Folder of the runs. Default: data/worksheets.",
)
@click.pass_context
def try_(
    ctx: click.Context,
    name: str,
    chosen: tuple[str, ...],
    seats: int | None,
    engine: str | None,
    vm: bool,
    runs: Path,
) -> None:
    """Make the runs of a worksheet's example attempts, and mark them.

    A solution must pass every check, and each wrong attempt must fail the checks that it names and
    no other. NAME is a name of `list worksheets`, or a file.
    """
    found = loading.load(name)
    stem = Path(name).stem
    names = [f"seat{n}" for n in range(1, seats + 1)] if seats else list(dict.fromkeys(chosen))
    several = len(names) > 1
    makings = [
        Making(Seat(TRIAL_SECRET, each, stem), runs / stem / each, engine, vm) for each in names
    ]
    made = trial.make(found, makings, Terminal())
    if made is None:
        ctx.exit(4)
    tried = dict(zip(names, made, strict=True))
    for each, attempts in tried.items():
        if several:
            click.echo(f"{each}:")
        for attempt in attempts:
            _print(attempt)
    surprised = [each for each, of in tried.items() if any(attempt.surprises for attempt in of)]
    if several:
        others = f". Not as expected: {', '.join(surprised)}" if surprised else ""
        click.echo(f"{len(tried) - len(surprised)} of {len(tried)} seats as expected{others}")
    ctx.exit(4 if surprised else 0)


@worksheet.command(name="print")
@click.argument("name")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Default: standard output."
)
def print_(name: str, out: Path | None) -> None:
    """Write a worksheet as a page to print.

    The page is an HTML file with room to write and drawings of the networks. It contains no
    answers. NAME is a name of `list worksheets`, or a file.
    """
    to = ["--out", str(out)] if out else []
    argv = python("-m", "dashboard.handout", name, *to)
    sys.stdout.flush()
    os.execv(sys.executable, argv)  # noqa: S606 - it replaces this process


def _print(tried: Tried) -> None:
    points = sum(each.points for each in tried.marks)
    click.echo(f"{tried.name}: {points} of {sum(each.of for each in tried.marks)} points")
    surprises = {each.step for each in tried.surprises}
    for each in tried.marks:
        unexpected = "   NOT AS EXPECTED" if each.step in surprises else ""
        click.echo(f"  {WORDS[each.passed]:<8}{each.step}{_why(each)}{unexpected}")


def _why(mark: Mark) -> str:
    """Return the reason for a mark: the measured numbers that decided it, or the problem."""
    figures = ", ".join(f"{text} = {value:.4g}" for text, value in mark.verdict.figures)
    why = mark.verdict.problem or figures
    return f": {why}" if why else ""
