"""Count how many boots of the virtual machine end in a kernel panic, over several sittings.

A sitting is one call of `boots_without_panic`, with ten boots.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from lab.engines.mininet.vm import launch
from lab.run.manifest import ROOT
from lab.run.recorder import RUNS

PER_SITTING = 10
SITTINGS = ROOT / "docs" / "vm_boots.jsonl"  # mean_s is null where it was not kept


def boots_without_panic() -> tuple[float, float]:
    """Boot the VM ten times, not from its snapshot, and add the result to the file `SITTINGS`.

    Return two numbers over all sittings: the boots without and the boots with a kernel panic.
    """
    RUNS.mkdir(parents=True, exist_ok=True)
    panics: list[str] = []
    began = time.monotonic()
    for _ in range(PER_SITTING):
        with tempfile.TemporaryDirectory(dir=RUNS.parent) as shared:
            panics += launch.boot_once(Path(shared))
    line = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "boots": PER_SITTING,
        "panics": panics,
        "mean_s": round((time.monotonic() - began) / PER_SITTING, 1),
    }
    with SITTINGS.open("a") as sittings:
        sittings.write(json.dumps(line) + "\n")
    lines = [json.loads(text) for text in SITTINGS.read_text().splitlines()]
    failed = sum(len(each["panics"]) for each in lines)
    return float(sum(each["boots"] for each in lines) - failed), float(failed)
