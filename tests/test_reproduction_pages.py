"""Pages of reproduced papers: every claim is judged with both MPTCP stacks, and the page says by
which runs."""

from __future__ import annotations

import json
import time
from xml.etree import ElementTree

import pytest
import yaml
from command_line import committed, lab, start  # noqa: F401 - fixtures

from lab.batch.job import Job
from lab.cli.terminal import Terminal
from lab.errors import LabError
from lab.run import manifest
from lab.run.engine import Options
from lab.scenario.engine_table import STACKS
from lab.scenario.loading import load
from papers import (
    dtmc,
    mp_sdn,
    mptcp_la,
    rat_study,
    rat_study_runs,
    s_mptcp,
)
from papers.bar_chart import Bars, svg
from papers.base import Case, Paper
from papers.list import PAPERS
from papers.page import CAUSES, NOT_JUDGED, OPENINGS, TOO_FEW, UNDECIDED, Origin, figure, is_of_more
from papers.page import page as page_of
from papers.relations import Relation, Value
from papers.runs import PAGES, Folders, _finished, reproduce

NUMBERS = {  # keys that each `measure` returns
    "mp_sdn": "T sp mp un un+ ac used t1_before t2_before t2_low t1_after T_wifi1 "
    "T_ue1 T_ue4 t2_wifi1 t2_wifi2 t2_wifi3",
    "s_mptcp": "total sd settles",
    "mptcp_la": "T wifi_before lte_before wifi_lossy lte_lossy wifi_late lte_late "
    "wifi_lossy_most wifi_back_most",
    "dtmc": "T out_of_order retransmitted lost rtt active forecast",
    "rat_study": "T W L",
}


@pytest.mark.parametrize("name", PAPERS)
def test_the_page_judges_every_claim(name):
    """All numbers are equal, and still every claim has a row."""
    paper = PAPERS[name]
    claims = {
        each.__name__.rpartition(".")[2]: each.CLAIMS
        for each in (mp_sdn, s_mptcp, mptcp_la, dtmc, rat_study)
    }[name]
    relations = [each for claim in claims for each in claim.relations if isinstance(each, Relation)]
    sides = [
        side for each in relations for side in (each.left, each.right) if isinstance(side, Value)
    ]
    numbers = dict.fromkeys(NUMBERS[name].split(), 5.0)
    found = {case.name: [numbers] * 5 for case in paper.cases}
    assert {side.case for side in sides} <= set(found)
    origin = Origin(10, 8, "commit abc", 12.0, 2, "")
    both = dict.fromkeys(STACKS, found)
    page = page_of(paper, both, origin)
    assert paper.claims == claims
    for claim in claims:
        strength, verdict = claim.strength + ", judged" * claim.judged, claim.verdict(found)
        row = f"| {claim.name} | {strength} | {claim.text} | {verdict} | {verdict} |"
        assert row in page
    assert "seeds 1 to 10, stacks paper, linux, 8 runs, which took 12 minutes on\n2" in page
    assert page.count("## Measured with the stack of the papers' kernel") == 1
    assert is_of_more(page, 3, both)
    assert is_of_more(page, 10, {"paper": found})
    assert not is_of_more(page, 10, both)
    assert not is_of_more("", 1, {"paper": found})
    assert is_of_more("the simulator, seeds 1 to 10, 1900 runs", 3, both)
    assert is_of_more(page, 10, both, quick=True)
    assert not is_of_more(page.replace("reproduce", "reproduce --quick", 1), 10, both, quick=True)
    assert not is_of_more("the simulator, seeds 1 to 5, 1900 runs", 5, both, quick=True)


def test_an_unknown_paper_is_refused(lab, committed):  # noqa: F811
    refused = lab("reproduce", "unknown")
    assert refused.exit_code == 2
    assert "choose from dtmc, mp_sdn, mptcp_la, rat_study, s_mptcp" in refused.stderr


@pytest.mark.whole
def test_the_page_says_how_it_was_made(tmp_path):
    tiny = tuple(
        Case(f"case{n}", "rat_setup_1", ("traffic_volume_mb=0.1",), "reno", duration_s=5)
        for n in (1, 2)
    )
    paper = Paper("tiny", "Tiny", tiny, rat_study_runs.measure, lambda found: f"{len(found)} cases")
    seconds = tmp_path / "runs" / "tiny" / "seconds.txt"
    folders = Folders(tmp_path / "runs", tmp_path / "pages")
    PAPERS["tiny"] = paper
    try:
        for _ in range(2):
            page = reproduce("tiny", 2, Terminal(), folders)
            assert page == tmp_path / "pages" / "tiny.md"
        took = float(seconds.read_text())
        quick = reproduce("tiny", 1, Terminal(), folders)
        assert quick == tmp_path / "runs" / "tiny" / "tiny.md"
        assert took <= float(seconds.read_text()) < took + 5  # no run was made again
    finally:
        del PAPERS["tiny"]
    text = (tmp_path / "pages" / "tiny.md").read_text()
    assert text.startswith(
        "# Tiny\n\n## How this page was made\n\nMade by `./run_lab.sh reproduce tiny --repeat 2` with version"
    )
    assert "seeds 1 to 2, stacks paper, linux, 8 runs" in text
    assert text.endswith("2 cases\n")
    for stack, penalises in (("paper", True), ("linux", False)):
        run = tmp_path / "runs" / "tiny" / stack / "case1" / "none-1"
        assert json.loads((run / "result.json").read_text())["stack"] == stack
        multipath = yaml.safe_load((run / "scenario.yaml").read_text())["multipath"]
        assert (multipath["stack"], multipath["penalisation"]) == (stack, penalises)


