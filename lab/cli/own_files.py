"""Define the option `--with`, which registers the user's own files before a command runs.

Such a file defines a strategy, a topology, a congestion control or a scenario.
"""

from __future__ import annotations

from pathlib import Path

import click

from lab import extensions


def _register(_: click.Context, __: click.Parameter, paths: tuple[Path, ...]) -> None:
    extensions.add_from_environment()
    for path in paths:
        extensions.add(path)


with_option = click.option(
    "--with",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    callback=_register,
    expose_value=False,
    is_eager=True,
    help="Add strategies, topologies, congestion controls and scenarios from a folder or file.",
)
