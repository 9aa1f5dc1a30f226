"""Predict first: what is drawn before a change is made is shown over what comes."""

from __future__ import annotations

import pytest
from test_browser import page, until  # noqa: F401  # the fixture `page`
from test_browser_cockpit import start

pytestmark = [pytest.mark.browser, pytest.mark.whole]

DRAWN = """(chart) => (document.querySelector(`#chart-${chart} .plot`)?.data ?? [])
  .filter((each) => each.name?.startsWith('you expected')).map(({ name, x, y }) => ({ name, x, y }))"""


def draw(page, index, heights):  # noqa: F811
    """Press "Predict first" on a suggestion and draw a line through heights, as parts of the pad."""
    page.click(f"#try li >> nth={index} >> .predict")
    until(page, lambda: page.locator("dialog .pad .main-svg").count() > 0)
    assert page.is_disabled("dialog >> text=Make the change")
    box = page.locator("dialog .pad").bounding_box()
    places = [0.15 + 0.84 * n / (len(heights) - 1) for n in range(len(heights))]
    for n, (x, y) in enumerate(zip(places, heights, strict=True)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + (1 - y) * box["height"], steps=4)
        if n == 0:
            page.mouse.down()
    page.mouse.up()
    page.click("dialog >> text=Make the change")
    until(page, lambda: page.locator("dialog.predict-first").count() == 0)


def only(page, chart):  # noqa: F811
    until(page, lambda: len(page.evaluate(DRAWN, chart)) == 1)
    return page.evaluate(DRAWN, chart)[0]


def test_a_prediction_is_drawn_over_what_comes(page, address, client):  # noqa: F811
    run_id = start(client, "testbed_wifi_lte", speed=10)
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"{address}/runs/{run_id}")
    until(page, lambda: page.locator("#chart-users .plot .main-svg").count() > 0)
    draw(page, 0, (0.3, 0.7, 0.7))
    until(page, lambda: client.get(f"/api/runs/{run_id}").json["flips"])
    (flip,) = client.get(f"/api/runs/{run_id}").json["flips"]
    drawn = only(page, "users")
    assert drawn["name"] == "you expected of ue1"  # what the suggestion says to watch
    assert drawn["x"][0] == pytest.approx(flip["t"], abs=0.01)
    assert drawn["x"][-1] - drawn["x"][0] == pytest.approx(20)
    assert drawn["y"][0] < drawn["y"][-1]
    assert "you expected of ue1" in page.inner_text("#chart-users .lines")
    client.post(f"/api/runs/{run_id}/stop")
    until(page, lambda: page.is_visible("#finished-card"))
    assert only(page, "users") == drawn
    page.reload()
    assert only(page, "users") == drawn


def test_a_prediction_on_a_finished_run_goes_with_the_new_run(page, address, client, runs):  # noqa: F811
    page.goto(f"{address}/runs/plain")
    until(page, lambda: page.locator("#chart-users .plot .main-svg").count() > 0)
    draw(page, 0, (0.6, 0.2))
    until(page, lambda: not page.url.endswith("/plain"))
    drawn = only(page, "users")
    assert drawn["x"][0] == pytest.approx(20 / 3, abs=0.01)  # when the new run makes the change
    assert drawn["y"][0] > drawn["y"][-1]


def test_nothing_is_changed_when_a_prediction_is_cancelled(page, address, client):  # noqa: F811
    run_id = start(client, "shared_pipe")
    page.goto(f"{address}/runs/{run_id}")
    until(page, lambda: page.locator("#chart-users .plot .main-svg").count() > 0)
    page.click("#try li >> nth=1 >> .predict")
    page.select_option("dialog select", label="mp")
    page.click("dialog >> text=Cancel")
    assert page.locator("dialog.predict-first").count() == 0
    assert page.locator("#try li.idle").count() == 3
    assert client.get(f"/api/runs/{run_id}").json["flips"] == []
    client.post(f"/api/runs/{run_id}/stop")
