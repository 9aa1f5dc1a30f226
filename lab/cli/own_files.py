"""The option `--with`, which adds the user's own strategies, topologies, congestion controls,
metrics and scenarios.

The files are registered before a command runs, or passed on to a server process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lab import extensions


def _register(_: click.Context, __: click.Parameter, paths: tuple[Path, ...]) -> None:
    extensions.add_from_environment()
    for path in paths:
        extensions.add(path)


WITH_HELP = (
    "Add strategies, topologies, congestion controls, metrics and scenarios from a folder or file."
)
with_option = click.option(
    "--with",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    callback=_register,
    expose_value=False,
    is_eager=True,
    help=WITH_HELP,
)
forwarded_with_option = click.option(  # for a command that is replaced by a server process
    "--with",
    "extension_folders",
    multiple=True,
    type=click.Path(exists=True),
    metavar="PATH",
    help=WITH_HELP,
)


def with_arguments(paths: Sequence[str]) -> list[str]:
    """Return `paths` as command-line arguments: `--with` before each of them."""
    return [word for path in paths for word in ("--with", path)]
