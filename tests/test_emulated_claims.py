"""Claims of papers, checked in the emulation beside the simulator."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_line import committed, lab  # noqa: F401 - fixtures

from lab.batch import jobs
from lab.cli.terminal import Terminal
from lab.errors import RequestError
from lab.run.outcome import EXIT_INTERRUPTED, Outcome
from lab.scenario import engine_table
from papers import emulated_claims, paired_runs
from papers.base import Case, Claim, Paper, cases_of
from papers.emulated_claims import (
    CLAIMS,
    EMULATION,
    Emulation,
    chosen,
    fitting_cases,
    not_chosen,
    restricted,
)
from papers.emulated_runs import reproduce_in_emulation
from papers.list import PAPERS
from papers.paired_runs import PairedRuns
from papers.relations import Constant, Relation, Value

PAIR = ("fake", "slow")  # in place of the emulation and the simulator


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_needs_cases_of_its_paper(paper):
    known = {case.name for case in PAPERS[paper].cases}
    for claim in CLAIMS[paper]:
        assert cases_of([claim])
        assert cases_of([claim]) <= known, claim.name
    names = {claim.name for claim in CLAIMS[paper]}
    assert set(EMULATION[paper].claims) <= names
    assert {claim.name for claim, _ in not_chosen(paper)} == names - set(EMULATION[paper].claims)


@pytest.mark.parametrize(
    ("paper", "claims", "count"),
    [
        ("mp_sdn", "1 2 3 4 5", 13),
        (
            "s_mptcp",
            "T9, T10|T9, disjoint|T9, hash|T10, order|T7, total|T7, SD|T7, time|T7, wVegas",
            11,
        ),
        ("mptcp_la", "5|5, 50|6, LA|6, LTE|6, after", 2),
        ("dtmc", "5, chosen|", 24),
        ("rat_study", "S4 S5 H1", 21),
    ],
)
def test_the_claims_that_fit_and_the_number_of_their_cases(paper, claims, count):
    wanted = [each for each in claims.split("|" if "|" in claims else " ") if each]
    found = chosen(paper, [])
    assert sorted(each.name for each in found) == sorted(wanted)
    assert len(fitting_cases(PAPERS[paper], found)) == count


def test_a_claim_keeps_the_relations_whose_cases_fit():
    (claim,) = chosen("mp_sdn", ["2"])
    part = restricted("mp_sdn", claim, {}, {})
    assert (len(part.part.relations), len(claim.relations)) == (8, 12)
    assert all("-40-" in case or "-80-" in case or "-0-" in case for case in part.cases)
    assert part.not_run == [
        f"down-{share}-{strategy}-{cc}"
        for share in (20, 60)
        for strategy in ("meter_throttling",)
        for cc in ("olia", "reno")
    ]
    found = {case: [{"T": 60.0}] * 5 for case in part.cases}
    (equal,) = chosen("mp_sdn", ["1"])
    part_of_1 = restricted("mp_sdn", equal, {}, {}).part
    assert part_of_1.not_run == len(equal.relations) - len(part_of_1.relations) == 4
    assert part.part.part(lambda each: each.operator == "~").verdict(found) == "open"
    refused = restricted("mp_sdn", claim, {"down-80-none-olia": "there is no olia"}, {})
    assert (len(refused.part.relations), refused.refused) == (6, "there is no olia")


@pytest.mark.parametrize(("scale", "floor_mbps"), [(1, 0.1), (0.5, 0.1), (0.1, 0.5)])
def test_the_floor_of_tier_2_is_the_one_that_the_rate_scale_allows(scale, floor_mbps):
    """A meter is at least 50 kb/s on the wire."""
    (claim,) = chosen("mp_sdn", ["5"])
    scales = dict.fromkeys(cases_of([claim]), scale)
    part = restricted("mp_sdn", claim, {}, scales).part
    assert [each.right.value for each in part.relations] == [pytest.approx(floor_mbps)] * 6
    assert [each.times for each in part.relations] == [0.5, 2] * 3


def test_claims_that_do_not_fit_are_refused_with_the_time_that_they_take():
    with pytest.raises(
        RequestError, match=r"'8' is not checked .*: outside the chosen set; its 4 cases .* 0\.1 h"
    ):
        chosen("mp_sdn", ["4", "8"])
    with pytest.raises(RequestError, match="claim '99' is unknown: choose from 1, 2, 3"):
        chosen("mp_sdn", ["99"])


def total(case: str) -> Value:
    return Value(case, "T", f"T({case})")


@pytest.fixture
def tiny(lab, monkeypatch, tmp_path):  # noqa: F811
    """A function that checks claims of a paper with two cases and three claims."""
    cases = (
        Case("pipe", "shared_pipe", strategy="none", duration_s=1),
        Case("pool", "pooling", strategy="none", duration_s=1),
    )
    claims = (
        Claim("1", "S", "The pipe carries 2", (Relation(total("pipe"), "~", Constant(2.0)),), True),
        Claim("2", "M", "The pool carries more", (Relation(total("pool"), ">", total("pipe")),)),
        Claim("3", "W", "Far too long", (Relation(total("pool"), ">=", Constant(1.0)),)),
    )
    measure = lambda _case, run: {"T": run.result["throughput_mbps"]}  # noqa: E731
    paper = Paper("tiny", "Tiny", cases, measure, lambda _found: "")
    monkeypatch.setitem(PAPERS, "tiny", paper)
    monkeypatch.setitem(CLAIMS, "tiny", claims)
    monkeypatch.setitem(EMULATION, "tiny", Emulation(("1", "2")))
    monkeypatch.setattr(paired_runs, "needs_vm", lambda: False)
    monkeypatch.setattr(jobs, "side_by_side", jobs._in_turn)
    for name in PAIR:
        entry = replace(engine_table.ENGINES[name], schedulers=("linux",), real_time=name == "fake")
        monkeypatch.setitem(engine_table.ENGINES, name, entry)

    def check(*names, repeat=5, pages="."):
        runs = PairedRuns(repeat, tmp_path / "runs", Terminal(), None, PAIR)
        return reproduce_in_emulation("tiny", names, runs, tmp_path / pages)

    return check


def test_each_claim_has_the_verdict_of_both_engines(tiny, tmp_path):
    assert tiny() == tmp_path / "tiny_mininet.md"
    text = (tmp_path / "tiny_mininet.md").read_text()
    figures = "1 of 1: T(pipe) 2 ~ 2"
    assert (
        f"| 1 | S, judged | The pipe carries 2 | 1 of 1 | agrees | agrees | {figures} | {figures} |"
        in text
    )
    assert tiny(repeat=2, pages="few")
    few = (tmp_path / "few" / "tiny_mininet.md").read_text()
    figures = "0 of 1: T(pipe) 2 ~ 2 (open, add 3)"
    assert f"| 1 of 1 | open | open | {figures} | {figures} |" in few
    assert "| 3 | Far too long | outside the chosen set; its 1 cases take 0.0 h" in text
    assert "| pipe | 1 | 1 | 5 of 5 | 5 of 5 | fake on Linux" in text
    assert len(list((tmp_path / "runs" / "tiny").rglob("result.json"))) == 20


def test_a_named_claim_runs_its_own_cases_and_leaves_the_other_rows(tiny, tmp_path):
    assert tiny("1")
    first = (tmp_path / "tiny_mininet.md").read_text()
    assert "| pool |" not in first
    assert {path.name for path in (tmp_path / "runs" / "tiny" / "fake").iterdir()} == {"pipe"}
    assert tiny("2")
    text = (tmp_path / "tiny_mininet.md").read_text()
    assert all(
        line in text for line in first.splitlines() if line.startswith(("| 1 |", "| pipe |"))
    )
    row = "| 2 | M | The pool carries more | 1 of 1 |"
    assert row in text
    assert row not in first


def test_a_case_that_the_emulation_refuses_makes_no_verdict(tiny, monkeypatch, tmp_path):
    entry = replace(engine_table.ENGINES["fake"], cc=("reno",), lacks={"cc": "it has one"})
    monkeypatch.setitem(engine_table.ENGINES, "fake", entry)
    assert tiny()
    text = (tmp_path / "tiny_mininet.md").read_text()
    reason = "cc 'lia' on engine 'fake': it has one. Choose from: reno"
    assert f"| 0 of 1; not run: pipe; refused: {reason} | refused | refused | - | - |" in text
    assert f"| pipe | - | - | refused: {reason} | - | - |" in text
    assert not (tmp_path / "runs" / "tiny" / "slow" / "pipe").exists()


def test_a_case_with_overloaded_runs_only_makes_no_verdict(tiny, monkeypatch, tmp_path):
    run_one = Terminal.run

    def overloaded(self, job):
        outcome = run_one(self, job)
        if (job.engine, job.scenario.name) != ("fake", "pooling"):
            return outcome
        return mark(outcome, {"overloaded": True, "overload": {"reasons": ["too busy"]}})

    monkeypatch.setattr(Terminal, "run", overloaded)
    assert tiny()
    text = (tmp_path / "tiny_mininet.md").read_text()
    assert "| not judged: no valid run of 1 cases, such as pool | " in text
    assert "| pool | 1 | 1 | 0 of 5; 5 overloaded: too busy | 5 of 5 |" in text


def mark(outcome: Outcome, values) -> Outcome:
    """Change values in a finished run's result.json."""
    result = outcome.result | values
    (outcome.folder / "result.json").write_text(json.dumps(result))
    return replace(outcome, result=result)


