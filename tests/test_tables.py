"""Runs as tables: pandas frames, CSV and Parquet, with a column for each varied key."""

from __future__ import annotations

import builtins
import csv
import importlib.util
import json
import random

import pytest
from command_line import lab  # noqa: F401 - a fixture
from run_edits import edit_run

from lab.errors import MachineLacks, RequestError
from lab.results import load, rows, run_folders, thinning
from lab.run.reading import read_samples

BUFFERS = "multipath.receive_buffer_kb"
GRID = f"run testbed_wifi_lte --engine fake --duration 3 --vary {BUFFERS}=1000,2000 --repeat 2"
TABLES = ("results", "samples", "events", "flows", "subflows", "exchanges")
needs_pandas = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("pandas", "pyarrow"))),
    reason="needs pandas and pyarrow: python -m pip install --require-hashes -r locks/figures.txt",
)


@pytest.fixture
def grid(lab, tmp_path):  # noqa: F811
    folder = tmp_path / "grid"
    words = ["--strategy", "none", "--strategy", "disjoint", "--quiet", "--out", folder]
    got = lab(GRID, *words)
    assert got.exit_code == 0, got.stderr
    return folder


def damage(folder):
    """One run of each kind that cannot be used; return their folders."""
    edited, cut, foreign = run_folders.below(folder)[:3]
    with (edited / "samples.jsonl").open("a") as file:
        file.write('{"t": 9}\n')
    (cut / "result.json").unlink()
    (foreign / "result.json").write_text('{"accuracy": 0.9}')
    return edited, cut, foreign


def test_all_runs_below_a_folder_are_found_in_order(tmp_path):
    for name in ("a=10/x-2", "a=9/x-10", "a=9/x-2"):
        (tmp_path / name / "inputs").mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_text("{}")
        (tmp_path / name / "inputs" / "result.json").write_text("{}")
    found = [str(each.relative_to(tmp_path)) for each in run_folders.below(tmp_path)]
    assert found == ["a=9/x-2", "a=9/x-10", "a=10/x-2"]
    one = tmp_path / "a=9" / "x-2"
    assert run_folders.below(one) == [one]
    (tmp_path / "empty").mkdir()
    assert run_folders.below(tmp_path / "empty") == [tmp_path / "empty"]


@pytest.mark.parametrize(
    ("name", "unit", "column"),
    [
        ("cwnd", "segments", "cwnd_segments"),
        ("rtt_ms", "ms", "rtt_ms"),
        ("mbps_ab", "Mb/s", "mbps_ab"),
        ("tiers.1", "Mb/s", "tiers.1_mbps"),
        ("users.mbps.delay", "Mb/s", "users.mbps.delay_mbps"),
        ("loss", "", "loss"),
        ("share", "%", "share_percent"),
        ("energy", "mJ / bit", "energy_mj_bit"),
    ],
)
def test_units_are_in_the_names_of_columns(name, unit, column):
    assert rows.with_unit(name, unit) == column
    assert rows.with_unit(column, unit) == column


def test_csv_has_a_row_for_each_observation(lab, grid, tmp_path):  # noqa: F811
    got = lab("export", grid, "--csv", tmp_path / "csv")
    assert got.exit_code == 0, got.stderr
    tables = {}
    for name in TABLES:
        with (tmp_path / "csv" / f"{name}.csv").open() as file:
            tables[name] = list(csv.DictReader(file))
    runs = run_folders.below(grid)
    assert [each["folder"] for each in tables["results"]] == [str(run) for run in runs]
    for run, row in zip(runs, tables["results"], strict=True):
        result = json.loads((run / "result.json").read_text())
        assert f"{BUFFERS}={row[BUFFERS].removesuffix('.0')}" == run.parent.name
        assert (row["strategy"], int(row["seed"])) == (result["strategy"], result["seed"])
        assert float(row["throughput_mbps"]) == result["throughput_mbps"]
        for user, numbers in result["users"].items():
            assert float(row[f"users.{user}.throughput_mbps"]) == numbers["throughput_mbps"]
    samples = [line for run in runs for line in read_samples(run)]
    owners = sum(len(line.get(of, {})) for line in samples for of in ("ap", "link", "user", "sf"))
    assert len(tables["samples"]) == owners
    first = next(each for each in tables["samples"] if each["kind"] == "user")
    assert float(first["mbps"]) == samples[0]["user"][first["id"]]["mbps"]
    assert f"{len(runs)} rows" in got.output


