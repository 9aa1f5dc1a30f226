"""Implement the command `export-script`: a scenario's network as a plain Mininet-WiFi script."""

from __future__ import annotations

from pathlib import Path

import click

from lab import extensions
from lab.cli.own_files import with_option
from lab.scenario.loading import load
from lab.scenario.overrides import Overrides


@click.command("export-script")
@click.argument("scenario")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY.PATH=VALUE", help="Change a key first."
)
@click.option("--strategy", metavar="NAME|FILE", help="Replace the scenario's strategy first.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Default: standard output."
)
@with_option
def export_script(
    scenario: str, settings: tuple[str, ...], strategy: str | None, out: Path | None
) -> None:
    """Write SCENARIO as a script for stock Mininet-WiFi.

    The script builds the network, starts POX, configures Multipath TCP and starts the traffic.
    """
    from lab.engines.mininet.export.script import script

    strategy = strategy and extensions.strategy_name(strategy)
    text = script(load(scenario, Overrides(strategy, settings=settings)))
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
