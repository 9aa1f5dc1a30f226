"""Details of the pages in a real browser: narrow windows, units, charts of ended runs."""

from __future__ import annotations

import json

import pytest
import testbed
from test_browser import page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

NONE = "\u2013"
NO_NUMBER = """() => [...document.querySelectorAll('*')].flatMap(node =>
  [...node.attributes].filter(each => /NaN|undefined|Infinity/.test(each.value))
    .map(each => `${node.tagName} ${each.name}=${each.value.slice(0, 80)}`))"""
TOO_WIDE = """() => document.documentElement.scrollWidth - window.innerWidth"""
ROWS = """() => [...document.querySelectorAll('#log tbody tr:not([hidden])')].map(row => {
  const {left, right} = row.getBoundingClientRect();
  return [left, right];
})"""
BELOW_HEADER = """() => {
  const chart = document.querySelector('#chart-subflows');
  chart.scrollIntoView();
  return chart.getBoundingClientRect().top
    - document.querySelector('.top').getBoundingClientRect().bottom;
}"""
ENDS = """() => [...document.querySelectorAll('.chart .plot')].filter(plot => plot.layout)
  .map(plot => plot.layout.xaxis.range[1])"""
THRESHOLD = """() => document.querySelector('#chart-congestion .plot').data
  .filter(line => line.name === 'congested from').map(line => line.x.at(-1))"""


def drawn(page, count):  # noqa: F811
    return page.locator(".chart .plot .main-svg").count() >= count


def test_a_run_can_be_read_in_narrow_windows(page, address):  # noqa: F811
    page.set_viewport_size({"width": 1024, "height": 800})
    page.goto(f"{address}/runs/metered")
    until(page, lambda: "got" in page.inner_text("#outcome"))
    page.wait_for_selector("#chart-subflows")
    until(page, lambda: page.evaluate(BELOW_HEADER) >= 0)
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, lambda: page.evaluate(TOO_WIDE) <= 0)
    assert not page.is_visible("#log thead")
    rows = page.evaluate(ROWS)
    assert rows
    assert all(left >= 0 and right <= 390 for left, right in rows)


def test_lists_of_runs_fit_narrow_windows(page, address, runs):  # noqa: F811
    """Tiers are shown only for networks that have access points."""
    testbed.simulated(runs / "wired", "two_paths", "duration_s=2")
    page.goto(f"{address}/runs")
    row = "#runs tr:has(a[href='/runs/{}']) td".format
    until(page, lambda: page.locator(row("wired")).count() == 12)
    assert page.locator(row("wired")).all_inner_texts()[6:8] == [NONE, NONE]
    assert NONE not in page.locator(row("plain")).all_inner_texts()[6:8]
    page.set_viewport_size({"width": 390, "height": 844})
    for path, table in (("/runs", "#runs"), ("/", "#recent")):
        page.goto(f"{address}{path}")
        page.wait_for_selector(f"{table} tr:nth-child(3) .pill")
        assert page.evaluate(TOO_WIDE) <= 0
        boxes = [
            each.bounding_box()
            for each in page.locator(f"{table} :is(.num, .pill)").all()
            if each.is_visible()
        ]
        assert len(boxes) == 6  # the rate and the state of each run
        assert all(box["x"] + box["width"] <= 390 for box in boxes)


def test_drawings_of_walking_users_have_numbers_only(page, address, runs):  # noqa: F811
    """The samples arrive one by one, as in a running run."""
    walk = runs / "walk"
    testbed.simulated(walk, "moving_users", "duration_s=2", "topology.users=8")
    lines = (walk / "samples.jsonl").read_text().splitlines(keepends=True)
    (walk / "samples.jsonl").write_text("")
    (walk / "result.json").rename(walk / "later.json")  # its process, this one, still runs
    page.set_viewport_size({"width": 1280, "height": 3600})
    page.goto(f"{address}/runs/walk")
    for line in lines:
        with (walk / "samples.jsonl").open("a") as samples:
            samples.write(line)
        t = f"{json.loads(line)['t']:.1f} of"
        until(page, lambda t=t: page.inner_text("#clock").startswith(t))
        assert page.evaluate(NO_NUMBER) == []
    (walk / "later.json").rename(walk / "result.json")
    until(page, lambda: page.inner_text("#pill") == "complete")
    until(page, lambda: drawn(page, 5))
    assert page.evaluate(NO_NUMBER) == []
    page.click("#chart-subflows button:has-text('Heat map')")
    until(page, lambda: page.locator("#chart-subflows .heatmaplayer image").count() > 0)
    assert page.evaluate(NO_NUMBER) == []


def test_charts_of_an_interrupted_run_end_where_it_ended(page, address, runs):  # noqa: F811
    folder = runs / "metered"
    text = (folder / "scenario.yaml").read_text()
    assert "duration_s: 20" in text
    (folder / "scenario.yaml").write_text(text.replace("duration_s: 20", "duration_s: 50"))
    page.set_viewport_size({"width": 1280, "height": 3600})
    page.goto(f"{address}/runs/metered")
    until(page, lambda: drawn(page, 5))
    until(page, lambda: set(page.evaluate(ENDS)) == {20})
    assert page.evaluate(THRESHOLD) == [20]


def test_units_are_written_once_and_empty_means_unlimited(page, address, client, running_run):  # noqa: F811
    page.goto(f"{address}/runs/{running_run}")
    form = page.locator("#targets form[data-target='user.ue1.demand_mbps']")
    until(page, lambda: form.count() == 1)
    assert form.locator("input").get_attribute("placeholder") == "unlimited"
    assert "leave empty for unlimited" in form.text_content()
    assert "null" not in page.text_content("#targets")
    for each in page.locator("#targets form").all_text_contents():
        assert each.count("Mb/s") <= 1, each
    client.post(f"/api/runs/{running_run}/stop")
