"""A metric in a user's file: samples, result, CSV, charts, compare, worksheets and errors follow."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from dashboard import charts, exports, view
from lab import extensions, metrics
from lab.cli.commands import cli
from lab.frame import ApSample, Frame, SubflowSample, UserSample
from lab.results import compare, compare_text
from lab.results.labels import label
from lab.run.reading import declared_metrics, read_document, read_frames, read_samples
from lab.scenario import loading
from lab.worksheets import consistency, wording
from lab.worksheets.language import parse_number

ROOT = Path(__file__).resolve().parents[1]
WAITING = """
from lab.metrics import Metric

def of(frame, user):
    return sum(each.mbps for each in frame.subflows_of(user).values()) - frame.user[user].mbps

METRIC = Metric(of="user", label="waiting", unit="Mb/s", meaning="What waits.", better=-1, value=of)
"""
FULLEST = """
from lab.metrics import Metric

METRIC = Metric(
    of="run",
    label="longest queue",
    unit="packets",
    meaning="The most packets in the queue of one link.",
    value=lambda frame, _: max((each.backlog or 0 for each in frame.link.values()), default=None),
    summary=lambda samples, _: max(each.figure("run", "", "fullest") for each in samples.frames),
)
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(extensions, "_registered", {})
    monkeypatch.setattr(metrics, "_own", {})


def lab(*argv):
    return CliRunner().invoke(cli, [str(each) for each in argv])


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "my"
    folder.mkdir()
    (folder / "waiting.py").write_text(WAITING)
    (folder / "fullest.py").write_text(FULLEST)
    return folder


@pytest.fixture
def made(files, tmp_path):
    """Two runs of one scenario with both metrics; then the files are forgotten."""
    words = ("--duration", 8, "--repeat", 2, "--quiet", "--out", tmp_path / "runs")
    done = lab("run", "uneven_paths", "--with", files, "--strategy", "none", *words)
    assert done.exit_code == 0, done.output
    extensions._registered.clear()
    metrics._own.clear()
    runs = sorted(each.parent for each in (tmp_path / "runs").rglob("result.json"))
    assert len(runs) == 2
    return SimpleNamespace(runs=runs, files=files)


def test_samples_and_result_hold_the_numbers(made):
    frames, result = read_frames(made.runs[0]), read_document(made.runs[0], "result.json")
    for frame in frames:
        delivered = sum(each.mbps for each in frame.sf.values())
        assert frame.figure("user", "ue1", "waiting") == pytest.approx(
            delivered - frame.user["ue1"].mbps, abs=1e-5
        )
        longest = max(each.backlog or 0 for each in frame.link.values())
        assert frame.figure("run", "", "fullest") == longest
    values = [frame.figure("user", "ue1", "waiting") for frame in frames]
    assert any(values)
    assert result["users"]["ue1"]["waiting"] == pytest.approx(sum(values) / len(values), abs=1e-4)
    assert result["run"]["fullest"] == max(frame.figure("run", "", "fullest") for frame in frames)


def test_a_frame_is_the_same_after_writing_and_reading(made):
    for line in read_samples(made.runs[0]):
        assert Frame.from_json(line).to_json() == line


def test_the_manifest_declares_them_and_lists_the_files(made):
    manifest = read_document(made.runs[0], "manifest.json")
    assert {each["name"] for each in manifest["metrics"]} == {"waiting", "fullest"}
    kinds = {each["name"]: each["kind"] for each in manifest["extensions"]}
    assert kinds == {"waiting": "metric", "fullest": "metric"}
    assert (made.runs[0] / "extensions" / "waiting.py").read_text() == WAITING


def test_the_csv_has_their_columns(made):
    text = b"".join(exports.as_csv(made.runs[0])).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert all(row["user.ue1.waiting"] and row["run.fullest"] for row in rows)


def test_compare_names_judges_and_needs_no_file(made):
    found = compare.compared(made.runs)
    assert {"users.ue1.waiting", "run.fullest"} <= set(found.estimates)
    assert found.estimates["users.ue1.waiting"][0].n == 2
    own = declared_metrics(made.runs[0])
    assert str(label("users.ue1.waiting", own)) == "ue1: waiting, Mb/s"
    assert str(label("run.fullest", own)) == "longest queue, packets"
    assert compare.direction("users.ue1.waiting", own) == -1
    document = json.loads(compare_text.report(made.runs, as_json=True))
    assert document["labels"]["users.ue1.waiting"] == "ue1: waiting, Mb/s"


def test_the_page_draws_them_without_the_file(made):
    frames = list(read_samples(made.runs[0]))
    drawn = {each["title"]: each for each in view.charts(made.runs[0], 600)["figures"]}
    waiting = drawn["Waiting"]["figure"]
    assert waiting["layout"]["yaxis"]["title"]["text"] == "Mb/s"
    assert drawn["Waiting"]["explains"] == "What waits."
    (line,) = waiting["data"]
    assert line["meta"]["key"] == ["user", "ue1", "waiting"]
    assert line["y"] == [frame["user"]["ue1"]["waiting"] for frame in frames]
    (whole,) = drawn["Longest queue"]["figure"]["data"]
    assert whole["meta"]["key"] == ["run", "fullest"]
    assert whole["y"] == [frame["run"]["fullest"] for frame in frames]
    both = charts.of_comparison(["a", "b"], frames[-1:], declared_metrics(made.runs[0]))
    assert {"ue1: waiting", "longest queue"} <= {chart.title for chart in both}


