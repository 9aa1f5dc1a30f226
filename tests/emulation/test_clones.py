"""The emulation runs from a clone anywhere: in the temporary folder, with a blank in its name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from machine import needs_emulation

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "data", "tests", "__pycache__", ".*_cache")
pytestmark = needs_emulation


def linked(source: str, target: str) -> None:
    """Hard-link a file; copy it where that is not possible."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target)


@pytest.mark.long
@pytest.mark.parametrize("start", ["restore", "boot"])
def test_a_clone_in_the_temporary_folder_whose_environment_is_a_link(tmp_path, start):
    clone, environment = tmp_path / "a clone", tmp_path / "environment of another clone"
    shutil.copytree(ROOT, clone, ignore=LEFT_OUT)
    shutil.copytree(Path(sys.prefix).resolve(), environment, symlinks=True, copy_function=linked)
    (clone / ".venv").symlink_to(environment)
    words = ["run", "two_paths", "--engine", "mininet", "--vm", "--duration", "3"]
    done = subprocess.run(
        ["./run_lab.sh", *words, "--json", "--quiet"],
        cwd=clone,
        env=os.environ | {"MULTIPATH_LAB_VM_START": start, "MULTIPATH_LAB_FAST": "no"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["mptcp"]["verified"]
    assert result["mptcp"]["joins"] >= 1
