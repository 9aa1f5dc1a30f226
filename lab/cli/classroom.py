"""Define the commands `class` and `class wipe`."""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path

import click
from filelock import FileLock, Timeout

from lab.classroom import folder
from lab.cli.own_files import forwarded_with_option, with_arguments
from lab.errors import RequestError
from lab.isolation import python

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
    """Delete all that is known of a class, after asking: answers, grades, runs and the roster."""
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
