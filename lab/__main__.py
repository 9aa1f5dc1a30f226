"""The command line: names, options and exit codes; what happens is elsewhere.

Exit codes: 0 done, 2 the request is wrong, 3 this machine lacks something, 4 the run failed, 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from lab import __version__
from lab.batch.request import Request
from lab.cli import lists
from lab.cli import run as running
from lab.errors import LabError, MachineLacks
from lab.run.recorder import RUNS
from lab.run.runner import EXIT_INTERRUPTED
from lab.scenario import catalogue

PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


class Door(click.Group):
    """Errors of the lab become a message and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LabError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)


@click.group(cls=Door, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lab")
def cli() -> None:
    """An emulation lab for Multipath TCP and software-defined networking."""


@cli.command()
@click.argument("scenario")
@click.option(
    "--engine",
    default="sim",
    show_default=True,
    help="sim, or mininet: a real network, needs root or --vm.",
)
@click.option(
    "--vm", is_flag=True, help="Run the emulation inside a virtual machine: needs no root."
)
@click.option("--wait", is_flag=True, help="Wait if this machine's one emulation is taken.")
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Instead of the scenario's; several run in turn.",
)
@click.option("--cc", metavar="NAME", help="Congestion control instead of the scenario's.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1))
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    help="Runs per strategy, on seeds counted up.",
)
@click.option("--duration", "duration_s", type=float, metavar="SECONDS")
@click.option("--speed", metavar="max|1|10", help="Simulated time over real time.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY.PATH=VALUE",
    help="Change any key, such as topology.multipath=[].",
)
@click.option("--pcap", is_flag=True, help="Capture packets into the run folder.")
@click.option("--report", is_flag=True, help="Write report.md into the run folder.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The run folder; for several runs, the folder around theirs.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print result.json and nothing else; for several runs a list.",
)
@click.option("--quiet", is_flag=True, help="Print errors only.")
@click.pass_context
def run(ctx: click.Context, /, report: bool, as_json: bool, quiet: bool, **request: Any) -> None:
    """Run SCENARIO: a name from `list scenarios`, or a file."""
    ctx.exit(running.run(Request(**request), running.Output(report, as_json, quiet)))


@cli.command()
@click.argument("scenario")
@click.option("--set", "settings", multiple=True, metavar="KEY.PATH=VALUE")
def check(scenario: str, settings: tuple[str, ...]) -> None:
    """Check every key and value of SCENARIO and start nothing."""
    from lab.scenario.loading import Overrides, load

    loaded = load(scenario, Overrides(settings=settings))
    click.echo(f"{loaded.name}: valid. {loaded.title}")
    if late := [f"{event.at_s:g}" for event in loaded.events if event.at_s > loaded.duration_s]:
        click.echo(
            f"careful: it ends at {loaded.duration_s:g} s, before its events at {', '.join(late)} s"
        )


@cli.group(name="list")
def listing() -> None:
    """Show what there is."""


@listing.command()
@as_json
def scenarios(as_json: bool) -> None:
    """Experiments that come with the lab."""
    lists.scenarios(catalogue.scenario_rows(), as_json)


@listing.command()
@as_json
def strategies(as_json: bool) -> None:
    """What can decide about paths and limits."""
    lists.show(catalogue.strategy_rows(), ("name", "help"), as_json)


@listing.command()
@as_json
def cc(as_json: bool) -> None:
    """Congestion controls, and the engines that can run each."""
    lists.show(catalogue.congestion_control_rows(), ("name", "help", "engines"), as_json)


@listing.command()
@as_json
def topologies(as_json: bool) -> None:
    """Families of networks, and their parameters."""
    lists.show(catalogue.topology_rows(), ("kind", "help", "params"), as_json)


@listing.command()
@click.argument("name")
@as_json
def params(name: str, as_json: bool) -> None:
    """The parameters of a strategy, or of a kind of topology."""
    lists.show(
        catalogue.parameter_rows(name),
        ("name", "default", "unit", "minimum", "maximum", "choices", "help"),
        as_json,
    )


@listing.command()
@click.argument("scenario")
@as_json
def targets(scenario: str, as_json: bool) -> None:
    """Everything that can be changed while SCENARIO runs."""
    lists.show(
        catalogue.target_rows(scenario),
        ("name", "value", "unit", "minimum", "maximum", "choices", "help"),
        as_json,
    )


@cli.command()
@click.argument(
    "folders", nargs=-1, required=True, metavar="DIR DIR...", type=click.Path(path_type=Path)
)
@as_json
@click.option(
    "--markdown",
    "as_markdown",
    is_flag=True,
    help="Print one table in Markdown, verdicts in its cells.",
)
def compare(folders: tuple[Path, ...], as_json: bool, as_markdown: bool) -> None:
    """Put runs side by side; repeats of a strategy are taken together."""
    from lab.results import compare as comparing

    click.echo(comparing.report(folders, as_json, as_markdown))


