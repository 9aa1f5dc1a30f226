"""The projector's page in a real browser: predictions over the measurement, and those of the
class."""

from __future__ import annotations

import pytest
from axe import serious_faults
from chromium import chromium
from class_browser import DRAWN, TOO_WIDE, new_page, served, until, with_curve

from lab.classroom.door import Newcomer
from lab.classroom.lesson import Place

pytestmark = [pytest.mark.browser, pytest.mark.whole]

SIZES = ((1366, 768), (1440, 900), (1920, 1080))
SEATS = 5
LEAST_HEIGHT = 80  # of a chart, in px before the zoom of the wall
BARS = """() => [...document.querySelectorAll(".predicted .plot")].filter(each => each.data)
  .map(each => [each.data[0].type, each.data.length, each.layout.shapes?.length ?? 0,
    each.querySelector(".main-svg").clientHeight === each.clientHeight ? each.clientHeight : 0,
    each.getAttribute("aria-label")])"""
BELOW = """() => Math.max(...[...document.querySelectorAll(":is(.chart, #run .drawing svg)")]
  .map(each => each.getBoundingClientRect().bottom)) - innerHeight"""


@pytest.fixture
def sheet(sheet):
    """The worksheet with a curve to draw, and a prediction that is drawn over the run."""
    sheet.write_text(with_curve(sheet.read_text()))
    return sheet


def a_class(room):
    """Seats that have predicted, and one that has not."""
    code = room.folder.settings.code
    for n in range(SEATS):
        seat, _ = room.join("here", code, [Newcomer(f"Student {n}")])
        room.open(seat, "small")
        if n:
            room.answer(Place(seat, "small", "guess"), 4 * n)
            room.answer(Place(seat, "small", "shape"), [[0, 1], [1, 2 * n], [2, n]])


def finished(page, room):
    run = room.request_run(Place("s2", "small", "both"), {}, lambda run: None)
    until(page, lambda: room.state.runs[run.id].over)
    return run.id


def test_the_wall_shows_predictions_over_a_finished_run_and_those_of_all(app, room, faults):
    with served(app) as address, chromium() as browser:
        wall = new_page(browser, faults, *SIZES[0])
        a_class(room)
        run = finished(wall, room)
        wall.goto(f"{address}/projector?key={room.folder.settings.projector_key}")
        wall.wait_for_selector("#welcome .code")
        room.point_at(run, None, None)
        until(wall, lambda: wall.locator("#live .main-svg").count() > 0)
        drawn = {"predicted in step 1", "predicted in step 2"}
        until(wall, lambda: drawn < {*wall.evaluate(DRAWN, "live")})
        until(wall, lambda: [each[1:3] for each in wall.evaluate(BARS)] == [[1, 1], [SEATS, 0]])
        bars, _ = wall.evaluate(BARS)  # with the measured mean, and the measured line
        assert bars[0] == "bar"
        assert bars[-1] == (
            "Predictions: 4 to 6 Mb/s: 1, 8 to 10 Mb/s: 1, 12 to 14 Mb/s: 1, 16 to 18 Mb/s: 1"
        )
        assert wall.locator("#live .chart").count() == 1
        assert wall.locator(".predicted .meta").all_inner_texts() == ["4 of 5 seats predicted"] * 2
        for width, height in SIZES:
            wall.set_viewport_size({"width": width, "height": height})
            until(wall, lambda: wall.evaluate(BELOW) <= 0)
            assert wall.evaluate(TOO_WIDE) <= 0
            until(wall, lambda: min(each[3] for each in wall.evaluate(BARS)) > LEAST_HEIGHT)
        assert serious_faults(wall) == ""
        wall.click("#theme")
        assert serious_faults(wall, "color-contrast") == ""


def test_the_instructor_shows_a_finished_run_and_a_histogram(app, room, faults):
    with served(app) as address, chromium() as browser:
        teacher, wall = (new_page(browser, faults) for _ in range(2))
        a_class(room)
        run = finished(teacher, room)
        settings = room.folder.settings
        teacher.goto(f"{address}/instructor?key={settings.instructor_key}")
        wall.goto(f"{address}/projector?key={settings.projector_key}")
        teacher.click('button[aria-label="look here: Student 1"]')
        until(wall, lambda: wall.is_visible("#run"))
        until(
            wall, lambda: wall.locator("#live .main-svg").count() > 0
        )  # it may see the run no longer
        assert room.state.look.run == run
        assert teacher.locator("#grid .cell .sketch").count() == SEATS - 1
        teacher.click('button[aria-label="Show on the wall what all predicted: shape"]')
        until(wall, lambda: wall.is_visible("#predictions"))
        assert "Draw it." in wall.inner_text("#step")
        for width, height in SIZES:
            wall.set_viewport_size({"width": width, "height": height})
            until(wall, lambda: wall.evaluate(BELOW) <= 0)
            until(wall, lambda: wall.evaluate(BARS)[-1][3] > 3 * LEAST_HEIGHT)
        until(wall, lambda: wall.evaluate(BARS)[-1][-1].startswith("4 drawn predictions of"))
        teacher.click('button[aria-label^="Student 1, shape"]')
        until(teacher, lambda: teacher.is_visible("#detail .drawn-answer svg"))
        assert (
            teacher.get_attribute("#detail .drawn-answer svg", "aria-label")
            == "0 s: 1, 1 s: 2, 2 s: 1"
        )
        assert "a curve of" not in teacher.inner_text("#detail")
        assert serious_faults(teacher) == ""
