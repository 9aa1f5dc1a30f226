"""Nothing is left behind: native_clean.py inside the VM, as on a native machine.

With more rounds: ROUNDS="runner parts building stopped row" REPEATS=10 ./run_lab.sh test
tests/emulation/test_native_clean.py
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from machine import needs_emulation

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("native_clean.py")
LONG_S = 1200
pytestmark = needs_emulation


def test_nothing_is_left_behind():
    rounds = os.environ.get("ROUNDS", "parts").split()
    repeats = os.environ.get("REPEATS", "2")
    argv = ["./run_lab.sh", "vm", "--", "env", f"REPEATS={repeats}", "python", str(SCRIPT), *rounds]
    done = subprocess.run(
        argv,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG_S + 60 * int(repeats),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS all" in done.stdout
