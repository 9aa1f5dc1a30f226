"""The page of a finished run with transfers, in a real browser: their distribution and tiles."""

from __future__ import annotations

import pytest

from .test_browser import page, until  # noqa: F401 - a fixture
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
