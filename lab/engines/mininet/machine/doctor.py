"""`./run_lab.sh doctor`: what this machine can run, what is missing, what to type."""

from __future__ import annotations

import json as encoder
from dataclasses import asdict

from lab.engines.mininet.machine.capabilities import Fact, Probe, facts, verdicts
from lab.errors import MachineLacks


def main(json: bool = False, probe: Probe | None = None) -> int:
    """Print a table and the verdicts. 0 if an emulation can run here, natively or in the VM, 3 if neither."""
    table = facts(probe or Probe())
    ways = verdicts(table)
    if json:
        print(
            encoder.dumps(
                {
                    "facts": [asdict(fact) for fact in table],
                    "verdicts": [asdict(way) for way in ways],
                },
                indent=1,
            )
        )
    else:
        print("\n".join([*lines(table), "", *map(str, ways)]))
    return 0 if any(way.possible for way in ways[1:]) else MachineLacks.exit_code


def lines(table: list[Fact]) -> list[str]:
    """The table as text: what, state, why it matters, and for what is missing the line to type."""
    rows = [("what", "state", "why it matters", "what to type")]
    for fact in table:
        state = "yes" if fact.there else "no"
        why = f"{fact.why} ({fact.note})" if fact.note else fact.why
        rows.append((fact.what, state, why, "" if fact.there else fact.cure))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]
        ).rstrip()
        for row in rows
    ]
