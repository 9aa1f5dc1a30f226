"""Worksheet files: the shipped ones, errors, variants, marks and trials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from lab.batch.request import scenarios_of
from lab.cli.commands import cli
from lab.cli.worksheet import TRIAL_SECRET
from lab.errors import RequestError
from lab.run.reading import read_document
from lab.worksheets import consistency, loading, planning
from lab.worksheets.consistency import check_leaf
from lab.worksheets.evaluation import RunFiles
from lab.worksheets.language import Measured
from lab.worksheets.marking import mark
from lab.worksheets.planning import Seat

SHORT = """
title: A short worksheet
goals: [Say what a share is]
minutes: 5
steps:
  - text: Look at the network.
    drawing: shared_pipe
  - predict: {id: guess, ask: How much, number: {unit: Mb/s, minimum: 0, maximum: 20}}
  - run:
      id: first
      scenario: shared_pipe
      duration_s: 2
      settings: {topology.rate_mbps: {variant: [4, 8]}}
      choose: {multipath.cc: {choices: [reno, lia]}}
      flips: [cc]
  - check:
      id: some
      run: first
      that: mean(user.mp.mbps, 1..2) > 0.5
      hint: Make the run.
      why: The link is free.
  - question:
      id: rate
      ask: How fast is the user sp?
      number: {answer: "result(users.sp.throughput_mbps) of first", tolerance: 0.5}
  - question: {id: goal, ask: Which one, choice: [one, two], answer: two, points: 2}
  - question: {id: words, ask: Explain it., text: true, points: 4}
solution:
  answers: {guess: 3, goal: two, words: because}
wrong:
  - name: the other goal
    answers: {goal: one}
    fails: [goal]
"""


@pytest.fixture
def written(tmp_path):
    """Write a worksheet with changes (path of keys, value), and return the file's path."""

    def write(*changes: tuple[str, Any]) -> str:
        data = yaml.safe_load(SHORT)
        for path, value in changes:
            here, (*steps, last) = data, path.split("/")
            for step in steps:
                here = here[int(step) if step.isdigit() else step]
            here[last] = value
        file = tmp_path / "short.yaml"
        file.write_text(yaml.safe_dump(data))
        return str(file)

    return write


def test_every_shipped_worksheet_is_valid():
    assert len(loading.names()) >= 6
    for row in loading.rows():
        assert row.get("points"), row


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("steps/0/drawing", "shared_pip", "drawing: scenario 'shared_pip' is unknown"),
        ("steps/2/run/scenario", "nowhere", "run 'first': scenario 'nowhere' is unknown"),
        (
            "steps/2/run/flips",
            ["link.mars.loss"],
            "run 'first': flips: 'link.mars.loss' is unknown",
        ),
        (
            "steps/2/run/settings",
            {"topology.rate_mbps": {"variant": [4, -8]}},
            "-8 is out of range",
        ),
        (
            "steps/2/run/choose",
            {"multipath.cc": {"choices": ["reno", "rena"]}},
            "'rena' is unknown",
        ),
        (
            "steps/2/run/choose",
            {"multipath.cc": {"minimum": 1}},
            "write either choices, or minimum",
        ),
        ("steps/3/check/that", "mean(user.mp.mbps, 1..2)", "expected a condition"),
        ("steps/3/check/that", "mean(user.mp.mbps, 1..9) > 0", "goes beyond the run"),
        ("steps/3/check/that", "mean(user.mq.mbps, 1..2) > 0", "'mq' is unknown"),
        ("steps/3/check/that", "mean(user.mp.mps, 1..2) > 0", "'mps' is unknown"),
        (
            "steps/3/check/that",
            "mean(link.access1.mbps, 1..2) > 0",
            "'access1' is unknown: choose from bottleneck",
        ),
        ("steps/3/check/that", "result(user.mp) > 0", "'user' is unknown (did you mean 'users'?)"),
        ("steps/3/check/that", "flip(strategy)", "'strategy' is unknown"),
        ("steps/3/check/that", "event(hand_over)", "did you mean 'handover'?"),
        ("steps/3/check/that", "multipath() of second", "run 'second' is unknown"),
        ("steps/3/check/run", None, "it does not say which run it looks at"),
        ("steps/4/question/id", "some", "the id 'some' is used by two steps"),
        ("steps/5/question/answer", "three", "answer 'three' is not one of the choices"),
        ("steps/6/question/text", False, "write exactly one of choice, number and text"),
        ("solution/answers", {"gues": 1}, "solution: answers: 'gues' is unknown"),
        ("solution/answers", {"guess": 21}, "21 is out of range"),
        ("solution/choices", {"first": {"multipath.cc": "cubic"}}, "is not allowed. Choose"),
        ("wrong/0/fails", ["gaol"], "wrong[1].fails: 'gaol' is unknown (did you mean 'goal'?)"),
        ("steps/1/predict/number/path", "user.mp.mbps", "write run and path together"),
        (
            "steps/1/predict/number",
            {"run": "first", "path": "user.mp.mps"},
            "predict 'guess': 'user.mp.mps': 'mps' is unknown",
        ),
        (
            "steps/1/predict",
            {"id": "guess", "ask": "x", "curve": {"run": "firs", "path": "a", "maximum": 1}},
            "predict 'guess': run 'firs' is unknown",
        ),
        ("goal", ["x"], "unknown key 'goal' (did you mean 'goals'?)"),
    ],
)
def test_an_error_names_the_place_and_what_to_write(written, path, value, message):
    with pytest.raises(RequestError) as refused:
        loading.load(written((path, value)))
    assert message in str(refused.value)
    assert "short.yaml: " in str(refused.value)


