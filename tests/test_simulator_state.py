"""The simulator's state, compiled or interpreted, in words; and the installation of the compiler in
the background."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.batch import simulator_state
from lab.engines.sim import code_cache

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def state(monkeypatch, tmp_path):
    """The state for a version of numba and these files in the folder of compiled code."""

    def make(version, *files, pid="", off=False):
        folder = tmp_path / "code"
        folder.mkdir(mode=0o700)
        for name in files:
            (folder / name).touch()
        monkeypatch.setattr(code_cache, "version", lambda: version)
        monkeypatch.setattr(code_cache, "folder", lambda: folder)
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1" if off else "0")
        file = tmp_path / "fast.pid"
        file.write_text(pid)
        return simulator_state.of(file)

    return make


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        (("0.68", code_cache.COMPLETE), "compiled", "compiled"),
        (("0.68",), "compiling", "not compiled yet"),
        (("0.68", code_cache.FAILED), "failed", "it failed"),
        ((None,), "interpreted", "interpreted, about 12 x slower: type ./run_lab.sh fast"),
    ],
)
def test_the_state_is_named(state, given, kind, text):
    found = state(*given)
    assert found.kind == kind
    assert text in found.text


def test_an_installation_in_the_background_is_named_while_it_lasts(state):
    assert state(None, pid=str(os.getpid())).kind == "installing"


def test_a_compiler_that_is_switched_off_is_named(state):
    found = state("0.68", code_cache.COMPLETE, off=True)
    assert (found.kind, "NUMBA_DISABLE_JIT" in found.text) == ("interpreted", True)


def test_the_page_starts_before_the_compiler_is_installed(tmp_path):
    """The script runs in a copy of the project, where `python` only records its arguments."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "locks").mkdir()
    (tmp_path / "run_lab.sh").write_text((ROOT / "run_lab.sh").read_text())
    for name in ("run.txt", "fast.txt"):
        (tmp_path / "locks" / name).touch()
    sums = subprocess.run(
        "cat locks/run.txt | cksum", shell=True, cwd=tmp_path, capture_output=True
    )
    (tmp_path / ".venv" / "locked.stamp").write_bytes(sums.stdout)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in *importlib*) exit 1;; *fast.txt*) sleep 1; echo installed >>calls;;\n'
        '*compiler*) echo compiled >>calls;; *"-m lab up"*) echo page >>calls;; esac\n'
    )
    python.chmod(0o755)
    subprocess.run(["sh", "run_lab.sh", "--no-demo"], cwd=tmp_path, check=True, timeout=20)
    calls = tmp_path / "calls"
    assert calls.read_text().splitlines() == ["page"]
    for _ in range(100):
        if len(calls.read_text().splitlines()) == 3:
            break
        subprocess.run(["sleep", "0.1"], check=True)
    assert calls.read_text().splitlines() == ["page", "installed", "compiled"]
    (tmp_path / "calls").unlink()
    off = os.environ | {"MULTIPATH_LAB_FAST": "no"}
    subprocess.run(["sh", "run_lab.sh", "up"], cwd=tmp_path, env=off, check=True, timeout=20)
    assert calls.read_text().splitlines() == ["page"]
