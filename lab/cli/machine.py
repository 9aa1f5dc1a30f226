"""The commands about this machine: check, clean-up, installation, packages, virtual machine, links
to the dashboard, and scripts for stock Mininet-WiFi."""

from __future__ import annotations

import importlib
import json
import subprocess
from pathlib import Path
from types import ModuleType

import click

from lab import dashboard_links, extensions, installed
from lab.batch import simulator_state
from lab.cli.own_files import with_option
from lab.errors import LabError, MachineLacks
from lab.isolation import python
from lab.results import packages
from lab.run.recorder import RUNS
from lab.scenario.loading import Overrides, load

UNANSWERED = "could not be audited"  # pip-audit says so if the index gives no answer


@click.command()
@click.option(
    "--sbom",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write a bill of materials (CycloneDX JSON) into FILE.",
)
@click.option("--offline", is_flag=True, help="Do not ask for known weaknesses.")
def audit(sbom: Path | None, offline: bool) -> None:
    """Check the packages that the lab has installed.

    Compare their versions with the lock files, then ask the package index for known weaknesses.
    """
    locks = sorted(packages.LOCKS.glob("*.txt"))
    for lock in locks:
        _compare(lock)
    if sbom:
        document = packages.bill_of_materials(packages.locked(packages.LOCKS / "run.txt"))
        sbom.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        click.echo(f"{sbom}: {len(document['components'])} packages")
    if not offline:
        for lock in locks:
            _ask(lock)


OF_VENV = ("pip", "setuptools", "wheel")  # `python3 -m venv` installs its own versions


def _compare(lock: Path) -> None:
    """Raise `LabError` if an installed package does not have the version in the lock file.

    Also raise it if the lock file has no hash for a package.
    """
    found = packages.locked(lock)
    present = [each for each in found if each.installed is not None]
    if any(each.installed is None and not each.marker for each in found):  # it is not set up
        present = [each for each in present if each.name not in OF_VENV]
    wrong = [
        f"{each.name} {each.installed} is installed, {each.version} is locked"
        for each in present
        if each.installed != each.version
    ]
    wrong += [f"{each.name} has no hash" for each in found if not each.hashes]
    if wrong:
        raise LabError(f"compare with {lock.name}: {'; '.join(wrong)}. Try: rm -r .venv")
    click.echo(f"{lock.name}: {len(found)} packages, all with hashes; no other version installed")


def _ask(lock: Path) -> None:
    argv = python("-m", "pip_audit", "--requirement", str(lock), "--require-hashes")
    done = subprocess.run(
        [*argv, "--disable-pip", "--progress-spinner", "off"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named" in done.stderr:
        raise MachineLacks("ask for known weaknesses: pip-audit is missing. Try: ./run_lab.sh lint")
    if UNANSWERED in done.stdout + done.stderr:
        raise MachineLacks(
            f"ask for known weaknesses of {lock.name}: the package index that this machine reaches "
            "does not report them. Try elsewhere, or with --offline"
        )
    click.echo(f"{lock.name}: {(done.stdout + done.stderr).strip()}")
    if done.returncode:
        raise LabError(f"ask for known weaknesses of {lock.name}: see above, or use --offline")


@click.command("export-script")
@click.argument("scenario")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY.PATH=VALUE", help="Change a key first."
)
@click.option("--strategy", metavar="NAME|FILE", help="Replace the scenario's strategy first.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Default: standard output."
)
@with_option
def export_script(
    scenario: str, settings: tuple[str, ...], strategy: str | None, out: Path | None
) -> None:
    """Write SCENARIO as a script for stock Mininet-WiFi.

    The script builds the network, starts POX, configures Multipath TCP and starts the traffic.
    """
    from lab.engines.mininet.export.script import script

    strategy = strategy and extensions.strategy_name(strategy)
    text = script(load(scenario, Overrides(strategy, settings=settings), may_run_code=True))
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command()
def link() -> None:
    """Print a new link to the running dashboard.

    It works in every browser of this machine until the dashboard stops.
    """
    for each in dashboard_links.running(RUNS.parent):
        click.echo(each)


@click.command()
@click.option("--force", is_flag=True, help="Clean up even while an emulation is running.")
@click.pass_context
def clean(ctx: click.Context, force: bool) -> None:
    """Remove what an emulation left behind.

    These are network interfaces, namespaces, switches and processes.
    """
    ctx.exit(_emulation("machine.clean").main(force))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Report what this machine can run.

    Also report what this machine lacks, and the commands that help.
    """
    state = simulator_state.of().text
    ctx.exit(_emulation("install.doctor").main(as_json, simulator=state))


@click.command("setup-emulation")
@click.pass_context
def setup_emulation(ctx: click.Context) -> None:
    """Install what the emulation needs."""
    if installed.built_from() is not None:
        raise MachineLacks(
            "set up the emulation: pip installed the simulator, the pages and classes only. Use a "
            "clone of the lab, which has the rest"
        )
    ctx.exit(_emulation("install.setup").main())


@click.command(context_settings=PASS_ON)
@click.argument("command", nargs=-1, required=True, metavar="-- CMD")
@click.pass_context
def vm(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Run CMD inside the virtual machine."""
    ctx.exit(_emulation("in_vm").main(list(command)))


@click.command("exec", context_settings=PASS_ON)
@click.argument("run_id", metavar="RUN")
@click.argument("host")
@click.argument("command", nargs=-1, required=True, metavar="-- CMD")
@click.pass_context
def execute(ctx: click.Context, run_id: str, host: str, command: tuple[str, ...]) -> None:
    """Run CMD on HOST of a running emulation.

    If HOST is `machine`, run CMD on the machine that runs the emulation and its switches.
    """
    argv = list(command[1:] if command[:1] == ("--",) else command)
    ctx.exit(_emulation("commands.exec_caller").main(run_id, host, argv, RUNS))


@click.command()
@click.argument("run_id", metavar="RUN")
@click.pass_context
def cli(ctx: click.Context, run_id: str) -> None:
    """Open Mininet-WiFi's prompt on a running emulation.

    Without a terminal, read its commands from the standard input. See docs/cli.md.
    """
    ctx.exit(_emulation("commands.exec_caller").prompt(run_id, RUNS))


def _emulation(module: str) -> ModuleType:
    """Import the module `lab.engines.mininet.MODULE`.

    If that fails, raise `MachineLacks` with the command that installs the emulation.
    """
    try:
        return importlib.import_module(f"lab.engines.mininet.{module}")
    except ImportError as error:
        raise MachineLacks(
            f"load the emulation's '{module}': {error}. Try: ./run_lab.sh setup-emulation"
        ) from error
