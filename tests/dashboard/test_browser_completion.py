"""The page of a finished run with transfers, captures or slower clocks, in a real browser."""

from __future__ import annotations

import json

import pytest

from .test_browser import page, until  # noqa: F401 - a fixture
from .test_finished import CAPTURED
from .testbed import simulated

pytestmark = [pytest.mark.browser, pytest.mark.whole]
TRAFFIC = "[{user: all, kind: workload, sizes: [[20, 1]], rate_mbps: 0.5}, {user: ue1}]"


def test_a_finished_run_shows_the_distribution_of_its_completion_times(page, address, runs):  # noqa: F811
    outcome = simulated(runs / "short", "testbed_wifi_lte", f"traffic={TRAFFIC}", "duration_s=8")
    flows = outcome.result["flows"]
    page.goto(f"{address}/runs/short")
    plot = page.locator("#completion .plot")
    until(page, lambda: plot.evaluate("plot => plot.data?.length") == 1)
    heights = plot.evaluate("plot => plot.data[0].y")
    assert heights[-1] == pytest.approx(flows["completed"] / flows["count"])
    tiles = page.locator("#tiles").inner_text()
    assert "Completion" in tiles
    assert f"{flows['fct_p50_s']:.2f}" in tiles


def test_a_run_with_captures_shows_each_subflow(page, address, runs):  # noqa: F811
    page.goto(f"{address}/runs/plain")
    until(page, lambda: page.locator("#outcome").inner_text() != "")
    assert page.locator("#captured").is_hidden()
    (runs / "plain" / "pcap").mkdir()
    (runs / "plain" / "pcap" / "subflows.json").write_text(json.dumps([CAPTURED]))
    page.goto(f"{address}/runs/plain")
    page.locator("#captured summary").click()
    (row,) = page.locator("#captured tbody tr").all()
    cells = row.locator("td").all_inner_texts()
    assert cells[:2] == ["ue2", "10.2.0.2:40000, joined"]
    assert cells[3:7] == ["50", "12", "3", "1"]
    assert "ue2: backup" in cells[7]
    assert "srv1" in cells[8]


def test_a_run_in_slow_motion_has_a_banner_that_says_so(page, address, runs):  # noqa: F811
    manifest = runs / "metered" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["host"]["time_dilation"] = 4
    manifest.write_text(json.dumps(document))
    page.goto(f"{address}/runs/metered")
    told = page.get_by_text("Slow motion: the clocks of the VM are 4 times slower than real time.")
    until(page, lambda: told.is_visible())
