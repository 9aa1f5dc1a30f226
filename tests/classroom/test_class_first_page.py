"""The pages of a class without a browser: what is in them, and for whom."""

from __future__ import annotations

import pytest
from class_clients import do

from lab.classroom import roster


@pytest.fixture
def newcomer(app):
    return app.test_client()


def test_the_first_page_has_the_code_of_its_link_and_asks_for_a_name(newcomer):
    page = newcomer.get("/?code=ABCDEFGHIJKLMNOP")
    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert 'value="ABCDEFGHIJKL"' in page.text  # a code has no more
    assert "A name for you" in page.text
    assert "data-optional" in page.text  # the PIN
    assert "plain HTTP" in page.text


@pytest.mark.parametrize("pin", [None, "4711"])
def test_the_first_page_asks_for_a_listed_name_and_a_pin_if_the_list_has_pins(
    app, newcomer, room, pin
):
    hashed = roster.Entry("Ada", pin and "digest", {})
    object.__setattr__(room.folder, "roster", roster.Roster({"ada": hashed}))
    page = newcomer.get("/").text
    assert "Your name, as in the list of students" in page
    assert ("data-optional" in page) == (pin is None)


def test_over_tls_nothing_warns_of_plain_http(app, newcomer):
    app.config["SECURE"] = True
    assert "plain HTTP" not in newcomer.get("/").text


def test_a_seat_goes_to_its_own_page_and_a_stranger_to_the_first(newcomer, ada):
    assert ada.get("/").headers["Location"] == "/seat"
    assert ada.get("/seat").status_code == 200
    for path in ("/seat", "/seat/small"):
        assert newcomer.get(path).headers["Location"] == "/"


def test_the_texts_of_a_worksheet_come_only_after_it_was_opened(ada, bo):
    for client, opened in ((ada, True), (bo, False)):
        page = client.get("/seat/small")
        assert page.status_code == 200
        assert ("<h2>Two paths</h2>" in page.text) == opened
    assert do(bo, "open").status_code == 200
    assert "<h2>Two paths</h2>" in bo.get("/seat/small").text
    assert bo.get("/seat/nothing").status_code == 404
