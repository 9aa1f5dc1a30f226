"""A race in a real browser: from the start page, with a change of all lanes, to its end."""

from __future__ import annotations

import json
import os
import signal

import pytest
from axe import serious_faults
from conftest import until as until_true
from test_browser import page, until  # noqa: F401  # the fixture `page`

from lab.run.reading import readable_samples

pytestmark = [pytest.mark.browser, pytest.mark.whole]

SIZE = {"width": 1440, "height": 900}
SCROLLED = "() => window.scrollY"
INSIDE = """(part) => { const box = document.querySelector(part).getBoundingClientRect();
  return box.width > 0 && box.top >= 0 && box.bottom <= innerHeight + 1 && box.right <= innerWidth + 1; }"""
DIFFERENCE = "() => document.getElementById('apart').data.at(-1)"
TOPS = """() => [...document.querySelectorAll('.lane .plot')]
  .map((each) => each._fullLayout?.yaxis.range[1])"""
SAID = """() => { window.said = [...document.querySelectorAll('.lane .said')].map((line) => {
  const texts = [];
  new MutationObserver(() => texts.push(line.textContent)).observe(line, { childList: true });
  return texts;
}); }"""  # each lane's line shows the last word only, and a strategy speaks every second
PARTS = ("[data-part=knobs]", "[data-part=chart]", "[data-part=suggestions]", ".lane:last-child")


def totals(folder):
    return {
        each["t"]: sum(user["mbps"] for user in each["user"].values())
        for each in readable_samples(folder)
    }


def samples_drawn(page):  # noqa: F811
    return page.evaluate("() => document.getElementById('apart').data?.at(-1).x.length ?? 0")


def test_two_strategies_race_two_clicks_from_the_start(page, address, client, runs):  # noqa: F811
    page.set_viewport_size(SIZE)
    page.goto(address)
    page.click("a[href='/scenarios/testbed_wifi_lte']")
    until(page, lambda: page.locator("#race-lanes select").count() == 4)
    assert page.evaluate(INSIDE, "#race")
    page.click("#race")
    page.wait_for_url("**/race?runs=*")
    until(page, lambda: samples_drawn(page) > 3)
    assert page.evaluate(SCROLLED) == 0
    assert page.locator(".lane h2").all_inner_texts() == ["none", "meter_throttling"]
    assert [each for each in PARTS if not page.evaluate(INSIDE, each)] == []
    until(page, lambda: len(set(page.evaluate(TOPS))) == 1)
    page.evaluate(SAID)
    page.click("#try .press")
    until(page, lambda: all("rate of ue3" in " ".join(line) for line in page.evaluate("said")))
    page.click("#which button:last-child")
    assert "in lane B" in page.inner_text("#knobs-note")
    assert page.locator("form[data-target='strategy.cth']").count() == 1
    page.click("#which button:first-child")
    assert page.locator("form[data-target='strategy.cth']").count() == 0
    assert not serious_faults(page)
    page.click("#stop")
    until(page, lambda: page.inner_text("#pill") == "over")
    until(page, lambda: "The race is over" in page.inner_text("#banners"))
    ids = page.evaluate(
        "() => JSON.parse(document.getElementById('lanes').textContent).map((each) => each.id)"
    )
    a, b = (totals(runs / each) for each in ids)
    both = sorted(a.keys() & b.keys())
    until(page, lambda: samples_drawn(page) == len(both))
    drawn = page.evaluate(DIFFERENCE)
    assert drawn["x"] == both
    assert drawn["y"] == pytest.approx([b[t] - a[t] for t in both])
    flips = [client.get(f"/api/runs/{each}").json["flips"] for each in ids]
    assert len(flips[0]) == 1
    assert flips[0] == flips[1]
    page.click("#compare")
    until(page, lambda: page.locator("#metrics tbody tr").count() > 3)


def test_a_lane_is_cut_and_four_fit_on_the_screen(page, address, client, runs):  # noqa: F811
    start = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": 10, "duration_s": 600}
    names = ("none", "meter_throttling", "optimum", "disjoint")
    body = {"start": start, "lanes": [{"strategy": each} for each in names]}
    answer = client.post("/api/races", json=body)
    assert answer.status_code == 201, answer.json
    ids = answer.json["ids"]
    page.set_viewport_size(SIZE)
    page.goto(f"{address}{answer.json['url']}")
    until(page, lambda: samples_drawn(page) > 3)
    assert [each for each in PARTS if not page.evaluate(INSIDE, each)] == []
    page.click("#pause-run")
    until(page, lambda: page.inner_text("#pill") == "paused")
    page.click("#pause-run")
    until(page, lambda: page.inner_text("#pill") == "running")

    os.kill(json.loads((runs / ids[2] / "manifest.json").read_text())["pid"], signal.SIGKILL)
    until(page, lambda: page.inner_text(".lane:nth-child(3) .pill") == "cut")
    assert "The other lanes go on" in page.inner_text(".lane:nth-child(3) .said")
    before = page.inner_text("#clock")
    until(page, lambda: page.inner_text("#clock") != before)
    inside = "document.documentElement.scrollWidth <= window.innerWidth"
    for width, height in ((1024, 768), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        until(page, lambda: page.evaluate(inside))
    page.set_viewport_size(SIZE)
    page.click("#stop")
    until_true(lambda: all(client.get(f"/api/runs/{each}").json["state"]["over"] for each in ids))
    until(page, lambda: page.inner_text("#pill") == "over")


def test_a_ghost_and_a_race_are_two_clicks_away(page, address, client):  # noqa: F811
    page.goto(f"{address}/runs/plain")
    until(page, lambda: page.locator("#next").is_visible())
    page.click("#again-over")
    page.wait_for_url(lambda url: "/runs/plain" not in url)
    until(page, lambda: page.input_value("select.ghost") == "plain")
    page.select_option("#race-against", "meter_throttling")
    page.wait_for_url("**/race?runs=*")
    until(page, lambda: page.locator(".lane h2").all_inner_texts() == ["none", "meter_throttling"])
    until(page, lambda: page.inner_text("#pill") == "over")
    page.goto(f"{address}/scenarios/testbed_wifi_lte")
    until(page, lambda: page.locator("#ghost option").count() > 2)
    page.select_option("#ghost", "metered")
    page.click("#start-over")
    page.wait_for_url("**/runs/*")
    until(page, lambda: page.input_value("select.ghost") == "metered")
    page.click("#stop")
    until(page, lambda: page.inner_text("#pill") == "interrupted")
