"""The pages in a real browser: start a run, watch the charts, change the run, compare runs.

No request leaves this machine.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from chromium import chromium
from playwright.sync_api import Error

PATIENCE_MS = 120_000  # for each step, on a busy machine
POINTS = "() => document.querySelector('#chart-tiers')?.card.traces[0]?.x.length ?? 0"
MARKS = "() => (document.querySelector('#chart-tiers .plot').layout?.annotations ?? []).length"
WIDTHS = """() => {
  const drawings = [...document.querySelectorAll('.chart .plot .main-svg')];
  return drawings.map(svg => [svg.clientWidth, svg.closest('.card').clientWidth]);
}"""
LINES = "() => document.querySelector('#chart-total .plot')?.data?.length ?? 0"

pytestmark = [pytest.mark.browser, pytest.mark.whole]


@pytest.fixture
def page(address):
    """A browser page; the test fails if the page sends a request to another machine or logs an
    error."""
    outside, broken = [], []
    with chromium() as opened:
        page = opened.new_page(viewport={"width": 1280, "height": 1400})
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: _note_outside(outside, request.url))
        page.on("pageerror", lambda error: broken.append(str(error)))
        page.on(
            "console",
            lambda message: broken.append(message.text) if message.type == "error" else None,
        )
        yield page
    assert outside == []
    assert broken == []


def _note_outside(outside, url):
    if (
        urlsplit(url).scheme in ("http", "https", "ws", "wss")
        and urlsplit(url).hostname != "127.0.0.1"
    ):
        outside.append(url)


def until(page, condition, seconds=60):
    """Poll a condition; the pages forbid `eval`, so Playwright cannot wait for a function.

    A page that loads anew in the middle of a condition, as at the end of a run, is asked again.
    """
    for _ in range(10 * seconds):
        try:
            if condition():
                return
        except Error as error:
            if "Execution context was destroyed" not in str(error):
                raise
        page.wait_for_timeout(100)
    raise AssertionError(f"not within {seconds} s")


def start_run(page, address):
    """Start a long run from the form, and wait for its page."""
    page.goto(f"{address}/scenarios/testbed_wifi_lte")
    page.select_option("#engine", "testbed")
    page.select_option("#speed", "10")
    page.fill("#duration", "6000")
    page.click("button[type=submit]")
    page.wait_for_url("**/runs/*")


def test_a_run_is_started_watched_changed_and_stopped(page, address):
    start_run(page, address)
    until(page, lambda: page.evaluate(POINTS) > 3)
    points_before = page.evaluate(POINTS)
    until(page, lambda: page.evaluate(POINTS) > points_before + 10)
    assert page.inner_text("#pill") == "running"

    page.click("#try .press >> nth=0")
    page.wait_for_selector("#log tbody tr:has(.badge):has-text('meter_throttling')")
    page.evaluate("location.hash = 'zoom=0-6000'")  # the mark stays inside the chart
    page.locator("#chart-tiers").scroll_into_view_if_needed()  # charts outside are not drawn
    until(page, lambda: page.evaluate(MARKS) == 1)
    page.click("text=Whole run")
    page.wait_for_selector("form[data-target='strategy.cth']", state="attached")

    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    assert page.inner_text("#pause-charts") == "Resume charts"
    page.click("#chart-users button")  # a table opens while the charts are paused
    until(page, lambda: page.locator("#chart-users table tbody tr").count() == 4)
    shown_while_paused = page.inner_text("#chart-users table")
    page.evaluate("document.activeElement.blur()")
    page.evaluate("document.dispatchEvent(new CustomEvent('select'))")  # paused charts redraw
    page.wait_for_timeout(1000)
    page.evaluate("document.dispatchEvent(new CustomEvent('select'))")
    assert page.inner_text("#chart-users table") == shown_while_paused
    page.keyboard.press("Space")
    until(page, lambda: page.inner_text("#chart-users table") != shown_while_paused)
    page.click("#stop")
    until(page, lambda: page.inner_text("#pill") == "interrupted")
    until(
        page, lambda: all(plot <= card for plot, card in page.evaluate(WIDTHS))
    )  # without the controls the cards have another width
    assert page.evaluate(WIDTHS)


def test_two_runs_on_the_same_axes(page, address):
    page.goto(f"{address}/runs")
    page.check("input[aria-label='select plain']")
    page.check("input[aria-label='select metered']")
    page.click("#compare")
    until(page, lambda: page.evaluate(LINES) == 2)
    page.wait_for_selector("#metrics tbody tr")
    assert "not enough runs" in page.inner_text("#verdicts")


def test_runs_are_removed_after_a_confirmation(page, address):
    page.goto(f"{address}/runs")
    page.check("input[aria-label='select plain']")
    answers = ["dismiss", "accept"]
    page.on("dialog", lambda dialog: getattr(dialog, answers.pop(0))())
    page.click("#remove")
    page.wait_for_timeout(300)
    assert page.locator("#runs tbody tr").count() == 2
    page.click("#remove")
    until(page, lambda: page.locator("#runs tbody tr").count() == 1)
    assert "metered" in page.inner_text("#runs tbody")
    assert page.is_disabled("#remove")


def test_the_form_says_why_a_strategy_does_not_fit(page, address):
    page.goto(f"{address}/scenarios/fifteen_paths")
    page.select_option("#strategy", "meter_throttling")
    assert "this network has none" in page.inner_text("#strategy-help")


def test_suggestions_show_the_number_of_their_mark_or_that_they_were_refused(page, address):
    start_run(page, address)
    until(page, lambda: page.evaluate(POINTS) > 20)
    assert page.locator("#try .letter").all_inner_texts() == ["A", "B", "C"]
    page.click("#try li >> nth=2 >> .press")  # this engine refuses to take a link down
    page.wait_for_selector("#try li.refused")
    assert "cannot take it down" in page.inner_text("#try li.refused .result")
    page.click("#try li >> nth=1 >> .press")
    page.wait_for_selector("#try li.done")
    assert page.locator("#try .letter").all_inner_texts() == ["A", "1", "!"]
    assert "instead of" in page.inner_text("#try li.done .result")
    assert page.inner_text("#log .badge") == "1"
    page.evaluate("location.hash = 'zoom=0-6000'")
    page.locator("#chart-tiers").scroll_into_view_if_needed()  # charts outside are not drawn
    until(page, lambda: page.evaluate(MARKS) == 1)


def test_a_finished_run_says_what_came_out_and_is_run_again(page, address):
    page.goto(f"{address}/runs/metered")
    until(page, lambda: "The 4 users got" in page.inner_text("#outcome"))
    assert page.inner_text("#tiles-when").startswith("Mean of the run")
    page.click("#baseline")
    until(page, lambda: "is the baseline" in page.inner_text("#against"))
    page.click("#again")
    page.wait_for_url("**/runs/*-meter_throttling-1")
    title = "Four users, one WiFi access point, one LTE base station"
    until(page, lambda: page.inner_text("h1") == title)
