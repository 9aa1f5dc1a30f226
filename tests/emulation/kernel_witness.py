"""Compare the simulator with the kernel of this machine, as root:

    PYTHONPATH=.:tests python -m emulation.kernel_witness [SEEDS]

Every case of `two_paths` runs in `kernel_paths.py`, a few at once, and in the simulator by
`crosscheck two_paths`. Together they make a section of docs/notebook/crosscheck.md. Finished runs
are kept; runs for which the machine was too slow are left out.
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
from lab.run.manifest import ROOT, commit
from papers import crosscheck
from papers.crosscheck import RUNS, CrossCheck, read
from papers.paired_runs import PairedRuns
from papers.studies import TWO_PATHS, Measured

AT_ONCE = 4
REMARKS = """\
Kernel MPTCP of the machine itself (no VM, no Open vSwitch, no POX) between two namespaces. A small
program, `tests/emulation/kernel_paths.py`, gives the paths their rate, queue, delay and loss. In no
run were more than 0.43 % of the packets forwarded more than 5 ms late.

`small_buffer` has more than one steady state, in the kernel and in the simulator. In one of them,
path2 has a window of 47 (50 in the simulator), the RTTs are 86 and 130 ms (80 to 87 and 126 to 131)
and the connection carries 5.9 Mb/s (5.9 to 6.0). After one more loss the window is half as large,
and the connection carries 5.2 Mb/s (5.1 to 5.3). In between, a burst into path1 is sometimes lost,
and all data waits for it for 1 to 2 s (0.6 to 2.4 Mb/s in the kernel). The time of this loss is
random: the kernel's seeds carried 4.83 to 5.92 Mb/s and nine further seeds 4.86 to 5.98, those of
the simulator 5.10 to 5.81.

`backup`: Linux does not reinject data from a subflow that becomes a backup. The data that path2 had
been given (196,368 and 182,168 bytes not yet sent in its socket, in two runs) travels over the
lossy path. Data of path1 waits for it (1.3 to 2.3 Mb/s in the kernel, 2.5 to 3.0 in the simulator),
and then the application reads all of it at once (7.3 to 8.6; 9.4)."""
STUDY = replace(TWO_PATHS, scenario="two_paths_kernel", engines=("kernel", "sim"), remarks=REMARKS)


def make(seeds: int, folder: Path) -> None:
    """Make the missing runs, AT_ONCE at a time, with real-time priority."""
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


def found(seeds: int, kernel: Path, sim: Path) -> dict[tuple[str, str], Sequence[Measured]]:
    results: dict[tuple[str, str], Sequence[Measured]] = {}
    for case in STUDY.cases:
        files = [kernel / f"{case.name}-{seed}.json" for seed in range(1, seeds + 1)]
        results["kernel", case.name] = [
            _measured(json.loads(file.read_text())) for file in files if file.exists()
        ]
        folders = [sim / case.name / f"{case.strategy}-{seed}" for seed in range(1, seeds + 1)]
        results["sim", case.name] = [read(each) for each in folders]
    return results


def _measured(document: dict[str, Any]) -> Measured:
    """Split the output of `kernel_paths.py` into result and samples."""
    return Measured(document, document["frames"])


def main(seeds: int = 3, runs: Path = RUNS, page: Path = crosscheck.PAGE) -> None:
    kernel = runs / "kernel" / TWO_PATHS.scenario
    make(seeds, kernel)
    if not CrossCheck(PairedRuns(seeds, runs, Terminal())).make([TWO_PATHS.scenario], "sim"):
        raise SystemExit("the simulator's runs were interrupted")
    command = f"PYTHONPATH=.:tests .venv/bin/python -m emulation.kernel_witness {seeds}"
    made_by = (
        f"Made by `{command}` with version {lab.__version__} of the lab, commit {commit()}; "
        f"Linux {platform.release()}."
    )
    section = crosscheck.section(
        STUDY, found(seeds, kernel, runs / "sim" / TWO_PATHS.scenario), made_by
    )
    page.write_text(crosscheck.composed(page.read_text(), {STUDY.scenario: section}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
