"""The first screen of a run in a real browser: it shows cause and effect at once, and the changes that
matter take one click."""

from __future__ import annotations

import pytest
import testbed
from test_browser import page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

SIZES = ((1440, 900), (1366, 768), (1920, 1080))
SCENARIOS = ("testbed_wifi_lte", "fat_tree", "thirty_users", "dynamic_loss")
PARTS = ("network", "chart", "knobs", "suggestions", "happened", "timebar")
BOXES = """(parts) => Object.fromEntries([...parts.map((part) => {
    const found = [...document.querySelectorAll(`[data-part="${part}"]`)];
    return [part, found.length === 1 ? found[0] : null];
  }), ['drawing', document.querySelector('#drawing svg')],
  ['plot', document.querySelector('[data-part="chart"] .plot .main-svg')],
  ['knob', [...document.querySelectorAll('#targets select, #targets input')].find((each) => each.checkVisibility())],
  ['suggestion', document.querySelector('#try li')],
].map(([part, node]) => {
    const { left, top, right, bottom } = node?.getBoundingClientRect() ?? {};
    return [part, node && [left, top, right, bottom]];
}))"""
SCROLLED = "() => document.scrollingElement.scrollTop"
RATE = "(user) => document.querySelector('#chart-users').card.traces.find((each) => each.name === user).y.at(-1)"


def start(client, scenario, **more):
    body = {"scenario": scenario, "engine": "sim", "speed": 1, "duration_s": 600} | more
    return client.post("/api/runs", json=body).json["id"]


def outside(boxes, width, height):
    """The parts that are not wholly inside the window, or too small to be read."""
    least = {"drawing": (200, 110), "plot": (250, 110), "knob": (40, 20), "happened": (250, 90)}
    bad = {}
    for name, box in boxes.items():
        small = least.get(name, (30, 20))
        left, top, right, bottom = box or (0, 0, 0, 0)
        fits = left >= 0 and top >= 0 and right <= width and bottom <= height
        if not fits or right - left < small[0] or bottom - top < small[1]:
            bad[name] = box
    return bad


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_everything_that_matters_is_on_the_first_screen(page, address, client, runs, scenario):  # noqa: F811
    testbed.simulated(runs / "done", scenario, "duration_s=4")
    live = start(client, scenario)
    for run_id in (live, "done"):
        page.goto(f"{address}/runs/{run_id}")
        until(page, lambda: page.locator("#drawing .subflow").count() > 0)
        until(page, lambda: page.locator("[data-part=chart] .plot .main-svg").count() > 0)
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(400)  # the drawing and the charts take their new sizes
            boxes = page.evaluate(BOXES, list(PARTS))
            assert outside(boxes, width, height) == {}, (scenario, run_id, width)
            assert page.evaluate(SCROLLED) == 0
    assert page.locator("[data-part=chart-more]").count() >= 2
    client.post(f"/api/runs/{live}/stop")


def test_one_click_shows_that_a_limit_gives_ue1_its_rate_back(page, address, client):  # noqa: F811
    run_id = start(client, "testbed_wifi_lte", speed=10)
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"{address}/runs/{run_id}")
    until(page, lambda: page.locator("#try .press").count() == 3)
    until(page, lambda: page.locator("#chart-users .plot .main-svg").count() > 0)
    page.wait_for_timeout(1500)
    before = page.evaluate(RATE, "ue1")
    page.click("#try .press >> nth=0")
    until(page, lambda: page.evaluate(RATE, "ue1") > 1.4 * before)
    until(page, lambda: "instead of" in page.inner_text("#happened .effects"))
    assert page.locator("#happened .effects .badge").first.inner_text() == "1"
    page.click("[data-why]")  # why Tier 2 is what it is
    assert "A meter lets second subflows have 0.10 Mb/s" in page.inner_text("#happened")
    assert page.evaluate(SCROLLED) == 0
    page.click("#close-why")
    assert "instead of" in page.inner_text("#happened")
    page.click("#undo")
    until(page, lambda: client.get(f"/api/runs/{run_id}").json["is_changed"] is False)
    until(page, lambda: page.is_hidden("#undo"))
    client.post(f"/api/runs/{run_id}/stop")