@pytest.mark.parametrize("kind", ["variants", "choices", "attempts"])
def test_a_worksheet_that_takes_long_to_check_is_refused_at_once(written, kind, monkeypatch):
    run, *_ = (step["run"] for step in yaml.safe_load(SHORT)["steps"] if "run" in step)
    steps = yaml.safe_load(SHORT)["steps"]
    more: tuple[tuple[str, Any], ...] = ()
    if kind == "attempts":
        more = (("also_right", [{"name": f"{n}", "answers": {}} for n in range(400)]),)
    else:
        values = list(range(1, 65))
        wide = (
            {"settings": {key: {"variant": values} for key in ("seed", "duration_s")}}
            if kind == "variants"
            else {"choose": {"seed": {"choices": values * 2}}}
        )
        steps += [{"run": {**run, "id": f"more{n}", **wide}} for n in range(4)]
    path = written(("steps", steps), *more)
    monkeypatch.setattr(planning, "scenario_of", None)  # nothing is loaded
    with pytest.raises(RequestError, match="at most 400 are possible"):
        loading.load(path)


def test_a_date_is_text_in_iso_8601(written):
    found = loading.load(written(("results_from", "2099-01-31T18:00+01:00"))).results_from
    assert (found.hour, found.utcoffset().total_seconds()) == (18, 3600)
    with pytest.raises(RequestError, match="results_from"):
        loading.load(written(("results_from", "soon")))


def test_seats_have_variants_that_stay(written):
    run = loading.load(written()).runs["first"]
    seats = [Seat(b"secret", f"seat{n}", "short") for n in range(40)]
    rates = [planning.given(run, seat)["topology.rate_mbps"] for seat in seats]
    assert set(rates) == {4, 8}
    assert rates == [planning.given(run, seat)["topology.rate_mbps"] for seat in seats]
    assert len({seat.seed for seat in seats}) == 40
    assert Seat(b"another", "seat1", "short").seed != seats[1].seed
    assert Seat(b"secret", "seat", "1short").number("x") != Seat(
        b"secret", "seat1", "short"
    ).number("x")


def test_a_choice_outside_the_bounds_is_refused(written):
    run = loading.load(written()).runs["first"]
    seat = Seat(b"", "a", "short")
    with pytest.raises(RequestError, match=r"'topology\.rate_mbps' is unknown"):
        planning.request(run, seat, {"topology.rate_mbps": 100})
    with pytest.raises(RequestError, match="Choose 'reno', 'lia'"):
        planning.request(run, seat, {"multipath.cc": "wvegas"})


def test_unanswered_questions_are_open_and_missing_runs_fail(written):
    marks = {each.step: each for each in mark(loading.load(written()), {}, {})}
    assert [each.passed for each in marks.values()] == [None, False, None, None, None]
    assert marks["some"].verdict.problem == "the run of this check is missing: make it first"
    assert sum(each.points for each in marks.values()) == 0


def test_numbers_are_marked_by_the_students_own_run(written):
    worksheet = loading.load(written())
    runs = {"first": RunFiles({"users": {"sp": {"throughput_mbps": 2.0}}}, [], [])}
    for answer, passed in ((2.5, True), (2.51, False), (True, False), ("2", False)):
        marks = {each.step: each.passed for each in mark(worksheet, {"rate": answer}, runs)}
        assert marks["rate"] is passed, answer


def leaves(document: Any, before: str = "") -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield from leaves(value, f"{before}{key}.")
    elif isinstance(document, list):
        for n, value in enumerate(document, 1):
            yield from leaves(value, f"{before}{n}.")
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield before[:-1]


