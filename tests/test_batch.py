"""Several runs by one command: finished runs are kept, missing ones are made, Ctrl-C loses
nothing."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace

import pytest
from command_line import lab, start  # noqa: F401 - a fixture
from run_edits import write_result

from lab.batch import jobs
from lab.batch.request import Request, placed
from lab.batch.single import run_job
from lab.run.outcome import EXIT_INTERRUPTED, is_whole
from lab.scenario import engine_table

ARGUMENTS = [
    "run",
    "testbed_wifi_lte",
    "--strategy",
    "none",
    "--strategy",
    "meter_throttling",
    "--seed",
    5,
]


@pytest.fixture
def several(lab, tmp_path):  # noqa: F811
    """Two strategies with two seeds each."""
    return lambda *more: lab(
        *ARGUMENTS,
        "--engine",
        "fake",
        "--repeat",
        2,
        "--duration",
        1,
        "--out",
        tmp_path / "r",
        *more,
    )


def test_strategies_and_repeats_run_on_the_same_seeds(several, tmp_path):
    runs = [
        (run["strategy"], run["seed"]) for run in json.loads(several("--json", "--quiet").output)
    ]
    assert runs == [("none", 5), ("none", 6), ("meter_throttling", 5), ("meter_throttling", 6)]
    assert len(list((tmp_path / "r").glob("*/result.json"))) == 4


def test_several_runs_are_summarised_in_one_table(several):
    got = several()
    assert "none (n = 2, " in got.stdout
    assert "meter_throttling against none" in got.stdout
    assert "run 4 of 4" in got.stderr


def test_finished_runs_are_kept_and_the_rest_runs(several, tmp_path):
    several("--quiet")
    began = {
        path.parent.name: path.stat().st_mtime_ns for path in (tmp_path / "r").glob("*/result.json")
    }
    (tmp_path / "r" / "none-6" / "result.json").unlink()
    overloaded = tmp_path / "r" / "meter_throttling-5" / "result.json"
    overloaded.write_text(
        overloaded.read_text().replace('"overloaded": false', '"overloaded": true')
    )
    got = several()
    assert got.exit_code == 0
    assert "2 of 4 runs exist already" in got.stderr
    after = {
        path.parent.name: path.stat().st_mtime_ns for path in (tmp_path / "r").glob("*/result.json")
    }
    assert {name for name, when in after.items() if when != began[name]} == {
        "none-6",
        "meter_throttling-5",
    }


def test_another_experiment_in_the_folder_is_not_touched(several, tmp_path):
    several("--quiet")
    got = several("--set", "multipath.receive_buffer_kb=100")
    assert got.exit_code == 2
    assert "is there already and not empty" in got.stderr
    assert len(list((tmp_path / "r").glob("*/result.json"))) == 4


@pytest.mark.parametrize("is_suspended", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_keeps_the_samples_and_starts_no_further_run(
    tmp_path, number, is_suspended
):
    process = start(
        *ARGUMENTS,
        "--engine",
        "slow",
        "--repeat",
        9,
        "--duration",
        3000,
        "--json",
        "--out",
        tmp_path / "r",
    )
    deadline = time.monotonic() + 20
    while (
        not any(each.stat().st_size for each in tmp_path.glob("r/*/samples.jsonl"))
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    if is_suspended:
        for each in tmp_path.glob("r/*/manifest.json"):
            os.kill(json.loads(each.read_text())["pid"], signal.SIGSTOP)
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert {run["status"] for run in json.loads(out)} == {"interrupted"}
    assert len(list(tmp_path.glob("r/*"))) < 18
    assert "Traceback" not in err


# Emulations that fail or overload the machine


@pytest.fixture
def emulated(lab, monkeypatch, tmp_path):  # noqa: F811
    """Make three runs of an engine that counts as an emulation. A function says how often each
    seed overloads the machine; it returns the seeds in the order in which they ran, and the rest
    of `run_each`."""
    entry = replace(engine_table.ENGINES["fake"], real_time=True)
    monkeypatch.setitem(engine_table.ENGINES, "fake", entry)

    def make(overloads, status="complete", code=0, stop_after=None, **more):
        made, text = [], []

        class Machine:
            def run(self, job):
                outcome = run_job(job, lambda _: None)
                made.append(job.scenario.seed)
                if len(made) == stop_after:
                    result = outcome.result | {"status": "interrupted"}
                    write_result(outcome.folder, result)
                    return replace(outcome, result=result, exit_code=EXIT_INTERRUPTED)
                bad = made.count(job.scenario.seed) <= overloads.get(job.scenario.seed, 0)
                words = {"overloaded": bad, "status": status if bad else "complete"}
                result = outcome.result | words
                write_result(outcome.folder, result)
                return replace(outcome, result=result, exit_code=code if bad else 0)

            def say(self, line):
                text.append(line)

        plan = placed(Request("pooling", "fake", repeat=3, duration_s=1, out=tmp_path / "r"))
        ended = dict(jobs.run_each(plan, Machine(), **more))
        return made, {n: is_whole(each.result) for n, each in ended.items()}, text

    return make


def test_emulations_that_overloaded_the_machine_are_repeated_after_all_others(emulated):
    made, valid, text = emulated({1: 1, 2: 2})
    assert made == [1, 2, 3, 1, 2, 2]
    assert valid == {0: True, 1: True, 2: True}
    assert text.count("runs that failed or overloaded the machine are repeated") == 2


def test_an_emulation_that_fails_is_made_three_times_at_most(emulated):
    made, valid, _ = emulated({2: 9}, status="failed", code=4)
    assert made == [1, 2, 3, 2, 2]
    assert valid == {0: True, 1: False, 2: True}
    assert emulated({2: 9}, tries=1)[0] == [2]  # the others are kept


def test_an_interruption_repeats_nothing_and_loses_no_outcome(emulated):
    made, valid, _ = emulated({1: 1}, stop_after=2)
    assert made == [1, 2]
    assert valid == {0: False, 1: False}
    assert emulated({}, stop_after=9)[0] == [1, 2, 3]


def test_a_simulation_is_never_repeated(emulated, monkeypatch):
    entry = replace(engine_table.ENGINES["fake"], real_time=False)
    monkeypatch.setitem(engine_table.ENGINES, "fake", entry)
    monkeypatch.setattr(jobs, "side_by_side", jobs._in_turn)
    assert emulated({2: 9})[0] == [1, 2, 3]
