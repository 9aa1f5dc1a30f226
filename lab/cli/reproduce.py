"""Implement the command `reproduce`: run a paper's experiments and write a page about them.

The page is docs/reproduction/PAPER.md.
"""

from __future__ import annotations

import click

from lab.cli.terminal import Terminal
from lab.evaluation.reproduction.runs import reproduce
from lab.run.outcome import EXIT_INTERRUPTED

QUICK = 3  # seeds


def main(name: str, repeat: int) -> int:
    """Run the experiments of the paper `name`, and write its page. Return the exit code.

    Each case is run `repeat` times. Runs that exist already are not repeated. An interruption
    leaves the page unchanged.
    """
    page = reproduce(name, repeat, Terminal())
    if page is None:
        return EXIT_INTERRUPTED
    click.echo(f"written: {page}")
    return 0
