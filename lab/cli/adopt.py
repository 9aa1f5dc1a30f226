"""The command `adopt`: the controller on a network that somebody else's Mininet script builds."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import click

from controller.errors import ControllerError
from lab import extensions
from lab.cli.dilation import dilation_option
from lab.cli.own_files import with_option
from lab.errors import RequestError
from lab.isolation import python
from lab.run.recorder import RUNS


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, metavar="[ARGUMENT]...")
@click.option("--strategy", default="none", show_default=True, metavar="NAME|FILE")
@click.option("--params", default="{}", metavar="JSON", help='Its parameters: {"gamma_wifi": 0.02}')
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="HOST",
    help="A host that accepts connections. Default: those with one address.",
)
@click.option(
    "--data",
    type=click.Choice(["down", "up"]),
    default="down",
    show_default=True,
    help="Where the data of hosts with several addresses goes: to them, or from them.",
)
@click.option("--vm", is_flag=True, help="Run the script inside a virtual machine; needs no root.")
@click.option(
    "--wait", is_flag=True, help="Wait while another emulation is running on this machine."
)
@click.option(
    "--input",
    "typed",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Type the lines of FILE at the script's prompt.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for what POX writes."
)
@dilation_option
@with_option
@click.pass_context
def adopt(
    ctx: click.Context,
    script: Path,
    arguments: tuple[str, ...],
    strategy: str,
    params: str,
    servers: tuple[str, ...],
    data: Literal["down", "up"],
    vm: bool,
    wait: bool,
    typed: Path | None,
    out: Path | None,
) -> None:
    """Run SCRIPT, a Mininet or Mininet-WiFi program, with POX as its controller.

    Options come before SCRIPT; what follows SCRIPT is passed on to it. See docs/own_networks.md.
    """
    from lab.engines.mininet.adopt import script as running
    from lab.engines.mininet.adopt import takeover
    from lab.engines.mininet.adopt.description import Options

    running.check(script)
    name = extensions.strategy_name(strategy)
    try:
        chosen = takeover.checked_strategy(name, _object(params))
    except ControllerError as error:
        raise RequestError(f"adopt: {error}") from error
    folder = out or RUNS.parent / "adopted" / time.strftime(f"%Y%m%d-%H%M%S-{script.stem}")
    if typed is not None and len(str(typed.absolute()).split()) != 1:
        raise RequestError("adopt: Mininet's prompt reads no --input file with a blank in its path")
    if (folder / "pox").exists():
        raise RequestError(f"adopt: {folder} has what an earlier POX wrote. Choose another --out")
    if vm:
        words = ["--strategy", strategy, "--params", params, "--data", data]
        words += [word for each in servers for word in ("--server", each)]
        ctx.exit(_in_vm(script, arguments, words, typed, folder, wait))
    running.run(script, arguments, chosen, Options(servers, data), folder, typed, wait)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise RequestError(f'adopt: --params={text}: {error}. Write {{"cth": 0.85}}') from error
    if not isinstance(found, dict):
        raise RequestError(f'adopt: --params={text} is no JSON object. Write {{"cth": 0.85}}')
    return found


def _in_vm(
    script: Path,
    arguments: tuple[str, ...],
    words: list[str],
    typed: Path | None,
    folder: Path,
    wait: bool,
) -> int:
    """Run the same command inside the VM, which sees the script, and keep its folder."""
    from lab.engines.mininet import in_vm

    if extensions.registered():
        raise RequestError("adopt --vm: strategies of your own run natively only. Use sudo")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lab-adopt-") as copies:
        files = []
        for number, file in enumerate(filter(None, (script, typed))):
            copy = Path(copies, str(number))
            copy.write_bytes(file.read_bytes())
            files.append((file.absolute(), copy))
        if typed is not None:
            words += ["--input", str(typed.absolute())]
        argv = python("-m", "lab", "adopt", *words, "--out", str(folder.absolute()))
        argv += [str(script.absolute()), *arguments]
        command = in_vm.GuestCommand(argv, folder, show=True, files=tuple(files))
        return in_vm.run_in_vm(command, wait=wait)