def test_a_run_without_the_numbers_of_the_paper_is_left_out(tiny, monkeypatch, tmp_path):
    def too_short(_case, _run):
        raise ZeroDivisionError("mean of nothing")

    monkeypatch.setitem(PAPERS, "tiny", replace(PAPERS["tiny"], measure=too_short))
    assert tiny("1")
    text = (tmp_path / "tiny_mininet.md").read_text()
    assert "0 of 5; 5 not measured: ZeroDivisionError: mean of nothing" in text
    assert "not judged: no valid run of 1 cases, such as pipe" in text


def test_an_interruption_leaves_the_page_and_keeps_the_runs(tiny, monkeypatch, tmp_path):
    made, run_one = [], Terminal.run

    def interrupted(self, job):
        outcome = run_one(self, job)
        made.append(job.engine)
        if len(made) == 15:
            return replace(mark(outcome, {"status": "interrupted"}), exit_code=EXIT_INTERRUPTED)
        return outcome

    monkeypatch.setattr(Terminal, "run", interrupted)
    assert tiny() is None
    assert not (tmp_path / "tiny_mininet.md").exists()
    assert tiny()
    assert made == ["slow"] * 10 + ["fake"] * 5 + ["fake"] * 6


def test_options_of_the_emulation_are_refused_in_the_simulator(lab, committed):  # noqa: F811
    refused = lab("reproduce", "mp_sdn", "--claim", "4")
    assert refused.exit_code == 2
    assert "--claim and --duration belong to --engine mininet" in refused.stderr
    refused = lab("reproduce", "mp_sdn", "--engine", "mininet", "--claim", "8")
    assert refused.exit_code == 2
    assert "'8' is not checked in the emulation" in refused.stderr


def test_the_time_of_a_claim_counts_the_start_of_each_run():
    (claim,) = (each for each in CLAIMS["rat_study"] if each.name == "H2")
    assert emulated_claims.reason_against("rat_study", claim).endswith(
        "its 3 cases take 0.1 h for each seed"
    )
