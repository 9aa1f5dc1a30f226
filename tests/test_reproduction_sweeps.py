"""Sweeps over settings that a paper does not state, and causes of disagreement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import committed, lab  # noqa: F401 - fixtures

from controller.units import mbps_from_bps
from lab.cli.terminal import Terminal
from lab.radio.contention import transmissions
from lab.results.documents import FinishedRun
from lab.scenario.loading import Overrides, load
from lab.topologies.wireless_set import Params, build
from papers import rat_study_runs
from papers.base import Case, Claim, Paper, cases_of
from papers.list import PAPERS
from papers.mp_sdn import by_equations
from papers.page import STACK_TITLES, TOO_FEW, UNDECIDED, Origin, cause
from papers.page import figure as figure_of
from papers.page import page as page_of
from papers.relations import Constant, Quotient, Relation, Value
from papers.runs import Folders, reproduce, vary
from papers.sweep_page import figure, sweep_page
from papers.sweep_table import SWEEPS
from papers.sweeps import Point, Sweep, point, with_cases

PHASES = (
    *("wifi_before", "lte_before", "wifi_lossy", "lte_lossy", "wifi_late", "lte_late"),
    *("wifi_lossy_most", "wifi_back_most"),
)
EVERY = [(name, sweep) for name, sweeps in SWEEPS.items() for sweep in sweeps]


def above(limit, case="a"):
    return Relation(Value(case, "T", f"T({case})"), ">", Constant(limit))


@pytest.mark.parametrize(("name", "sweep"), EVERY, ids=[f"{n}-{s.name}" for n, s in EVERY])
def test_every_value_of_a_setting_loads(name, sweep):
    assert all(claim.relations for claim in sweep.claims)
    assert [each.is_page for each in sweep.points].count(True) == 1
    assert len({each.label for each in sweep.points}) == len(sweep.points)
    usual = sweep.cases(PAPERS[name], Point("usual"))
    assert set(usual) <= set(PAPERS[name].cases)
    for each in sweep.points:
        case = sweep.cases(PAPERS[name], each)[-1]
        wanted = Overrides(case.strategy, case.cc, 1, case.duration_s, case.settings)
        loaded = load(case.scenario, wanted)
        usual_case = next(each for each in usual if each.name == case.name)
        unchanged = load(case.scenario, replace(wanted, settings=usual_case.settings))
        assert (loaded == unchanged) == (each.settings is None)


@pytest.mark.parametrize(("name", "sweep"), EVERY, ids=[f"{n}-{s.name}" for n, s in EVERY])
def test_values_with_the_same_runs_have_the_same_settings(name, sweep):
    case = sweep.cases(PAPERS[name], Point("usual"))[0]
    by_folder: dict[str, set[tuple[str, ...]]] = {}
    for each in sweep.points:
        if each.settings:
            by_folder.setdefault(each.folder, set()).add(each.settings(case))
    assert all(len(settings) == 1 for settings in by_folder.values())


def test_a_claim_keeps_the_relations_whose_cases_fit():
    claims = (Claim("1", "S", "", (above(1), above(1, "b"))), Claim("2", "S", "", (above(1),)))
    (kept,) = with_cases(claims, ("1",), lambda case: case == "b")
    assert kept.relations == (above(1, "b"),)
    assert kept.verdict({"b": [{"T": 5.0}] * 5}) == "open"  # the other relation was not run


def test_a_page_of_series_judges_every_claim_with_every_value():
    claims = (Claim("1", "S", "", (above(1), above(3))), Claim("2", "S", "", (above(5),)))
    points = (point("low", "x=1"), Point("usual"), point("high", "x=9"))
    sweep = Sweep("s", "A setting", "About it.", claims, points)
    paper = Paper("p", "Paper", (Case("a", "pooling"),), lambda *_: {}, str)
    by_point = [{"a": [{"T": each}] * 5} for each in (2.0, 4.0, 6.0)]
    found = {"paper": {"s": by_point}}
    page = sweep_page(paper, [sweep], found, Origin(3, 9, "commit abc", 1.0, 2, ""))
    assert "| claim | low | usual (page) | high |" in page
    (first,) = [line for line in page.splitlines() if line.startswith("| 1 |")]
    assert [cell.split(":")[0] for cell in first[2:-2].split(" | ")] == [
        "1",
        *("disagrees", "agrees", "agrees"),
    ]
    bars = ElementTree.fromstring(figure(sweep, found)).findall("{*}g/{*}rect")
    high = [float(each.attrib["height"]) for each in bars if each.attrib["width"] != "10.0"]
    assert high == [pytest.approx(share * high[1], abs=0.2) for share in (0.5, 1, 1, 0, 0, 1)]


@pytest.mark.whole
def test_the_usual_value_uses_the_runs_of_the_page(tmp_path):
    folders = Folders(tmp_path / "runs", tmp_path / "pages")
    case = Case("a", "rat_setup_1", ("traffic_volume_mb=0.1",), "reno", duration_s=5)
    measure = rat_study_runs.measure
    claims = (Claim("1", "S", "text", (above(0.0),)),)
    PAPERS["tiny"] = Paper("tiny", "Tiny", (case,), measure, lambda _found: "", claims)
    points = (Point("usual"), point("long way", "topology.lte_rtt_ms=300"))
    series = Sweep("s", "A setting", "", claims, points)
    same = replace(
        series, name="t", points=(Point("as usual"), point("longer", "topology.lte_rtt_ms=200"))
    )
    by_name = dict(SWEEPS) | {"tiny": (series, same)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("papers.runs.SWEEPS", by_name)
        patch.setattr("papers.page.OPENINGS", {})
        try:
            assert reproduce("tiny", 2, Terminal(), folders, ("paper",))
            page = vary("tiny", 2, Terminal(), folders)
        finally:
            del PAPERS["tiny"]
    assert page == tmp_path / "pages" / "tiny_sensitivity.md"
    assert "seeds 1 to 2" in page.read_text()
    assert "6 runs" in page.read_text()  # both series share two of them
    assert (tmp_path / "pages" / "tiny_s.svg").is_file()
    paper = tmp_path / "runs" / "tiny" / "paper"
    assert {each.name for each in paper.iterdir()} == {"a", "varied"}
    assert [each.name for each in (paper / "varied" / "s").iterdir()] == ["long_way"]


def test_what_cannot_be_varied_is_refused(lab, committed):  # noqa: F811
    for args, why in (
        (("s_mptcp",), "choose from dtmc, mp_sdn, mptcp_la, rat_study"),
        (("dtmc", "--quick"), "exclude each other"),
        (("dtmc", "--engine", "mininet"), "belongs to --engine sim"),
    ):
        refused = lab("reproduce", *args, "--sensitivity")
        assert refused.exit_code == 2
        assert why in refused.stderr


@pytest.mark.parametrize("name", ["mptcp_la", "rat_study"])
def test_quick_cases_are_some_of_all_cases(name):
    paper = PAPERS[name]
    quick = paper.quick
    assert {each.name for each in quick.cases} < {each.name for each in paper.cases}
    assert cases_of(quick.claims) <= {each.name for each in quick.cases}
    judged = [each.name for each in paper.claims if each.judged]
    assert [each.name for each in quick.claims if each.judged] == judged
    assert all(each.relations for each in quick.claims)
    numbers = dict.fromkeys((*"TWL", *PHASES), 5.0)
    found = {stack: {each.name: [numbers] * 2 for each in quick.cases} for stack in STACK_TITLES}
    text = page_of(quick, found, Origin(3, 8, "commit abc", 1.0, 2, " --quick"))
    assert "without `--quick`" in text
    assert figure_of(quick, found)


def test_a_claim_that_does_not_agree_has_a_cause():
    high, low = {"a": [{"T": 9.0}] * 5}, {"a": [{"T": 1.0}] * 5}
    claim = Claim("1", "S", "", (above(5),))
    both, one, none = (
        {"paper": each, "linux": other} for each, other in ((high, high), (high, low), (low, low))
    )
    assert cause(claim, both, STACK_TITLES) == ""
    assert cause(claim, one, STACK_TITLES) == "the stack: it holds with the papers' kernel"
    assert cause(claim, none, STACK_TITLES) == UNDECIDED
    few = {"a": high["a"][:4]}
    assert cause(claim, {"paper": high, "linux": few}, STACK_TITLES) == TOO_FEW
    with_few = cause(claim, {"paper": low, "linux": few}, STACK_TITLES)
    assert with_few == "the stack: it is open with today's Linux"
    known = Claim("1", "S", "", (above(5),), cause="setting")
    assert cause(known, one, STACK_TITLES) == "a setting that the paper does not state"


def test_runs_of_a_seed_are_compared_with_each_other():
    """Seeds differ by a factor of nine, but with each seed `b` is a tenth larger."""
    found = {
        "a": [{"T": each} for each in (1.0, 2.0, 4.0, 6.0, 9.0)],
        "b": [{"T": 1.1 * each} for each in (1.0, 2.0, 4.0, 6.0, 9.0)],
    }
    a, b = (Value(name, "T", name) for name in found)
    assert Relation(b, ">", a).judgement(found).said == "holds"
    assert Relation(a, ">", b).judgement(found).said == "fails"
    ratio = Quotient(b, a, "b/a")
    assert ratio.of(found) == pytest.approx([1.1] * 5)
    assert ratio.cases() == {"a", "b"}
    assert ratio.shown(found) == "b/a 1.1"
    assert Relation(ratio, ">", Constant(1.0)).judgement(found).said == "holds"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_user_alone_gets_what_its_link_carries(seed):
    params = Params(users=1, multipath_percent=100)
    rates = {
        cell.kind: each.rate_bps
        for cell in build(params, seed=seed).cells
        for each in cell.stations
    }
    wanted = mbps_from_bps(rates["lte"]) + mbps_from_bps(rates["wifi"]) / transmissions(2)
    assert by_equations(params, [seed]).multi == pytest.approx(wanted, rel=1e-3)


def test_more_multipath_users_get_less_by_the_equations():
    few, many = (by_equations(Params(multipath_percent=each), range(1, 6)) for each in (20, 80))
    assert many.multi < few.multi
    assert many.total < few.total


def test_a_node_is_measured_to_its_last_connection_or_by_the_sum_or_from_its_start():
    """Two connections of 1 MB; the second ends after 4 s: 4 Mb/s, three quarters of it by WiFi."""

    def connection(done_s, wifi, lte):
        subflows = [
            {"path": ["n1", "wifi1", "wifi2"], "throughput_mbps": wifi},
            {"path": ["n1", "lte1"], "throughput_mbps": lte},
        ]
        return {
            "user": "ue1",
            "completion_s": done_s,
            "throughput_mbps": wifi + lte,
            "subflows": subflows,
        }

    result = {
        "duration_s": 8.0,
        "users": ["ue1"],
        "connections": [connection(2.0, 0.5, 0.5), connection(4.0, 1.0, 0.0)],
    }
    run = FinishedRun(result, Path())
    got = rat_study_runs.measure(Case("", ""), run)
    assert got == pytest.approx({"T": 4.0, "W": 3.0, "L": 1.0})
    added = rat_study_runs.measure_each_connection(Case("", ""), run)
    assert added == pytest.approx({"T": 6.0, "W": 4.5, "L": 1.5})  # 8 Mbit in 2 s and in 4 s
    later = rat_study_runs.measure_with_start(4.0)(Case("", ""), run)
    assert later == pytest.approx({"T": 2.0, "W": 1.5, "L": 0.5})
