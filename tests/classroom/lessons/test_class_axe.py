"""The list of worksheets, a run's page and the instructor's page, on a phone and on a desktop, in
both themes: axe finds nothing serious, and nothing is wider than the window."""

from __future__ import annotations

import pytest
from axe import serious_faults
from chromium import chromium
from class_browser import TOO_WIDE, join, new_page, served, until

from lab.classroom.lesson import Place

pytestmark = [pytest.mark.browser, pytest.mark.whole]

WIDTHS = (390, 1440)
SHOWN = {
    "/seat": "#sheets article",
    "/class/runs/{run}": "#live .main-svg",
    "/instructor": "#grid tbody tr",
}


def ended_run(page, room):
    """ID of a run of the only seat, which has ended."""
    (seat,) = room.state.seats
    room.open(seat, "small")
    room.answer(Place(seat, "small", "guess"), 12)
    run = room.request_run(Place(seat, "small", "both"), {}, lambda run: None)
    until(page, lambda: room.state.runs[run.id].over)
    return run.id


def test_pages_of_a_class_are_accessible_and_fit(app, room, faults):
    with served(app) as address, chromium() as browser:
        page = new_page(browser, faults)
        join(page, address, room.folder.settings.code, "Zoë", "Bo")
        run = ended_run(page, room)
        page.goto(f"{address}/instructor?key={room.folder.settings.instructor_key}")
        for path, shown in SHOWN.items():
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 3000})
                page.goto(f"{address}{path.format(run=run)}")
                page.wait_for_selector(shown)
                for summary in page.query_selector_all("details:not([open]) > summary"):
                    if summary.is_visible():
                        summary.click()
                assert page.evaluate(TOO_WIDE) <= 0
                found = serious_faults(page)
                page.click("#theme")
                found += serious_faults(page, "color-contrast")
                page.click("#theme")
                assert found == "", (path, width)
