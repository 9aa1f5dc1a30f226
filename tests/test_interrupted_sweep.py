"""A sweep of 2,000 runs that is interrupted six times, and loses three workers, gives the table of
an undisturbed one.

Python's memory, a full queue and a slow disk matter at this size only, so the runs are real.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SWEEP = """scenario: two_paths
duration_s: 1
strategies: [none, loss_aware/improved]
random:
  samples: 100
  seed: 5
  keys:
    topology.paths.2.delay_ms: {from: 5, to: 100}
    topology.paths.2.loss: {from: 0.0001, to: 0.02, scale: log}
repeat: 10
keep: results
"""
RUNS = 2000
ENDS = [signal.SIGINT, signal.SIGKILL] * 3  # Ctrl-C, kill -9


def command(folder: Path, out: str) -> subprocess.Popen[bytes]:
    argv = [
        sys.executable,
        "-P",
        "-m",
        "lab",
        "sweep",
        folder / "sweep.yaml",
        "--out",
        folder / out,
    ]
    with (folder / f"{out}.log").open("ab") as log:
        return subprocess.Popen(
            argv,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def workers(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for task in tasks for each in task.read_text().split()]


def lose_a_worker(pid: int, rng: random.Random) -> None:
    """Kill a process that makes runs; the command goes on with the others."""
    while not (found := workers(pid)):
        time.sleep(0.1)
    os.kill(rng.choice(found), signal.SIGKILL)


def results(folder: Path) -> dict[str, bytes]:
    """What result.json of each run holds, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("result.json")
    }


def table(folder: Path, out: str) -> bytes:
    csv = folder / f"{out}.csv"
    argv = [sys.executable, "-P", "-m", "lab", "compare", folder / out, "--csv", csv]
    subprocess.run(
        argv, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, capture_output=True
    )
    return csv.read_bytes()


@pytest.mark.long
def test_interruptions_and_lost_workers_change_nothing(tmp_path):
    rng = random.Random(7)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    began = time.monotonic()
    assert command(tmp_path, "undisturbed").wait() == 0
    took_s = time.monotonic() - began
    for n, how in enumerate(rng.sample(ENDS, len(ENDS))):
        running = command(tmp_path, "interrupted")
        if n % 2:
            lose_a_worker(running.pid, rng)
        time.sleep(rng.uniform(0.04, 0.11) * took_s)
        before = results(tmp_path / "interrupted")
        assert running.poll() is None, f"it ended before {how.name}"
        os.killpg(running.pid, how)
        running.wait()
        assert not set(before) - set(results(tmp_path / "interrupted"))
    assert len(results(tmp_path / "interrupted")) < RUNS
    assert command(tmp_path, "interrupted").wait() == 0
    undisturbed, interrupted = (results(tmp_path / each) for each in ("undisturbed", "interrupted"))
    assert len(undisturbed) == RUNS
    assert interrupted == undisturbed
    assert table(tmp_path, "interrupted") == table(tmp_path, "undisturbed")