def test_a_trial_marks_the_attempts_and_keeps_its_runs(written, tmp_path):
    file = written(
        ("solution/answers", {"guess": 3, "goal": "two", "words": "because", "rate": 1.3})
    )
    argv = ["worksheet", "try", file, "--runs", str(tmp_path / "runs")]
    done = CliRunner().invoke(cli, argv)
    assert "solution: " in done.output, done.output
    assert "passed  some: mean(user.mp.mbps, 1..2) = " in done.output
    assert "failed  goal" in done.output
    folders = list((tmp_path / "runs" / "short" / "example").glob("*/none-*"))
    assert len(folders) == 1  # both attempts make the same run
    again = CliRunner().invoke(cli, argv)
    assert "1 of 1 runs exist already" in again.output
    assert again.exit_code == done.exit_code
    scenario = planning.scenario_of(loading.load(file).runs["first"], {})
    run = loading.load(file).runs["first"]
    for path in leaves(read_document(folders[0], "result.json")):
        if path.partition(".")[0] in (*consistency.results(), *consistency.NO_METRIC):
            check_leaf(Measured(path, ""), scenario, run)


def test_a_trial_of_several_seats_names_those_with_surprises(written, tmp_path):
    """Links of 4 Mb/s cannot pass this check, links of 8 Mb/s do."""
    file = written(
        ("steps/3/check/that", "mean(user.mp.mbps, 1..2) > 4"), ("steps/3/check/run", "first")
    )
    run = loading.load(file).runs["first"]
    rate = {
        seat: planning.given(run, Seat(TRIAL_SECRET, seat, "short"))["topology.rate_mbps"]
        for seat in (f"seat{n}" for n in range(20, 0, -1))
    }
    slow, fast = ({of: seat for seat, of in rate.items()}[each] for each in (4, 8))
    argv = ["worksheet", "try", file, "--runs", str(tmp_path / "runs")]
    done = CliRunner().invoke(cli, [*argv, "--seat", slow, "--seat", fast])
    last = f"1 of 2 seats as expected. Not as expected: {slow}"
    assert done.output.splitlines()[-1] == last
    alone = CliRunner().invoke(cli, [*argv, "--seats", "1"])
    assert "seat1:" not in alone.output
    assert "solution: " in alone.output
    assert done.exit_code == 4


def test_another_solution_must_pass_too(written, tmp_path):
    right = [{"name": "another choice", "choices": {"first": {"multipath.cc": "lia"}}}]
    file = written(("also_right", right), ("solution/answers", {"rate": 0, "goal": "two"}))
    argv = ["worksheet", "try", file, "--runs", str(tmp_path / "runs")]
    done = CliRunner().invoke(cli, argv)
    shown = done.output.partition("another choice: ")[2].partition("the other goal")[0]
    assert "passed  goal" in shown
    assert "failed  rate" in shown
    assert "NOT AS EXPECTED" in shown
    assert done.exit_code == 4
    right[0]["choices"] = {"first": {"multipath.cc": "cubic"}}
    with pytest.raises(RequestError, match=r"also_right\[1\]: .*is not allowed"):
        loading.load(written(("also_right", right)))


def test_an_answer_of_an_attempt_may_be_a_figure_of_its_run(written, tmp_path):
    def tried(rate):
        file = written(("solution/answers", {"goal": "two", "rate": rate}))
        argv = ["worksheet", "try", file, "--runs", str(tmp_path / "runs")]
        return CliRunner().invoke(cli, argv).output

    assert "passed  rate" in tried("result(users.sp.throughput_mbps) of first")
    assert "failed  rate" in tried("result(users.sp.throughput_mbps) of first + 0.6")
    assert "failed  rate" in tried("time(event(handover)) of first")
    with pytest.raises(RequestError, match="solution: "):
        loading.load(written(("solution/answers", {"rate": "about 3"})))


def test_a_worksheet_may_name_the_seeds_of_its_runs(written):
    run = loading.load(written(("steps/2/run/settings", {"seed": {"variant": [3, 5]}}))).runs[
        "first"
    ]
    seats = [Seat(b"secret", f"seat{n}", "short") for n in range(20)]
    made = [scenarios_of(planning.request(run, seat, {}))[0].seed for seat in seats]
    assert set(made) == {3, 5}


def test_a_trial_with_a_surprise_exits_with_4(written, tmp_path):
    file = written(("wrong/0/answers", {}))
    done = CliRunner().invoke(cli, ["worksheet", "try", file, "--runs", str(tmp_path / "runs")])
    assert done.exit_code == 4
    assert "passed  goal   NOT AS EXPECTED" in done.output


def test_lists_name_the_worksheets():
    rows = json.loads(CliRunner().invoke(cli, ["list", "worksheets", "--json"]).output)
    assert {
        "throttling",
        "collisions",
        "which_paths",
        "leaving_a_path",
        "coupled",
        "real_kernel",
    } <= {row["name"] for row in rows}
