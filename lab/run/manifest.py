"""The content of manifest.json: the scenario, the software versions, the machine and the process of
a run."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import lab
from controller import units
from lab import __version__, installed, kit, metrics
from lab.inputs import short_names
from lab.run import process
from lab.run.lanes import LANES
from lab.run.result import SCHEMA
from lab.scenario.loading import experiment, input_files, user_files
from lab.scenario.schema import Scenario
from lab.topologies.queues import FIFO
from lab.topologies.topology import Direction, Link
from lab.vm_environment import COMMIT, time_dilation


def present() -> str:
    """Return the version of this lab with its git commit, such as `0.2.0 (f8f4b3f0aa11)`.

    The commit is left out if it is not known.
    """
    return _text(__version__, commit())


def made_by(versions: Mapping[str, str | None]) -> str:
    """Return the version of the lab that made a run, such as `0.2.0 (f8f4b3f0aa11)`.

    `versions` is the field `versions` of the run's manifest. The git commit is left out if the
    manifest does not have it.
    """
    return _text(versions.get("lab"), versions.get("commit"))


def _text(number: str | None, made_at: str | None) -> str:
    return f"{number} ({made_at})" if made_at else str(number)


ROOT = Path(__file__).resolve().parents[2]
STARTED_BY = "MULTIPATH_LAB_STARTED_BY"  # an environment variable; "page" if a page starts the run
SEED_FIXES = {
    "mininet": "the random choices of traffic and network; not the timing of packets",
}


def manifest(run_id: str, scenario: Scenario, engine: str, started: float) -> dict[str, Any]:
    """Return the content of manifest.json. `started` is the wall-clock time in s since 1970."""
    return {
        "schema": SCHEMA,
        "run_id": run_id,
        "experiment": experiment(scenario, engine),
        "scenario": scenario.name,
        "strategy": scenario.strategy.name,
        "params": scenario.strategy.params,
        "cc": scenario.multipath.cc,
        "engine": engine,
        "seed": scenario.seed,
        "seed_fixes": SEED_FIXES.get(engine, "every random choice"),
        "duration_s": scenario.duration_s,
        "rate_scale": scenario.rate_scale,
        "started": datetime.fromtimestamp(started).astimezone().isoformat(timespec="seconds"),
        "pid": os.getpid(),
        "pid_started": process.started(os.getpid()),
        "boot_id": process.boot_id(),
        **({"started_by": os.environ[STARTED_BY]} if STARTED_BY in os.environ else {}),
        **({"lanes": os.environ[LANES].split(",")} if LANES in os.environ else {}),
        "versions": {
            "lab": lab.__version__,
            "python": platform.python_version(),
            "commit": commit(),
            **{each: _version_of(each) for each in ("numpy", "numba")},
        },
        "topology_sha256": scenario.network.sha256(),
        "host": {
            "kernel": platform.release(),
            "cpu": _cpu(),
            "cpus": os.cpu_count(),
            "memory_mb": _memory_mb(),
            **({"time_dilation": factor} if (factor := time_dilation()) else {}),
        },
        "extensions": [each.row() for each in user_files(scenario, engine)],
        **({"inputs": read} if (read := _inputs(scenario, engine)) else {}),
        **({"metrics": declared} if (declared := metrics.declarations()) else {}),
        "links_asked": _links(scenario),
        "links_measured": {},
    }


def _inputs(scenario: Scenario, engine: str) -> list[dict[str, str]]:
    found = input_files(scenario, engine)
    names = short_names(found)
    return [{"name": names[path], "path": path, "sha256": found[path]} for path in sorted(found)]


def _own_of_directions(link: Link, scale: float) -> dict[str, Any]:
    """Return what the directions of a link, `ab` and `ba`, have of their own."""
    found: dict[str, Any] = {}
    sides: tuple[Direction, ...] = ("ab", "ba")
    for side in sides:
        own = link.own(side)
        values = {
            "rate_mbps": own.rate_bps and units.mbps_from_bps(own.rate_bps) / scale,
            "delay_ms": None if own.delay_ns is None else units.ms_from_ns(own.delay_ns),
            "queue_packets": own.queue_packets,
            "queue": own.discipline and own.discipline.kind,
        }
        if own_values := {key: value for key, value in values.items() if value is not None}:
            found[side] = own_values
    return found


def _links(scenario: Scenario) -> dict[str, Any]:
    """Return the configured properties of links, and the radio rates of users.

    Each link with a configured rate has an entry under its ID. Each access point has an entry that
    maps its users to their radio rates. Rates are those of the scenario file, not those on the
    wire.
    """
    network, scale = scenario.network, scenario.rate_scale
    return {
        link.id: {
            "rate_mbps": units.mbps_from_bps(link.rate_bps) / scale,
            "delay_ms": units.ms_from_ns(link.delay_ns),
            "loss": units.fraction_from_ppm(max(link.loss_ppm, link.loss_back_ppm)),
            "queue_packets": link.queue_packets,
            **({} if link.discipline == FIFO else {"queue": link.discipline.kind}),
            **_own_of_directions(link, scale),
        }
        for link in network.links
        if link.rate_bps is not None
    } | {
        cell.ap: {
            each.user: {"rate_mbps": units.mbps_from_bps(each.rate_bps) / scale}
            | ({} if each.up_bps is None else {"up_mbps": units.mbps_from_bps(each.up_bps) / scale})
            for each in cell.stations
        }
        for cell in network.cells
    }


@cache
def _version_of(package: str) -> str | None:
    """Return the version of a package, or None. Without numba, the simulator is interpreted."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def commit() -> str | None:
    """Return the lab's git commit; None if git does not know it.

    `+` at the end means that files differ from the commit. The environment variable
    MULTIPATH_LAB_COMMIT replaces the call of git, which takes two seconds inside a virtual machine.
    """
    if COMMIT in os.environ:
        return os.environ[COMMIT] or None
    if installed.built_from() is not None:  # git would answer for a repository around it
        return installed.commit()
    if kit.about():
        return kit.commit()
    try:
        argv = [
            "git",
            "-C",
            str(ROOT),
            "describe",
            "--always",
            "--dirty=+",
            "--abbrev=12",
            "--exclude=*",
        ]
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _memory_mb() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (OSError, ValueError):
        return None