def test_worksheets_check_and_word_them(files):
    extensions.add(files)
    scenario, run = loading.load("uneven_paths"), SimpleNamespace(flips=())
    for text in (
        *("mean(user.ue1.waiting, 2..5) of a", "max(run.fullest, 0..5) of a"),
        *("result(users.ue1.waiting) of a", "result(run.fullest) of a"),
    ):
        consistency.check_leaf(parse_number(text), scenario, run)
    for text in ("result(run.fulest) of a", "result(links.path1.loss) of a"):
        with pytest.raises(consistency.RequestError, match="is unknown"):
            consistency.check_leaf(parse_number(text), scenario, run)
    assert wording.curve("user.ue1.waiting") == wording.Label("waiting of ue1", "Mb/s")
    assert wording.curve("run.fullest") == wording.Label("longest queue", "packets")
    metrics._own.clear()
    with pytest.raises(consistency.RequestError, match="waiting"):
        consistency.check_leaf(parse_number("mean(user.ue1.waiting, 2..5) of a"), scenario, run)


def test_a_run_without_the_file_is_another_experiment(files):
    scenario = loading.load("uneven_paths")
    plain = loading.experiment(scenario, "sim")
    extensions.add(files)
    with_both = loading.experiment(scenario, "sim")
    assert plain != with_both


def test_without_such_a_metric_nothing_is_computed(monkeypatch):
    monkeypatch.setattr(metrics, "BUILT_IN", ())
    frame = metrics.Frame(1.0)
    assert metrics.with_computed(frame) is frame


@pytest.mark.parametrize("of", ["ap", "link", "user", "sf", "run"])
def test_a_metric_of_each_owner(of, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from lab.metrics import Metric\n"
        f"METRIC = Metric(of='{of}', label='mine', meaning='Mine.', value=lambda frame, n: len(n))"
    )
    extensions.add(path)
    sf = {"ue1-1/1": SubflowSample(1.0, 1, 1.0, 1, False, None, 0.0)}
    frame = metrics.with_computed(Frame(1.0, {"wifi1": ApSample()}, {}, {"ue1": UserSample()}, sf))
    owners = list(metrics.owners_in(frame, of))
    assert [frame.figure(of, each, "mine") for each in owners] == [len(each) for each in owners]
    assert Frame.from_json(frame.to_json()) == frame


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("METRIC = 3", "METRIC is no Metric"),
        ("METRIC = M(of='host', label='a', meaning='b', value=len)", "host"),
        ("METRIC = M(of='run', label=' ', meaning='b', value=len)", "label is empty"),
        ("METRIC = M(of='run', label='a', meaning='', value=len)", "meaning is empty"),
        ("METRIC = M(of='run', label='a', meaning='b')", "has no value"),
        ("METRIC = M(of='run', label='a')", "line 2"),
        ("METRIC = 1 / 0", "line 2"),
    ],
)
def test_a_wrong_declaration_is_refused_before_anything_starts(text, problem, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(f"from lab.metrics import Metric as M\n{text}\n")
    done = lab("check", "two_paths", "--with", path)
    assert done.exit_code == 2
    assert problem in done.output
    assert "mine.py" in done.output


def test_the_name_of_a_figure_of_the_lab_is_refused(tmp_path):
    path = tmp_path / "mbps.py"
    path.write_text(WAITING)
    done = lab("check", "two_paths", "--with", path)
    assert done.exit_code == 2
    assert "rename the file" in done.output


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("'much'", "neither a number nor None"),
        ("float('nan')", "neither a number nor None"),
        ("frame.nothing", "mine.py, line 4"),
    ],
)
def test_a_metric_that_fails_ends_the_run_and_names_the_file(value, problem, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from lab.metrics import Metric\n\n"
        f"def value(frame, user):\n    return {value}\n\n"
        "METRIC = Metric(of='user', label='a', meaning='b', value=value)\n"
    )
    out = tmp_path / "run"
    done = lab("run", "two_paths", "--with", path, "--duration", 2, "--quiet", "--out", out)
    assert done.exit_code == 4
    result = read_document(out, "result.json")
    assert result["status"] == "failed"
    assert problem in result["error"]


def test_declarations_of_a_damaged_manifest_are_left_out():
    good = {"of": "user", "name": "a", "label": "A", "unit": "", "meaning": "M.", "better": 0}
    rows = [good, good | {"of": "host"}, good | {"label": 3}, {"of": "user"}, "text", None]
    assert [each.name for each in metrics.declared_in({"metrics": rows})] == ["a"]
    assert metrics.declared_in({"metrics": None}) == ()


def test_formats_has_the_table_that_the_command_prints():
    page = (ROOT / "docs" / "formats.md").read_text()
    table = re.search(r"<!-- metrics -->\n(.*?)\n<!-- end -->", page, re.S).group(1)
    assert lab("list", "metrics", "--markdown").output.strip() == table


def test_list_shows_metrics_of_ones_own(files):
    rows = json.loads(lab("list", "metrics", "--with", files, "--json").output)
    assert {"user.ID.waiting", "run.fullest"} <= {row["sample"] for row in rows}
