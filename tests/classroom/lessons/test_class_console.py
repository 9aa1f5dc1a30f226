"""No page of a class asks for what is not there yet: browsers log such requests as errors."""

from __future__ import annotations

import pytest
from chromium import chromium
from class_browser import join, new_page, open_sheet, served, state, until

pytestmark = [pytest.mark.browser, pytest.mark.whole]


@pytest.mark.long
def test_pages_that_follow_a_run_from_its_start_ask_for_nothing_too_early(
    app, room, faults, monkeypatch
):
    monkeypatch.setenv("FAKE_S", "1")
    settings, refused = room.folder.settings, []
    with served(app) as address, chromium() as found:
        page, wall = (new_page(found, faults) for _ in range(2))
        for each in (page, wall):
            each.on("response", lambda answer: answer.status >= 400 and refused.append(answer.url))
        wall.goto(f"{address}/projector?key={settings.projector_key}")
        join(page, address, settings.code, "Ada")
        open_sheet(page, address, "small")
        page.fill("#guess input", "7")
        page.click("#guess button")
        until(page, lambda: page.is_enabled("#both button.primary"))
        page.click("#both button.primary")
        until(page, lambda: room.state.runs)
        room.point_at("s1-small-both-1", None, None)
        page.wait_for_url("**/class/runs/*")
        until(page, lambda: page.locator("#live .main-svg").count() > 0, 40)
        until(wall, lambda: wall.locator("#live .main-svg").count() > 0, 40)
        room.point_at(None, None, None)
        page.wait_for_url("**/seat/small*")
        until(page, lambda: state(page, "both") == "passed")
        until(page, lambda: page.locator("#both .main-svg").count() > 0)
        assert refused == [], refused
