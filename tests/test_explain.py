"""`compare` and `--report` say what the changes of a run did, in the words of its page."""

from __future__ import annotations

import re

import pytest

from dashboard.finished import summary
from lab.results import compare_text
from lab.results.explain.changes import NO_CAUSE
from lab.results.explain.stretches import told
from lab.results.store import Store

SCENARIO = """\
name: cut
title: A path that becomes slow
topology: {kind: parallel_paths, paths: [{rate_mbps: 20, delay_ms: 10}, {rate_mbps: 12, delay_ms: 30}]}
traffic: [{user: ue1, kind: bulk, direction: down}]
events: [{at_s: 12, target: link.path1.rate_mbps, value: 4}]
duration_s: 24
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of a scenario with a change, and one run without it."""
    from click.testing import CliRunner

    from lab.cli.commands import cli

    folder = tmp_path_factory.mktemp("explained")
    file = folder / "cut.yaml"
    file.write_text(SCENARIO)
    calls = [
        [
            "run",
            str(file),
            "--seed",
            "1",
            "--report",
            "--quiet",
            "--out",
            str(folder / "runs" / "one"),
        ],
        ["run", str(file), "--seed", "2", "--quiet", "--out", str(folder / "runs" / "two")],
        [
            "run",
            str(file),
            "--set",
            "events=[]",
            "--report",
            "--quiet",
            "--out",
            str(folder / "runs" / "plain"),
        ],
    ]
    for argv in calls:
        assert CliRunner().invoke(cli, argv, catch_exceptions=False).exit_code == 0
    return folder / "runs"


def test_it_names_the_change_its_size_and_its_cause(runs):
    text = told(runs / "one")
    assert "path1" in text
    assert "12.0" in text
    assert re.search(r"all users got [\d.]+ instead of [\d.]+ Mb/s \(.*%\)", text)
    assert "Why: " in text or NO_CAUSE in text


def test_report_and_compare_and_the_page_say_the_same(runs):
    text = told(runs / "one")
    assert all(line in (runs / "one" / "report.md").read_text() for line in text.splitlines())
    assert text in compare_text.report([runs / "one", runs / "two"])
    assert text in compare_text.report([runs / "one", runs / "two"], as_markdown=True)
    store = Store(runs)
    store.reindex()
    assert summary(store, runs / "one")["verdict"] == text


def test_a_run_without_changes_is_not_explained(runs):
    assert told(runs / "plain") == ""
    assert "What the changes did" not in (runs / "plain" / "report.md").read_text()
    assert "What the changes did" not in compare_text.report([runs / "plain"])


STOPPED = {
    "link": SCENARIO.replace("down}", "down, parallel: 2}")
    .replace("value: 4}", "value: 0}, {at_s: 18, target: TARGET, value: 20}")
    .replace("TARGET", "link.path1.rate_mbps"),
    "station": """\
name: station
title: A station that stops
topology:
  kind: wifi_lte
  users: [{id: ue1, wifi_mbps: 10, lte_mbps: 8}, {id: ue2, near: lte, lte_mbps: 8}]
  multipath: [ue1]
traffic: [{user: all, kind: bulk}]
events: [{at_s: 8, target: cell.lte1.ue2.rate_mbps, value: 0}]
duration_s: 20
""",
}


@pytest.mark.parametrize("name", STOPPED)
def test_what_is_stopped_is_explained(name, tmp_path):
    from click.testing import CliRunner

    from lab.cli.commands import cli

    (tmp_path / "stopped.yaml").write_text(STOPPED[name])
    argv = ["run", str(tmp_path / "stopped.yaml"), "--report", "--quiet", "--out"]
    run = tmp_path / "runs" / "one"
    assert CliRunner().invoke(cli, [*argv, str(run)], catch_exceptions=False).exit_code == 0
    assert "0 Mb/s instead of" in told(run)
    if name == "link":
        assert "now path1 is stopped (rate 0)" in told(run)
    assert (
        CliRunner().invoke(cli, ["compare", str(run.parent)], catch_exceptions=False).exit_code == 0
    )