def test_intervals_of_samples_add_up_to_the_run(grid):
    found = rows.found([grid])
    for run in found.runs:
        users = {}
        for row in found.rows(run, "samples"):
            if row["kind"] == "user":
                users.setdefault(row["id"], []).append(row["interval_s"])
        assert users
        assert all(sum(each) == pytest.approx(3) for each in users.values())


def test_no_field_of_an_event_is_lost(grid):
    found = rows.found([grid])
    for run in found.runs:
        events = [
            json.loads(line) for line in (run.folder / "events.jsonl").read_text().splitlines()
        ]
        for row, event in zip(found.rows(run, "events"), events, strict=True):
            shown = {"t": row["t_s"], **json.loads(row["more"] or "{}")}
            assert event.keys() - row.keys() <= shown.keys()
            assert all(event[key] == value for key, value in shown.items())


def test_runs_that_cannot_be_used_are_named_and_left_out(lab, grid, tmp_path):  # noqa: F811
    left_out = damage(grid)
    got = lab("export", grid, "--csv", tmp_path / "csv")
    assert got.exit_code == 0
    for folder in left_out:
        assert str(folder) in got.stderr
    assert "results.csv: 5 rows" in got.output
    said = lab("compare", grid).output
    assert all(str(folder) in said for folder in left_out)


def test_a_run_that_cannot_be_used_alone_is_an_error(lab, grid, tmp_path):  # noqa: F811
    for folder in damage(grid):
        got = lab("export", folder, "--csv", tmp_path / "csv")
        assert got.exit_code == 2
        assert folder.name in got.stderr
    assert not (tmp_path / "csv").exists()


def test_nothing_is_overwritten_and_nothing_is_half_written(lab, grid, tmp_path):  # noqa: F811
    (tmp_path / "events.csv").write_text("mine")
    got = lab("export", grid, "--csv", tmp_path)
    assert (got.exit_code, "is there already" in got.stderr) == (2, True)
    assert (tmp_path / "events.csv").read_text() == "mine"
    assert not list(tmp_path.glob("results*"))
    got = lab("export", grid, "--csv", tmp_path / "events.csv" / "below")
    assert (got.exit_code, "choose another folder" in got.stderr) == (4, True)


def test_what_cannot_be_exported_is_refused(lab, grid, tmp_path):  # noqa: F811
    assert lab("export", grid).exit_code == 2
    got = lab("export", tmp_path / "nowhere", "--csv", tmp_path / "csv")
    assert (got.exit_code, "there is no such folder" in got.stderr) == (2, True)


@pytest.mark.parametrize("key", [BUFFERS, "strategy.name"])
def test_compare_takes_a_grid_by_any_key(lab, grid, key):  # noqa: F811
    got = lab("compare", grid, "--by", key, "--json")
    assert got.exit_code == 0, got.stderr
    parts = json.loads(got.output)
    assert len(parts) == 2
    for part in parts:
        assert [each["n"] for each in part["groups"]] == [2, 2]
        for run in (run for each in part["groups"] for run in each["runs"]):
            assert key == BUFFERS or json.loads(part["by"][key]) in run
    assert lab("compare", grid, "--by", key).output.count(f"{key} = ") == 2


def test_compare_by_two_keys_and_by_one_that_nothing_varies(lab, grid):  # noqa: F811
    got = lab("compare", grid, "--by", BUFFERS, "--by", "strategy.name", "--json")
    assert [len(each["groups"]) for each in json.loads(got.output)] == [1, 1, 1, 1]
    got = lab("compare", grid, "--by", "multipath.cc")
    assert (got.exit_code, BUFFERS in got.stderr) == (2, True)


@pytest.mark.parametrize("by", [[], [BUFFERS], [BUFFERS, "strategy.name"]])
def test_a_comparison_is_a_table_too(lab, grid, tmp_path, by):  # noqa: F811
    words = ["compare", grid, *(word for key in by for word in ("--by", key))]
    got = lab(*words, "--json", "--csv", tmp_path / "c.csv")
    assert got.exit_code == 0, got.stderr
    parts = json.loads(got.output) if by else [json.loads(got.output)]
    with (tmp_path / "c.csv").open() as file:
        read = list(csv.DictReader(file))
    assert list(read[0])[: len(by)] == by
    known = {
        (*part.get("by", {}).values(), group, metric): each
        for part in parts
        for metric, groups in part["metrics"].items()
        for group, each in groups.items()
    }
    assert len(read) == len(known)
    for row in read:
        each = known[(*(row[key] for key in by), row["group"], row["metric"])]
        assert int(row["n"]) == each["n"]
        assert row["mean"] == ("" if each["mean"] is None else str(each["mean"]))
    again = lab(*words, "--csv", tmp_path / "c.csv")
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)


