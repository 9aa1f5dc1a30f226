"""Ten real browsers and twenty HTTP clients do the same worksheet at once; nobody is stuck."""

from __future__ import annotations

import threading
import time

import pytest
from chromium import chromiums
from class_browser import (
    join,
    new_page,
    open_sheet,
    served,
    state,
    until,
)
from class_grades import expected, grade_texts, table
from class_lesson import POINTS, hold, room_of

from dashboard.classroom.app import create_app
from lab.classroom.room import Room

pytestmark = [pytest.mark.browser, pytest.mark.whole, pytest.mark.long]

BROWSERS, CLIENTS = 10, 20
WORKED = 5  # points of a student in a browser, without the text


def student(page, address, code, name, measured):
    """Do the worksheet in a browser; yield between steps, so that many browsers take turns."""
    join(page, address, code, name)
    yield
    open_sheet(page, address, "small")
    yield
    page.fill("#guess input", "7")
    page.click("#guess button")
    until(page, lambda: state(page, "guess") == "saved")
    yield
    page.click("#both button.primary")
    yield
    until(page, lambda: state(page, "both") == "passed", 600)
    until(page, lambda: page.locator("#both .main-svg").count() > 0)
    yield
    page.click("#enough button.primary")
    until(page, lambda: state(page, "enough") == "passed")
    yield
    page.check("#cause input[value=two]")
    page.click("#cause button.primary")
    until(page, lambda: state(page, "cause") == "passed")
    yield
    page.fill("#rate input", str(measured(name)))
    page.click("#rate button.primary")
    until(page, lambda: state(page, "rate") == "passed")
    yield
    page.fill("#words textarea", f"By {name}")
    page.click("#words button.primary")
    until(page, lambda: state(page, "words") == "saved")


def in_turns(students):
    """Let each student in turn do one step, until all have finished."""
    going = list(students)
    while going:
        for each in list(going):
            if next(each, "over") == "over":
                going.remove(each)


def test_ten_browsers_and_twenty_clients_at_once(class_folder, faults):
    room = Room(class_folder)
    app = create_app(room, {"TESTING": True, "SPEED": 1000.0})
    code, names = class_folder.settings.code, [f"Browser {n}" for n in range(BROWSERS)]
    people = room_of("http://nowhere", code, CLIENTS, 0.3)
    stuck = []

    def measured(name):
        seat = room.state.seat_of_person(name).id
        return room.run_files(f"{seat}-small-both-1").result["throughput_mbps"] + 4321

    with served(app) as address, chromiums(BROWSERS) as browsers:
        for each, _ in people:
            each.host = address.removeprefix("http://")
        crowd = threading.Thread(target=lambda: stuck.extend(hold(address, code, people)))
        began = time.monotonic()
        crowd.start()
        pages = [new_page(each, faults) for each in browsers]
        in_turns(
            student(page, address, code, name, measured)
            for page, name in zip(pages, names, strict=True)
        )
        crowd.join()
        print(f"{BROWSERS} browsers and {CLIENTS} clients: {time.monotonic() - began:.0f} s")
    assert stuck == []
    client, _ = grade_texts(app)
    in_browsers = [(name, str(WORKED + 2)) for name in names]
    assert table(class_folder) == sorted([*expected(people), *in_browsers])
    seats = client.get("/api/instructor/class").json["grid"]["seats"]
    by_name = {each["people"][0]: each for each in seats}
    assert len(by_name) == BROWSERS + CLIENTS
    for name in names:
        cells = by_name[name]["cells"]["small"]
        assert {step: cells[step] for step in cells if cells[step] not in ("passed", "saved")} == {
            "shown": "open"
        }
    for each, manner in people:
        assert by_name[each.names[0]]["points"] == POINTS[manner] + (
            2 if by_name[each.names[0]]["cells"]["small"]["words"] == "saved" else 0
        )
    room.close()
