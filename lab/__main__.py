"""The entry points: of `python -m lab`, and of the command `mptcp-lab` of an installed lab."""

import sys

from .isolation import isolate  # pip installs this file in the package mptcp_sdn_lab.lab

OF_THE_PAGE = ("--port", "--no-browser", "--no-demo", "--with")


def installed() -> None:
    """Start `mptcp-lab`. Without a command it starts the dashboard, like `run_lab.sh`."""
    words = sys.argv[1:]
    if not words or words[0].partition("=")[0] in OF_THE_PAGE:
        words = ["up", *words]
    _start("mptcp-lab", words)


def _start(name: str, words: list[str]) -> None:
    isolate()
    from lab.cli.commands import cli

    cli(words, prog_name=name)


if __name__ == "__main__":
    _start("./run_lab.sh", sys.argv[1:])  # what the user types
