"""Users that are moved in the drawing of a run: with the pointer, with keys and in two fields."""

from __future__ import annotations

import pytest
from test_browser import page, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

SETTINGS = {"topology.users": 3, "topology.multipath_percent": 0, "topology.wifi_near_m": 900}
USER = "#drawing .spot[data-id=ue2]"
MARKS = "() => document.querySelector('.rail-marks .line').getAttribute('d').split('M').length - 1"


@pytest.fixture
def run(page, address, client):  # noqa: F811
    """The page of a run whose users are all on WiFi; returns the address of its API."""
    body = {"scenario": "thirty_users", "engine": "sim", "speed": 1, "duration_s": 600}
    run_id = client.post("/api/runs", json=body | {"set": SETTINGS}).json["id"]
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{address}/runs/{run_id}")
    until(page, lambda: page.locator(f"{USER}.movable").count() == 1)
    until(page, lambda: page.locator("#chart-users .plot .main-svg").count() > 0)
    page.wait_for_timeout(600)  # the drawing takes its size
    yield f"/api/runs/{run_id}"
    client.post(f"/api/runs/{run_id}/stop")


def targets(client, path):
    return {each["name"]: each["value"] for each in client.get(path).json["targets"]}


def place(client, path):
    return targets(client, path)["user.ue2.position"]


def middle(page, selector):  # noqa: F811
    """The middle of a part of the drawing, which is drawn anew when its size changes."""
    return page.evaluate(
        """(selector) => {
          const { x, y, width, height } = document.querySelector(selector).getBoundingClientRect();
          return [x + width / 2, y + height / 2];
        }""",
        selector,
    )


def test_a_user_is_dragged_and_taken_back_to_the_start(page, client, run):  # noqa: F811
    start, before = place(client, run), targets(client, run)
    page.mouse.move(*middle(page, f"{USER} .body"))
    page.mouse.down()
    page.mouse.move(*middle(page, "#drawing .spot[data-id=wifi3] .body"), steps=5)
    assert page.locator("#drawing .ghost").count() == 1
    assert place(client, run) == start  # nothing is sent before the pointer is up
    page.mouse.up()
    until(page, lambda: place(client, run) == pytest.approx([150, 50], abs=2))
    x, y = place(client, run)
    until(page, lambda: page.evaluate(MARKS) == 1)
    assert f"ue2 moved to {x:g}, {y:g} m" in page.inner_text("#log")
    until(page, lambda: page.locator("#drawing .ghost").count() == 0)  # the user stands there
    there = page.locator("#drawing .spot[data-id=wifi3]").get_attribute("transform")
    until(page, lambda: page.locator(USER).get_attribute("transform")[:13] == there[:13])
    assert page.inner_text("#knobs-title") == "ue2"
    rate = "#targets form[data-target='cell.wifi3.ue2.rate_mbps'] input >> nth=0"
    best = page.locator(rate).input_value()
    old = next(name for name in before if name.endswith(".ue2.rate_mbps"))
    assert float(best) > before[old]
    page.click("#undo")
    until(page, lambda: place(client, run) == start)
    until(page, lambda: page.evaluate(MARKS) == 2)


def filled(field, text):
    """Charts that are drawn anew take the focus, and with it what is typed."""
    field.fill(text)
    return field.input_value() == text


def test_arrow_keys_and_fields_move_the_selected_user(page, client, run):  # noqa: F811
    x, y = place(client, run)
    user = page.locator(USER)
    for key in ("Enter", "ArrowRight", "ArrowRight", "Shift+ArrowUp", "ArrowLeft"):
        user.press(key)
    said = page.inner_text("#walked")
    assert said.startswith("ue2 to ")
    until(page, lambda: place(client, run) == pytest.approx([x + 1, y - 10], abs=0.06))
    assert said == "ue2 to {:g}, {:g} m".format(*place(client, run))
    form = page.locator("#targets form[data-target='user.ue2.position']")
    fields = form.locator("input")
    until(
        page,
        lambda: [float(fields.nth(n).input_value()) for n in (0, 1)] == place(client, run),
    )
    for n, text in enumerate(("12", "40")):
        until(page, lambda n=n, text=text: filled(fields.nth(n), text))
    form.locator("button").click()
    until(page, lambda: "ue2 moved to 12, 40 m" in page.inner_text("#log"))
    assert place(client, run) == [12, 40]
    for key in ("Shift+ArrowLeft", "Shift+ArrowLeft"):
        user.press(key)
    until(page, lambda: place(client, run) == [0, 40])  # at the edge
    for key in ("ArrowDown", "Escape"):  # Escape takes it back
        user.press(key)
    page.wait_for_timeout(900)
    assert place(client, run) == [0, 40]


@pytest.mark.long
def test_where_radios_have_no_places_nobody_can_be_dragged(page, address, client):  # noqa: F811
    body = {"scenario": "testbed_wifi_lte", "engine": "sim", "speed": 1, "duration_s": 600}
    run_id = client.post("/api/runs", json=body).json["id"]
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{address}/runs/{run_id}")
    until(page, lambda: page.locator("#drawing .subflow").count() > 0)
    page.mouse.move(*middle(page, f"{USER} .body"))
    page.mouse.down()
    page.mouse.move(*middle(page, "#drawing .spot[data-id=wifi1] .body"), steps=5)
    assert page.locator("#drawing .ghost").count() == 0
    page.mouse.up()
    assert page.locator("#drawing .movable").count() == 0
    page.click(USER)
    assert page.locator(
        "#targets form[data-target='cell.wifi1.ue2.rate_mbps'] [type=range]"
    ).count()
    client.post(f"/api/runs/{run_id}/stop")
