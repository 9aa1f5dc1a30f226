"""The page of a run on a screen that is touched: a finger moves a user, cuts a cable, draws a curve."""

from __future__ import annotations

import pytest
from test_browser import PATIENCE_MS, chromium, until
from test_browser_places import SETTINGS, middle, place

pytestmark = [pytest.mark.browser, pytest.mark.whole]


@pytest.fixture
def page():
    """A page on a tablet, held upright."""
    with chromium() as opened:
        size = {"width": 820, "height": 1180}
        context = opened.new_context(viewport=size, has_touch=True, is_mobile=True)
        context.set_default_timeout(PATIENCE_MS)
        yield context.new_page()


class Finger:
    """One finger on the screen, with the browser's own handling of gestures such as scrolling."""

    def __init__(self, page):
        self.page, self.session = page, page.context.new_cdp_session(page)

    def _send(self, kind, *points):
        touches = [{"x": x, "y": y} for x, y in points]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def drag(self, start, end, steps=8):
        self._send("touchStart", start)
        for n in range(1, steps + 1):
            self._send(
                "touchMove", [a + (b - a) * n / steps for a, b in zip(start, end, strict=True)]
            )
            self.page.wait_for_timeout(30)
        self._send("touchEnd")


def open_run(page, address, client, scenario, ready, settings=None):
    body = {"scenario": scenario, "engine": "sim", "speed": 1, "duration_s": 600}
    run_id = client.post("/api/runs", json=body | {"set": settings or {}}).json["id"]
    page.goto(f"{address}/runs/{run_id}")
    until(page, lambda: page.locator(ready).count() > 0)
    page.wait_for_timeout(600)  # the drawing takes its size
    return f"/api/runs/{run_id}"


def test_a_finger_drags_a_user_and_the_page_does_not_scroll(page, address, client):
    user = "#drawing .spot[data-id=ue2]"
    run = open_run(page, address, client, "thirty_users", f"{user}.movable", SETTINGS)
    start, scrolled = place(client, run), page.evaluate("scrollY")
    aim = middle(page, "#drawing .spot[data-id=wifi3] .body")
    Finger(page).drag(middle(page, f"{user} .body"), aim)
    until(page, lambda: place(client, run) == pytest.approx([150, 50], abs=3))
    assert place(client, run) != start
    assert page.evaluate("scrollY") == scrolled
    client.post(f"{run}/stop")


def test_taps_cut_a_cable_and_heal_it(page, address, client):
    run = open_run(page, address, client, "two_paths", "#drawing .subflow")
    page.locator("#drawing .snip").first.wait_for()
    page.locator("#drawing .snip[data-link=path1]").tap()
    until(page, lambda: page.locator("#drawing .line.down[data-id=path1]").count() == 1)
    page.locator("#drawing .snip[data-link=path1]").tap()
    until(page, lambda: page.locator("#drawing .line.down").count() == 0)
    client.post(f"{run}/stop")


def test_a_finger_draws_a_prediction(page, address, client):
    run = open_run(page, address, client, "two_paths", "#try .predict:visible")
    page.locator("#try .predict:visible").first.tap()
    pad = page.locator(".pad").first
    pad.wait_for()
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    left, middle_y = box["x"] + 0.25 * box["width"], box["y"] + 0.5 * box["height"]
    Finger(page).drag((left, middle_y), (box["x"] + 0.9 * box["width"], middle_y - 40))
    values = page.locator(".points-table input").evaluate_all("all => all.map(each => each.value)")
    assert sum(value != "" for value in values) > 2
    client.post(f"{run}/stop")