def test_without_pandas_it_is_said_what_to_type(grid, monkeypatch):
    known = builtins.__import__

    def without(name, *args, **named):
        if name.split(".")[0] in ("pandas", "pyarrow"):
            raise ImportError(name)
        return known(name, *args, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MachineLacks, match=r"locks/figures\.txt"):
        load(grid)


@needs_pandas
class TestPandas:
    def test_three_lines_of_a_notebook(self, grid):
        frames = load(f"{grid.parent}/**")
        means = frames.results.groupby([BUFFERS, "strategy"]).throughput_mbps.mean()
        assert len(means) == 4
        assert frames.varied == [BUFFERS]
        for run in run_folders.below(grid):
            mine = frames.samples[frames.samples.folder == str(run)]
            user = mine[(mine.kind == "user") & (mine.id == "ue1")]
            assert list(user.mbps) == [line["user"]["ue1"]["mbps"] for line in read_samples(run)]
        assert {"t_s", "kind", "more"} <= set(frames.events.columns)
        assert len(frames.events) == sum(
            len((run / "events.jsonl").read_text().splitlines()) for run in run_folders.below(grid)
        )

    def test_the_types_are_the_same_with_and_without_rows(self, grid):
        frames = load(grid)
        types = frames.samples.dtypes
        assert (types["t_s"], types["seed"], types["backup"]) == ("float64", "int64", "boolean")
        for name in TABLES:
            frame = getattr(frames, name)
            assert frame.empty or not frame.dtypes.empty
            assert {"folder", "seed", BUFFERS} <= set(frame.columns)

    def test_runs_that_cannot_be_used_are_warned_of(self, grid):
        left_out = damage(grid)
        with pytest.warns(UserWarning, match=str(grid)) as warned:
            frames = load(grid)
        assert len(frames.results) == 5
        for folder in left_out:
            assert any(str(folder) in text for text in frames.left_out)
        assert [str(each.message) for each in warned] == frames.left_out

    def test_a_long_run_is_thinned_and_keeps_its_means(self, lab, tmp_path, monkeypatch):  # noqa: F811
        grid = tmp_path / "long"
        assert lab("run two_paths --duration 200 --quiet", "--out", grid).exit_code == 0
        exact = load(grid).samples
        monkeypatch.setattr(thinning, "FULL_BYTES", 1)
        monkeypatch.setattr(thinning, "THIN_BYTES", 1000)
        thin = load(grid).samples
        assert len(thin) < len(exact)
        assert thin.dtypes.equals(exact.dtypes)
        for frame in (exact, thin):
            frame["bits"] = frame.mbps * frame.interval_s
        totals = [each.groupby(["folder", "id"]).bits.sum() for each in (exact, thin)]
        assert (totals[0] - totals[1]).abs().max() < 1e-6

    def test_parquet_holds_what_the_frames_hold(self, lab, grid, tmp_path):  # noqa: F811
        import pandas

        got = lab("export", grid, "--parquet", tmp_path / "tables")
        assert got.exit_code == 0, got.stderr
        frames = load(grid)
        for name in TABLES:
            read = pandas.read_parquet(tmp_path / "tables" / f"{name}.parquet")
            frame = getattr(frames, name)
            assert list(read.columns) == list(frame.columns)
            for column in read.columns:
                mine, its = (list(each[column].dropna()) for each in (frame, read))
                assert mine == its, column

    def test_values_of_any_type_can_be_varied(self, lab, tmp_path):  # noqa: F811
        chosen = random.sample(["[]", "[ue2]", "[ue2, ue3]"], 2)
        words = ["--vary", f"topology.multipath={','.join(chosen)}", "--out", tmp_path / "g"]
        got = lab("run testbed_wifi_lte --engine fake --duration 1 --quiet", *words)
        assert got.exit_code == 0, got.stderr
        found = set(load(tmp_path / "g").results["topology.multipath"])
        want = {json.dumps(each) for each in ([], ["ue2"], ["ue2", "ue3"])}
        assert len(found) == 2
        assert found < want


def test_a_pattern_without_a_match_is_refused(tmp_path):
    with pytest.raises(RequestError, match="there is no such folder"):
        rows.found([f"{tmp_path}/nothing*"])


def test_edited_manifests_do_not_change_who_is_shown(grid):
    run = run_folders.below(grid)[0]
    edit_run(run, note="mine")
    assert len(rows.found([grid]).runs) == 8
