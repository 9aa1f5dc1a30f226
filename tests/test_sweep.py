"""Sweep files: their points, what is refused, and the table of their runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml
from command_line import ROOT, lab  # noqa: F401 - a fixture
from hypothesis import given
from hypothesis import strategies as st

from lab.batch import sweep
from lab.errors import RequestError
from lab.run.reading import changed, read_document
from lab.scenario import yaml_text

RATE, CC = "topology.paths.1.rate_mbps", "multipath.cc"


@pytest.fixture
def file(tmp_path):
    def write(**keys) -> Path:
        path = tmp_path / "my.yaml"
        path.write_text(yaml.safe_dump({"scenario": "two_paths"} | keys))
        return path

    return write


def points(**keys) -> list[dict]:
    found = sweep.Sweep.model_validate({"scenario": "two_paths"} | keys).all_points()
    return [
        {key: yaml_text.parse(value, key) for key, _, value in map(_cut, each)} for each in found
    ]


def _cut(setting: str) -> tuple[str, str, str]:
    return setting.partition("=")


def test_a_grid_has_every_combination_and_points_are_added_once():
    grid = {RATE: "10..30..10", CC: ["lia", "olia"]}
    found = points(grid=grid, points=[{CC: "cubic"}, {RATE: 10, CC: "lia"}])
    assert len(found) == 7
    assert found[:2] == [{RATE: 10, CC: "lia"}, {RATE: 10, CC: "olia"}]
    assert found[-1] == {CC: "cubic"}
    assert points() == [{}]


@given(
    st.integers(1, 60), st.integers(0, 2**32 - 1), st.floats(0.001, 10), st.floats(1.5, 1e4),
    st.sampled_from(["linear", "log"]),
)  # fmt: skip
def test_a_latin_hypercube_has_one_sample_in_each_slice(samples, seed, low, factor, scale):
    keys = {RATE: {"from": low, "to": low * factor, "scale": scale}, CC: {"choose": ["a", "b"]}}
    found = points(latin_hypercube={"samples": samples, "seed": seed, "keys": keys})
    assert found == points(latin_hypercube={"samples": samples, "seed": seed, "keys": keys})
    values = sorted(each[RATE] for each in found)
    of = (lambda x: x) if scale == "linear" else math.log
    width = (of(low * factor) - of(low)) / len(values)
    assert len(values) == samples
    for n, value in enumerate(values):
        inside = (of(value) - of(low)) / width
        assert n - 0.02 * samples <= inside <= n + 1 + 0.02 * samples  # six digits are kept
    assert all(each[CC] in ("a", "b") for each in found)


@given(st.integers(0, 99))
def test_random_samples_are_in_their_ranges_and_whole_ones_have_both_ends(seed):
    keys = {"a": {"from": 3, "to": 5, "whole": True}, "b": {"from": 0.1, "to": 10, "scale": "log"}}
    found = points(random={"samples": 100, "seed": seed, "keys": keys})
    assert {each["a"] for each in found} == {3, 4, 5}
    assert all(0.1 <= each["b"] <= 10 for each in found)
    assert 20 < sum(each["b"] < 1 for each in found) < 80


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"grids": {CC: ["lia"]}}, "unknown key 'grids' (did you mean 'grid'?). Keys: scenario, "),
        ({"grid": {"seed": [1, 2]}}, "use repeat"),
        ({"grid": {RATE: "30..10"}}, "write START..END..STEP"),
        ({"grid": {RATE: []}}, "none is"),
        ({"grid": {RATE: [1, 1]}}, "listed twice"),
        ({"random": {"samples": 0, "keys": {RATE: {"from": 1, "to": 2}}}}, "random.samples"),
        ({"random": {"samples": 2, "keys": {RATE: {"from": 2, "to": 1}}}}, "'to' must be above"),
        (
            {"random": {"samples": 2, "keys": {RATE: {"from": 0, "to": 1, "scale": "log"}}}},
            "'from' must be above 0",
        ),
        ({"random": {"samples": 2, "keys": {RATE: {"choose": [1]}}}}, "choose"),
        ({"responses": ["througput_mbps"]}, "there is no number 'througput_mbps'"),
        ({"responses": []}, "responses"),
        ({"from_s": 3, "to_s": 2}, "to_s must be above from_s"),
        ({"from_s": 3, "keep": "results"}, "need samples"),
        ({"keep": "some"}, "keep"),
        ({"repeat": 0}, "repeat"),
        ({"strategies": ["nobody"]}, "nobody"),
        ({"set": {"topology.path": 3}}, "unknown key 'path'"),
        ({"points": [{RATE: -1}]}, f"{RATE}=-1"),
        ({"scenario": "no_such"}, "no_such"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_starts(lab, file, tmp_path, keys, why):  # noqa: F811
    got = lab("sweep --quiet", file(**keys), "--out", tmp_path / "out")
    assert got.exit_code == 2
    assert why in got.stderr
    assert "Traceback" not in got.stderr
    assert not (tmp_path / "out").exists()


def test_too_many_points_are_refused_at_once():
    with pytest.raises(RequestError, match="at most 10000"):
        points(grid={"a": "1..200", "b": "1..200"})
    several = {"samples": 9999, "keys": {"a": {"from": 0, "to": 1}}}
    with pytest.raises(RequestError, match="at most 10000"):
        points(random=several, latin_hypercube=several)


def test_a_sweep_runs_continues_and_shows_its_responses(lab, file, tmp_path):  # noqa: F811
    path = file(
        scenario="testbed_wifi_lte",
        strategies=["none", "meter_throttling"],
        duration_s=2,
        repeat=5,
        grid={CC: ["lia", "olia"]},
        responses=["throughput_mbps", "aps.wifi1.tier1_mbps"],
    )
    words = [path, "--engine", "fake", "--out", tmp_path / "out"]
    part = lab("sweep --quiet --shard 1/2", *words)
    assert part.exit_code == 0, part.stderr
    assert len(list((tmp_path / "out").glob("*/*/result.json"))) == 10
    assert "20 runs, 10 of them exist already" in lab("sweep --dry-run", *words).output
    got = lab("sweep --json", *words)
    rows = json.loads(got.stdout)
    assert [(each[CC], each["strategy"], each["n"]) for each in rows] == [
        (cc, strategy, 5) for strategy in ("none", "meter_throttling") for cc in ("lia", "olia")
    ]
    first = rows[0]["throughput_mbps"]
    assert first["low"] <= first["mean"] <= first["high"]
    again = lab("sweep", *words)
    assert "20 of 20 runs exist already" in again.stderr
    assert again.stdout.splitlines()[-4].split()[:4] == ["lia", "none", "5", f"{first['mean']:.3g}"]
    window = lab(
        "sweep --json", file(**yaml.safe_load(path.read_text()) | {"from_s": 1}), *words[1:]
    )
    assert json.loads(window.stdout)[0]["n"] == 5


def test_a_scenario_file_is_relative_to_the_sweep_file(lab, tmp_path):  # noqa: F811
    text = (ROOT / "scenarios/testbed_wifi_lte.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("name: testbed_wifi_lte", "name: mine"))
    (tmp_path / "s.yaml").write_text("{scenario: mine.yaml, duration_s: 1}")
    got = lab("sweep --quiet", tmp_path / "s.yaml", "--engine", "fake", "--out", tmp_path / "out")
    assert got.exit_code == 0, got.stderr
    (run,) = (tmp_path / "out").glob("*/result.json")
    assert json.loads(run.read_text())["scenario"] == "mine"


# Runs without samples

RUN = "run testbed_wifi_lte --engine fake --duration 3 --repeat 2 --quiet --out"


def files(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def test_keep_results_removes_samples_and_events_and_is_no_edit(lab, tmp_path):  # noqa: F811
    got = lab(RUN, tmp_path / "all")
    got = lab(RUN, tmp_path / "few", "--keep", "results")
    assert got.exit_code == 0, got.stderr
    run = next((tmp_path / "few").iterdir())
    assert files(run) == {"manifest.json", "result.json", "scenario.yaml"}
    result = read_document(run, "result.json")
    whole = read_document(tmp_path / "all" / run.name, "result.json")
    differ = {key for key in {*result, *whole} if result.get(key) != whole.get(key)}
    assert differ <= {"kept", "result_sha256", "run_id"}
    assert changed(run, result) == ()
    (run / "samples.jsonl").write_text("{}\n")
    assert changed(run, result) == ("samples.jsonl",)
    (run / "samples.jsonl").unlink()
    names = changed(run, result | {"kept": "all"})
    assert names == ("result.json", "samples.jsonl")  # the fake engine has no events


def test_runs_without_samples_are_compared_continued_and_named(lab, tmp_path):  # noqa: F811
    lab(RUN, tmp_path / "few", "--keep", "results")
    assert "2 of 2 runs exist already" in lab(
        RUN.replace("--quiet ", ""), tmp_path / "few", "--keep", "results"
    ).stderr  # fmt: skip
    assert lab("compare", tmp_path / "few").exit_code == 0
    window = lab("compare --from 1", tmp_path / "few")
    assert (window.exit_code, "made with --keep results" in window.stderr) == (2, True)
    table = lab("export", tmp_path / "few", "--csv", tmp_path / "csv")
    assert "2 of 2 runs have no samples and events" in table.stderr
    assert len((tmp_path / "csv" / "results.csv").read_text().splitlines()) == 3
    again = lab(RUN.replace("--quiet ", ""), tmp_path / "few")
    assert "exist already" not in again.stderr  # --keep all: the samples are wanted now
    assert "samples.jsonl" in files(next((tmp_path / "few").iterdir()))
