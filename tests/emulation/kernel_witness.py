"""The simulator beside the kernel of this machine: `PYTHONPATH=.:tests python -m emulation.kernel_witness [SEEDS]`, as root

Every case of `two_paths` in `kernel_paths.py`, a few at once, and the simulator's runs of `crosscheck two_paths`; from both the
section of docs/crosscheck.md. What is there already is kept, what the machine was too slow for is left out.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lab
from lab import crosscheck
from lab.cli import crosscheck as crosschecking
from lab.manifest import ROOT, commit
from lab.recorder import read_document, read_samples
from lab.studies import FRAMES, TWO_PATHS

AT_ONCE = 4
REMARKS = """Kernel MPTCP of the machine itself (no VM, no Open vSwitch, no POX) between two namespaces; rate, queue, delay and loss of the
paths are a small program's, `tests/emulation/kernel_paths.py`. At most 0.34 % of a run's packets were passed on more than 5 ms late.

Why `loss` and path2 of `unequal_delay` differ: the lab's traffic program reads 20 times a second (`READ_PAUSE_S`). Between
two reads the window the receiver could announce does not grow, and then Linux puts off its acknowledgements: `ss -tinm` at
the sender counted 1,142 acknowledgements for 2,853 segments of `loss`' path2 and a round trip of 59 to 70 ms (42 ms without load;
44 ms in the simulator). Reno grows by round trips. With a program that reads at once (2,144 for 3,574, 49 ms), seeds 1, 2, 3
carried 6.19, 6.19 and 6.27 Mb/s in `loss` (the simulator: 6.37, 2 % more), and path2 2.44, 2.41, 2.53; `unequal_delay` 7.44
and its path2 3.69, as in the simulator. With the lab's program and `quickack` on the user's routes: 6.35, 6.41, 6.43. So
the emulation is slower here than Linux need be; the simulator reads at once.

Why `backup` differs from 11 to 16 s: 0.2 s after path2 had become a backup, 196,368 and 182,168 bytes were in its socket, not yet
sent (`notsent`, two runs). Linux takes nothing back (`MPTCPRetrans` 0): they went over the lossy path2, for about three seconds. What had come over path1 waited for them (1.3 to
2.3 Mb/s) and was then read at once (8 Mb/s, within these five seconds). From 14 s on both have 3.75 Mb/s. The simulator sends again over
path1 what path2 has not delivered.

`small_buffer` is at its goal's edge: the kernel's seeds lie from 4.65 to 5.27 Mb/s around the simulator's. The sender waited for
buffer 78 and 100 % of the time (`sndbuf_limited`). Completion times begin with the request in the kernel, whose subflows are there already,
and with the first SYN in the simulator."""
STUDY = replace(TWO_PATHS, scenario="two_paths_kernel", engines=("kernel", "sim"), remarks=REMARKS)


def make(seeds: int, folder: Path) -> None:
    """The runs that are missing, so many at once, with real-time priority."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(case.name, seed) for seed in range(1, seeds + 1) for case in STUDY.cases]
    missing = [(name, seed) for name, seed in wanted if not (folder / f"{name}-{seed}.json").exists()]
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    for start in range(0, len(missing), AT_ONCE):
        running = [
            subprocess.Popen(
                ["chrt", "-f", "10", sys.executable, "-m", "emulation.kernel_paths", name, str(seed), f"{name}-{seed}.part"],
                cwd=folder,
                env=environment,
            )
            for name, seed in missing[start : start + AT_ONCE]
        ]
        for (name, seed), process in zip(missing[start : start + AT_ONCE], running, strict=True):
            if process.wait() != 0:
                raise SystemExit(f"{name}, seed {seed}: status {process.returncode}")
            (folder / f"{name}-{seed}.part").rename(folder / f"{name}-{seed}.json")


def found(seeds: int, kernel: Path, sim: Path) -> dict[tuple[str, str], Sequence[dict[str, Any]]]:
    """What there is of both."""
    results: dict[tuple[str, str], Sequence[dict[str, Any]]] = {}
    for case in STUDY.cases:
        files = [kernel / f"{case.name}-{seed}.json" for seed in range(1, seeds + 1)]
        results["kernel", case.name] = [json.loads(file.read_text()) for file in files if file.exists()]
        folders = [sim / case.name / f"{case.strategy}-{seed}" for seed in range(1, seeds + 1)]
        results["sim", case.name] = [read_document(each, "result.json") | {FRAMES: read_samples(each)} for each in folders]
    return results


def main(seeds: int = 3, runs: Path = crosschecking.RUNS, page: Path = crosschecking.PAGE) -> None:
    kernel = runs / "kernel" / TWO_PATHS.scenario
    make(seeds, kernel)
    if crosschecking.main([TWO_PATHS.scenario], seeds, "sim", runs) != 0:
        raise SystemExit("the simulator's runs were interrupted")
    command = f"PYTHONPATH=.:tests .venv/bin/python -m emulation.kernel_witness {seeds}"
    made_by = f"Made by `{command}` with version {lab.__version__} of the lab, commit {commit()}; Linux {platform.release()}."
    section = crosscheck.section(STUDY, found(seeds, kernel, runs / "sim" / TWO_PATHS.scenario), made_by)
    page.write_text(crosscheck.composed(crosschecking.INTRODUCTION, page.read_text(), {STUDY.scenario: section}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
