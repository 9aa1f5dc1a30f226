"""Natively as root, inside the VM: nothing is left behind, and the README's `sudo` line works.

native_clean.py kills runs, machine_state.py leaves something of each kind and must find it,
native_sudo.py types the commands of a student, all in one VM.

With more rounds: ROUNDS="runner building stopped row parts replay" REPEATS=10 ./run_lab.sh test
tests/emulation/test_native_clean.py
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from machine import needs_emulation

ROOT = Path(__file__).resolve().parents[2]
LONG_S = 1200
pytestmark = [*needs_emulation, pytest.mark.long]


def test_nothing_is_left_behind_and_sudo_works():
    rounds = os.environ.get("ROUNDS", "parts").split()
    repeats = os.environ.get("REPEATS", "1")
    cleaning = shlex.join(["python", "-m", "emulation.native_clean", *rounds])
    finding = "python -m emulation.machine_state"
    scripts = f"python -m emulation.native_sudo && {finding} && {cleaning}"
    variables = [f"REPEATS={repeats}", f"PYTHONPATH={ROOT}:{ROOT / 'tests'}"]
    argv = ["./run_lab.sh", "vm", "--", "env", *variables, "sh", "-c", scripts]
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
    assert "PASS sudo" in done.stdout
    assert done.stdout.count("PASS what is left is found") == 8
