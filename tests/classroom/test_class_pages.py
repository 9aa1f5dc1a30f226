"""The pages of a class, without a browser: who gets which, and what is not on them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from class_clients import a_run, do, join, projector_of

from dashboard.classroom.serve import only_here

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "class_mode.md"
SCRIPTS = ROOT / "dashboard" / "static"
SECRET = (
    *("the-hint-of-the-check", "the-reason-of-the-check", "9000.125"),
    *("the-hint-of-the-question", "the-reason-of-the-question", "the-words-of-the-solution"),
    *("the-hint-of-the-number", "4321.0625", "1234.5625", "the-name-of-a-mistake"),
)


def test_the_join_page_knows_the_code_of_the_link_and_leads_on_with_a_seat(app, ada):
    page = app.test_client().get("/?code=ABC<b>&x=1").text
    assert 'value="ABC&lt;b&gt;"' in page
    assert "plain HTTP" in page
    assert ada.get("/").headers["Location"] == "/seat"


def test_pages_need_their_role(app, ada, instructor):
    guest, projector = app.test_client(), projector_of(app)
    for path in ("/seat", "/seat/small", "/class/runs/x", "/instructor", "/projector"):
        assert guest.get(path).headers["Location"] == "/", path
    for path in ("/instructor", "/projector", "/instructor/print/small"):
        assert ada.get(path).headers["Location"] == "/", path
    assert projector.get("/projector").status_code == 200
    assert instructor.get("/instructor").status_code == 200
    assert "Two paths" in instructor.get("/instructor/print/small").text


def test_a_worksheet_shows_its_texts_when_it_is_open(app, ada, bo):
    opened, closed = ada.get("/seat/small").text, bo.get("/seat/small").text
    assert "<h2>Two paths</h2>" in opened
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="net"' in opened
    assert "<h2>Two paths</h2>" not in closed
    assert "Open the worksheet" in closed
    assert ada.get("/seat/other").status_code == 404


def test_a_run_has_a_page_for_those_who_may_see_it(app, ada, bo, instructor):
    run = a_run(app, ada)
    assert ada.get(f"/class/runs/{run}").status_code == 200
    assert "/seat/small#both" in ada.get(f"/class/runs/{run}").text
    assert instructor.get(f"/class/runs/{run}").status_code == 200
    assert bo.get(f"/class/runs/{run}").status_code == 404


def test_the_page_of_a_run_that_waits_is_there_and_says_what_it_will_be(app, ada, bo):
    assert do(ada, "answers/guess", value=12).status_code == 200
    run = do(ada, "runs/both", chosen={}).json["run"]["id"]
    page = ada.get(f"/class/runs/{run}")
    assert (page.status_code, "<h1>Two equal wired paths</h1>" in page.text) == (200, True)
    assert bo.get(f"/class/runs/{run}").status_code == 404


@pytest.mark.parametrize("path", ["/seat", "/seat/small", "/class/runs/{run}", "/projector"])
def test_no_page_of_a_student_or_projector_holds_what_is_secret(app, ada, path):
    run = a_run(app, ada)
    client = projector_of(app) if path == "/projector" else ada
    page = client.get(path.format(run=run))
    assert page.status_code == 200
    assert [each for each in SECRET if each in page.text] == []
    keys = app.extensions["room"].folder.settings
    assert keys.instructor_key not in page.text
    assert keys.secret not in page.text


def test_the_projector_shows_what_a_step_asks(app):
    page = projector_of(app).get("/projector").text
    for asked in ("the-question-of-the-check", "How much?", "Why?", "Run: Two equal wired paths"):
        assert f"<h1>{asked}</h1>" in page


def test_names_are_escaped(app, instructor):
    client = join(app, "<img src=x>")
    client.post("/api/class/worksheets/small/open", json={})
    run = a_run(app, client)
    for who, path in (
        (client, "/seat"),
        (client, f"/class/runs/{run}"),
        (instructor, "/instructor"),
    ):
        assert "<img src=x" not in who.get(path).text


def test_the_script_of_the_charts_is_there(app, ada):
    page = ada.get("/seat/small").text
    address = page[page.index("/plotly/") :].partition('"')[0]
    assert app.test_client().get(address).status_code == 200


def documented():
    """(method, address) of each address in docs/class_mode.md. A cell such as "GET `/a/b`, `/c`"
    means GET /a/b and GET /a/c."""
    found = set()
    for method, cell in re.findall(
        r"(GET|POST) (`/api/[^|;]*?)(?: is |;| sends | \|)", PAGE.read_text()
    ):
        first, *more = re.findall(r"`(/[^`]*)`", cell)
        folder = first.rpartition("/")[0]
        found |= {(method, first), *((method, folder + each) for each in more)}
    return found


def test_every_address_of_the_api_is_documented_and_no_other(app):
    exist = {
        (method, re.sub(r"<(\w+)>", lambda found: found[1].upper(), str(rule)))
        for rule in app.url_map.iter_rules()
        for method in rule.methods & {"GET", "POST"}
        if str(rule).startswith("/api/")
    }
    assert documented() == exist


def test_every_address_that_a_script_of_a_class_uses_exists(app):
    addresses = app.url_map.bind("127.0.0.1")
    used = {
        (script.name, path)
        for script in SCRIPTS.glob("*.js")
        for path in re.findall(
            r"[`\"](/api/(?:class|instructor|projector)[^`\"?]*)[`\"]",
            re.sub(r"\$\{[^}]*\}", "x", script.read_text()),
        )
    }
    assert len(used) > 15
    for script, path in used - {("worksheet.js", "/api/class/x")}:  # its end is another variable
        assert addresses.allowed_methods(path), (script, path)


def test_pages_with_the_link_warn_if_only_this_machine_reaches_it(app, instructor):
    projector = projector_of(app)
    assert "Only this machine" not in projector.get("/projector").text
    app.config["ONLY_HERE"] = only_here("127.0.0.1")
    for page in (projector.get("/projector").text, instructor.get("/instructor").text):
        assert "Only this machine reaches it. For a room, use --host ADDRESS" in page
    assert only_here("192.0.2.7") == ""


def test_words_for_teachers_and_students(app, instructor):
    page = instructor.get("/instructor").text
    assert "Remove seats without work" in page
    asked = re.search(r'id="asked">(.*?)</script>', page)
    assert json.loads(asked[1])["small"]["both"] == "Run: Two equal wired paths"
    join = app.test_client().get("/").text
    assert "Of you, only the name that you write here is kept" in join
    assert "answers and runs" in join