@pytest.mark.whole
def test_a_killed_command_continues_and_no_page_has_a_failed_run(tmp_path):
    runs, pages = tmp_path / "runs", tmp_path / "pages"
    words = ("--repeat", 1, "--stack", "linux", "--allow-changed", "--runs", runs, "--pages", pages)
    killed = start("reproduce s_mptcp", *words)
    deadline = time.monotonic() + 30
    while len(list(runs.rglob("result.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.kill()
    killed.communicate()
    made = {each: each.stat().st_mtime_ns for each in runs.rglob("result.json")}
    assert 3 <= len(made) < len(PAPERS["s_mptcp"].cases)
    assert not pages.exists()
    again = start("reproduce s_mptcp", *words)
    _, said = again.communicate(timeout=100)
    assert again.returncode == 0, said
    assert f"{len(made)} of 16 runs exist already" in said
    assert {each: each.stat().st_mtime_ns for each in made} == made
    assert "16 runs" in (pages / "s_mptcp.md").read_text()
    path = next(iter(made))
    path.write_text(path.read_text().replace('"complete"', '"failed"'))
    with pytest.raises(LabError, match=f"run {path.parent}: failed. The page is unchanged"):
        _finished(Job(load("pooling"), "sim", Options(0.0), path.parent))


def test_a_chart_has_a_bar_for_each_value_above_or_below_zero():
    bars = Bars("Title & unit", "Mb/s", ("a", "b"), {"one": (4.0, 1.0), "two": (-2.0, 0.0)})
    drawing = ElementTree.fromstring(svg([bars, bars]))
    charts = drawing.findall("{*}g")
    assert len(charts) == 2
    boxes = [each.attrib for each in charts[0].findall("{*}rect") if each.attrib["width"] != "10.0"]
    high = [float(each["height"]) for each in boxes]
    assert high == [
        pytest.approx(4 * high[1], rel=0.02),
        high[1],
        pytest.approx(2 * high[1], rel=0.02),
        0,
    ]
    tops = [float(each["y"]) for each in boxes]
    assert tops[0] + high[0] == pytest.approx(tops[2], abs=0.1)  # both bars begin at zero


@pytest.mark.parametrize("name", PAPERS)
def test_a_page_opens_with_what_was_claimed_and_what_holds(name):
    paper = PAPERS[name]
    numbers = dict.fromkeys(NUMBERS[name].split(), 5.0)
    found = {stack: {case.name: [numbers] * 5 for case in paper.cases} for stack in STACKS}
    page = page_of(paper, found, Origin(10, 8, "commit abc", 12.0, 2, ""))
    title, opening, _ = page.split("\n\n", 2)
    assert title == f"# {paper.title}"
    assert opening.startswith(OPENINGS[name].claimed)
    judged = [each for each in paper.claims if each.judged]
    assert f"Of the paper's {len(judged)} main claims" in opening
    assert opening.count("hold with the Multipath TCP of") == len(STACKS)
    listed = page.split(f"]({name}.svg)\n\n")[1].split("\n\n## ")[0]
    for claim in judged:
        (item,) = (line for line in listed.splitlines() if f"{claim.text} ({claim.name})" in line)
        agrees = all(claim.verdict(each) == "agrees" for each in found.values())
        assert item.startswith("- These hold with every stack") == agrees
        assert ("Cause: " in item) != agrees
    assert f"]({name}.svg)" in page
    assert len(ElementTree.fromstring(figure(paper, found)).findall("{*}g")) == 2


@pytest.mark.parametrize("name", PAPERS)
def test_the_page_in_the_repository_has_a_reason_for_every_claim(name):
    text = (PAGES / f"{name}.md").read_text()
    assert UNDECIDED not in text
    known = (*CAUSES.values(), "the stack: it ", TOO_FEW)
    for line in text.splitlines():
        if line.startswith("| ") and ("| disagrees |" in line or "| open |" in line):
            cause = line.split("Cause: ")[1]
            (found,) = (each for each in known if cause.startswith(each))
            assert found in known[-2:] or len(cause) > len(found) + 30
    for what, why in NOT_JUDGED[name]:
        assert f"- {what}. {why}." in text


def test_a_published_page_is_of_a_commit_that_others_can_have(lab, monkeypatch, tmp_path):  # noqa: F811
    elsewhere = ["--pages", str(tmp_path)]
    for made, why in (("0123456789ab+", "files were changed since 0123456789ab"), (None, "no git")):
        monkeypatch.setattr(manifest, "commit", lambda made=made: made)
        for words in ([], ["--allow-changed"], elsewhere):
            refused = lab("reproduce", "mp_sdn", *words)
            assert refused.exit_code == 2
            assert why in refused.stderr
            assert "--allow-changed --pages SOMEWHERE" in refused.stderr
        refused = lab("crosscheck", "all")
        assert "--allow-changed --page SOMEWHERE" in refused.stderr
        accepted = lab("reproduce", "unknown", "--allow-changed", *elsewhere)
        assert "choose from dtmc" in accepted.stderr  # as in a committed tree
