"""Several runs by one command: finished runs are kept, missing ones are made, Ctrl-C loses
nothing."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from command_line import lab, start  # noqa: F401 - a fixture

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
