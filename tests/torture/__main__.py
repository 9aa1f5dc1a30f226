"""Try to break the lab: `./run_lab.sh torture [--minutes N] [--only NAME] [--seed N]`. To try the
tests instead: `./run_lab.sh torture mutate --help`.

The campaigns share the minutes. Each trial is made from the seed and its number, so that it can be
repeated alone. Nothing listens or connects outside of this machine. Exit code 1: something failed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from torture import (
    batches,
    campaign,
    classes,
    emulation,
    files,
    folders,
    honesty,
    http,
    kills,
    large,
    machine,
    mutate,
    parsers,
    roles,
    traps,
    virtual_machines,
)

CAMPAIGNS = {
    each.name: each
    for module in (
        *(parsers, files, http, folders, honesty, kills, batches, classes, roles, traps, machine),
        *(large, emulation, virtual_machines),
    )
    for each in module.ALL
}
DEFAULT_MINUTES = 5.0
HEAVY = {
    "programs": 0.4,
    "batches": 0.4,
    "clock": 0.4,
    "connections": 0.6,
}  # shares of time; the others have 1


def main() -> int:
    if sys.argv[1:2] == ["mutate"]:
        return mutate.main(sys.argv[2:])
    given = arguments()
    names = given.only or [name for name, each in CAMPAIGNS.items() if each.in_turn]
    shares = {name: HEAVY.get(name, 1.0) for name in names}
    minutes = given.minutes or (math.inf if given.runs else DEFAULT_MINUTES)
    outcomes = []
    for name in names:
        own_minutes = minutes * shares[name] / sum(shares.values())
        with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as folder:
            made = CAMPAIGNS[name](Path(folder))
            numbers: Iterable[int] = itertools.count() if given.trial is None else (given.trial,)
            if isinstance(made, emulation.Emulation) and given.trial is None:
                made.record = given.record
                first = made.recorded(given.seed)
                numbers = range(first, first + given.runs) if given.runs else itertools.count(first)
            print(f"{name}: {made.what}", file=sys.stderr, flush=True)
            outcomes.append(campaign.run(made, given.seed, own_minutes, numbers))
            print(campaign.table(outcomes[-1:], given.seed), file=sys.stderr, flush=True)
    print(f"commit {commit()}, seed {given.seed}, {time.strftime('%Y-%m-%d')}")
    print(campaign.table(outcomes, given.seed))
    return 1 if any(each.failures for each in outcomes) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run_lab.sh torture", description=__doc__)
    parser.add_argument("--minutes", type=float, help="for all campaigns together (5)")
    parser.add_argument("--only", action="append", choices=sorted(CAMPAIGNS), metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trial", type=int, help="repeat this trial only")
    parser.add_argument("--runs", type=int, help="of the campaign emulation, at most")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="of the campaign emulation, a line per run"
    )
    return parser.parse_args()


def commit() -> str:
    argv = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
