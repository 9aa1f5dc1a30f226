"""The command `bench`, which measures the speed of the lab on this machine.

Each figure is printed when it is measured; at the end, all are printed as one JSON object.
"""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.option("--only", metavar="NAME", help="Measure this figure, or this network, only.")
@click.option("--against", metavar="DIR", help="Compare with htsim, of which DIR is a clone.")
def bench(only: str | None, against: str | None) -> None:
    """Measure the lab's speed on this machine.

    Print the figures as JSON. Run nothing else at the same time. Figures of the emulation are left
    out if it cannot run here. With --against, simulate the same networks in htsim and in the lab in
    turn, and print how many times as fast the lab is.
    """
    if against is not None:
        _compare(Path(against), only)
        return
    from bench import figures
    from lab.engines.mininet.install import doctor

    table = doctor.verdicts(doctor.facts())
    emulation = any(each.possible for each in table if each.mode == doctor.VM_MODE)
    if not emulation and only is None:
        click.echo(
            "the emulation cannot run here: its figures are left out. Try: ./run_lab.sh doctor",
            err=True,
        )
    found = {}
    for name, value in figures.measure(only, emulation):
        click.echo(f"{name}: {value:.4g}", err=True)
        found[name] = float(f"{value:.4g}")
    click.echo(json.dumps(found, indent=1))


def _compare(clone: Path, only: str | None) -> None:
    from bench.against import measure

    found = []
    for case, comparisons in measure.measure(clone, only):
        click.echo(f"{case.name}: done", err=True)
        found.append((case, comparisons))
    click.echo(measure.table(found), err=True)
    rows = {
        case.name: {"goal": case.goal, **{each.acks: each.to_json() for each in comparisons}}
        for case, comparisons in found
    }
    click.echo(json.dumps(rows, indent=1))
