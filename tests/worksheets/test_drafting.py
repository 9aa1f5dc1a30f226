"""Worksheets that are made from finished runs: they hold for each seed, and errors are one line."""

from __future__ import annotations

import json
import math
import shutil

import pytest
from click.testing import CliRunner
from run_edits import edit_run

from lab.batch import jobs
from lab.batch.request import Request, placed
from lab.cli.commands import cli
from lab.cli.terminal import Terminal
from lab.errors import RequestError
from lab.scenario.yaml_text import read
from lab.worksheets import drafting, loading, trial
from lab.worksheets.drafting import Asked
from lab.worksheets.planning import Seat

EVENT = "events=[{at_s: 1, target: link.path1.rate_mbps, value: 2}]"
RUNS = {
    "plain": ("two_paths", None, ()),
    "set": (
        "two_paths",
        "loss_aware",
        ("topology.paths.1.delay_ms=40", "strategy.params.stay_s=3"),
    ),
    "planned": ("two_paths", None, (EVENT,)),
    "cells": ("testbed_wifi_lte", "meter_throttling", ("topology.multipath=[ue2]",)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Finished runs of two seconds, by name."""
    out = tmp_path_factory.mktemp("drafts")
    asked = [
        job
        for name, (scenario, strategy, settings) in RUNS.items()
        for job in placed(
            Request(
                scenario,
                "sim",
                (strategy,) if strategy else (),
                seed=7,
                duration_s=2,
                settings=settings,
                speed="max",
                out=out / name,
            )
        )
    ]
    ended = jobs.run_all(asked, Terminal())
    return dict(zip(RUNS, [each.folder for each in ended], strict=True))


def drafted(tmp_path, folder, *asked):
    path = tmp_path / "mine.yaml"
    path.write_text(drafting.draft(folder, asked))
    return path, loading.load(str(path))


@pytest.mark.parametrize("name", RUNS)
def test_a_drafted_worksheet_is_right_for_another_seat(made, tmp_path, name):
    folder = made[name]
    user = next(iter(json.loads((folder / "result.json").read_text())["users"]))
    path = f"user.{user}.mbps"
    asked = (Asked(path), Asked(f"max({path}, 1..2)", curve=True), Asked("result(fairness.jain)"))
    _, sheet = drafted(tmp_path, folder, *asked)
    making = trial.Making(Seat(b"a test", "other", "mine"), tmp_path / "runs")
    ((solution, *wrong),) = trial.make(sheet, [making], Terminal())
    assert all(each.passed for each in solution.marks)
    assert [each.surprises for each in wrong] == [()] * len(wrong)
    assert [each.passed for each in wrong[0].marks if each.step.startswith("figure")] == [False] * 3


def test_a_drafted_run_has_the_settings_of_the_run_and_another_seed(made, tmp_path):
    _, sheet = drafted(tmp_path, made["set"], Asked("user.ue1.mbps"))
    step = sheet.runs["measured"]
    assert (step.strategy, step.duration_s) == ("loss_aware", 2)
    assert step.settings["strategy.params.stay_s"] == 3
    assert "seed" not in step.settings
    assert {key.partition(".")[0] for key in step.settings} == {"topology", "strategy"}
    _, plain = drafted(tmp_path, made["plain"], Asked("user.ue1.mbps"))
    assert plain.runs["measured"].settings == {}
    _, planned = drafted(tmp_path, made["planned"], Asked("user.ue1.mbps"))
    (event,) = planned.runs["measured"].settings["events"]
    assert (event["at_s"], event["target"], event["value"]) == (1, "link.path1.rate_mbps", 2)


def test_changes_by_hand_are_asked_for(made, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(made["plain"], folder)
    flip = {"t": 1.0, "target": "link.path1.loss", "old": 0, "value": 0.05, "state": "applied"}
    edit_run(folder, flips=[flip | {"ok": True}])
    _, sheet = drafted(tmp_path, folder, Asked("user.ue1.mbps"))
    assert sheet.runs["measured"].flips == ("link.path1.loss",)
    making = trial.Making(Seat(b"a test", "other", "mine"), tmp_path / "runs")
    ((solution, misread, unchanged),) = trial.make(sheet, [making], Terminal())
    assert all(each.passed for each in solution.marks)
    assert (misread.surprises, unchanged.surprises) == ((), ())
    assert unchanged.fails == {"change_1"}


def test_each_figure_of_the_list_can_be_asked_for(made, tmp_path):
    for name in ("plain", "cells"):
        known = drafting.figures(made[name])
        assert len({each.text for each in known}) == len(known) > 8
        for start in range(0, len(known), drafting.MOST_FIGURES):
            part = known[start : start + drafting.MOST_FIGURES]
            _, sheet = drafted(tmp_path, made[name], *(Asked(each.text) for each in part))
            assert len(sheet.tasks) == 2 * len(part) + 1


@pytest.mark.parametrize(
    ("figure", "curve", "said"),
    [
        ("user.ue9.mbps", False, "ue9"),
        ("mean(user.ue1.mbps, 0..9)", False, "goes beyond the run"),
        ("abs(result(throughput_mbps))", False, "list figures RUN"),
        ("mean(user.ue1.mbps", False, "user.ue1.mbps"),
        ("result(throughput_mbps)", True, "only a figure of samples"),
    ],
)
def test_a_figure_that_cannot_be_asked_for_is_named(made, figure, curve, said):
    with pytest.raises(RequestError, match=said):
        drafting.draft(made["plain"], [Asked(figure, curve)])


@pytest.mark.parametrize("value", [1e-9, 0.013, 0.5, 1, 9.99, 10, 12.5, 99999, 123456.7])
def test_the_end_of_an_axis_is_above_the_value_and_short(value):
    end = drafting._nice(value)
    assert value <= end <= 2 * value * (1 + 1e-9)
    assert len(f"{end / 10 ** math.floor(math.log10(end)):.6g}") <= 3


def test_the_commands_name_figures_and_write_a_file(made, tmp_path):
    run = str(made["plain"])
    listed = CliRunner().invoke(cli, ["list", "figures", run])
    assert "mean(user.ue1.mbps, 0..2)" in listed.output
    out = tmp_path / "mine.yaml"
    argv = ["worksheet", "new", "--from", run, "--title", "Mine", "--out", str(out)]
    done = CliRunner().invoke(cli, [*argv, "--curve", "user.ue1.mbps"])
    assert (done.exit_code, "worksheet try" in done.output) == (0, True), done.output
    assert read(out)["title"] == "Mine"
    again = CliRunner().invoke(cli, argv)
    assert (again.exit_code, "there already" in again.output) == (2, True)
    missing = CliRunner().invoke(cli, ["worksheet", "new", "--from", "no_such_run"])
    assert (missing.exit_code, "no run folder" in missing.output) == (2, True)


def test_a_run_that_did_not_complete_is_refused(made, tmp_path):
    folder = tmp_path / "stopped"
    shutil.copytree(made["plain"], folder)
    edit_run(folder, status="interrupted")
    with pytest.raises(RequestError, match="not complete"):
        drafting.draft(folder, [Asked("user.ue1.mbps")])
