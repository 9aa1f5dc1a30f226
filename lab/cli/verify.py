"""The command `verify`: check an archive of runs, and make its runs again."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from lab.cli.dilation import dilation_option
from lab.cli.own_files import with_option
from lab.cli.terminal import Terminal
from lab.errors import LabError, MachineLacks, RequestError
from lab.results.zips.emulated import Machine
from lab.results.zips.verification import Checked, verified

EXIT_DIFFERS, EXIT_NOT_REPEATED = LabError.exit_code, MachineLacks.exit_code


@click.command()
@click.argument("archive", type=click.Path(path_type=Path), metavar="X.zip")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the unpacked archive and the repeated runs in this new folder.",
)
@click.option("--vm", is_flag=True, help="Make emulated runs again in a virtual machine.")
@dilation_option
@click.option(
    "--wait", is_flag=True, help="Wait while another emulation is running on this machine."
)
@with_option
@click.pass_context
def verify(ctx: click.Context, archive: Path, out: Path | None, vm: bool, wait: bool) -> None:
    """Check the archive X.zip that `export -o` has written, and make its runs again.

    A simulated run must give the same bytes. Five emulated runs or more that differ only in the
    seed are compared by 95 % intervals.

    Exit codes: 0 everything is the same, 2 X.zip is no such archive, 3 nothing differs but some
    runs could not be made again, 4 something differs.
    """
    count: Counter[str] = Counter()
    versions: set[str] = set()
    with _place(out) as place:
        for each in verified(archive, place, Machine(Terminal(), vm, wait)):
            count[each.verdict] += each.runs
            versions.add(each.versions)
            _say(each)
    for text in sorted(versions - {""}):
        click.echo(f"made elsewhere: {text}")
    click.echo(", ".join(f"{count[each]} {each}" for each in ("same", "differs", "not repeated")))
    if count["differs"]:
        ctx.exit(EXIT_DIFFERS)
    ctx.exit(EXIT_NOT_REPEATED if count["not repeated"] else 0)


def _say(found: Checked) -> None:
    if found.verdict == "same":
        click.echo(f"same: {found.name}{', within 95 % intervals' if found.runs > 1 else ''}")
    for reason in found.reasons:
        click.echo(f"{found.verdict}: {found.name}: {reason}", err=True)


@contextmanager
def _place(out: Path | None) -> Iterator[Path]:
    """Yield an empty folder, which is removed later if `out` is None."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="lab-verify-") as folder:
            yield Path(folder)
        return
    try:
        out.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise RequestError(f"verify --out {out}: {error.strerror}: choose a new folder") from error
    yield out.resolve()
