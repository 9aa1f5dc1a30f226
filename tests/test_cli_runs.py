"""Runs from the command line: overrides, the result, the summary, failures and Ctrl-C."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import replace

import fake_engine
import yaml
from command_line import lab, start

from lab.run.report import Overload

__all__ = ["lab"]


def test_both_forms_of_a_strategy_run_and_are_separate_groups(lab, tmp_path):
    command = "run demand_swap --engine fake --duration 1 --quiet --set strategy.cth=0.4"
    forms = "--strategy meter_throttling --strategy meter_throttling/improved"
    assert lab(f"{command} {forms} --out", tmp_path / "r").exit_code == 0
    folders = [tmp_path / "r" / f"meter_throttling{form}-1" for form in ("", "-improved")]
    params = []
    for folder, name in zip(folders, forms.split()[1::2], strict=True):
        assert json.loads((folder / "result.json").read_text())["strategy"] == name
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["strategy"] == name
        params.append(manifest["params"])
    assert [each["cth"] for each in params] == [0.4, 0.4]
    assert [each["at_floor"] for each in params] == ["keep", "backup"]
    compared = lab("compare", *folders).output
    assert "meter_throttling (n = 1" in compared
    assert "meter_throttling/improved (n = 1" in compared


def test_run_with_json_prints_only_the_result(lab, tmp_path):
    got = lab("run testbed_wifi_lte --engine fake --duration 1 --json --out", tmp_path / "r")
    result = json.loads(got.output)
    assert (got.exit_code, result["status"], result["run_id"]) == (0, "complete", "r")
    assert result == json.loads((tmp_path / "r" / "result.json").read_text())


def test_overrides_reach_the_run(lab, tmp_path):
    command = "run testbed_wifi_lte --engine fake --quiet"
    options = "--strategy meter_throttling --cc cubic --seed 7 --duration 1"
    settings = "--set strategy.params.cth=0.4 --set topology.multipath=[]"
    lab(f"{command} {settings} {options} --out", tmp_path / "r")
    written = yaml.safe_load((tmp_path / "r" / "scenario.yaml").read_text())
    assert (written["strategy"]["name"], written["strategy"]["params"]["cth"], written["seed"]) == (
        "meter_throttling",
        0.4,
        7,
    )
    assert (written["multipath"]["cc"], written["topology"]["multipath"]) == ("cubic", [])


def test_the_summary_has_access_points_users_and_the_verdict(lab, tmp_path):
    got = lab("run testbed_wifi_lte --engine fake --duration 1 --report --out", tmp_path / "r")
    for part in (
        "wifi1",
        "ue3",
        "Tier 2",
        "Multipath TCP verified: 1 extra subflow, no fallback to plain TCP",
        str(tmp_path / "r"),
    ):
        assert part in got.stdout
    assert "running 0.5 / 1 s" in got.stderr
    page = (tmp_path / "r" / "report.md").read_text()
    assert "**Question.** Which users lose" in page


def test_the_summary_of_an_overloaded_run_has_a_banner(lab, tmp_path, monkeypatch):
    overloaded = replace(fake_engine.REPORT, overload=Overload(True, ("no idle time",)))
    monkeypatch.setattr(fake_engine, "REPORT", overloaded)
    got = lab("run testbed_wifi_lte --engine fake --duration 1 --out", tmp_path / "r")
    assert "OVERLOADED" in got.stdout
    assert "no idle time" in got.stdout


def test_a_failed_run_says_why_and_exits_4(lab, tmp_path, monkeypatch):
    monkeypatch.setattr(
        fake_engine.FakeEngine, "fails_to_open", "start Open vSwitch: it is not running"
    )
    got = lab("run testbed_wifi_lte --engine fake --json --out", tmp_path / "r")
    assert (got.exit_code, json.loads(got.stdout)["status"]) == (4, "failed")
    assert "error: start Open vSwitch: it is not running" in got.stderr


def test_ctrl_c_keeps_the_run_and_exits_130(tmp_path):
    process = start(
        "run testbed_wifi_lte --engine slow --duration 3000 --json --out", tmp_path / "r"
    )
    samples = tmp_path / "r" / "samples.jsonl"
    deadline = time.monotonic() + 20
    while not (samples.exists() and samples.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"
    assert "Traceback" not in err
