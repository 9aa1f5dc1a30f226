"""Tiers are those of the controller, and have the same words, wherever a run is shown."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
import testbed
from test_browser import page, until  # noqa: F401  # the fixture `page`

from dashboard.palette import subflow_style
from lab import metrics
from lab.metrics import TIER_1, TIER_2

ROOT = Path(__file__).resolve().parents[2]
CUT_AT_S = 4
CUT = f"events=[{{at_s: {CUT_AT_S}, target: link.lte.up, value: false}}]"


@pytest.fixture(scope="module")
def cut_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut") / "cut"
    testbed.simulated(folder, "testbed_wifi_lte", "duration_s=8", "strategy.name=none", CUT)
    return folder


@pytest.fixture
def runs(runs, cut_run):
    shutil.copytree(cut_run, runs / "cut")
    return runs


def styles(svg: str) -> dict[str, str]:
    parts = {each.get("data-id"): each for each in ElementTree.fromstring(svg).iter()}
    return {
        name: next(
            word for word in parts[name].get("class").split() if re.fullmatch("d[1-5]", word)
        )
        for name in ("ue2-1/1", "ue2-1/2", "ue3-1/1", "ue3-1/2")
    }


def test_a_subflow_that_becomes_tier_1_is_drawn_solid(client):
    before = styles(client.get(f"/api/runs/cut/network.svg?t={CUT_AT_S}").text)
    after = styles(client.get("/api/runs/cut/network.svg").text)
    assert before == {"ue2-1/1": "d1", "ue2-1/2": "d2", "ue3-1/1": "d1", "ue3-1/2": "d2"}
    assert after == {"ue2-1/1": "d1", "ue2-1/2": "d2", "ue3-1/1": "d2", "ue3-1/2": "d1"}


def test_charts_have_the_lines_of_the_drawing(client):
    figures = {
        each["name"]: each["figure"] for each in client.get("/api/runs/cut/charts").json["figures"]
    }
    dashes = {
        trace["meta"]["key"][1]: trace["line"]["dash"]
        for trace in figures["subflows"]["data"]
        if trace["meta"]["key"][0] == "sf"
    }
    assert dashes["ue3-1/1"] == "dash"
    assert dashes["ue3-1/2"] == "solid"
    assert dashes["ue2-1/2"] == "dash"


def test_tier_1_is_solid_whatever_the_number_of_the_subflow():
    assert {subflow_style(n, 1) for n in range(1, 20)} == {1}
    assert {subflow_style(n, 2) for n in range(1, 20)} == {2, 3, 4, 5}


def test_pages_charts_glossary_and_worksheet_define_tiers_alike(client):
    intro = html.unescape(client.get("/runs/cut").text)
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    worksheet = (ROOT / "worksheets" / "throttling.yaml").read_text(encoding="utf-8")
    chart = metrics.TIERS.explains
    for text in (intro, glossary, worksheet, chart):
        plain = " ".join(text.split())
        assert TIER_1 in plain
        assert TIER_2 in plain


@pytest.mark.browser
@pytest.mark.whole
class TestInABrowser:
    def test_scripts_choose_the_same_lines(self, page, address):  # noqa: F811
        page.goto(f"{address}/runs/plain")
        cases = [(n, tier) for n in (1, 2, 3, 5, 8) for tier in (None, 1, 2)]
        script = """async (cases) => {
          const { styleOf } = await import('/static/subflow_style.js');
          return cases.map(([n, tier]) => styleOf(`ue1-1/${n}`,
            { ap: tier === null ? {} : { wifi1: {} }, sf: { [`ue1-1/${n}`]: { tier } } }));
        }"""
        assert page.evaluate(script, cases) == [subflow_style(*each) for each in cases]

    def test_the_tiles_follow_the_time_of_the_page(self, page, address):  # noqa: F811
        page.goto(f"{address}/runs/cut#t={CUT_AT_S}")
        until(page, lambda: page.locator("#drawing [data-id='ue3-1/2'].d2").count() == 1)
        until(page, lambda: f"At {CUT_AT_S}.0 s" in page.get_attribute("#tiles", "aria-label"))
        assert page.is_visible("#tiles")
        before = page.inner_text("#tiles")
        assert "not limited" in before
        page.goto(f"{address}/runs/cut#t={CUT_AT_S + 3}")
        until(page, lambda: page.locator("#drawing [data-id='ue3-1/2'].d1").count() == 1)
        until(page, lambda: f"At {CUT_AT_S + 3}.0 s" in page.get_attribute("#tiles", "aria-label"))
        assert page.inner_text("#tiles") != before

    def test_the_tile_of_tier_2_says_why(self, page, address):  # noqa: F811
        page.goto(f"{address}/runs/metered")
        script = """async ([frame, run, events]) => {
          const { tier2Why } = await import('/static/tiles.js');
          return tier2Why(frame, run, events);
        }"""
        full = {"mac_occupancy": 0.9, "meter_mbps": 0.1}
        frame = {"t": 6.0, "ap": {"wifi1": full, "lte1": full | {"mac_occupancy": 0.7}}}
        run = {"multipath": ["ue2"]}
        said = [
            {"t": 4.0, "subject": "wifi1", "reason": "first"},
            {"t": 6.0, "subject": "wifi1", "reason": "MAC occupancy 0.90 >= 0.85"},
            {"t": 6.0, "subject": "lte1", "reason": "another"},
            {"t": 8.0, "subject": "wifi1", "reason": "later"},
        ]
        assert page.evaluate(script, [frame, run, said]) == (
            "wifi1: MAC occupancy 0.90 >= 0.85; 1 more limited"
        )
        assert page.evaluate(script, [frame, run, []]) == (
            "wifi1: limited to 0.10 Mb/s; 1 more limited"
        )
        assert "second" in page.evaluate(script, [frame, {"multipath": []}, []])
        frame["ap"] = {"wifi1": {"mac_occupancy": 1.0, "meter_mbps": None}}
        assert "not limited" in page.evaluate(script, [frame, run, []])
