"""The pages of a class in a real browser: a student's whole worksheet, the instructor, the
projector."""

from __future__ import annotations

import re

import pytest
from axe import serious_faults
from chromium import chromium
from class_browser import (
    DRAWN,
    TOO_WIDE,
    Faults,
    join,
    new_page,
    open_sheet,
    served,
    state,
    until,
    with_curve,
)

from lab.classroom.lesson import Place

pytestmark = [pytest.mark.browser, pytest.mark.whole]

NAME = "Zoë <b>&"


@pytest.fixture
def sheet(sheet):
    """The worksheet with a curve to draw, and a prediction that is drawn over the run."""
    sheet.write_text(with_curve(sheet.read_text()))
    return sheet


def draw(page):
    """Draw a curve with the pointer, from a low level to a high one."""
    pad = page.locator("#shape .pad")
    pad.scroll_into_view_if_needed()
    until(page, lambda: page.locator("#shape .pad .main-svg").count() > 0)
    box = pad.bounding_box()
    at = lambda x, y: (box["x"] + 52 + x * (box["width"] - 66), box["y"] + 8 + y * 186)  # noqa: E731
    page.mouse.move(*at(0.01, 0.8))
    page.mouse.down()
    page.mouse.move(*at(0.5, 0.8), steps=4)
    page.mouse.move(*at(0.99, 0.2), steps=6)
    page.mouse.up()


def test_a_student_does_a_worksheet_and_comes_back(app, room, faults, monkeypatch):
    monkeypatch.setenv("FAKE_S", "1")
    with served(app) as address, chromium() as found:
        page = new_page(found, faults)
        page.goto(address)
        page.wait_for_selector("#code:focus")
        assert serious_faults(page) == ""
        join(page, address, room.folder.settings.code, NAME, "Bo")
        until(page, lambda: page.inner_text("#people") == f"{NAME} and Bo")
        open_sheet(page, address, "small")
        rates = page.locator("#steps .text .figures", has_text="Mb/s")  # in the drawing
        assert rates.first.is_visible()
        assert "Predict first" in page.inner_text("#both .note")
        page.fill("#guess input", "7")
        page.click("#guess button")
        until(page, lambda: state(page, "guess") == "saved")
        draw(page)
        assert "Not saved yet" in page.inner_text("#shape .saved")
        page.locator("#shape details summary").click()
        first, last = (page.locator("#shape .points-table input").nth(n) for n in (0, 20))
        assert float(first.input_value()) < 6 < 14 < float(last.input_value())
        last.fill("10")
        last.press("Tab")
        page.click("#shape button.primary")
        until(page, lambda: state(page, "shape") == "saved")
        (step,) = [w.steps["shape"] for w in room.state.seats["s1"].work.values()]
        assert (len(step.answer), step.answer[-1]) == (21, (2.0, 10.0))

        assert page.inner_text("#both .choose label") == "Multipath TCP at the server"
        assert page.locator("#both .choose option").all_inner_texts() == ["on", "off"]
        assert "delay of path 1 (ms)" in page.inner_text("#both .run-facts")
        page.click("#both button.primary")
        until(page, lambda: state(page, "both") == "passed")
        until(page, lambda: page.evaluate(DRAWN, "both").count("your prediction") == 2)
        assert "ue1" in page.evaluate(DRAWN, "both")
        assert "Sealed: you predicted 7 Mb/s" in page.inner_text("#guess .saved")
        assert page.is_disabled("#guess input")

        page.locator("#both .run-log summary").click()
        assert "no strategy has decided anything" in page.inner_text("#both .run-log")

        assert page.inner_text("#enough .ask") == "the-question-of-the-check"
        assert "the latest complete run of step 3" in page.inner_text("#enough")
        page.click("#enough button.primary")
        until(page, lambda: "the-reason-of-the-check" in page.inner_text("#enough"))
        page.locator("#enough details summary").click()
        measured = "all users: throughput, whole run: "
        until(page, lambda: measured in page.inner_text("#enough details"))
        for tries in (1, 2):
            page.check("#cause input[value=one]")
            page.click("#cause button.primary")
            until(
                page, lambda n=tries: room.state.seats["s1"].work["small"].step("cause").tries == n
            )
            until(page, lambda: "Not yet" in page.inner_text("#cause .below"))
        until(page, lambda: "the-hint-of-the-question" in page.inner_text("#cause .below"))
        assert "the-reason" not in page.inner_text("#cause")

        page.fill("#words textarea", "kept <i>here</i>")
        page.reload()  # before it is saved: the browser keeps what was typed
        page.wait_for_selector(".step")
        until(page, lambda: page.input_value("#words textarea") == "kept <i>here</i>")
        assert "Not saved yet" in page.inner_text("#words .saved")
        page.click("#words button.primary")
        until(page, lambda: "A person will grade it" in page.inner_text("#words .below"))
        until(page, lambda: page.inner_text("#done") == "5 of 8 steps done")

        assert serious_faults(page) == ""
        other = new_page(found, faults, 390, 800, page.context.cookies())
        other.goto(f"{address}/seat/small")
        other.wait_for_selector(".step")
        until(other, lambda: other.evaluate(TOO_WIDE) <= 0)
        assert other.input_value("#words textarea") == "kept <i>here</i>"
        other.check("#cause input[value=two]")  # the third try; the first tab shows it, too
        other.click("#cause button.primary")
        until(page, lambda: state(page, "cause") == "passed")
        assert page.is_checked("#cause input[value=two]")


