"""A worksheet on paper has each step and figure, and nothing that is an answer or leads to it."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard import handout
from lab.worksheets import loading
from lab.worksheets.schema import Check, Choosing, Question

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def printed():
    return {name: handout.page(loading.load(name)) for name in loading.names()}


def plain(page):
    """Text of a page: without style, tags and repeated spaces."""
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(text).split())


@pytest.mark.parametrize("name", loading.names())
def test_a_page_shows_each_question_and_no_answer(printed, name):
    worksheet, text = loading.load(name), plain(printed[name])
    assert worksheet.title in text
    for task in worksheet.tasks:
        if ask := getattr(task, "ask", ""):
            assert " ".join(ask.split()) in text
        for choice in getattr(task, "choice", None) or ():
            assert choice in text
        if isinstance(task, Question | Check):
            for hidden in (task.hint, task.why, getattr(task, "that", "")):
                assert not hidden or hidden not in text
        if isinstance(task, Question) and task.number:
            assert str(task.number.answer) not in text.split()
    for answer in worksheet.solution.answers.values():
        chosen = {each for task in worksheet.tasks for each in getattr(task, "choice", None) or ()}
        assert not isinstance(answer, str) or answer in chosen or answer not in text
    assert "<script" not in printed[name]
    assert "http://" not in printed[name].replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("name", loading.names())
def test_a_page_has_the_figure_of_each_network(printed, name):
    drawings = [each.drawing for each in loading.load(name).steps if each.drawing]
    assert (
        printed[name].count('<svg xmlns="http://www.w3.org/2000/svg" class="net"')
        == len(drawings)
        > 0
    )


def test_a_curve_is_drawn_on_empty_axes():
    worksheet = loading.load("throttling")
    curve = {
        "id": "c",
        "ask": "Draw.",
        "curve": {"run": "plain", "path": "user.ue1.mbps", "maximum": 40},
    }
    data = worksheet.model_dump(mode="json", exclude_unset=True)
    data["steps"].insert(4, {"predict": curve})
    page = handout.page(type(worksheet).model_validate(data))
    assert plain(page).count("0 8 16 24 32 40 0 10 20 30 40 time in s throughput of ue1") == 1


def test_what_may_be_chosen_is_said_in_words():
    assert handout.allowed(Choosing(choices=("a", True, 3))) == "a, on or 3"
    assert handout.allowed(Choosing(minimum=0.5, maximum=20)) == "0.5 to 20"


def test_the_text_of_a_worksheet_is_escaped():
    worksheet = loading.load("coupled")
    page = handout.page(worksheet.model_copy(update={"title": "<img src=x onerror=alert(1)>"}))
    assert "<img" not in page


def test_the_command_writes_the_file_and_the_page_has_the_same(client, printed, tmp_path):
    argv = [sys.executable, "-m", "lab", "worksheet", "print", "coupled"]
    done = subprocess.run([*argv, "--out", tmp_path / "a.html"], cwd=ROOT, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "a.html").read_text() == printed["coupled"]
    assert client.get("/worksheets/coupled").text == printed["coupled"]
    assert client.get("/worksheets/unknown").status_code == 404
    assert 'href="/worksheets/coupled"' in client.get("/worksheets").text
    assert 'href="/worksheets"' in client.get("/").text
