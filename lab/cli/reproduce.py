"""Carry out `reproduce`: run a paper's experiments, and write docs/reproduction/PAPER.md."""

from __future__ import annotations

import click

from lab.cli.terminal import Terminal
from lab.evaluation.reproduction.runs import reproduce
from lab.run.outcome import EXIT_INTERRUPTED

QUICK = 3  # seeds


def main(name: str, repeat: int) -> int:
    """Make the missing runs and write the page. Return the exit code.

    An interruption leaves the page unchanged.
    """
    page = reproduce(name, repeat, Terminal())
    if page is None:
        return EXIT_INTERRUPTED
    click.echo(f"written: {page}")
    return 0