def test_a_cable_is_cut_with_one_click_and_repaired_by_the_keyboard(page, address, client):  # noqa: F811
    run_id = start(client, "testbed_wifi_lte", speed=10)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{address}/runs/{run_id}")
    line = "#drawing [data-kind=link][data-id=lte]"
    until(page, lambda: page.locator(".snip[data-link=lte]").count() == 1)
    page.click(".snip[data-link=lte]")
    page.wait_for_selector(f"{line}.down", state="attached")
    until(page, lambda: page.evaluate(RATE, "ue4") < 0.05)
    assert page.evaluate(SCROLLED) == 0
    assert "lte" in page.inner_text("#happened")
    page.focus(line)
    page.keyboard.press("Enter")
    assert page.inner_text("#acts button") == "Repair lte"
    page.keyboard.press("x")
    until(page, lambda: page.locator(f"{line}.down").count() == 0)
    assert page.inner_text("#acts button") == "Cut lte"
    client.post(f"/api/runs/{run_id}/stop")


def test_wifi_of_a_user_is_switched_off_and_on(page, address, client):  # noqa: F811
    run_id = start(client, "testbed_wifi_lte", speed=2)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{address}/runs/{run_id}")
    line = "#drawing [data-kind=link][data-id='wifi1~ue3']"
    user = "#drawing [data-kind=user][data-id=ue3]"
    until(page, lambda: page.locator(".snip[data-link=lte]").count() == 1)
    page.focus(user)
    page.keyboard.press("Enter")
    until(page, lambda: page.locator("#acts button").count() == 2)
    page.click("#acts button:has-text('Switch off wlan0 of ue3')")
    page.wait_for_selector(f"{line}.down", state="attached")
    until(page, lambda: "wlan0 of ue3 was switched off" in page.inner_text("#happened"))
    page.click("#acts button:has-text('Switch on wlan0 of ue3')")
    until(page, lambda: page.locator(f"{line}.down").count() == 0)
    client.post(f"/api/runs/{run_id}/stop")


def test_a_click_on_a_link_selects_the_link_and_a_second_one_the_subflow_on_it(page, address, runs):  # noqa: F811
    testbed.simulated(runs / "done", "testbed_wifi_lte", "duration_s=3")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{address}/runs/done")
    until(page, lambda: page.locator("#drawing .subflow").count() == 6)
    middle = """(id) => {
      const cable = document.querySelector(`#drawing [data-id="${id}"] .cable`);
      const [x, y] = [1, 2].reduce(([x, y], n) => [x + cable[`x${n}`].baseVal.value / 2, y + cable[`y${n}`].baseVal.value / 2], [0, 0]);
      const point = new DOMPoint(x, y).matrixTransform(cable.getScreenCTM());
      return [point.x, point.y];
    }"""
    for link in ("server", "wifi", "lte"):
        page.mouse.click(*page.evaluate(middle, link))
        assert page.inner_text("#knobs-title") == link
        assert f"select=link%3A{link}" in page.evaluate("location.hash")
    page.mouse.click(*page.evaluate(middle, "lte"))
    assert "select=sf%3A" in page.evaluate("location.hash")


def test_lines_are_as_wide_as_their_rate_and_labels_show_figures(page, address, client):  # noqa: F811
    run_id = start(client, "testbed_wifi_lte", speed=10)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{address}/runs/{run_id}")
    widths = """() => Object.fromEntries([...document.querySelectorAll('#drawing .subflow')]
      .map((each) => [each.dataset.id, Number(each.getAttribute('stroke-width'))]))"""
    until(page, lambda: len(page.evaluate(widths)) == 6)
    page.wait_for_timeout(1500)
    before = page.evaluate(widths)
    page.click("#try .press >> nth=0")
    until(page, lambda: page.evaluate(widths)["ue3-1/2"] < 0.6 * before["ue3-1/2"])
    until(page, lambda: page.evaluate(widths)["ue1-1/1"] > 1.15 * before["ue1-1/1"])
    shown = (
        "() => getComputedStyle(document.querySelector('#drawing [data-id=wifi] .figures')).display"
    )
    assert page.evaluate(shown) == "none"
    page.emulate_media(media="print")
    assert page.evaluate(shown) != "none"
    page.emulate_media(media="screen")
    page.click("#labels")
    assert page.evaluate(shown) != "none"
    client.post(f"/api/runs/{run_id}/stop")


