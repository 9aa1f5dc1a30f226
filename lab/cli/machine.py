"""Define the commands about this machine: check, clean-up, installation and virtual machine."""

from __future__ import annotations

import importlib
from types import ModuleType

import click

from lab.batch import simulator_state
from lab.errors import MachineLacks
from lab.run.recorder import RUNS

PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}


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
    ctx.exit(_emulation("install.setup").main())


@click.command(context_settings=PASS_ON)
@click.argument("command", nargs=-1, required=True, metavar="-- CMD")
@click.pass_context
def vm(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Run CMD inside the virtual machine."""
    ctx.exit(_emulation("vm.launch").main(list(command)))


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
