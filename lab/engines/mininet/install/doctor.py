"""Show what this machine can run: `./run_lab.sh doctor`."""

from __future__ import annotations

import json as encoder
from dataclasses import asdict

from lab.engines.mininet.install.capabilities import Fact, facts, verdicts
from lab.engines.mininet.install.probe import Probe
from lab.errors import MachineLacks


def main(json: bool = False, probe: Probe | None = None, simulator: str = "") -> int:
    """Print a table of what this machine has and lacks, and whether each mode can run.

    With `json`, print both as JSON. `simulator` names the state of the simulator. `probe` examines
    the machine; the default examines this one.
    Returns 0 if the emulation can run here, natively or in the VM, otherwise 3.
    """
    table = facts(probe)
    modes = verdicts(table)
    state = [f"simulator: {simulator}"] if simulator else []
    if json:
        document = {
            "facts": [asdict(fact) for fact in table],
            "verdicts": [asdict(mode) for mode in modes],
            "simulator": simulator,
        }
        print(encoder.dumps(document, indent=1))
    else:
        print("\n".join([*lines(table), "", *map(str, modes), *state]))
    return 0 if any(mode.possible for mode in modes[1:]) else MachineLacks.exit_code


def lines(table: list[Fact]) -> list[str]:
    """Format a list of facts as lines of text with aligned columns, the column titles first.

    The last column says what to type if the thing is missing.
    """
    rows = [("what", "state", "why it matters", "what to type")]
    for fact in table:
        state = "yes" if fact.present else "no"
        reason = f"{fact.reason} ({fact.note})" if fact.note else fact.reason
        rows.append((fact.name, state, reason, "" if fact.present else fact.fix))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows]