def test_dots_flow_only_while_time_passes(page, address, client):  # noqa: F811
    run_id = start(client, "testbed_wifi_lte")
    page.goto(f"{address}/runs/{run_id}")
    inked = """() => { const canvas = document.querySelector('.flow');
      if (!canvas?.width) return 0;
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.filter((each, n) => n % 4 === 3 && each > 0).length; }"""
    until(page, lambda: page.locator("#try .press").count() == 3)
    until(page, lambda: page.evaluate(inked) > 50)
    page.emulate_media(reduced_motion="reduce")
    until(page, lambda: page.evaluate(inked) == 0)
    page.emulate_media(reduced_motion="no-preference")
    until(page, lambda: page.evaluate(inked) > 50)
    page.click("#pause-charts")
    until(page, lambda: page.evaluate(inked) == 0)
    client.post(f"/api/runs/{run_id}/stop")


@pytest.mark.long
def test_a_limit_is_dragged_on_its_chart(page, address, client):  # noqa: F811
    run_id = start(client, "testbed_wifi_lte", speed=10, duration_s=6000)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{address}/runs/{run_id}#select=user:ue4")
    until(page, lambda: page.locator("#chart-users .limit").count() == 1)
    assert "no limit" in page.inner_text(".limit")
    page.wait_for_timeout(500)
    box = page.locator(".limit").bounding_box()
    plot = page.locator("#chart-users .plot").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, plot["y"] + 0.6 * plot["height"], steps=4)
    page.mouse.up()

    def limit():
        rows = client.get(f"/api/runs/{run_id}").json["targets"]
        return next(each["value"] for each in rows if each["name"] == "user.ue4.demand_mbps")

    until(page, lambda: limit() is not None)
    dragged = limit()
    assert 1 < dragged < 40
    until(page, lambda: page.evaluate(RATE, "ue4") < 1.15 * dragged)

    def lower():
        page.focus(".limit")  # charts that are drawn anew take the focus
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(1500)
        return limit() < dragged

    until(page, lower)
    client.post(f"/api/runs/{run_id}/stop")


def test_explain_is_a_drawer_that_is_remembered_and_has_a_badge_once(page, address):  # noqa: F811
    page.goto(f"{address}/runs/plain")
    assert page.is_visible("#explain-new")
    assert page.is_hidden("#intro")
    page.click("#explain")
    assert page.is_visible("#intro")
    assert page.is_hidden("#explain-new")
    assert page.is_visible("#try")  # nothing else goes away
    page.reload()
    assert page.is_visible("#intro")
    page.click("#intro-close")
    page.reload()
    assert page.is_hidden("#intro")
    assert page.is_hidden("#explain-new")
    assert page.is_visible("#try")


def test_a_suggestion_and_a_knob_of_a_finished_run_start_a_new_one(page, address, client, runs):  # noqa: F811
    testbed.simulated(runs / "done", "testbed_wifi_lte", "duration_s=30")
    page.goto(f"{address}/runs/done")
    until(page, lambda: "Not tried" in page.inner_text("#try"))
    page.click("#try .press >> nth=0")
    page.wait_for_url("**/runs/2*")
    made = client.get(f"/api/runs/{page.url.rpartition('/')[2]}").json
    assert made["scenario"] == "testbed_wifi_lte"
    until(page, lambda: "instead of" in page.inner_text("#happened"))
    page.goto(f"{address}/runs/done")
    page.select_option("#targets select >> nth=0", "meter_throttling")
    page.wait_for_url("**/runs/2*")
    until(
        page,
        lambda: (
            page.evaluate("document.querySelector('#targets select').value") == "meter_throttling"
        ),
    )


def test_a_telephone_has_tabs_below_the_drawing(page, address):  # noqa: F811
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/runs/metered")
    until(page, lambda: page.locator("#drawing .subflow").count() == 6)
    shown = {"chart": "#chart-first", "change": "#controls", "happened": "#happened"}
    for tab, part in shown.items():
        page.click(f".tabs [data-tab={tab}]")
        assert [each for each in shown.values() if page.is_visible(each)] == [part]
        assert page.is_visible("#drawing svg")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.reload()
    until(page, lambda: page.is_visible("#happened"))  # where one was
    bar = page.locator("[data-part=timebar]").bounding_box()
    assert bar["y"] + bar["height"] <= 844
