"""Simulated runs of one connection over parallel paths, for checks on random networks."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import yaml

from lab.engines import registry
from lab.run import runner
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.scenario import loading
from lab.scenario.loading import Overrides

FRAME_BITS = 1514 * 8
Paths = list[dict[str, float]]


def random_paths(name: str, count: int = 5) -> Paths:
    """1 to 50 Mb/s, RTTs of 10 to 200 ms, 0 to 2 % loss; queues of one BDP, at least 20 packets."""
    random, paths = Random(name), []
    for _ in range(count):
        mbps, rtt_ms, loss = random.uniform(1, 50), random.uniform(10, 200), random.uniform(0, 0.02)
        queue = max(20, round(mbps * 1000 * rtt_ms / FRAME_BITS))
        paths.append(
            {
                "rate_mbps": round(mbps, 2),
                "delay_ms": round(rtt_ms / 2, 2),
                "loss": round(loss, 5),
                "queue_packets": queue,
            }
        )
    return paths


def goodput_mbps(
    paths: Paths,
    seed: int,
    duration_s: float,
    strategy: str = "none",
    params: dict[str, Any] | None = None,
    multipath: dict[str, Any] | None = None,
) -> float:
    """Goodput of an endless download, simulated at full speed in a folder that is removed
    afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenario = {
            "name": "parallel",
            "title": "Parallel paths",
            "topology": {"kind": "parallel_paths", "paths": paths},
            "multipath": multipath or {},
            "traffic": [{"user": "ue1", "kind": "bulk"}],
            "strategy": {"name": strategy, "params": params or {}},
            "duration_s": duration_s,
            "sample_interval_s": 5,
            "seed": seed,
        }
        (folder / "parallel.yaml").write_text(yaml.safe_dump(scenario))
        loaded = loading.load(str(folder / "parallel.yaml"), Overrides())
        engine = registry.create("sim", Options(speed=0))
        engine.ready(loaded)
        (folder / "run").mkdir()
        outcome = runner.run(loaded, engine, Recorder(folder / "run", loaded, "sim"))
        assert outcome.result["status"] == "complete", outcome.error
        shutil.rmtree(folder / "run")
        return float(outcome.result["throughput_mbps"])