def test_a_late_answer_of_the_server_does_not_replace_a_newer_one(app, room, faults):
    with served(app) as address, chromium() as found:
        page = new_page(found, faults)
        join(page, address, room.folder.settings.code, NAME)
        open_sheet(page, address, "small")
        late = []
        keep = lambda route: late.append((route, route.fetch()))  # noqa: E731
        page.route("**/api/class/worksheets/small", keep, times=1)
        page.fill("#words textarea", "one")
        page.click("#words button.primary")
        until(page, lambda: len(late) == 1)
        page.fill("#words textarea", "two")
        with page.expect_response("**/api/class/worksheets/small"):
            page.click("#words button.primary")
        until(page, lambda: page.inner_text("#words .saved") == "Saved.")
        (route, answer) = late[0]
        with page.expect_response("**/api/class/worksheets/small"):
            route.fulfill(response=answer)
        page.wait_for_timeout(200)
        assert page.input_value("#words textarea") == "two"


def test_a_run_that_has_not_written_its_duration_is_asked_for_again(app, room, faults):
    early = []

    def without_duration(route):
        answer = route.fetch()
        if answer.ok and not early:
            early.append(answer.json() | {"duration_s": None, "engine": None})
            early[0]["state"] |= {"over": False, "status": "starting"}
            route.fulfill(response=answer, json=early[0])
        else:
            route.fulfill(response=answer)

    with served(app) as address, chromium() as found:
        page = new_page(found, faults)
        join(page, address, room.folder.settings.code, NAME)
        open_sheet(page, address, "small")
        room.answer(Place("s1", "small", "guess"), 7)
        room.answer(Place("s1", "small", "shape"), [[0, 1], [2, 1]])
        page.route(re.compile("/api/class/runs/[^/]+$"), without_duration)
        until(page, lambda: page.is_enabled("#both button.primary"))
        page.click("#both button.primary")
        until(page, lambda: "of 2 s, simulated" in page.inner_text("#both .run-head"))
        assert len(early) == 1


def test_the_instructor_sees_the_room_and_points_at_things(app, room, faults, monkeypatch):
    monkeypatch.setenv("FAKE_S", "1")
    settings = room.folder.settings
    with served(app) as address, chromium() as found:
        page, teacher, wall = (new_page(found, faults) for _ in range(3))
        join(page, address, settings.code, NAME)
        open_sheet(page, address, "small")
        teacher.goto(f"{address}/instructor?key={settings.instructor_key}")
        wall.goto(f"{address}/projector?key={settings.projector_key}")
        row = teacher.locator("#grid tbody tr")
        until(teacher, lambda: row.count() == 1 and NAME in row.inner_text())
        assert teacher.inner_text("#code") == settings.code
        assert wall.inner_text(".code") == settings.code
        assert teacher.locator("#qr svg").count() == wall.locator(".qr svg").count() == 1

        page.fill("#guess input", "7")
        page.click("#guess button")
        cell = row.locator("button.cell")
        until(teacher, lambda: "passed" in cell.nth(0).get_attribute("class"))
        teacher.click("#freeze")
        until(page, lambda: "stopped the class" in page.inner_text("#class-banners"))
        until(page, lambda: page.is_disabled("#cause button.primary"))
        teacher.click("text=Let them go on")
        until(page, lambda: not page.is_disabled("#cause button.primary"))

        page.goto(f"{address}/seat")
        page.wait_for_selector("#sheets article")
        cell.nth(4).click()
        until(teacher, lambda: teacher.inner_text("#detail-title") == f"{NAME}: cause")
        teacher.click("text=Point all at this step")
        page.wait_for_url("**/seat/small#cause")
        until(wall, lambda: wall.is_visible("#step") and "Why?" in wall.inner_text("#step"))
        teacher.keyboard.press("Escape")

        page.wait_for_selector(".step")
        page.fill("#words textarea", "A text.")
        page.click("#words button.primary")
        until(page, lambda: "A person will grade it" in page.inner_text("#words .below"))
        draw(page)
        page.click("#shape button.primary")
        until(page, lambda: state(page, "shape") == "saved")
        page.click("#both button.primary")
        until(page, lambda: state(page, "both") == "passed")
        assert [serious_faults(each) for each in (teacher, wall)] == ["", ""]
        teacher.click("#more-texts")
        teacher.wait_for_selector(".text-to-grade")
        teacher.fill(".text-to-grade input[type=number]", "2")
        teacher.click(".text-to-grade button")
        until(page, lambda: "2 of 3 points" in page.inner_text("#words h2"))

        teacher.click("text=Simulate instead")
        until(teacher, lambda: "It is complete. Simulated." in teacher.inner_text("#shared"))
        until(page, lambda: state(page, "shown") == "passed")
        teacher.goto(f"{address}/instructor/print/small")
        assert serious_faults(teacher) == ""
        teacher.goto(f"{address}/instructor")
        until(teacher, lambda: cell.count() > 2)
        assert "Watch it" in teacher.inner_text("#shared")
        cell.nth(2).click()
        teacher.locator("#detail a").click()
        teacher.wait_for_url("**/class/runs/*")
        until(teacher, lambda: teacher.locator("#live .main-svg").count() > 0)
        assert teacher.locator("#drawing .net").count() == 1
        room.point_at("s1-small-both-1", None, None)
        until(wall, lambda: wall.locator("#live .main-svg").count() > 0)
        page.wait_for_url("**/class/runs/*")
        room.point_at(None, None, None)
        page.wait_for_url("**/seat")  # where it was before it was led away


