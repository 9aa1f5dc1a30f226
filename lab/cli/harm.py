"""The command `harm`, which searches random networks for harm that a strategy does."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.strategy_names import IMPROVED, SEPARATOR
from lab import extensions, installed
from lab.batch.jobs import signals_as_ctrl_c
from lab.cli.own_files import with_option
from lab.errors import RequestError, unknown
from lab.results.tables import text_table
from lab.run.outcome import EXIT_INTERRUPTED
from lab.run.recorder import RUNS
from lab.scenario.schema import strategies

if TYPE_CHECKING:
    from lab.harm.search import Found, Search

USUAL_MINUTES = 10.0


@click.command()
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    help=f"At most this long, half of it for shrinking. Default: {USUAL_MINUTES:g}, or no limit "
    "with --networks.",
)
@click.option(
    "--networks", type=click.IntRange(1, 1_000_000), metavar="N", help="Try networks 0 to N - 1."
)
@click.option(
    "--strategy",
    "names",
    multiple=True,
    metavar="NAME|FILE",
    help="A strategy to try; give it several times for more. Default: every NAME/improved.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=1,
    show_default=True,
    help="Another seed draws other networks.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the networks that were found. Default: data/harm.",
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Append a line of JSON for each network and strategy. Those that the file already has of "
    "this seed and this version are not tried again.",
)
@with_option
@click.pass_context
def harm(
    ctx: click.Context,
    minutes: float | None,
    networks: int | None,
    names: tuple[str, ...],
    seed: int,
    out: Path | None,
    record: Path | None,
) -> None:
    """Search random networks on which a strategy does harm, and shrink them.

    Each network is simulated with the strategy and with plain Multipath TCP. docs/strategies.md
    says what counts as harm. The exit code is 0 whatever is found. Ctrl-C keeps what was found.
    """
    from lab.harm.search import Asked, Search, unlimited

    if minutes is None and networks is None:
        minutes = USUAL_MINUTES
    typed = {_checked(name): name for name in names} or {name: name for name in _improved()}
    if record and not record.parent.is_dir():
        raise RequestError(f"--record {record}: there is no folder {record.parent}: make it first")
    folder = out or RUNS.parent / "harm"
    asked = Asked(tuple(typed), seed, unlimited(minutes), unlimited(networks), folder, record)
    search = Search(asked, lambda text: click.echo(text, err=True))
    interrupted = False
    try:
        with signals_as_ctrl_c():
            search.run()
    except KeyboardInterrupt:
        interrupted = True
    click.echo("\n".join(_summary(search, typed)))
    ctx.exit(EXIT_INTERRUPTED if interrupted else 0)


def _improved() -> list[str]:
    return [name for name in strategies() if name.endswith(f"{SEPARATOR}{IMPROVED}")]


def _checked(wanted: str) -> str:
    name = extensions.strategy_name(wanted)
    if name not in strategies():
        raise RequestError(f"--strategy {unknown(name, strategies())}")
    return name


def _summary(search: Search, typed: dict[str, str]) -> list[str]:
    rows = [
        (name, search.tried[name], sum(each.strategy == name for each in search.found))
        for name in typed
    ]
    lines = [text_table(("strategy", "networks", "with harm"), rows)]
    if search.failed:
        lines.append(f"{search.failed} networks could not be simulated with plain Multipath TCP")
    for n, each in enumerate(search.worst(), 1):
        lines += ["", *_shown(n, each, typed[each.strategy])]
    return lines


def _shown(n: int, found: Found, typed: str) -> Sequence[str]:
    state = "the smallest" if found.is_smallest else "not shrunk to the end"
    words = ["run", str(found.file), "--strategy", "none", "--strategy", typed]
    return (
        f"{n}. {found.strategy}: {found.harm.text} ({found.size}; {state})",
        installed.worded(f"   ./run_lab.sh {shlex.join(words)}"),
    )
