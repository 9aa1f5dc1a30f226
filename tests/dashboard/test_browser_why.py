"""The page of a changed run in a real browser: what happened, when, and why."""

from __future__ import annotations

import pytest
import testbed
from axe import serious_faults
from test_browser import page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

DASHES = """() => ['#drawing .subflow.d2', '#drawing .subflow.d1'].map(
  each => getComputedStyle(document.querySelector(each)).strokeDasharray)"""
COLOURS = """() => {
  const name = [...document.querySelectorAll('#drawing .name')]
    .find(each => each.textContent.includes('bottleneck'));
  const probe = document.createElement('i');
  document.body.append(probe);
  const rgb = colour => { probe.style.color = colour; return getComputedStyle(probe).color; };
  const found = [getComputedStyle(name.firstChild).fill,
    rgb(document.querySelector('#chart-links').card.traces[0].line.color)];
  probe.remove();
  return found;
}"""


def test_a_changed_run_says_what_happened_and_why(page, address, runs):  # noqa: F811
    event = "events=[{at_s: 12, target: cc, value: reno}]"
    testbed.simulated(runs / "pipe", "shared_pipe", "duration_s=24", event)
    page.set_viewport_size({"width": 1280, "height": 3600})
    page.goto(f"{address}/runs/pipe")
    until(page, lambda: page.locator("#stretches tbody tr").count() == 2)
    assert "after congestion control reno instead of lia" in page.inner_text("#stretches")
    until(page, lambda: page.inner_text("#tiles-when") == "At 24.0 s")  # not means of both parts
    assert "bottleneck is full" in page.inner_text("#limits")
    assert page.inner_text("#cc") == "lia, from 12.0 s reno"
    until(page, lambda: page.locator("#effects .why p").count() > 0)
    effects = page.inner_text("#effects")
    assert "by the scenario file" in effects
    assert "12.0 to 22.0 s against 2.0 to 12.0 s" in effects
    assert "each subflow grows like a TCP connection of its own" in effects
    page.click("#explain")
    assert "additional subflow" in page.inner_text("#intro .key")
    until(page, lambda: page.locator("#drawing .subflow.d2").count() == 1)
    additional, first = page.evaluate(DASHES)
    assert (additional.count("px"), first) == (2, "none")
    until(page, lambda: page.evaluate("() => !!document.querySelector('#chart-links').card"))
    assert len(set(page.evaluate(COLOURS))) == 1
    assert page.is_visible("#expect p")
    intro = page.inner_text("#intro")
    assert "mp-1/2 is the second subflow of the first connection of mp" in intro
    assert "subflows of one connection share a path" in intro
    assert "lia: coupled: linked increases" in intro
    assert page.locator("footer .simulator").count() == 0  # the state of later runs
    assert not serious_faults(page)
