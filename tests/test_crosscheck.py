"""The page that compares both engines."""

from __future__ import annotations

import pytest
from command_line import lab  # noqa: F401 - a fixture

from lab.errors import RequestError
from lab.scenario.loading import Overrides
from papers import crosscheck, studies
from papers.studies import Case, Measured, Metric, Study

STUDY = Study(
    "testbed_wifi_lte",
    1,
    (Case("baseline", "none", ("topology.multipath=[]",)), Case("none", "none")),
    (
        Metric("WiFi", "aps.wifi1.throughput_mbps", "shared model", {"baseline": 40, "none": 30}),
        Metric("gone", "convergence_s"),
    ),
    "the paper",
    "They differ because.",
)
GOALS = Study(
    "two_paths",
    20,
    (Case("long", "none"), Case("short", "none", (), 5)),
    (
        Metric("total", "user.ue1.mbps", between_s=(1, 3), goal_percent=5, cases=("long",)),
        Metric("time", "connections.1.completion_s", goal_percent=15, cases=("short",)),
    ),
)


def result(mbps: float, seed: int = 1, **more):
    plain = {"aps": {"wifi1": {"throughput_mbps": mbps}}, "convergence_s": None, "seed": seed}
    return Measured(plain | {"status": "complete", "overloaded": False} | more)


def sampled(*rates_mbps: float, completion_s: float | None = None):
    """One sample per second with the rate of the user, and one connection."""
    frames = [
        {"t": float(t), "user": {"ue1": {"mbps": each}}} for t, each in enumerate(rates_mbps, 1)
    ]
    return Measured(result(0, connections=[{"completion_s": completion_s}]).result, frames)


FOUND = {
    ("mininet", "baseline"): [result(10), result(12, 2), result(99, 3, overloaded=True)],
    ("mininet", "none"): [result(5.5)],
    ("sim", "baseline"): [result(10), result(10, 2)],
    ("sim", "none"): [result(8), result(0, 2, status="interrupted")],
}


def test_a_section_shows_means_ranges_differences_and_ratios():
    page = crosscheck.section(STUDY, FOUND, "Made by hand.")
    assert page.startswith("## testbed_wifi_lte\n\nMade by hand.\n")
    assert (
        "| baseline | WiFi | 11.00 (10.00 to 12.00) | 10.00 (10.00 to 10.00) | -9 % | shared"
        " model |" in page
    )
    assert "| WiFi | none | 0.50 | 0.80 | 0.75 |" in page
    assert "| baseline | gone | - | - | - | independent |" in page
    assert page.endswith("They differ because.")


def test_overloaded_and_incomplete_runs_are_left_out_and_counted():
    page = crosscheck.section(STUDY, FOUND, "")
    assert "mininet 2/1, sim 2/1" in page
    assert "(overloaded or incomplete): 2." in page


def test_a_goal_is_judged_by_the_means_and_only_where_the_metric_belongs():
    found = {
        ("mininet", "long"): [sampled(0, 10, 10, 90)],
        ("mininet", "short"): [sampled(0, completion_s=1.0)],
        ("sim", "long"): [sampled(99, 10.3, 10.5, 0)],
        ("sim", "short"): [sampled(0, completion_s=1.2)],
    }
    page = crosscheck.section(GOALS, found, "")
    assert "| long | total | 10.00 | 10.40 | +4 % | 5 %: met, open, add 4 | independent |" in page
    assert (
        "| short | time | 1.00 | 1.20 | +20 % | 15 %: not met, open, add 4 | independent |" in page
    )
    assert page.count("| independent |") == 2
    assert "1 of 2 rows meet their goal in the means; 2 are open" in page
    many = {key: each * 5 for key, each in found.items()}
    page = crosscheck.section(GOALS, many, "")
    assert "| +4 % | 5 %: met | " in page
    assert "| +20 % | 15 %: not met | " in page
    assert "1 of 2 rows meet their goal in the means; 0 are open" in page
    assert "Runs of 20 or 5 s" in page


def test_what_one_engine_did_not_measure_is_not_judged():
    found = {(engine, case): [] for engine in GOALS.engines for case in ("long", "short")}
    found["mininet", "short"] = [sampled(0, completion_s=1.0)]
    found["sim", "short"] = [sampled(0, completion_s=None)]
    page = crosscheck.section(GOALS, found, "")
    assert "| short | time | 1.00 | - | - | - | independent |" in page
    assert "0 of 0 rows meet their goal in the means" in page


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("connections.1.completion_s", 2.5),
        ("connections.2.completion_s", None),
        ("aps.wifi9.throughput_mbps", None),
    ],
)
def test_a_path_counts_lists_from_one_and_may_lead_nowhere(path, number):
    assert Metric("", path).of(sampled(0, completion_s=2.5)) == number


def test_a_new_section_replaces_its_own_and_leaves_the_others(monkeypatch):
    monkeypatch.setattr(crosscheck, "STUDIES", (STUDY, GOALS))
    monkeypatch.setattr(crosscheck, "INTRODUCTION", "# New\n")
    before = (
        "# Old\n\nold words\n\n## two_paths\n\nold\n\n## by hand\n\nkept\n\n"
        "## testbed_wifi_lte\n\nkept too\n"
    )
    page = crosscheck.composed(before, {"two_paths": "## two_paths\n\nnew"})
    assert (
        page
        == "# New\n\n## testbed_wifi_lte\n\nkept too\n\n## two_paths\n\nnew\n\n## by hand\n\nkept\n"
    )
    assert crosscheck.composed(page, {}) == page


def test_the_page_that_is_there_keeps_every_section():
    text = crosscheck.PAGE.read_text(encoding="utf-8")
    assert crosscheck.composed(text, {}) == text
    assert all(
        part.splitlines()[2].startswith("Made by `") for part in crosscheck.sections(text).values()
    )


def test_an_unknown_study_is_answered_with_the_known_ones():
    with pytest.raises(
        RequestError, match=r"'three' is unknown: choose from testbed_wifi_lte, two_paths"
    ):
        crosscheck.chosen(["two_paths", "three"])


@pytest.mark.parametrize("study", studies.STUDIES, ids=lambda study: study.scenario)
def test_every_case_is_a_valid_experiment(study):
    from lab.scenario import loading as scenario

    for case in study.cases:
        duration_s = case.duration_s or study.duration_s
        scenario.load(study.scenario, Overrides(case.strategy, None, 1, duration_s, case.settings))
    named = {name for metric in study.metrics for name in metric.cases}
    assert named <= {case.name for case in study.cases}
