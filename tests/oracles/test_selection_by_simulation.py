"""The closed loop of subflow_selection against plain Multipath TCP and the best set of paths.

60 random networks, five seeds, 60 s, trials included. Simulation finds the best set: all 31 sets
with one seed, then the best three and all paths with five. Each congestion control takes about 20
minutes of one processor: pytest -m oracle -s tests/oracles/test_selection_by_simulation.py

Other networks: SELECTION_NETWORKS=name, fewer: SELECTION_COUNT=10.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from multiprocessing import get_context
from statistics import fmean, median

import pytest
from oracles.parallel_runs import Paths, goodput_mbps, random_paths

pytestmark = [pytest.mark.oracle, pytest.mark.long]
NETWORKS, COUNT = os.environ.get("SELECTION_NETWORKS", "oracle"), 60
SEEDS, DURATION_S, BUFFER_KB = range(1, 6), 60, 4000
IMPROVED = {"forecast": "today", "loop": "closed", "interval_s": 1}


@dataclass(frozen=True)
class Found:
    network: str
    plain: float
    improved: float
    paper: float
    best: float


def mean_mbps(paths: Paths, cc: str, strategy: str = "none", **params: object) -> float:
    multipath = {"cc": cc, "receive_buffer_kb": BUFFER_KB}
    return fmean(
        goodput_mbps(paths, seed, DURATION_S, strategy, params, multipath) for seed in SEEDS
    )


def best_mbps(paths: Paths, cc: str) -> float:
    multipath = {"cc": cc, "receive_buffer_kb": BUFFER_KB}
    sets = [each for size in range(1, 6) for each in combinations(paths, size)]
    ranked = sorted(
        sets, key=lambda each: -goodput_mbps([*each], 1, DURATION_S, "none", {}, multipath)
    )
    return max(mean_mbps([*each], cc) for each in ranked[:3])


def found(network: str, cc: str) -> Found:
    paths = random_paths(network)
    plain, paper = mean_mbps(paths, cc), mean_mbps(paths, cc, "subflow_selection")
    improved = mean_mbps(paths, cc, "subflow_selection", **IMPROVED)
    return Found(network, plain, improved, paper, max(plain, best_mbps(paths, cc)))


@pytest.mark.parametrize("cc", ["reno", "balia"])
def test_the_closed_loop_is_near_the_best_set_and_never_far_below_all_paths(cc):
    count = int(os.environ.get("SELECTION_COUNT", COUNT))
    networks = [f"{NETWORKS}-{n}" for n in range(count)]
    with ProcessPoolExecutor(2, get_context("forkserver")) as processes:
        every = list(processes.map(found, networks, [cc] * count))
    for name, values in (
        ("improved / plain", [each.improved / each.plain for each in every]),
        ("improved / best", [each.improved / each.best for each in every]),
        ("paper / plain", [each.paper / each.plain for each in every]),
        ("plain / best", [each.plain / each.best for each in every]),
    ):
        print(f"\n{cc} {name}: median {median(values):.3f}, worst {min(values):.3f}", end="")
    assert median(each.improved / each.best for each in every) >= 0.97
    assert [each for each in every if each.improved < 0.95 * each.plain] == []
