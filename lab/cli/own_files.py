"""The option `--with`, which adds the user's own strategies, topologies, congestion controls,
metrics and scenarios.

The files are registered before a command runs, or passed on to a server process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from lab import extensions

F = TypeVar("F", bound=Callable[..., Any])


def _trust(_: click.Context, __: click.Parameter, digests: tuple[str, ...]) -> None:
    extensions.trust(digests)


def _register(_: click.Context, __: click.Parameter, paths: tuple[Path, ...]) -> None:
    extensions.add_from_environment()
    for path in paths:
        extensions.add(path)


WITH_HELP = (
    "Add strategies, topologies, congestion controls, metrics and scenarios from a folder or file."
)
_trust_option = click.option(
    extensions.TRUST,
    multiple=True,
    metavar="SHA256",
    callback=_trust,
    expose_value=False,
    is_eager=True,  # before --with
    help="Run a code file with this digest, even if a worksheet or run folder names it.",
)
_with_option = click.option(
    "--with",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    callback=_register,
    expose_value=False,
    help=WITH_HELP,
)


def with_option(command: F) -> F:
    """Add the options `--with` and `--trust-extensions` to a command."""
    return _trust_option(_with_option(command))


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
