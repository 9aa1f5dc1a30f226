"""Batches on a cluster of Dask: a scheduler and two workers, as processes of this machine."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITHIN_S = 120
MEASURED = ("scenario.yaml", "samples.jsonl", "events.jsonl", "result.json")
OWN = """name: own
title: A strategy of one's own
topology: {kind: parallel_paths, paths: [{rate_mbps: 5}, {rate_mbps: 8}]}
traffic: [{user: ue1}]
strategy: {name: keep_all}
duration_s: 2
"""
SWEEP = """scenario: two_paths
duration_s: 1
random: {samples: 40, seed: 3, keys: {topology.paths.2.delay_ms: {from: 5, to: 100}}}
repeat: 4
keep: results
"""
pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None,
        reason="needs Dask: python -m pip install --require-hashes -r locks/cluster.txt",
    ),
]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Local:
    """A cluster on this machine. A test starts and kills its scheduler and workers one by one."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.port = folder, port
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.file = folder / "scheduler.json"

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])

    def start(self, name: str, *argv: str, **more: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{argv[0]}", *argv[1:]],
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)} | more,
                stdout=log,
                stderr=log,
            )

    def start_scheduler(self) -> None:
        self.file.unlink(missing_ok=True)
        port = ("--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        nothing = {"PYTHONPATH": ""}  # a scheduler needs no lab
        self.start("scheduler", "scheduler", *port, "--scheduler-file", str(self.file), **nothing)
        until(self.file.exists)
        self.port = int(self.address.rpartition(":")[2])

    def start_worker(self, name: str, *argv: str, **more: str) -> None:
        own = ("--name", name, "--nthreads", "1", "--no-dashboard", "--local-directory", name)
        self.start(name, "worker", self.address, *own, *argv, **more)
        log = self.folder / f"{name}.log"
        until(lambda: "Registered to" in log.read_text() or "Starting est" in log.read_text())

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        for each in self.processes.values():
            each.kill()
            each.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Local]:
    local = Local(tmp_path)
    local.start_scheduler()
    local.start_worker("w1")
    local.start_worker("w2")
    yield local
    local.close()


def lab(folder: Path, *argv: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "lab", *map(str, argv)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def done(folder: Path, *argv: object) -> str:
    running = lab(folder, *argv)
    said = running.communicate(timeout=600)[0]
    assert running.returncode == 0, said
    return said


def measured(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.name in MEASURED
    }


def results(folder: Path) -> int:
    return len(list(folder.glob("*/*/result.json")))


@contextmanager
def running(tmp_path: Path, cluster: Local, more: int) -> Iterator[subprocess.Popen[str]]:
    """A sweep on the cluster that has completed some more runs."""
    before = results(tmp_path / "there")
    process = lab(tmp_path, "sweep", "sweep.yaml", "--out", "there", "--cluster", cluster.address)
    try:
        until(lambda: results(tmp_path / "there") >= before + more)
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_runs_are_those_of_this_machine_and_own_files_travel(tmp_path, cluster):
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "keep_all.py").write_text(
        "from controller.strategies.base import Strategy, StrategyParams\n\n\n"
        "class KeepAll(Strategy):\n"
        "    name, Params = 'keep_all', StrategyParams\n\n"
        "    def decide(self, observation):\n        return []\n\n"
        "    def withdraw(self, observation):\n        return []\n"
    )
    argv = ["run", "own.yaml", "--with", "keep_all.py", "--repeat", 2]
    argv += ["--vary", "topology.paths.2.delay_ms=10,40"]
    done(tmp_path, *argv, "--out", "here")
    done(tmp_path, *argv, "--out", "there", "--cluster", cluster.address)
    here, there = measured(tmp_path / "here"), measured(tmp_path / "there")
    assert len(there) == 4 * len(MEASURED)
    assert there == here
    assert "4 of 4 runs exist already" in done(
        tmp_path, *argv, "--out", "there", "--cluster", cluster.address
    )


def test_crosschecks_and_reproductions_can_use_a_cluster(tmp_path, cluster):
    argv = ["crosscheck", "all", "two_paths", "--engine", "sim", "--repeat", 2, "--duration", 1]
    done(tmp_path, *argv, "--runs", tmp_path / "here")
    done(tmp_path, *argv, "--runs", tmp_path / "there", "--cluster", cluster.address)
    here, there = measured(tmp_path / "here"), measured(tmp_path / "there")
    assert len(there) >= 2 * len(MEASURED)
    assert there == here
    nowhere = ("reproduce", "dtmc", "--allow-changed", "--runs", "x", "--pages", "x", "--cluster")
    process = lab(tmp_path, *nowhere, "tcp://127.0.0.1:9")
    assert "no scheduler answers there" in process.communicate(timeout=120)[0]
    assert process.returncode == 2


def test_a_worker_without_the_lab_is_refused_by_name(tmp_path, cluster):
    cluster.start_worker("stranger", PYTHONPATH=str(tmp_path))
    process = lab(
        tmp_path, "run", "two_paths", "--repeat", 2, "--out", "x", "--cluster", cluster.address
    )
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 2
    assert "worker stranger has no lab" in said
    assert not (tmp_path / "x").exists()


def test_no_scheduler_is_one_sentence(tmp_path):
    process = lab(tmp_path, "run", "two_paths", "--out", "x", "--cluster", "tcp://127.0.0.1:9")
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 2
    assert said.startswith("error: --cluster tcp://127.0.0.1:9: no scheduler answers there")
    assert len(said.strip().splitlines()) == 1


@pytest.mark.long
def test_lost_workers_and_schedulers_change_nothing(tmp_path, cluster):
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    done(tmp_path, "sweep", "sweep.yaml", "--out", "here")
    with running(tmp_path, cluster, 10) as process:
        cluster.kill("w1")
        until(lambda: results(tmp_path / "there") >= 40)  # the other one goes on
        cluster.start_worker("w3")
        cluster.kill("scheduler")
        said = process.communicate(timeout=120)[0]
        assert process.returncode == 4
        assert "the connection to the scheduler is lost" in said.splitlines()[-1]
    for name in ("w2", "w3"):
        cluster.kill(name)
    cluster.start_scheduler()
    for name in ("w4", "w5"):
        cluster.start_worker(name)
    with running(tmp_path, cluster, 20) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == 130
    with running(tmp_path, cluster, 20) as process:
        process.kill()
    said = done(tmp_path, "sweep", "sweep.yaml", "--out", "there", "--cluster", cluster.address)
    assert "of 160 runs exist already" in said
    here, there = measured(tmp_path / "here"), measured(tmp_path / "there")
    assert len(there) == 160 * 2
    assert there == here
    assert not list((tmp_path / "there").rglob(".*.part"))
