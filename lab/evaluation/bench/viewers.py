"""Measure how late samples reach the viewers of a dashboard, and the CPU load of the dashboard's
server."""

from __future__ import annotations

import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles
from urllib.request import urlopen

from lab.evaluation.bench.server import dashboard
from lab.run.frame import ApSample, Frame, LinkSample, SubflowSample, UserSample
from lab.run.recorder import Recorder
from lab.scenario import loading as scenario
from lab.scenario.overrides import Overrides

VIEWERS, FRAMES, FRAMES_PER_S = 40, 100, 10
DEMO = "testbed_wifi_lte"


def viewers() -> tuple[float, float]:
    """Return the 99th percentile of the delay of samples in ms, and the share of one processor that
    the dashboard's server uses.

    The delay of a sample is the time from its write until the last of 40 viewers has received it.
    This process writes the samples, and its threads are the viewers.
    """
    loaded = scenario.load(DEMO, Overrides(settings=("duration_s=600",)))
    written_s = [0.0] * FRAMES
    ready = threading.Barrier(VIEWERS + 1)

    def watch(url: str) -> list[float]:
        arrived: list[float] = []
        with urlopen(url, timeout=60) as stream:  # noqa: S310 - the address is a constant
            ready.wait(60)
            for line in stream:
                if b'"ap":' in line:
                    arrived.append(time.perf_counter())
                    if len(arrived) == FRAMES:
                        break
        return arrived

    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(VIEWERS) as pool:
        folder = Path(made, "runs", "watched")
        folder.mkdir(parents=True)
        recorder = Recorder(folder, loaded, "sim")
        with dashboard(folder.parent) as (url, spent_s):
            watching = [
                pool.submit(watch, f"{url}/api/runs/watched/stream") for _ in range(VIEWERS)
            ]
            ready.wait(60)
            began, before = time.perf_counter(), spent_s()
            for n in range(FRAMES):
                written_s[n] = time.perf_counter()
                recorder.sample(_frame((n + 1) / FRAMES_PER_S))
                time.sleep(max(0.0, began + (n + 1) / FRAMES_PER_S - time.perf_counter()))
            arrived = [each.result(60) for each in watching]
            share = (spent_s() - before) / (time.perf_counter() - began)
        recorder.close()
    last_s = [max(times) for times in zip(*arrived, strict=True)]
    late_ms = [(last - written) * 1000 for last, written in zip(last_s, written_s, strict=True)]
    return quantiles(late_ms, n=100)[98], share


def _frame(t: float) -> Frame:
    """Return a frame (sample) for time `t` in s that is as large as a frame of the demo
    scenario."""
    ap = ApSample(9.1, 0.1, 0.97, 0.1, 3)
    subflow = SubflowSample(4.5, 17, 41.2, 1, False, None, 0.12)
    return Frame(
        t,
        {"wifi1": ap, "lte1": ap},
        {"wifi": LinkSample(9.2, 0.4, 4, 0.0)},
        {f"ue{n}": UserSample(5.2) for n in range(1, 5)},
        {f"ue{n}-1/{k}": subflow for n in range(1, 5) for k in (1, 2)},
    )
