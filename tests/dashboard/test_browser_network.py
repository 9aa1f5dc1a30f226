"""The page of a run in a real browser: the drawn network, the time of the page, many lines.

One browser page serves all steps of a test, because a browser is slow to start.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from axe import serious_faults
from test_browser import page, until  # noqa: F401  # the fixture `page`

from dashboard import view

pytestmark = [pytest.mark.browser, pytest.mark.whole]

TALL = {"width": 1280, "height": 3200}  # charts outside the window are not drawn
OPACITIES = """() => document.querySelector('#chart-users .plot').data
  .filter(trace => trace.meta.key.length).map(trace => [trace.name, trace.opacity ?? 1])"""
RANGES = """() => [...document.querySelectorAll('.chart .plot')].filter(plot => plot.layout)
  .map(plot => plot.layout.xaxis.range.map(Math.round).join())"""
LINES = """() => document.querySelector('#chart-users .plot').data
  .filter(trace => trace.meta.key.length).map(trace => trace.name)"""
RINGS = """() => [...document.querySelectorAll('#drawing .ring')]
  .map(ring => parseInt(ring.getAttribute('stroke-dasharray')))"""
MOVING = """() => {
  const form = document.createElement('form');
  form.className = 'target fresh';
  document.body.append(form);
  const style = (each) => getComputedStyle(each);
  const found = [style(document.querySelector('#drawing .cable')).transitionDuration,
    style(document.getElementById('progress')).transitionDuration, style(form).animationName];
  form.remove();
  return found.join(' ');
}"""
DRAWN = """() => Object.fromEntries([...document.querySelectorAll('#drawing .item')].map(item =>
  [item.dataset.id, [item.getAttribute('points'), item.querySelector('.cable')
    ?.getAttribute('stroke-width'), item.querySelector('.figures')?.textContent,
    item.classList.contains('down')]]))"""


def figures(text):
    return [float(each) for each in re.findall(r"[\d.]+", text or "")]


def from_file(svg):
    """What DRAWN returns, but from the SVG file that the server draws."""
    found = {}
    for item in ElementTree.fromstring(svg).iter():
        if item.get("data-id"):
            cable = next((each for each in item if each.get("class") == "cable"), None)
            label = next((each for each in item if each.get("class") == "figures"), None)
            width = None if cable is None else cable.get("stroke-width")
            found[item.get("data-id")] = [
                item.get("points"),
                width,
                None if label is None else label.text or "",
                "down" in item.get("class").split(),
            ]
    return found


def test_the_network_is_drawn_and_what_is_selected_is_selected_everywhere(page, address, runs):  # noqa: F811
    broken = {"t": 15.0, "kind": "flip", "ok": True, "target": "link.wifi.up", "value": False}
    with (runs / "metered" / "events.jsonl").open("a") as events:
        events.write(json.dumps(broken) + "\n")
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/metered")
    until(page, lambda: page.locator("#drawing .subflow").count() == 6, 20)
    until(page, lambda: page.locator("#chart-users .plot .main-svg").count() > 0, 20)
    assert page.locator("#drawing .spot").count() == 8
    assert max(page.evaluate(RINGS)) > 50
    file = from_file(page.request.get(address + page.get_attribute("#network-file", "href")).text())
    browser = page.evaluate(DRAWN)
    assert browser["wifi"][3]
    assert browser.keys() == file.keys()
    for name, parts in file.items():  # the server and the browser draw the same
        assert parts[2:] == browser[name][2:]
        for own, other in zip(parts[:2], browser[name][:2], strict=True):
            assert figures(own) == pytest.approx(figures(other), abs=0.11), name

    page.focus("#drawing [tabindex='0']")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.kind") in ("user", "ap", "node")
    page.click("#drawing [data-id='ue3']")
    until(page, lambda: page.locator("#drawing .subflow.related").count() == 2, 5)
    until(page, lambda: dict(page.evaluate(OPACITIES))["ue1"] < 0.5, 5)
    assert dict(page.evaluate(OPACITIES))["ue3"] == 1
    shown = page.locator("#log tbody tr:not([hidden])").all_inner_texts()
    assert all("ue3" in row for row in shown)
    assert "select=user%3Aue3" in page.evaluate("location.hash")

    assert page.evaluate(MOVING) == "0s 0s fresh"  # only a control that was changed flashes
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(MOVING) == "0s 0s none"

    page.click("details:has(#network-table) summary")
    until(page, lambda: page.locator("#network-table tbody tr").count() > 15, 5)
    table = page.inner_text("#network-table")
    assert "Subflow ue3/2" in table
    assert "srv1 → s1 → wifi1 → ue3" in table
    page.click("#unselect")
    page.locator("#chart-users").scroll_into_view_if_needed()  # charts outside are not drawn
    until(page, lambda: dict(page.evaluate(OPACITIES))["ue1"] == 1)
    assert page.evaluate("location.hash") == ""


def test_a_running_network_is_drawn_live(page, address, client, running_run):  # noqa: F811
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/{running_run}")
    until(page, lambda: page.locator("#drawing .subflow").count() == 6, 20)
    label = page.evaluate(DRAWN)["wifi"][2]
    until(page, lambda: page.evaluate(DRAWN)["wifi"][2] != label, 10)
    page.click("#drawing [data-id='ue3']")
    until(page, lambda: page.locator("#targets .picked form").count() > 1, 5)
    chosen = page.locator("#targets .picked form")
    assert all("ue3" in chosen.nth(n).get_attribute("data-target") for n in range(chosen.count()))
    assert chosen.first.is_visible()
    page.click("#pause-charts")  # the drawing stands still, too
    page.wait_for_timeout(300)
    label = page.evaluate(DRAWN)["wifi"][2]
    page.wait_for_timeout(1000)
    assert page.evaluate(DRAWN)["wifi"][2] == label
    client.post(f"/api/runs/{running_run}/stop")


def test_all_charts_have_one_time_and_one_zoom(page, address):  # noqa: F811
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/metered#t=6&zoom=2-14")
    until(page, lambda: set(page.evaluate(RANGES)) == {"2,14"}, 20)
    until(page, lambda: "Around 6.0 s" in page.inner_text("#happened"), 5)
    assert "limit" in page.inner_text("#around")
    until(page, lambda: page.locator(".stage .cursor.pinned").first.is_visible(), 5)
    drawn = page.evaluate(RINGS)
    page.click("text=Next event")
    until(page, lambda: "Around 6.0 s" not in page.inner_text("#happened"), 5)
    assert float(page.evaluate("location.hash").split("t=")[1].split("&")[0]) > 6
    assert page.get_attribute(".rail-marks .tick", "d").startswith("M")
    plot = page.locator("#chart-users .plot .draglayer .xy").first.bounding_box()
    page.mouse.click(plot["x"] + plot["width"] / 2, plot["y"] + plot["height"] / 2)
    until(page, lambda: "Around 8.0 s" in page.inner_text("#happened"), 5)  # the zoom is 2 to 14 s
    page.click("text=Whole run")
    until(page, lambda: set(page.evaluate(RANGES)) == {"0,20"}, 5)

    page.select_option("select[aria-label='Speed of the replay']", "20")
    page.click("text=Replay")
    until(page, lambda: page.evaluate(RINGS) != drawn, 5)
    until(page, lambda: page.locator(".keys button:has-text('Replay')").count() == 1, 10)
    assert "20.0 s" in page.inner_text("#time output")


@pytest.fixture
def crowd(runs):
    """A run whose samples have thirty users: ue1 receives least, ue30 most."""
    folder = runs / "plain"
    lines = (folder / "samples.jsonl").read_text().splitlines()
    frames = [json.loads(line) for line in lines]
    for frame in frames:
        frame["user"] = {f"ue{n}": {"mbps": n / 10} for n in range(1, 31)}
    text = "".join(json.dumps(frame) + "\n" for frame in frames)
    (folder / "samples.jsonl").write_text(text)
    return folder.name


def test_a_chart_with_many_lines_shows_the_ones_that_matter(page, address, crowd, monkeypatch):  # noqa: F811
    everyone = tuple(f"ue{n}" for n in range(1, 31))
    before = view.about

    def about(folder, happened):
        return replace(before(folder, happened), users=everyone)

    monkeypatch.setattr(view, "about", about)
    page.set_viewport_size(TALL)
    page.goto(f"{address}/runs/{crowd}")
    until(page, lambda: page.locator("#chart-users .plot .main-svg").count() > 0, 20)
    shown = page.evaluate(LINES)
    assert len(shown) <= 8
    assert {"ue30", "ue1"} <= set(shown)
    assert "24 others" in page.inner_text("#chart-users .lines")
    height = page.evaluate("document.querySelector('#chart-users .lines').clientHeight")
    assert height < 60
    page.evaluate("location.hash = 'select=user:ue15'")
    until(page, lambda: "ue15" in page.evaluate(LINES), 5)
    page.click("#chart-users button:has-text('Heat map')")
    rows = "() => document.querySelector('#chart-users .plot').data[0].y"
    until(page, lambda: page.evaluate(rows)[0] == "ue30", 5)
    assert page.evaluate(rows)[-2:] == ["ue2", "ue1"]  # the first row is drawn at the bottom
    assert not serious_faults(page)


def test_the_drawing_follows_the_parameters_of_the_form(page, address):  # noqa: F811
    page.goto(f"{address}/scenarios/thirty_users")
    until(page, lambda: page.locator("#drawing .spot").count() == 36, 10)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.fill("#topology-users", "5")
    page.press("#topology-users", "Tab")
    until(page, lambda: page.locator("#drawing .spot").count() == 11, 10)
    before = page.get_attribute("#drawing [data-id='ue3']", "transform")
    page.fill("#seed", "7")
    page.press("#seed", "Tab")
    moved = "[data-id='ue3']"
    until(page, lambda: page.get_attribute(f"#drawing {moved}", "transform") != before, 10)
