"""The jobs of a batch are made when they are asked for, and a long batch needs no more memory."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from command_line import lab  # noqa: F401 - a fixture

from lab.batch.jobs import run_each
from lab.batch.request import Request, checked, placed
from lab.errors import RequestError
from lab.run.outcome import Outcome
from lab.scenario.loading import Overrides, experiment, load


@pytest.mark.parametrize("name", ["testbed_wifi_lte", "thirty_users", "moving_users", "campus"])
def test_a_derived_seed_is_the_scenario_that_would_be_loaded(name, tmp_path):
    derived = placed(Request(name, "sim", seed=4, repeat=4, out=tmp_path))[2].scenario
    loaded = load(name, Overrides(seed=6))
    assert derived == loaded
    assert derived.network == loaded.network
    assert experiment(derived, "sim") == experiment(loaded, "sim")


def test_jobs_are_ordered_by_point_strategy_and_seed(tmp_path):
    request = Request(
        "testbed_wifi_lte",
        "sim",
        ("none", "disjoint"),
        seed=7,
        repeat=3,
        vary=("multipath.cc=lia,olia",),
        out=tmp_path,
    )
    names = [str(job.out.relative_to(tmp_path)) for job in checked(request)]
    assert names == [
        f"multipath.cc={cc}/{strategy}-{seed}"
        for cc in ("lia", "olia")
        for strategy in ("none", "disjoint")
        for seed in (7, 8, 9)
    ]
    assert [job.out for job in checked(request)[1::4]] == [tmp_path / names[n] for n in (1, 5, 9)]


def test_the_highest_seed_is_checked_before_anything_starts(tmp_path):
    with pytest.raises(RequestError, match="seed"):
        checked(Request("testbed_wifi_lte", "sim", seed=2**32 - 2, repeat=3, out=tmp_path))


class Silent:
    def run(self, job):
        raise AssertionError("the executor makes the runs")

    def say(self, text):
        pass


def test_the_memory_of_a_batch_does_not_grow_with_its_runs(tmp_path):
    requested = checked(Request("testbed_wifi_lte", "sim", repeat=5000, out=tmp_path))
    made = []

    def elsewhere(jobs, left, run):
        for n in left:
            result = {"status": "complete", "overloaded": False, "much": [n + 0.5] * 5000}
            yield n, Outcome(result, jobs[n].out)

    tracemalloc.start()
    try:
        made.extend(n for n, _ in run_each(requested, Silent(), elsewhere))
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert made == list(range(5000))
    # one scenario of 25 kB for each run would be 125 MB; other tests may have left threads
    assert most_bytes < 20e6


def test_the_results_of_a_batch_are_one_list(lab, tmp_path):  # noqa: F811
    words = ("--repeat", 3, "--duration", 1, "--out", tmp_path, "--json", "--quiet")
    got = lab("run testbed_wifi_lte --engine fake --seed 5", *words)
    results = json.loads(got.stdout)
    assert [each["seed"] for each in results] == [5, 6, 7]
    assert got.stdout == json.dumps(results, indent=1) + "\n"
