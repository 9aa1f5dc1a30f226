"""The option `--dilation`: slower clocks in the VM."""

from __future__ import annotations

import os

import click

from lab.vm_environment import DILATION, asked_dilation


def _set(_: click.Context, __: click.Parameter, text: str | None) -> None:
    """Set the environment variable, which every process that starts a VM reads."""
    if text is not None:
        asked_dilation(text)
        os.environ[DILATION] = text


dilation_option = click.option(
    "--dilation",
    metavar="FACTOR|auto",
    callback=_set,
    expose_value=False,
    help="Clocks of the VM so many times slower than real time; auto: as slow as the runs need.",
)
