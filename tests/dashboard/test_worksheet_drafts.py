"""A worksheet is made on the page of a finished run: figures are picked, and a file is saved."""

from __future__ import annotations

import pytest
from axe import serious_faults
from chromium import chromium
from run_edits import edit_run

from lab.worksheets import loading

TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(autouse=True)
def simulated(runs):
    """The run is one of the simulator, which a worksheet can name."""
    edit_run(runs / "plain", engine="sim")


def test_the_interface_lists_figures_and_refuses_wrong_ones(client):
    rows = client.get("/api/runs/plain/figures").json
    assert "mean(user.ue1.mbps, 0..20)" in [each["text"] for each in rows]
    answer = client.post("/api/runs/plain/worksheet", json={"figures": [{"figure": "user.x.mbps"}]})
    assert (answer.status_code, "user.x.mbps" in answer.json["error"]) == (422, True)
    assert client.post("/api/runs/plain/worksheet", json={"figures": []}).status_code == 422
    assert client.get("/api/runs/none/figures").status_code == 404


@pytest.mark.browser
def test_a_worksheet_is_made_by_picking_figures(address, tmp_path):
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        faults = []
        page.on("console", lambda text: text.type == "error" and faults.append(text.text))
        page.goto(f"{address}/runs/plain")
        page.click("text=Make a worksheet")
        page.wait_for_selector("#figures tr")
        page.click("text=Make the worksheet")
        assert page.inner_text("#problem") == "Pick at least one figure."
        page.fill("#filter", "ue1 throughput")
        (shown,) = [
            each
            for each in page.query_selector_all("#figures tr")
            if each.is_visible() and "subflow" not in each.inner_text()
        ]
        shown.query_selector("input[type=checkbox]").check()
        shown.query_selector("select").select_option("curve")
        shown.query_selector("input[aria-label^=From]").fill("5")
        page.fill("#asks input", "Draw UE1's rate.")
        page.fill("#title", "Mine")
        assert page.inner_text("#picked") == "1 picked"
        page.click("text=Make the worksheet")
        page.wait_for_selector("#made:not([hidden])")
        with page.expect_download() as saved:
            page.click("#save")
        assert saved.value.suggested_filename == "testbed_wifi_lte_own.yaml"
        file = tmp_path / "own.yaml"
        saved.value.save_as(file)
        sheet = loading.load(str(file))
        guess, run, question = sheet.tasks
        assert (sheet.title, guess.ask, guess.curve.path) == (
            "Mine",
            "Draw UE1's rate.",
            "user.ue1.mbps",
        )
        assert question.number.answer == "mean(user.ue1.mbps, 5..20) of measured"
        assert run.scenario == "testbed_wifi_lte"
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(TOO_WIDE) <= 0
            assert serious_faults(page) == ""
        page.click("#theme")
        assert serious_faults(page, "color-contrast") == ""
        assert faults == []