@cli.command()
@click.argument("studies", nargs=-1, metavar="[STUDY]...")
@click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Runs per case and engine.",
)
@click.option(
    "--engine", "only", metavar="NAME", help="Make the runs of this engine only, and no page."
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the runs are, instead of data/crosscheck.",
)
@click.pass_context
def crosscheck(
    ctx: click.Context, studies: tuple[str, ...], repeat: int, only: str | None, runs: Path | None
) -> None:
    """Run the same cases in both engines and write docs/crosscheck.md; repeated, it goes on where it was."""
    from lab.cli import crosscheck as crosschecking

    ctx.exit(crosschecking.main(studies, repeat, only, runs))


@cli.command()
@click.argument("paper")
@click.option("--quick", is_flag=True, help="Three seeds instead of ten.")
@click.option(
    "--repeat", type=click.IntRange(2, 100), default=10, show_default=True, help="Runs per case."
)
@click.pass_context
def reproduce(ctx: click.Context, paper: str, quick: bool, repeat: int) -> None:
    """Make the experiments of PAPER in the simulator and write docs/reproduction/PAPER.md; repeated, it goes on where it was."""
    from lab.cli import reproduce as reproducing

    ctx.exit(reproducing.main(paper, reproducing.QUICK if quick else repeat))


@cli.command()
def reindex() -> None:
    """Rebuild data/index.json from the run folders."""
    from lab.results.store import Store

    click.echo(f"{Store().reindex()} runs in {RUNS.parent / 'index.json'}")


@cli.command()
@click.option("--only", metavar="NAME", help="One figure.")
@click.pass_context
def bench(ctx: click.Context, only: str | None) -> None:
    """Measure how fast the lab is here; print the figures as JSON. Nothing else should run meanwhile."""
    ctx.exit(importlib.import_module("lab.cli.bench").main(only))


@cli.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Instead of 8080 or the next free one.")
@click.option("--no-browser", is_flag=True, help="Open no browser.")
@click.option("--no-demo", is_flag=True, help="Start no run.")
@click.pass_context
def up(ctx: click.Context, port: int | None, no_browser: bool, no_demo: bool) -> None:
    """Start the dashboard on this machine and the demo run, and print where to look. Ctrl-C ends both."""
    flags = [
        *(["--port", str(port)] if port else []),
        *["--no-browser"] * no_browser,
        *["--no-demo"] * no_demo,
    ]
    argv = [sys.executable, "-m", "dashboard", *flags]
    sys.stdout.flush()
    os.execv(sys.executable, argv)


@cli.command()
@click.option("--force", is_flag=True, help="Also while a run lives.")
@click.pass_context
def clean(ctx: click.Context, force: bool) -> None:
    """Remove what an emulation left behind."""
    ctx.exit(_emulation("machine.ledger").clean(force))


@cli.command()
@as_json
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Say what this machine can run, what it lacks, and what to type."""
    ctx.exit(_emulation("machine.doctor").main(as_json))


@cli.command("setup-emulation")
@click.pass_context
def setup_emulation(ctx: click.Context) -> None:
    """Install what the emulation needs."""
    ctx.exit(_emulation("machine.setup").main())


@cli.command(context_settings=PASS_ON)
@click.argument("command", nargs=-1, required=True, metavar="-- CMD")
@click.pass_context
def vm(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Run CMD inside the virtual machine."""
    ctx.exit(_emulation("vm.launch").main(list(command)))


@cli.command("exec", context_settings=PASS_ON)
@click.argument("run_id", metavar="RUN")
@click.argument("host")
@click.argument("command", nargs=-1, required=True, metavar="-- CMD")
@click.pass_context
def execute(ctx: click.Context, run_id: str, host: str, command: tuple[str, ...]) -> None:
    """Run CMD inside HOST of a running emulation; the HOST `machine` is what carries the network."""
    argv = list(command[1:] if command[:1] == ("--",) else command)
    ctx.exit(_emulation("execute").main(run_id, host, argv, RUNS))


def _emulation(module: str) -> Any:
    """A part of the emulation, loaded when it is needed."""
    try:
        return importlib.import_module(f"lab.engines.mininet.{module}")
    except ImportError as error:
        raise MachineLacks(
            f"load the emulation's '{module}': {error}. Try: ./run_lab.sh setup-emulation"
        ) from error


if __name__ == "__main__":
    cli(prog_name="lab")
