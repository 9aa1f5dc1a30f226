"""Accessibility of every page: axe finds nothing serious, in both themes."""

from __future__ import annotations

import pytest
import testbed
from axe import serious_faults
from test_browser import page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

TALL = {"width": 1280, "height": 3200}  # charts outside the window are not drawn
PAGES = (
    "/",
    "/scenarios/testbed_wifi_lte",
    "/scenarios/thirty_users",
    "/runs",
    "/glossary",
    "/worksheets",
    "/runs/unknown",
)
SCROLLING = """() => [...document.querySelectorAll(".lines")]
  .filter(each => each.scrollHeight > each.clientHeight + 1 && !each.querySelector("button")).length"""
DRAWN = "() => document.querySelectorAll('.chart .plot .main-svg').length"


def check(page, state):  # noqa: F811
    faults = serious_faults(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("t")
    faults += serious_faults(page, "color-contrast")
    page.keyboard.press("t")
    assert not faults, f"{state}: {faults}"


def test_pages_without_charts(page, address, client):  # noqa: F811
    start = {"scenario": "testbed_wifi_lte", "engine": "testbed", "speed": "max", "duration_s": 5}
    assert client.post("/api/batches", json={"start": start, "repeats": 2}).status_code == 201
    page.route("**/runs/unknown", lambda each: each.fulfill(response=each.fetch(), status=200))
    for path in PAGES:
        page.goto(f"{address}{path}")
        page.wait_for_load_state("networkidle")
        for summary in page.query_selector_all("details:not([open]) > summary"):
            if summary.is_visible():
                summary.click()
        check(page, path)


def test_the_page_of_a_finished_run(page, address):  # noqa: F811
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/metered")
    until(page, lambda: page.evaluate(DRAWN) > 4)
    page.click("details:has(#network-table) summary")
    page.click("#labels")
    check(page, "finished")
    page.click("#explain")
    check(page, "explained")
    page.click("#intro-close")
    page.click("#try .predict >> nth=0")
    page.click("dialog summary")
    check(page, "a prediction is asked for")
    page.click("dialog >> text=Cancel")
    page.select_option("select.ghost", index=1)
    until(page, lambda: "faint:" in page.inner_text("#chart-users .lines"))
    page.evaluate("location.hash = 'zoom=5-10&t=7&select=user:ue3'")
    until(page, lambda: page.locator("#around li").count() > 0)
    page.click("#all-events")
    page.click("#chart-users button:has-text('Table')")
    check(page, "zoomed, with a time and a selection")
    page.set_viewport_size({"width": 390, "height": 844})
    for tab in ("chart", "change", "happened"):
        page.click(f".tabs [data-tab={tab}]")
        check(page, f"on a telephone, {tab}")


def test_the_page_of_a_running_run(page, address, running_run):  # noqa: F811
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/{running_run}")
    until(page, lambda: page.evaluate(DRAWN) > 4)
    page.click("#try .press >> nth=0")
    until(page, lambda: page.locator("#log .badge").count() > 0)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    check(page, "live")
    page.click("#drawing [data-id='ue3']")
    until(page, lambda: page.locator(".limit").count() == 1)
    check(page, "live, with a selection")
    page.set_viewport_size({"width": 1024, "height": 768})
    page.click("#open-knobs")
    check(page, "controls as a drawer")


def test_compared_runs_and_groups(page, address, runs):  # noqa: F811
    testbed.finished(runs / "second", "duration_s=20", "seed=2")
    page.set_viewport_size(TALL)
    for ids in ("plain,metered", "plain,second,metered"):
        page.goto(f"{address}/compare?runs={ids}")
        until(page, lambda: page.evaluate(DRAWN) > 2)
        until(page, lambda: page.locator("#metrics tbody tr").count() > 0)
        check(page, f"compare {ids}")


def test_a_legend_that_scrolls_is_reached_by_the_keyboard(page, address, runs):  # noqa: F811
    several = ("none", "meter_throttling", "expected_throughput", "subflow_selection")
    several += ("meter_throttling/improved", "expected_throughput/improved")
    for n, strategy in enumerate(several):
        testbed.finished(runs / f"run{n}", "duration_s=5", strategy=strategy)
    page.set_viewport_size({"width": 320, "height": 3200})
    page.goto(f"{address}/compare?runs={','.join(f'run{n}' for n in range(6))}")
    until(page, lambda: page.evaluate(DRAWN) > 1)
    assert page.evaluate(SCROLLING) > 0
    assert serious_faults(page) == ""
