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
from lab.cli.terminal import Terminal
from lab.evaluation import crosscheck
from lab.evaluation.crosscheck_runs import RUNS, CrossCheck
from lab.evaluation.studies import FRAMES, TWO_PATHS
from lab.run.manifest import ROOT, commit
from lab.run.recorder import read_document, read_samples

AT_ONCE = 4
REMARKS = """Kernel MPTCP of the machine itself (no VM, no Open vSwitch, no POX) between two namespaces; rate, queue, delay and loss of the
paths are a small program's, `tests/emulation/kernel_paths.py`. At most 0.43 % of a run's packets were passed on more than 5 ms late.

`small_buffer` has more than one steady state, in the kernel and in the simulator. In one path2's window is 47 (the simulator's 50), round trips are 86 and
130 ms (80 to 87 and 126 to 131), and 5.9 Mb/s are carried (5.9 to 6.0). After one more loss it is half of that, and 5.2 Mb/s (5.1 to 5.3). On the way
there a burst into path1 is lost now and then, and everything waits for it for a second or two (0.6 to 2.4 Mb/s in the kernel). When it happens is chance:
the kernel's seeds carried 4.83 to 5.92 Mb/s and nine further ones 4.86 to 5.98, the simulator's 5.10 to 5.81.

`backup`: Linux takes nothing back. What path2 had been given (196,368 and 182,168 bytes not yet sent in its socket, two runs) goes over the lossy path, what
path1 brings waits for it (1.3 to 2.3 Mb/s in the kernel, 2.5 to 3.0 in the simulator), and then all is read at once (7.3 to 8.6; 9.4)."""
STUDY = replace(TWO_PATHS, scenario="two_paths_kernel", engines=("kernel", "sim"), remarks=REMARKS)


def make(seeds: int, folder: Path) -> None:
    """The runs that are missing, so many at once, with real-time priority."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(case.name, seed) for seed in range(1, seeds + 1) for case in STUDY.cases]
    missing = [
        (name, seed) for name, seed in wanted if not (folder / f"{name}-{seed}.json").exists()
    ]
    environment = {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }
    for start in range(0, len(missing), AT_ONCE):
        running = [
            subprocess.Popen(
                [
                    "chrt",
                    "-f",
                    "10",
                    sys.executable,
                    "-m",
                    "emulation.kernel_paths",
                    name,
                    str(seed),
                    f"{name}-{seed}.part",
                ],
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
        results["kernel", case.name] = [
            json.loads(file.read_text()) for file in files if file.exists()
        ]
        folders = [sim / case.name / f"{case.strategy}-{seed}" for seed in range(1, seeds + 1)]
        results["sim", case.name] = [
            read_document(each, "result.json") | {FRAMES: read_samples(each)} for each in folders
        ]
    return results


def main(seeds: int = 3, runs: Path = RUNS, page: Path = crosscheck.PAGE) -> None:
    kernel = runs / "kernel" / TWO_PATHS.scenario
    make(seeds, kernel)
    if not CrossCheck(seeds, runs, Terminal()).make([TWO_PATHS.scenario], "sim"):
        raise SystemExit("the simulator's runs were interrupted")
    command = f"PYTHONPATH=.:tests .venv/bin/python -m emulation.kernel_witness {seeds}"
    made_by = f"Made by `{command}` with version {lab.__version__} of the lab, commit {commit()}; Linux {platform.release()}."
    section = crosscheck.section(
        STUDY, found(seeds, kernel, runs / "sim" / TWO_PATHS.scenario), made_by
    )
    page.write_text(crosscheck.composed(page.read_text(), {STUDY.scenario: section}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
