"""A grid: every combination of varied values is one run folder, and a wrong point stops all."""

from __future__ import annotations

import json

import pytest
from command_line import lab  # noqa: F401 - a fixture

from lab.batch.estimate import estimated
from lab.batch.grid import folder_name, points
from lab.batch.job import Job
from lab.errors import RequestError
from lab.run.engine import Options

GRID = "run testbed_wifi_lte --engine fake --duration 1 --vary multipath.cc=lia,olia"


def test_ranges_and_lists():
    assert points(["a.b=10..40..10"]) == [(f"a.b={n}",) for n in (10, 20, 30, 40)]
    assert points(["a=0..0.3..0.1"])[-1] == ("a=0.3",)
    assert points(["a=[],[x, y]", "b=1,2"])[-1] == ("a=[x, y]", "b=2")


@pytest.mark.parametrize("text", ["a", "a=", "a=1,1", "seed=1,2", "a=4..1", "a=[1"])
def test_what_is_no_list_of_values_is_refused(text):
    with pytest.raises(RequestError, match="--vary"):
        points([text])


@pytest.mark.parametrize(
    "vary",
    [
        ["a=0..1000000000000"],
        ["a=0..1..0.0000001"],
        ["a=1..9000,9001..18000"],
        ["a=1..101", "b=1..100"],
        [f"a=0..{'9' * 5000}"],
    ],
    ids=["long", "fine", "two ranges", "product", "digits"],
)
def test_too_many_combinations_are_refused_at_once(vary):
    with pytest.raises(RequestError, match="at most 10000 combinations are possible"):
        points(vary)


def test_different_points_have_different_folders():
    names = {folder_name(each) for each in points(["a=[],{},x/y,x-y,'1',1"])}
    assert len(names) == 6
    assert not any("/" in each for each in names)


def test_every_combination_is_run_and_continued(lab, tmp_path):  # noqa: F811
    words = ["--vary", "multipath.receive_buffer_kb=1000,2000", "--repeat", 2, "--out", tmp_path]
    got = lab(GRID, *words)
    assert got.exit_code == 0, got.stderr
    assert len(list(tmp_path.glob("multipath.cc=*,multipath.*/*-*/result.json"))) == 8
    assert "8 of 8 runs exist already" in lab(GRID, *words).stderr


def test_parts_make_the_whole(lab, tmp_path):  # noqa: F811
    for n in (1, 2, 3):
        got = lab(GRID, "--repeat", 3, "--out", tmp_path, "--shard", f"{n}/3")
        assert got.exit_code == 0, got.stderr
        assert len(list(tmp_path.glob("*/*/result.json"))) == 2 * n


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b"])
def test_a_wrong_part_is_refused(lab, tmp_path, part):  # noqa: F811
    assert lab(GRID, "--out", tmp_path, "--shard", part).exit_code == 2


def test_a_wrong_point_stops_all_and_is_named(lab, tmp_path):  # noqa: F811
    got = lab(GRID, "--vary", "multipath.receive_buffer_kb=1000,-5", "--out", tmp_path)
    assert got.exit_code == 2
    assert "multipath.receive_buffer_kb=-5" in got.stderr
    assert not list(tmp_path.iterdir())


def test_a_dry_run_counts_and_makes_nothing(lab, tmp_path):  # noqa: F811
    words = ["--repeat", 3, "--out", tmp_path / "grid"]
    got = lab(GRID, *words, "--dry-run")
    assert (got.exit_code, "6 runs, 6 to make" in got.output) == (0, True)
    assert not (tmp_path / "grid").exists()
    assert lab(GRID, *words, "--shard", "1/3", "--quiet").exit_code == 0
    assert "6 runs, 2 of them exist already, 4 to make" in lab(GRID, *words, "--dry-run").output
    assert lab(GRID, *words, "--quiet").exit_code == 0
    found = json.loads(lab(GRID, *words, "--dry-run", "--json").output)
    assert (found["left"], found["seconds"], found["disk_bytes"]) == (0, 0, 0)


def test_a_dry_run_refuses_what_a_run_would_refuse(lab, tmp_path):  # noqa: F811
    (tmp_path / "multipath.cc=lia" / "none-1").mkdir(parents=True)
    (tmp_path / "multipath.cc=lia" / "none-1" / "mine").write_text("")
    got = lab(GRID, "--strategy", "none", "--out", tmp_path, "--dry-run")
    assert (got.exit_code, "is there already and not empty" in got.stderr) == (2, True)


@pytest.mark.parametrize("duration_s", [2, 40])
def test_the_estimate_of_disk_is_what_the_runs_need(lab, tmp_path, duration_s):  # noqa: F811
    words = ["--repeat", 2, "--duration", duration_s, "--quiet", "--out", tmp_path / "grid"]
    found = json.loads(lab(GRID, *words, "--dry-run", "--json").output)
    assert lab(GRID, *words).exit_code == 0
    runs = list((tmp_path / "grid").glob("*/*"))
    used = sum(each.lstat().st_blocks * 512 for run in runs for each in (run, *run.rglob("*")))
    assert len(runs) == found["runs"]
    assert found["disk_bytes"] == pytest.approx(used, rel=0.3)


def test_the_estimate_of_time_grows_with_speed_and_duration(lab, tmp_path):  # noqa: F811
    words = ["--duration", 30, "--speed", 1, "--out", tmp_path, "--dry-run", "--json"]
    found = json.loads(lab(GRID, *words).output)
    assert found["seconds"] == pytest.approx(30 * found["runs"] / found["at_once"], rel=0.1)


def test_an_emulation_takes_at_least_its_durations(load_testbed):
    jobs = [Job(load_testbed(f"duration_s={s}"), "mininet", Options()) for s in (20, 35)]
    found = estimated(jobs)
    assert (found.left, found.at_once, found.seconds, found.disk_bytes) == (2, 1, 55, None)
