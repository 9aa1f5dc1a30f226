"""The rates of traces on the page of a run, while it goes on and when it is over."""

from __future__ import annotations

import pytest
from test_browser import page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

RATES = """() => (document.querySelector('#chart-links .plot')?.data ?? [])
  .filter(({ meta }) => meta.of).map(({ name, x, y, opacity, line }) => ({ name, x, y, opacity, width: line.width }))"""
MEASURED = "() => document.querySelector('#chart-links')?.card.traces.at(-1).x.length ?? 0"
NAMES = ["rate of path1 (trace)", "rate of path2 (trace)"]


def test_the_rates_of_traces_are_faint_lines_of_a_live_and_of_a_finished_run(page, address, client):  # noqa: F811
    request = {"scenario": "satellite_and_lte", "engine": "sim", "speed": 10, "duration_s": 60}
    run_id = client.post("/api/runs", json=request).json["id"]
    page.goto(f"{address}/runs/{run_id}")
    until(page, lambda: page.evaluate(MEASURED) > 4)
    until(page, lambda: [each["name"] for each in page.evaluate(RATES)] == NAMES)
    live = page.evaluate(RATES)
    assert live[0]["x"][-1] == 60
    assert len({round(y) for y in live[1]["y"]}) > 5  # LTE changes all the time
    until(page, lambda: page.inner_text("#pill") == "complete")
    until(page, lambda: page.evaluate(MEASURED) == 120)
    assert page.evaluate(RATES) == live  # they got no samples
    legend = page.locator("#chart-links .lines li").all_inner_texts()
    assert legend[-2:] == NAMES
    page.click("#chart-links .lines button >> nth=0")
    until(page, lambda: page.evaluate(RATES)[1]["opacity"] < 0.3)
    chosen, other = page.evaluate(RATES)
    assert chosen == live[0]
    assert other["width"] == live[1]["width"]
