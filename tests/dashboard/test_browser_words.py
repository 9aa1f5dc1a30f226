"""What pages say and draw in detail, in a real browser: times left, ticks, points, runs in lists."""

from __future__ import annotations

import pytest
from conftest import until as eventually
from test_browser import page, until  # noqa: F401  # the fixture `page`
from testbed import simulated

pytestmark = [pytest.mark.browser, pytest.mark.whole]

LEFT = """async () => {
  const { timeLeft } = await import('/static/pace.js');
  const run = (speed) => ({ state: { speed } });
  return [timeLeft(181, 0.17, run(1)), timeLeft(181, 1.01, run(1)), timeLeft(181, null, run(1)),
    timeLeft(1810, null, run(10)), timeLeft(60, null, run("max")), timeLeft(60, 2, run("max")),
    timeLeft(60, null, { state: { speed: null }, time_dilation: 4 })];
}"""
TICKS = """async () => {
  const { ticks } = await import('/static/completion.js');
  const of = (times) => {
    const { tickvals, ticktext } = ticks(times);
    return ticktext.filter((_, n) => tickvals[n] >= times[0] && tickvals[n] <= times.at(-1));
  };
  return [of([0.02, 0.5, 2]), of([0.15, 0.7])];
}"""
ALONE = """async () => {
  const { withAlone } = await import('/static/series.js');
  const line = (y, more) => ({ x: y.map((_, n) => n), y, mode: "lines", line: { color: "red" }, ...more });
  const of = (...given) => withAlone(line(...given));
  return [of([null, 3, null, 4, 5]), of([1, 2, null, 3, 4]), of([null, 3, null], { connectgaps: true })]
    .map(({ mode, marker }) => [mode, marker?.size ?? null]);
}"""
DIFFERING = """async () => {
  const { differing, settingsOf } = await import('/static/run_words.js');
  const doc = { scenario: "s", strategy: "meter_throttling", cc: "reno", seed: 1, duration_s: 30,
    engine: "sim", rate_scale: 1, params: { cth: 0.85 } };
  const docs = [{ ...doc, id: "a", experiment: "aa" }, { ...doc, id: "b", cc: "cubic", experiment: "bb" },
    { ...doc, id: "c", params: { cth: 0.5 }, experiment: "cc" }, { ...doc, id: "d", experiment: "dddddddd" }];
  const more = differing(docs);
  return docs.map((each) => settingsOf(each, doc, more));
}"""
CUT = """() => [...document.querySelectorAll('#tiles .tile')].filter((tile) => {
  const { right } = tile.getBoundingClientRect();
  return right > tile.parentElement.getBoundingClientRect().right + 1 || right > innerWidth;
}).length"""
TRAFFIC = (
    "[{user: ue1, kind: workload, sizes: [[20, 1]], rate_mbps: 0.5}, "
    "{user: ue2, kind: rpc, answer_kb: 30}, {user: ue3, kind: web, sizes: [[20, 1]]}, "
    "{user: ue4, kind: video}, {user: ue1, kind: call}]"
)


def test_words_and_marks_of_charts(page, address):  # noqa: F811
    page.goto(f"{address}/glossary")
    assert page.evaluate(LEFT) == [
        ", about 18 min left in real time",
        *[", about 181 s left"] * 2,
        ", about 3 min left in real time",
        "",
        ", about 30 s left in real time",
        ", about 4 min left in real time",
    ]
    assert page.evaluate(TICKS) == [["0.03", "0.1", "0.3", "1"], ["0.2", "0.3", "0.5"]]
    assert page.evaluate(ALONE) == [
        ["lines+markers", [0, 5, 0, 0, 0]],
        ["lines", None],
        ["lines", None],
    ]


def test_runs_that_differ_in_their_settings_have_different_words(page, address):  # noqa: F811
    page.goto(f"{address}/glossary")
    assert page.evaluate(DIFFERING) == [
        "meter_throttling, seed 1, cth 0.85, other settings (aa), reno, 30 s",
        "meter_throttling, seed 1, cth 0.85, cubic, 30 s",
        "meter_throttling, seed 1, cth 0.5, reno, 30 s",
        "meter_throttling, seed 1, cth 0.85, other settings (dddddd), reno, 30 s",
    ]


def test_the_list_of_runs_shows_congestion_control_and_duration(page, address):  # noqa: F811
    page.goto(f"{address}/runs")
    row = page.locator("#runs tr:has(a[href='/runs/plain'])")
    until(page, lambda: "reno, 20 s" in row.inner_text())


def test_a_finished_run_shows_all_tiles_and_a_colour_for_each_kind(page, address, runs):  # noqa: F811
    simulated(runs / "kinds", "testbed_wifi_lte", f"traffic={TRAFFIC}", "duration_s=12")
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(f"{address}/runs/kinds")
    until(page, lambda: page.locator("#tiles .tile").count() >= 10)
    until(page, lambda: page.evaluate(CUT) == 0)
    plot = page.locator("#completion .plot")
    until(page, lambda: plot.evaluate("plot => plot.data?.length") == 4)
    colours = plot.evaluate("plot => plot.data.map(({ line }) => line.color)")
    assert len(set(colours)) == 4


def test_the_form_names_fields_and_errors_as_it_shows_them(page, address):  # noqa: F811
    form = page.context.browser.new_page()  # the browser logs that the server refuses something
    form.set_viewport_size({"width": 1366, "height": 768})
    form.goto(f"{address}/scenarios/evening_at_home")
    below = "node => node.getBoundingClientRect().bottom <= innerHeight"
    assert form.locator("#start-button").evaluate(below)
    cut = "list => list.scrollWidth > list.clientWidth || list.clientWidth < 200"
    assert not any(
        form.locator("#race-lanes select:visible").evaluate_all(f"all => all.map({cut})")
    )
    form.locator("#traffic-box > summary").click()
    form.get_by_label("bitrates to choose from").fill("5, 2, banana")
    form.locator("#start-button").click()
    problem = form.locator("#problem")
    until(form, problem.is_visible)
    told = problem.inner_text()
    assert told.startswith("Traffic of viewer (video: a video), bitrates to choose from: ")
    assert "traffic[" not in told
    assert form.get_by_label("bitrates to choose from").get_attribute("aria-invalid") == "true"
    gamer = form.locator(".entry", has=form.get_by_label("size of an answer"))
    assert "either: mean think time" in gamer.inner_text()
    assert "or: requests" in gamer.inner_text()


def test_a_running_run_has_the_title_of_its_scenario(page, address, running_run):  # noqa: F811
    page.goto(address)
    card = page.locator("#live-runs h3")
    until(page, lambda: card.count() == 1)
    assert card.inner_text() == "Four users, one WiFi access point, one LTE base station"
    assert page.get_by_role("navigation").get_by_role("link", name="Worksheets").is_visible()


def test_a_run_that_has_samples_says_that_they_are_loaded(client, running_run):
    at = lambda: client.get(f"/api/runs/{running_run}").json["state"]["t"]  # noqa: E731
    eventually(lambda: (at() or 0) > 0)
    text = client.get(f"/runs/{running_run}").text
    assert "Loading the samples" in text
    assert "Waiting for the first sample" not in text
