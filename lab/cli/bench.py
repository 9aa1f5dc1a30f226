"""Implement the command `bench`, which measures the speed of the lab on this machine.

Each figure is one measurement. It is printed when it is measured; at the end, all are printed as
one JSON object.
"""

from __future__ import annotations

import json

import click

from lab.engines.mininet.install import doctor
from lab.evaluation import bench


def main(only: str | None) -> int:
    """Measure and print all figures, or only the figure named `only`. Return the exit code.

    If the emulation cannot run here, print a message and leave out its figures.
    """
    table = doctor.verdicts(doctor.facts())
    emulation = any(each.possible for each in table if each.mode == doctor.VM_MODE)
    if not emulation and only is None:
        click.echo(
            "the emulation cannot run here: its figures are left out. Try: ./run_lab.sh doctor",
            err=True,
        )
    found = {}
    for name, value in bench.measure(only, emulation):
        click.echo(f"{name}: {value:.4g}", err=True)
        found[name] = float(f"{value:.4g}")
    click.echo(json.dumps(found, indent=1))
    return 0
