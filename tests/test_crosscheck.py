"""The page that puts both engines beside each other."""

from __future__ import annotations

import pytest
from test_cli import lab  # noqa: F401 - a fixture

from lab import crosscheck
from lab.cli import crosscheck as crosschecking
from lab.crosscheck import Case, Metric, Study

STUDY = Study(
    "testbed_wifi_lte",
    1,
    (Case("baseline", "none", ("topology.multipath=[]",)), Case("none", "none")),
    (
        Metric("WiFi", "aps/wifi1/throughput_mbps", "shared model", {"baseline": 40, "none": 30}),
        Metric("gone", "convergence_s"),
    ),
    "the paper",
    "They differ because.",
)


def result(mbps: float, seed: int = 1, **more):
    plain = {"aps": {"wifi1": {"throughput_mbps": mbps}}, "convergence_s": None, "seed": seed}
    return plain | {"status": "complete", "overloaded": False} | more


FOUND = {
    ("mininet", "baseline"): [result(10), result(12, 2), result(99, 3, overloaded=True)],
    ("mininet", "none"): [result(5.5)],
    ("sim", "baseline"): [result(10), result(10, 2)],
    ("sim", "none"): [result(8), result(0, 2, status="interrupted")],
}


def test_the_page_shows_means_ranges_differences_and_ratios():
    page = crosscheck.page(STUDY, FOUND)
    assert "| baseline | WiFi | 11.00 (10.00 to 12.00) | 10.00 (10.00 to 10.00) | -9 % | shared model |" in page
    assert "| WiFi | none | 0.50 | 0.80 | 0.75 |" in page
    assert "| baseline | gone | - | - | - | independent |" in page
    assert page.endswith("They differ because.")


def test_runs_that_prove_nothing_are_left_out_and_said():
    page = crosscheck.page(STUDY, FOUND)
    assert "mininet 2/1, sim 2/1" in page
    assert "cut: 2." in page


def test_the_command_runs_every_case_in_both_engines_and_keeps_what_is_there(lab, monkeypatch, tmp_path, capsys):  # noqa: F811
    monkeypatch.setattr(crosscheck, "STUDIES", (STUDY,))
    monkeypatch.setattr(crosschecking, "ENGINES", ("fake", "slow"))
    monkeypatch.setattr(crosscheck, "ENGINES", ("fake", "slow"))
    monkeypatch.setattr(crosschecking, "_needs_vm", lambda: False)
    page = tmp_path / "crosscheck.md"
    assert crosschecking.main(2, tmp_path / "runs", page) == 0
    written = page.read_text()
    assert "| baseline | WiFi | 2.50 (2.50 to 2.50) | 2.50 (2.50 to 2.50) | +0 % | shared model |" in written
    assert len(list((tmp_path / "runs").glob("*/*/*/*/result.json"))) == 8
    capsys.readouterr()
    assert crosschecking.main(2, tmp_path / "runs", page) == 0
    assert capsys.readouterr().err.count("2 of 2 runs are there already") == 4


@pytest.mark.parametrize("study", crosscheck.STUDIES, ids=lambda study: study.scenario)
def test_every_case_is_a_valid_experiment(study):
    from lab import scenario

    for case in study.cases:
        scenario.load(study.scenario, scenario.Overrides(case.strategy, None, 1, study.duration_s, case.settings))
