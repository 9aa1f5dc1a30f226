"""The program behind `./run_lab.sh worksheet print`, which writes a worksheet as a page to print.

`python -m dashboard.handout` would load that module twice, because the package `dashboard` imports
it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from dashboard import handout
from lab.errors import LabError, RequestError
from lab.worksheets import loading


def main(argv: Sequence[str]) -> None:
    """Write the page to a file or to standard output. Exit with an error code if that fails."""
    parser = argparse.ArgumentParser(prog="worksheet print")
    parser.add_argument("name")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(argv)
    try:
        text = handout.page(loading.load(given.name))
        if given.out is None:
            click.echo(text)
            return
        try:
            given.out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RequestError(f"write {given.out}: {error.strerror}") from error
        click.echo(f"{given.out}: open it in a browser and print it")
    except LabError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main(sys.argv[1:])
