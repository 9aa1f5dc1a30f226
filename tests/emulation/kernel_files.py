"""Compare how long files take with the kernel of this machine, as root:

    PYTHONPATH=.:tests python -m emulation.kernel_files

Each case of the study `completion` runs in real time over paths that `kernel_paths` emulates: no
VM, no Open vSwitch, no POX. The user opens each connection when its file begins, with the programs
of the emulation; the time counts from then on. The simulator makes the same runs, and the medians
become a section of docs/notebook/crosscheck.md.

    PYTHONPATH=.:tests python -m emulation.kernel_files CASE FILE

runs one case and writes its result. CASE may also be a scenario file with `parallel_paths` and
files alone (`page_and_bulk.yaml`); those that do not end have no time.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from emulation.kernel_paths import MOST_LATE, SERVER, Hosted

import lab
from lab.cli.terminal import Terminal
from lab.run.manifest import ROOT, commit
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides
from lab.scenario.schema import Scenario
from papers import crosscheck
from papers.crosscheck import RUNS, CrossCheck, read
from papers.paired_runs import PairedRuns
from papers.studies import COMPLETION, Measured

COMMAND = ("chrt", "-f", "10", sys.executable, "-m", "emulation.kernel_files")
AT_ONCE = 2  # more would wait for the processors
LEAD_S, LAST_S = 0.5, 20.0  # before the first file, and for the last one
STUDY = replace(COMPLETION, engines=("kernel", "sim"))


def load(case_name: str) -> Scenario:
    if case_name.endswith(".yaml"):
        return scenario.load(case_name, Overrides("none", None, 1, None, ("rate_scale=1",)))
    case = next(each for each in STUDY.cases if each.name == case_name)
    overrides = Overrides(case.strategy, None, 1, case.duration_s, case.settings)
    return scenario.load(STUDY.scenario, overrides)


def measure(loaded: Scenario) -> dict[str, Any]:
    """Return the keys of result.json that the study reads."""
    net = Hosted(loaded)
    mptcp = loaded.multipath.server_enabled
    request = {
        **{"server": SERVER, "bind": "10.1.0.1", "mptcp": mptcp, "cc": loaded.multipath.cc},
        **{"rate_bps": None, "receive_buffer_bytes": loaded.multipath.receive_buffer_kb * 1000},
    }
    flows = [
        {
            **request,
            **{"id": f"f{n}", "direction": each.direction, "at_s": each.start_s},
            "volume_bytes": round((each.volume_mb or 0) * 1e6),
        }
        for n, each in enumerate(loaded.traffic, 1)
    ]
    net.programs.send("user", do="plan", flows=flows)
    net.programs.send("user", do="begin", zero_s=time.monotonic() + LEAD_S)
    time.sleep(LEAD_S + loaded.duration_s)
    end_s = time.monotonic() + LAST_S
    while time.monotonic() < end_s and None in (found := _completions(net, flows)):
        time.sleep(0.5)
    late = net.paths.late / max(1, net.paths.forwarded)
    net.close()
    return {
        "status": "complete" if None not in found else "failed",
        "overloaded": late > MOST_LATE,
        "late_share": round(late, 4),
        "seed": loaded.seed,
        "connections": [{"completion_s": each} for each in found],
    }


def _completions(net: Hosted, flows: list[dict[str, Any]]) -> list[float | None]:
    """Return the times until the last byte arrived; None for what has not arrived."""
    receivers = {"down": "user", "up": "server"}
    status = {
        direction: net.programs.send(host, do="status")["flows"]
        for direction, host in receivers.items()
    }
    return [status[each["direction"]].get(each["id"], {}).get("done_s") for each in flows]


def make(folder: Path) -> None:
    """Make the missing runs, AT_ONCE at a time, with real-time priority."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [each.name for each in STUDY.cases if not _file(folder, each.name).exists()]
    environment = {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }
    for start in range(0, len(missing), AT_ONCE):
        names = missing[start : start + AT_ONCE]
        running = [
            subprocess.Popen(
                [*COMMAND, name, str(_file(folder, name))],
                env=environment,
            )
            for name in names
        ]
        for name, process in zip(names, running, strict=True):
            print(f"{name}: {process.wait() or 'done'}", flush=True)


def _file(folder: Path, case: str) -> Path:
    return folder / f"{case.replace(' ', '_')}.json"


def main(page: Path = crosscheck.PAGE) -> None:
    kernel = RUNS / "kernel" / STUDY.name
    make(kernel)
    if not CrossCheck(PairedRuns(1, RUNS, Terminal())).make([STUDY.name], "sim"):
        raise SystemExit("the simulator's runs were interrupted")
    found: dict[tuple[str, str], list[Measured]] = {}
    for case in STUDY.cases:
        result = json.loads(_file(kernel, case.name).read_text())
        found["kernel", case.name] = [Measured(result)]
        found["sim", case.name] = [read(RUNS / "sim" / STUDY.name / case.name / "none-1")]
    made_by = (
        "Made by `PYTHONPATH=.:tests .venv/bin/python -m emulation.kernel_files` with version "
        f"{lab.__version__} of the lab, commit {commit()}; Linux {platform.release()}."
    )
    section = crosscheck.section(STUDY, found, made_by)
    page.write_text(crosscheck.composed(page.read_text(), {STUDY.name: section}))


if __name__ == "__main__":
    sys.setswitchinterval(0.0005)
    if len(sys.argv) > 1:
        Path(sys.argv[2]).write_text(json.dumps(measure(load(sys.argv[1]))) + "\n")
    else:
        main()
