"""The ghost: an earlier run as faint lines on the page of another."""

from __future__ import annotations

import json

import pytest
import testbed
from test_browser import page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

FAINT = """(chart) => (document.querySelector(`#chart-${chart} .plot`)?.data ?? [])
  .filter((each) => each.opacity === 0.45).map(({ name, x, y, meta }) => ({ name, x, y, key: meta.key }))"""
GHOST = "select.ghost"


def faint(page, chart="users"):  # noqa: F811
    return page.evaluate(FAINT, chart)


def rescaled(folder, rate_scale):
    for name in ("manifest.json", "result.json"):
        doc = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(doc | {"rate_scale": rate_scale}))


def test_an_earlier_run_is_faint_on_a_live_page(page, address, client, runs, running_run):  # noqa: F811
    testbed.simulated(runs / "elsewhere", "shared_pipe", "duration_s=2")
    page.goto(f"{address}/runs/{running_run}")
    until(page, lambda: page.locator("#chart-users .plot .main-svg").count() > 0)
    until(page, lambda: page.locator(f"{GHOST} optgroup").count() == 2)
    first = page.locator(f"{GHOST} optgroup").first
    assert first.get_attribute("label") == "Runs of this scenario"
    ids = first.locator("option").evaluate_all("(all) => all.map((each) => each.value)")
    assert sorted(ids) == ["metered", "plain"]
    page.select_option(GHOST, "metered")
    until(page, lambda: len(faint(page)) == 4)
    assert faint(page)[0]["name"].startswith("ue1, meter_throttling, seed 1")
    assert faint(page)[0]["x"][-1] == pytest.approx(20)
    assert "faint: meter_throttling" in page.inner_text("#chart-users .lines")
    assert "another network" not in page.inner_text("#chart-users .lines")
    before = page.evaluate("() => document.querySelector('#chart-users').card.traces[0].x.length")
    length = "() => document.querySelector('#chart-users').card.traces[0].x.length"
    until(page, lambda: page.evaluate(length) > before + 4)
    assert faint(page)[0]["x"][-1] == pytest.approx(20)  # it gets no samples of this run
    page.reload()
    until(page, lambda: len(faint(page)) == 4)
    page.select_option(GHOST, "")
    until(page, lambda: faint(page) == [])
    client.post(f"/api/runs/{running_run}/stop")


def test_another_network_is_said_and_another_rate_scale_is_refused(page, address, runs):  # noqa: F811
    testbed.finished(runs / "moved", "duration_s=4", "topology.users.ue1.wifi_mbps=12")
    testbed.finished(runs / "slow", "duration_s=4")
    rescaled(runs / "slow", 0.25)
    page.goto(f"{address}/runs/plain")
    until(page, lambda: page.locator(f"{GHOST} option").count() > 3)
    page.select_option(GHOST, "moved")
    until(page, lambda: "another network" in page.inner_text("#chart-users .lines"))
    page.select_option(GHOST, "slow")
    until(page, lambda: "another rate scale" in page.inner_text("#toasts"))
    until(page, lambda: faint(page) == [])
    assert page.input_value(GHOST) == ""
