"""Measure the speed of runs: packets per second, durations, and the time until the first sample."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.engines import registry
from lab.engines.sim import compiler
from lab.errors import LabError
from lab.run.engine import Options
from lab.run.manifest import ROOT
from lab.run.reading import read_document
from lab.run.recorder import RUNS, Recorder
from lab.scenario import loading as scenario
from lab.scenario.loading import Overrides
from vm import guest

WARM_UP_S, SIMULATED_S = 2.0, 20.0
LIMIT_S = 600
DEMO = "testbed_wifi_lte"


def packets_per_s(name: str, *settings: str) -> tuple[float]:
    """Simulate a scenario for 20 s after a warm-up.

    Return the data segments per second of wall time.

    `settings` are changes of the scenario file, written as `key.path=value`.
    """
    compiler.wait()
    loaded = scenario.load(
        name, Overrides(settings=(*settings, f"duration_s={WARM_UP_S + SIMULATED_S}"))
    )
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder), loaded, "sim")
        engine = registry.create("sim", Options(speed=0.0))
        engine.open(loaded, recorder)
        engine.advance(WARM_UP_S)
        began = time.perf_counter()
        engine.advance(WARM_UP_S + SIMULATED_S)
        took_s = time.perf_counter() - began
        report = engine.close()
        recorder.close()
    assert report is not None
    segments = sum(
        each.segments or 0 for connection in report.connections for each in connection.subflows
    )
    return (segments * SIMULATED_S / (WARM_UP_S + SIMULATED_S) / took_s,)


def _lab(folder: Path, *arguments: str, cache: Path | None = None) -> subprocess.Popen[bytes]:
    """Start the command `run` in a new process, with the run folder `folder`.

    `cache` is the folder for compiled code; None means the default folder.
    """
    environment = os.environ | ({"MULTIPATH_LAB_CACHE": str(cache)} if cache else {})
    argv = [sys.executable, "-m", "lab", "run", *arguments, "--quiet", "--out", str(folder)]
    return subprocess.Popen(argv, cwd=ROOT, env=environment)


def _until_first_sample_s(folder: Path, *arguments: str, cache: Path | None = None) -> float:
    began = time.perf_counter()
    run = _lab(folder, *arguments, cache=cache)
    samples = folder / "samples.jsonl"
    while not (samples.exists() and samples.stat().st_size):
        if run.poll() is not None or time.perf_counter() - began > LIMIT_S:
            run.kill()
            raise LabError(
                f"bench {' '.join(arguments)}: the run ended before its first sample. "
                f"See {folder}/log.txt"
            )
        time.sleep(0.005)
    took_s = time.perf_counter() - began
    run.wait(LIMIT_S)
    return took_s


def starts() -> tuple[float, float, float]:
    """Return three times [s], all measured from the start of the command `run`.

    - to the first sample, with an empty cache
    - to the first sample, with compiled code in the cache
    - until the code is compiled, with an empty cache
    """
    with tempfile.TemporaryDirectory() as made:
        cache, short = Path(made, "cache"), (DEMO, "--duration", "1", "--speed", "max")
        began = time.perf_counter()
        cold_s = _until_first_sample_s(Path(made, "cold"), *short, cache=cache)
        compiler.wait(cache)
        compiled_s = time.perf_counter() - began
        return cold_s, _until_first_sample_s(Path(made, "warm"), *short, cache=cache), compiled_s


def whole_run_s(*arguments: str) -> tuple[float]:
    """Return how long the command `run` takes with these arguments [s].

    Raises `LabError` if the command fails.
    """
    compiler.wait()
    with tempfile.TemporaryDirectory() as made:
        began = time.perf_counter()
        status = _lab(Path(made, "run"), *arguments).wait(LIMIT_S)
        if status:
            raise LabError(f"bench {' '.join(arguments)}: it ended with status {status}")
        return (time.perf_counter() - began,)


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Yield the path of a folder that the VM can share.

    It does not exist yet, and is removed at the end.

    It is not in /tmp, because the VM cannot see the /tmp of this machine.
    """
    RUNS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=RUNS.parent) as made:
        yield Path(made, "run")


def run_in_vm(name: str, folder: Path, duration_s: int) -> None:
    """Run a scenario in the emulation in the virtual machine. Raises `LabError` if this fails."""
    options = ("--engine", "mininet", "--vm", "--wait", "--duration", str(duration_s))
    if _lab(folder, name, *options).wait(LIMIT_S):
        raise LabError(f"bench: the run of {name} in the VM failed. See {folder}")


def emulated_mbps_per_processor() -> tuple[float]:
    """Return how many Mb/s the emulation of the demo carries, per fully busy processor."""
    with shared_folder() as folder:
        run_in_vm(DEMO, folder, duration_s=20)
        result = read_document(folder, "result.json")
    busy = int(guest.CPUS) * (1 - result["overload"]["idle_share_mean"])
    return (result["throughput_mbps"] * result["rate_scale"] / busy,)


def vm_first_sample_s() -> tuple[float]:
    """Return the time from the command `run` to the first sample of an emulation in the VM [s]."""
    with shared_folder() as folder:
        arguments = (DEMO, "--engine", "mininet", "--vm", "--wait", "--duration", "3")
        return (_until_first_sample_s(folder, *arguments),)
