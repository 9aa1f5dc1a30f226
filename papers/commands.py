"""The commands `crosscheck` and `reproduce`: arguments, options and help texts.

The commands refuse to write the published pages (results in docs/notebook) if files were changed
since the last commit. Runs made by different versions of the sources are kept in different folders.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import click

from lab.cli.dilation import dilation_option
from lab.errors import RequestError
from lab.run import manifest
from lab.run.manifest import ROOT
from lab.scenario.engine_table import STACKS

DECIDING = (
    *("controller", "lab/engines", "lab/radio", "lab/run", "lab/scenario", "lab/topologies", "vm"),
    *("lab/congestion.py", "lab/extensions.py", "lab/user_file.py", "lab/frame.py"),
    *("lab/metrics.py", "lab/summaries.py"),
)
ENDINGS = {".py", ".c", ".h", ".sh"}


def digest(root: Path = ROOT) -> str:
    """Return 12 hex digits of a hash over the sources of engines and strategies, to name a folder
    of runs.

    The id of the commit is not used, because most commits change only documents or texts. Runs made
    before such a commit are still valid.
    """
    found = hashlib.sha256()
    for place in DECIDING:
        for path in sorted([root / place, *(root / place).rglob("*")]):
            if path.suffix in ENDINGS and path.is_file():
                found.update(path.relative_to(root).as_posix().encode() + b"\0")
                found.update(path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def runs_below(folder: Path) -> Path:
    """Return the subfolder of `folder` for runs made by the present sources. If files were changed
    since the last commit, this is a separate subfolder, so that no published page uses these
    runs."""
    is_changed = (manifest.commit() or "+").endswith("+")
    return folder / f"{digest()}{'+' if is_changed else ''}"


ENGINES = ("sim", "mininet")
duration_option = click.option(
    "--duration",
    "duration_s",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Replace the duration of all runs, for a trial (only `all`, or --engine mininet).",
)
tries_option = click.option(
    "--tries",
    type=click.IntRange(0, 10),
    default=3,
    show_default=True,
    help="Runs of the emulation that fail or overload the machine are made so often. 0: make no "
    "run, and write the page from those that exist.",
)

cluster_option = click.option(
    "--cluster", metavar="ADDRESS", help="Run on the workers of this Dask scheduler."
)
allow_changed_option = click.option(
    "--allow-changed",
    is_flag=True,
    help="Try it although files were changed since the last commit. Never for a published page.",
)


def check_committed(command: str, option: str, page: Path | None, allow_changed: bool) -> None:
    """Raise `RequestError` if the page to be written would name a commit that nobody else can check
    out.

    `page` is the value of the command line option `option`. None means the page's place in the
    documentation, where uncommitted changes are never allowed.
    """
    made = manifest.commit()
    if made is not None and not made.endswith("+"):
        return
    if page is not None and allow_changed:
        return
    why = "this is no git checkout" if made is None else f"files were changed since {made[:-1]}"
    raise RequestError(
        f"{command}: {why}, and a published page is made at a commit that others can check out. "
        f"Commit the changes, or try it with --allow-changed {option} SOMEWHERE"
    )


@click.command()
@click.argument("studies", nargs=-1, metavar="[STUDY]... | all [SCENARIO]...")
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Runs per case and engine. Fewer than 5 decide nothing.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=1,
    show_default=True,
    help="Seed of the first run of each case; repeats count up from it.",
)
@click.option(
    "--rate-scale",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="SCALE",
    help="Rate scale of all runs, in place of the emulation's on this machine (only `all`).",
)
@click.option("--engine", "only", metavar="NAME", help="Run this engine only; write no page.")
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the runs. Default: data/crosscheck/DIGEST, of the sources of the engines.",
)
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write. Default: docs/notebook/crosscheck.md; with `all`, crosscheck_all.md.",
)
@duration_option
@tries_option
@dilation_option
@cluster_option
@allow_changed_option
@click.pass_context
def crosscheck(
    ctx: click.Context,
    studies: tuple[str, ...],
    repeat: int,
    seed: int,
    rate_scale: float | None,
    only: str | None,
    runs: Path | None,
    page: Path | None,
    duration_s: float | None,
    tries: int,
    cluster: str | None,
    allow_changed: bool,
) -> None:
    """Compare the simulator with the emulation.

    A STUDY runs one scenario in both engines, in several cases (settings and strategies), and
    writes crosscheck.md into docs/notebook. `all` runs every scenario with the strategy `none` and
    with the scenario's own strategy, and writes crosscheck_all.md into the same folder. If
    names of scenarios follow `all`, only these scenarios are run.

    Runs that exist already are kept: an interrupted command continues.
    """
    from papers import crosscheck_command as crosschecking
    from papers.crosscheck import RUNS as crosscheck_runs
    from papers.paired_runs import Trial

    if only is None:
        check_committed("crosscheck", "--page", page, allow_changed)
    runs = runs or runs_below(crosscheck_runs)
    trial = Trial(duration_s, tries, cluster, rate_scale, seed)
    ctx.exit(crosschecking.main(studies, repeat, only, runs, page, trial))


@click.command()
@click.argument("paper")
@click.option(
    "--quick",
    is_flag=True,
    help="Use five seeds instead of ten, and of a paper with very many cases only some.",
)
@click.option(
    "--sensitivity",
    is_flag=True,
    help="Vary settings that the paper does not state, and judge claims with each value. Writes "
    "docs/notebook/reproduction/PAPER_sensitivity.md.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    help="Runs per case. Default: 10, with --quick and --sensitivity 5. Fewer than 5 decide "
    "nothing.",
)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=ENGINES[0],
    show_default=True,
    help="mininet: check the claims that fit into the emulation, beside the simulator.",
)
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="ID",
    help="Check this claim only (mininet). Give it several times for several claims.",
)
@click.option(
    "--stack",
    type=click.Choice(list(STACKS)),
    help="Multipath TCP of the papers' kernel or of today's. Default: both, side by side.",
)
@duration_option
@tries_option
@dilation_option
@cluster_option
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the runs. Default: data/reproduction/DIGEST, of the sources of the engines.",
)
@click.option(
    "--pages",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the page. Default: docs/notebook/reproduction.",
)
@allow_changed_option
@click.pass_context
def reproduce(
    ctx: click.Context,
    paper: str,
    quick: bool,
    sensitivity: bool,
    repeat: int | None,
    engine: str,
    claims: tuple[str, ...],
    stack: str | None,
    duration_s: float | None,
    tries: int,
    cluster: str | None,
    runs: Path | None,
    pages: Path | None,
    allow_changed: bool,
) -> None:
    """Repeat the experiments of PAPER.

    Run them in the simulator, with the Multipath TCP of the papers' kernel and with today's, and
    write PAPER.md into docs/notebook/reproduction. An existing PAPER.md that is based on more seeds
    is kept. With `--engine mininet`, check those claims of the paper that fit into the emulation,
    in both engines with the same settings. The results are then in PAPER_mininet.md in the same
    folder.

    Runs that exist already are kept: an interrupted command continues.
    """
    from papers import reproduce_command as reproducing
    from papers.paired_runs import Trial
    from papers.runs import DEFAULT_REPEAT, PAGES, RUNS, Folders

    check_committed("reproduce", "--pages", pages, allow_changed)
    runs = runs or runs_below(RUNS)
    folders = Folders(runs, pages or PAGES)
    if engine == ENGINES[0]:
        if claims or duration_s:
            raise click.UsageError("--claim and --duration belong to --engine mininet")
        if sensitivity and quick:
            raise click.UsageError("--quick and --sensitivity exclude each other")
        if sensitivity:
            ctx.exit(reproducing.sensitivity(paper, repeat, folders, stack, cluster))
        ctx.exit(reproducing.main(paper, repeat, folders, stack, quick, cluster))
    if sensitivity:
        raise click.UsageError("--sensitivity belongs to --engine sim")
    if stack == "paper":
        raise click.UsageError("--stack paper belongs to --engine sim: the emulation has a kernel")
    repeat = repeat or (reproducing.QUICK if quick else DEFAULT_REPEAT)
    ctx.exit(
        reproducing.emulated(paper, repeat, claims, Trial(duration_s, tries, cluster), runs, pages)
    )
