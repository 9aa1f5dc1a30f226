"""Teams in a real browser: they join, are merged and removed, and get one more worksheet."""

from __future__ import annotations

import pytest
from axe import serious_faults
from chromium import chromium
from class_browser import TOO_WIDE, Faults, join, new_page, served, until
from class_fakes import SHEET

pytestmark = [pytest.mark.browser, pytest.mark.whole]


def test_the_instructor_merges_and_removes_seats_and_adds_a_worksheet(app, room, faults, tmp_path):
    settings = room.folder.settings
    added = tmp_path / "more.yaml"
    added.write_text(SHEET.replace("title: Two paths", "title: Two more paths"))
    with served(app) as address, chromium() as found:
        teacher, wall, team = (new_page(found, faults) for _ in range(3))
        single, last = (new_page(found, Faults()) for _ in range(2))  # refused requests are logged
        team.goto(f"{address}/?code={settings.code}")
        team.click("#pair")
        assert serious_faults(team) == ""
        join(team, address, settings.code, "Ada", "Bo", "Cy")
        join(single, address, settings.code, "Di")
        join(last, address, settings.code, "Ed")
        asked = []
        teacher.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
        teacher.goto(f"{address}/instructor?key={settings.instructor_key}")
        rows = teacher.locator("#grid tbody tr")
        until(teacher, lambda: rows.count() == 3)
        assert "Ada, Bo and Cy" in rows.nth(0).inner_text()
        teacher.click('button[aria-label="Merge or remove: Di"]')
        teacher.select_option("#into", label="Ada, Bo and Cy")
        assert serious_faults(teacher) == ""
        teacher.click('#detail button:text-is("Merge")')
        until(teacher, lambda: rows.count() == 2)
        until(single, lambda: single.inner_text("#people") == "Ada, Bo, Cy and Di")
        teacher.click('button[aria-label="Merge or remove: Ed"]')
        teacher.click("text=Remove this seat")
        last.wait_for_url(f"{address}/")
        until(teacher, lambda: rows.count() == 1)
        assert asked == ["Remove Ed?"]

        wall.goto(f"{address}/projector?key={settings.projector_key}")
        wall.wait_for_selector("#welcome .code")
        teacher.set_input_files("#sheet-file", str(added))
        until(team, lambda: "Two more paths" in team.inner_text("#sheets"))
        until(teacher, lambda: teacher.input_value("#worksheet") == "more")
        teacher.click('#grid button[title="Point all at this step"] >> nth=0')
        until(wall, lambda: wall.is_visible("#step") and "How much?" in wall.inner_text("#step"))
        teacher.set_input_files("#sheet-file", str(added))
        until(teacher, lambda: "give the file another name" in teacher.inner_text("#toasts"))
        faults[:] = [each for each in faults if "409" not in each]
        for width in (390, 1280):
            teacher.set_viewport_size({"width": width, "height": 1000})
            assert teacher.evaluate(TOO_WIDE) <= 0
            assert serious_faults(teacher) == ""
