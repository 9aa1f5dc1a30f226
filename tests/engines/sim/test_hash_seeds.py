"""Decisions and their reasons do not depend on the order of Python's sets (PYTHONHASHSEED)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from controller.strategies import BUILT_IN

TESTS = Path(__file__).resolve().parents[2]
PROGRAM = "engines.sim.decisions_of_all"


def test_events_are_the_same_with_other_hash_seeds():
    running = [
        subprocess.Popen(
            [sys.executable, "-m", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (each.communicate()[0].splitlines() for each in running)
    assert [each.returncode for each in running] == [0, 0]
    for one, other in zip(first, second, strict=True):
        assert one == other
    assert all(f'"campus", "{name}"' in "\n".join(first) for name in BUILT_IN)
