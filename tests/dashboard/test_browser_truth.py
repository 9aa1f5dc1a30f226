"""The pages in a real browser: what the numbers of a run mean, and what may be compared."""

from __future__ import annotations

import json

import pytest
import testbed
from axe import serious_faults
from run_edits import edit_run, seal
from test_browser import LINES, page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

TALL = {"width": 1280, "height": 3600}  # charts outside the window are not drawn
FILES = "traffic=[{user: all, kind: file, volume_mb: 5}]"
SHADED = """() => [...document.querySelectorAll('.chart .plot')].filter(plot => plot.layout)
  .map(plot => (plot.layout.shapes ?? []).filter(shape => shape.type === 'rect')
    .map(shape => shape.x0).join())"""
TITLES = """() => [...document.querySelectorAll('.chart .plot')].filter(plot => plot.layout)
  .map(plot => plot.layout.xaxis.title.text)"""
HELD = "() => (document.querySelector('#chart-held .plot')?.data ?? []).map(line => line.name)"


def test_runs_of_several_rate_scales_are_compared_on_request_only(page, address, runs):  # noqa: F811
    edit_run(runs / "plain", rate_scale=0.25)
    page.set_viewport_size(TALL)
    page.goto(f"{address}/compare?runs=plain,metered")
    assert "their rate scales differ" in page.inner_text("#refused")
    assert page.locator("#charts").count() == 0
    assert not serious_faults(page)
    page.click("text=Compare anyway")  # the box is required
    assert page.locator("#refused").count() == 1
    page.check("[name=mixed_scales]")
    page.click("button:has-text('Compare anyway')")
    until(page, lambda: page.evaluate(LINES) == 2)
    assert all("rate scale 0.25 and rate scale 1" in text for text in page.evaluate(TITLES))
    assert page.evaluate(TITLES)
    legend = page.inner_text("#chart-total .lines")
    assert "none rate scale 0.25" in legend
    assert "meter_throttling rate scale 1" in legend
    page.wait_for_selector("#metrics tbody tr")
    assert "rate scale 0.25" in page.inner_text("#metrics thead")


def test_finished_transfers_are_named_and_what_comes_after_them_is_shaded(page, address, runs):  # noqa: F811
    testbed.finished(runs / "files", "duration_s=20", FILES)
    ends = {"ue1": 7.0, "ue2": 10.2, "ue3": 8.0, "ue4": 9.0}
    rows = [
        {"t": t, "kind": "completion", "user": user, "connection": f"{user}-1", "completion_s": t}
        for user, t in ends.items()
    ]
    with (runs / "files" / "events.jsonl").open("a") as events:
        events.writelines(json.dumps(row) + "\n" for row in rows)
    seal(runs / "files")
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/files")
    charts = page.locator(".chart .plot")
    until(page, lambda: charts.count() == len(page.evaluate(SHADED)) >= 5)
    until(page, lambda: set(page.evaluate(SHADED)) == {"10.2"})
    assert "ue1 finished at 7.0 s" in page.inner_text("#transfers")
    assert "ue2, finished at 10.2 s" in page.inner_text("#chart-users .lines")
    assert "its file arrived in 8.0 s" in page.inner_text("#log")
    page.click("#chart-users .lines button:has-text('ue1')")
    until(page, lambda: set(page.evaluate(SHADED)) == {"7"})


def test_live_tiles_say_now_and_what_is_held_back(page, address, client, running_run):  # noqa: F811
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/{running_run}")
    until(page, lambda: page.inner_text("#tiles-when").startswith("Now, at"))
    until(page, lambda: "80 kB" in page.inner_text("#tiles"))  # 40 kB of each multipath user
    until(page, lambda: page.evaluate(HELD) == ["ue2", "ue3"])
    assert "data before it is missing" in page.inner_text("#chart-held")
    client.post(f"/api/runs/{running_run}/stop")
    until(page, lambda: page.inner_text("#tiles-when").startswith("Mean of the run"))
    assert "Tier 1" in page.inner_text("#tiles")


def test_relayed_traffic_counts_once_in_the_tiles(page, address):  # noqa: F811
    page.goto(f"{address}/runs/plain")
    frame = {
        "ap": {"wifi1": {"tier1_mbps": 3}, "wifi2": {"tier1_mbps": 3, "tier2_mbps": 1}},
        "sf": {"ue1-1/1": {"tier": 1, "mbps": 3}, "ue1-1/2": {"tier": 2, "mbps": 1}},
    }
    script = """async ([frame, relayed]) => {
      const { tierMbps } = await import('/static/tiles.js');
      return [1, 2].map(tier => tierMbps(frame, tier, relayed));
    }"""
    assert page.evaluate(script, [frame, False]) == [6, 1]
    assert page.evaluate(script, [frame, True]) == [3, 1]


def test_a_network_without_tiers_shows_none(page, address, runs):  # noqa: F811
    testbed.simulated(runs / "paths", "two_paths", "duration_s=3")
    page.goto(f"{address}/runs/paths")
    until(page, lambda: "Held back at most" in page.inner_text("#tiles"))
    assert "Tier" not in page.inner_text("#tiles")
    page.click("#explain")
    assert "Tier" not in page.inner_text("#intro")
    testbed.simulated(runs / "more", "two_paths", "duration_s=3", "seed=2")
    page.goto(f"{address}/compare?runs=paths,more")
    page.wait_for_selector("#metrics tbody tr")
    assert "tiers" not in page.inner_text("#metrics")


def test_changed_runs_are_named_and_say_what_each_change_did(page, address, runs):  # noqa: F811
    result = runs / "plain" / "result.json"
    flip = {"t": 8.0, "target": "link.wifi.loss", "value": 0.1}
    result.write_text(json.dumps(json.loads(result.read_text()) | {"flips": [flip]}))
    with (runs / "plain" / "events.jsonl").open("a") as events:
        events.write(json.dumps(flip | {"kind": "flip", "ok": True, "source": "inbox"}) + "\n")
    seal(runs / "plain")
    page.goto(f"{address}/runs")
    until(page, lambda: "link.wifi.loss = 0.1" in page.inner_text("#runs"))
    page.goto(f"{address}/compare?runs=plain,metered")
    until(page, lambda: page.locator("#metrics tbody tr").count() > 3)
    assert "link.wifi.loss = 0.1" in page.inner_text(".legend")
    page.goto(f"{address}/runs/plain")
    until(page, lambda: "instead of" in page.inner_text("#effects"))
    assert page.is_visible("#again-flips")


def test_means_have_intervals_figures_are_saved_and_another_run_is_compared(page, address, runs):  # noqa: F811
    for seed in (2, 3, 4, 5):
        name, more = f"seed{seed}", ("duration_s=20", f"seed={seed}")
        testbed.finished(runs / name, *more, strategy="meter_throttling")
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/metered")
    until(page, lambda: "95 %:" in page.inner_text("#tiles"))
    assert "95 % intervals over 5 repeats" in page.inner_text("#tiles-when")
    until(page, lambda: page.locator(".chart .plot .main-svg").count() > 4)
    with page.expect_download() as saved:
        page.click("#figures-svg")
    assert saved.value.suggested_filename.endswith(".svg")
    assert "Print or PDF" in page.inner_text("#next")
    page.select_option("#compare-with", "plain")
    page.wait_for_url("**/compare?runs=plain,metered")
