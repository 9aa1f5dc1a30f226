"""The commands of `run_lab.sh` with their options. The other modules of `lab.cli` do the work.

Exit codes: 0 done, 2 the request is wrong, 3 this machine lacks something, 4 the run failed, 130
interrupted.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
from pathlib import Path
from typing import Any

import click

from lab import __version__, extensions, installed, sudo
from lab.batch.request import Request
from lab.cli import figures, lists, machine, worksheet
from lab.cli import run as checking
from lab.cli import run as running
from lab.cli.adopt import adopt
from lab.cli.classroom import classroom, grade
from lab.cli.dilation import dilation_option
from lab.cli.export import check_files, export, write_comparison
from lab.cli.harm import harm
from lab.cli.machine import audit, export_script
from lab.cli.own_files import forwarded_with_option, with_arguments, with_option
from lab.cli.pack_offline import pack_offline
from lab.cli.verify import verify
from lab.errors import LabError, MachineLacks
from lab.isolation import python
from lab.run.manifest import ROOT
from lab.run.outcome import EXIT_INTERRUPTED
from lab.run.reading import ALL, RESULTS
from lab.run.recorder import RUNS
from lab.scenario.engine_table import STACKS


class Beside(click.Command):
    """A command whose code is in a package beside `lab`, such as `bench`.

    The package is imported only when the command is used. `help` describes the command in the list
    of commands.
    """

    def __init__(self, name: str, module: str, help: str, hidden: bool = False) -> None:
        super().__init__(name, help=help, hidden=hidden)
        self._module = module

    def command(self) -> click.Command:
        """Import and return the command. Raise `MachineLacks` if its package is missing."""
        try:
            found: click.Command = getattr(importlib.import_module(self._module), str(self.name))
        except ModuleNotFoundError as error:
            if error.name not in (self._module, self._module.partition(".")[0]):
                raise
            folder = self._module.partition(".")[0]
            raise MachineLacks(
                f"{self.name}: the folder {ROOT / folder} is missing. Use a clone of the lab, "
                "which has it"
            ) from error
        return found

    def make_context(self, *args: Any, **named: Any) -> click.Context:
        return self.command().make_context(*args, **named)


class CommandLine(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. If it raises a `LabError`, print the message and exit with the error's
        exit code.

        Under sudo, root may have written into the caller's cache folder. Such files are given to
        the caller at the end.
        """
        try:
            return super().invoke(ctx)
        except LabError as error:
            click.echo(f"error: {installed.worded(str(error))}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)
        finally:
            sudo.give_cache_away()


@click.group(cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lab")
def cli() -> None:
    """Emulate and simulate Multipath TCP in software-defined networks.

    `./run_lab.sh` without a command is the same as `./run_lab.sh up`.
    """


@cli.command()
@click.argument("scenario")
@click.option(
    "--engine",
    default="sim",
    show_default=True,
    help="sim: simulate packets. mininet: emulate a network; needs root or --vm.",
)
@click.option(
    "--vm", is_flag=True, help="Run the emulation inside a virtual machine; needs no root."
)
@dilation_option
@click.option(
    "--wait", is_flag=True, help="Wait while another emulation is running on this machine."
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME|FILE",
    help="Replace the scenario's strategy. Give it several times to compare strategies.",
)
@click.option("--cc", metavar="NAME|FILE", help="Replace the scenario's congestion control.")
@click.option(
    "--stack",
    type=click.Choice(list(STACKS)),
    help="Multipath TCP of the simulator: that of the papers' kernel, or of today's.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Replace the scenario's seed.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 1_000_000),
    default=1,
    help="Runs per strategy. Each run adds 1 to the seed.",
)
@click.option(
    "--duration",
    "duration_s",
    type=float,
    metavar="SECONDS",
    help="Replace the scenario's duration.",
)
@click.option(
    "--speed",
    metavar="max|1|10",
    help="Simulated seconds per real second (sim only). Default: max.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY.PATH=VALUE",
    help="Change a key of the scenario, such as topology.multipath=[].",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY.PATH=A,B,C",
    help="Run every combination of values; 10..40..10 is a range. Needs --out.",
)
@click.option(
    "--keep",
    type=click.Choice([ALL, RESULTS]),
    default=ALL,
    show_default=True,
    help="results: remove samples and events at the end of a run, to save disk.",
)
@click.option("--shard", metavar="I/N", help="Run only the I-th of N parts of the runs.")
@click.option("--cluster", metavar="ADDRESS", help="Run on the workers of this Dask scheduler.")
@click.option(
    "--dry-run", is_flag=True, help="Check all runs, say how many, and estimate time and disk."
)
@click.option("--pcap", is_flag=True, help="Capture packets into files in the run folder.")
@click.option("--report", is_flag=True, help="Write report.md into the run folder.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the run. Several runs: a folder that contains theirs.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print result.json only. Several runs: a list.",
)
@click.option("--quiet", is_flag=True, help="Print errors only.")
@with_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    report: bool,
    as_json: bool,
    quiet: bool,
    dry_run: bool,
    cluster: str | None,
    **request: Any,
) -> None:
    """Run SCENARIO: a name from `list scenarios`, or a file.

    A strategy or congestion control can be a file of your own: see docs/extend.md.

    Exit codes: 0 done, 2 wrong request, 3 this machine lacks something, 4 the run failed,
    130 interrupted.
    """
    request["strategies"] = tuple(map(extensions.strategy_name, request["strategies"]))
    request["cc"] = request["cc"] and extensions.cc_name(request["cc"])
    asked = Request(**request, may_run_code=True)
    if dry_run:
        running.dry_run(asked, as_json)
    else:
        ctx.exit(running.run(asked, running.Output(report, as_json, quiet), cluster))


@cli.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--engine", default="sim", show_default=True, help="sim or mininet, as for run.")
@click.option("--vm", is_flag=True, help="Run emulations inside a virtual machine.")
@dilation_option
@click.option("--shard", metavar="I/N", help="Run only the I-th of N parts of the runs.")
@click.option("--cluster", metavar="ADDRESS", help="Run on the workers of this Dask scheduler.")
@click.option(
    "--dry-run", is_flag=True, help="Check all runs, say how many, and estimate time and disk."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of all runs. Default: data/NAME of the file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON only.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
@with_option
@click.pass_context
def sweep(
    ctx: click.Context,
    file: Path,
    engine: str,
    vm: bool,
    shard: str | None,
    cluster: str | None,
    dry_run: bool,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run every point of the sweep FILE: a grid, listed points, or samples of ranges.

    The same command continues after an interruption. docs/formats.md has the keys of the file.
    """
    from lab.batch import sweep as sweeps

    wanted = sweeps.read(file)
    asked = sweeps.request(wanted, engine, vm, out or RUNS.parent / file.stem, shard)
    if dry_run:
        running.dry_run(asked, as_json)
    else:
        ctx.exit(running.sweep(asked, wanted, running.Output(False, as_json, quiet), cluster))


@cli.command()
@click.argument("scenario")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY.PATH=VALUE", help="Change a key first."
)
@click.option("--strategy", metavar="NAME|FILE", help="Replace the scenario's strategy first.")
@click.option("--cc", metavar="NAME|FILE", help="Replace the scenario's congestion control first.")
@with_option
def check(scenario: str, settings: tuple[str, ...], strategy: str | None, cc: str | None) -> None:
    """Check every key and value of SCENARIO. Start nothing.

    Python files of your own that the scenario uses are imported, which executes their code.
    """
    checking.check(scenario, settings, strategy, cc)


@cli.command()
@click.argument(
    "folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path)
)
@lists.as_json_option
@click.option(
    "--markdown",
    "as_markdown",
    is_flag=True,
    help="Print one table in Markdown, with the verdicts in its cells.",
)
@click.option("--from", "from_s", type=float, metavar="S", help="Use the samples after S seconds.")
@click.option("--to", "to_s", type=float, metavar="S", help="Use the samples up to S seconds.")
@click.option(
    "--by",
    multiple=True,
    metavar="KEY.PATH",
    help="One comparison for each value of this key of the scenario.",
)
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Also write it as CSV.")
@click.option(
    "--parquet", "parquet_file", type=click.Path(path_type=Path), help="Also write it as Parquet."
)
@figures.options
def compare(
    folders: tuple[Path, ...],
    as_json: bool,
    as_markdown: bool,
    from_s: float | None,
    to_s: float | None,
    by: tuple[str, ...],
    csv_file: Path | None,
    parquet_file: Path | None,
    **paper: Any,
) -> None:
    """Compare runs side by side. DIR is a run, or a folder with runs below it, such as a grid's.

    Runs that differ only in the seed form one group, with a 95 % confidence interval. Groups that
    have the same seeds are compared in pairs. With --from or --to, the numbers are those of a part
    of each run.
    """
    from lab.results import compare as comparing
    from lab.results import compare_text

    window = None
    if from_s is not None or to_s is not None:
        window = comparing.Window(from_s or 0.0, math.inf if to_s is None else to_s)
    files, for_paper = check_files(csv_file, parquet_file), figures.Paper(**paper)
    figures.check(for_paper)
    found, not_used = comparing.compared_by(folders, window, by)
    write_comparison(found, files)
    figures.write(found, for_paper, by, window)
    click.echo(compare_text.shown(found, not_used, as_json, as_markdown))


@cli.command()
def reindex() -> None:
    """Rebuild data/index.json from the run folders."""
    from lab.results.store import Store

    click.echo(f"{Store().reindex()} runs in {RUNS.parent / 'index.json'}")


@cli.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Default: 8080, or the next free port.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--no-demo", is_flag=True, help="Do not start the demo run.")
@dilation_option
@forwarded_with_option
@click.pass_context
def up(
    ctx: click.Context,
    port: int | None,
    no_browser: bool,
    no_demo: bool,
    extension_folders: tuple[str, ...],
) -> None:
    """Start the dashboard and a demo run.

    Print the address of the page. Ctrl-C ends both.
    """
    flags = [
        *(["--port", str(port)] if port else []),
        *["--no-browser"] * no_browser,
        *["--no-demo"] * no_demo,
        *with_arguments(extension_folders),
    ]
    argv = python("-m", "dashboard", *flags)
    sys.stdout.flush()
    os.execv(sys.executable, argv)  # noqa: S606 - it replaces this process


for command in (
    adopt,
    audit,
    classroom,
    lists.listing,
    machine.clean,
    machine.doctor,
    machine.link,
    machine.setup_emulation,
    machine.vm,
    machine.execute,
    machine.cli,
    Beside(
        "batch", "dashboard.batch_process", "Make the runs of a batch of the page.", hidden=True
    ),
    Beside("bench", "bench.command", "Measure the lab's speed on this machine."),
    Beside("crosscheck", "papers.commands", "Compare the simulator with the emulation."),
    Beside("reproduce", "papers.commands", "Repeat the experiments of PAPER."),
    export,
    export_script,
    grade,
    harm,
    pack_offline,
    verify,
    worksheet.worksheet,
):
    cli.add_command(command)