@pytest.fixture
def hidden_sheet(sheet):
    """The worksheet whose results are shown on a later day."""
    sheet.write_text(sheet.read_text() + "results_from: '2099-01-01T00:00:00Z'\n")


@pytest.mark.usefixtures("hidden_sheet")
def test_no_result_is_shown_before_its_day_and_a_lost_server_is_said(
    app, class_folder, room, faults
):
    with served(app) as address, chromium() as found:
        page = new_page(found, faults)
        join(page, address, room.folder.settings.code, NAME)
        open_sheet(page, address, "small")
        assert "Results are shown from" in page.inner_text("#results")
        page.check("#cause input[value=one]")
        assert page.inner_text("#cause button.primary") == "Save the answer"
        page.click("#cause button.primary")
        until(page, lambda: "The result is shown from" in page.inner_text("#cause .below"))
        assert (state(page, "cause"), page.inner_text("#points")) == ("saved", "")
        assert "of 2" not in page.inner_text("#cause h2")
        page.route("**/answers/cause", lambda route: route.abort())
        page.check("#cause input[value=two]")
        page.click("#cause button.primary")
        until(page, lambda: page.inner_text("#cause .saved") == "Not saved.")
        assert "nothing was saved" in page.inner_text("#toasts")
        page.unroute("**/answers/cause")
        page.click("#cause button.primary")
        until(page, lambda: page.inner_text("#cause .saved") == "Saved.")
        faults[:] = [each for each in faults if "ERR_FAILED" not in each]


def test_the_instructor_frees_seats(app, room, faults):
    settings = room.folder.settings
    with served(app) as address, chromium() as found:
        teacher = new_page(found, faults)
        page, other = (new_page(found, Faults()) for _ in range(2))  # refused requests are logged
        join(page, address, settings.code, NAME)
        open_sheet(page, address, "small")
        page.fill("#guess input", "7")
        page.click("#guess button")
        until(page, lambda: state(page, "guess") == "saved")
        join(other, address, settings.code, "Bo")
        asked = []
        teacher.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
        teacher.goto(f"{address}/instructor?key={settings.instructor_key}")
        rows = teacher.locator("#grid tbody tr")
        until(teacher, lambda: rows.count() == 2)
        teacher.click("#free-empty")
        until(teacher, lambda: rows.count() == 1)
        until(teacher, lambda: teacher.is_disabled("#free-empty"))
        other.wait_for_url(f"{address}/")
        teacher.click(f'button[aria-label="Free this seat: {NAME}"]')
        until(teacher, lambda: "left" in rows.inner_text())
        page.wait_for_url(f"{address}/")
        assert [each.partition(" without")[0] for each in asked[:1]] == ["Remove 1 seat"]
        assert "stays in the grades" in asked[1]
        assert teacher.inner_text("#numbers").startswith("0 seats")
        assert serious_faults(teacher) == ""
