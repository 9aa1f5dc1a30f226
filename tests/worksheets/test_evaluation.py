"""Checks on runs: figures, time spans, events, missing evidence."""

from __future__ import annotations

import pytest

from lab.worksheets.evaluation import RunFiles, evaluate, evaluate_number
from lab.worksheets.language import parse, parse_number

PLAIN = RunFiles(
    {
        "throughput_mbps": 12.0,
        "users": {"ue1": {"throughput_mbps": 4}},
        "connections": [{"completion_s": None}, {"completion_s": 3.5}],
        "mptcp": {"verified": True, "joins": 1},
    },
    [
        {"t": 1.0, "user": {"ue1": {"mbps": 1.0}}},
        {"t": 2.0, "user": {"ue1": {"mbps": 3.0}}},
        {"t": 4.0, "user": {"ue1": {"mbps": 9.0}}},
        {"t": 5.0, "user": {"ue1": {"mbps": None}}},
    ],
    [
        {"t": 1.0, "kind": "flip", "ok": False, "target": "link.wifi.loss", "value": 0.1},
        {"t": 2.0, "kind": "flip", "ok": True, "target": "strategy", "value": {"name": "none"}},
        {"t": 1.5, "kind": "flip", "state": "sent", "target": "link.wifi.loss", "value": 0.05},
        {"t": 3.0, "kind": "flip", "ok": True, "target": "link.wifi.loss", "value": 0.05},
        {"t": 3.5, "kind": "handover", "user": "ue2", "gap_ms": None},
    ],
)
RUNS = {"": PLAIN, "other": RunFiles({"throughput_mbps": 8.0}, [], [])}


@pytest.mark.parametrize(
    "text",
    [
        "result(throughput_mbps) > result(throughput_mbps) of other",
        "result(connections.2.completion_s) < 4",
        # Each sample counts for its interval: 1 s, 1 s and 2 s.
        "abs(mean(user.ue1.mbps, 0..5) - 5.5) < 0.001",
        "mean(user.ue1.mbps, 1..2) <= 3",
        "max(user.ue1.mbps, 0..5) >= 9 and min(user.ue1.mbps, 0..5) <= 1",
        "abs(last(user.ue1.mbps, 0..2) - 3) < 0.001",
        "flip(strategy=none) before flip(link.wifi.loss=0.05)",
        "time(flip(link.wifi.loss)) > 2",
        "count(event(flip)) <= 2 and count(event(handover, user=ue1)) < 1",
        "event(handover, gap_ms=null)",
        "multipath()",
        "not event(warning) or multipath() of other",
    ],
)
def test_checks_that_are_passed(text):
    verdict = evaluate(parse(text), RUNS)
    assert verdict.passed, verdict


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mean(user.ue1.mbps, 1..2) < 3", ""),
        ("flip(link.wifi.loss=0.1)", ""),
        ("multipath() of other", ""),
        ("flip(strategy) before event(warning)", ""),
        ("result(throughput_mbps) of third > 1", "run 'third' is missing: make it first"),
        ("mean(user.ue1.mbps, 4..5) < 3", "no sample there has this figure"),
        ("result(connections.1.completion_s) < 4", "the run has no such figure"),
        ("time(event(warning)) < 4", "the run has no such figure"),
        ("1 / (result(throughput_mbps) - 12) < 4", "the divisor is 0"),
        ("result(mptcp.verified) > 0", "the run has no such figure"),
    ],
)
def test_checks_that_are_not_passed_say_why(text, problem):
    verdict = evaluate(parse(text), RUNS)
    assert not verdict.passed
    assert problem in verdict.problem
    assert bool(problem) == bool(verdict.problem)


def test_a_verdict_holds_the_figures_that_were_looked_at():
    verdict = evaluate(
        parse("result(throughput_mbps) < 2 * result(throughput_mbps) of other"), RUNS
    )
    assert verdict.figures == (
        ("result(throughput_mbps)", 12.0),
        ("result(throughput_mbps) of other", 8.0),
    )


def test_a_number_of_a_run_is_evaluated():
    assert evaluate_number(parse_number("time(event(handover)) + 1"), RUNS)[0] == 4.5
    value, verdict = evaluate_number(parse_number("time(event(handover)) of other"), RUNS)
    assert value is None
    assert "no such figure" in verdict.problem
