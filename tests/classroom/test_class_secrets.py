"""No answer to a student has what the student is to find, or is not to know yet."""

from __future__ import annotations

import html
import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import islice

import pytest
from class_clients import a_run, do, projector_of
from class_fakes import SHEET

from lab.worksheets import loading
from lab.worksheets.schema import Run

SECRETS = (  # parts of SHEET that no student may ever read
    *("the-hint-of-the-check", "the-hint-of-the-number", "the-words-of-the-solution"),
    *("the-name-of-a-mistake", "the-reason-of-the-check", "the-reason-of-the-number"),
    *("9000.125", "loss=0.0625", "4321.0625", "1234.5625"),
)
IN_OTHER_WORDS = ("value=0.0625", "to 0.0625")  # as the checker and as a label would write it
ENDLESS = ("/api/class/stream",)
PROJECTOR = ("/projector", "/api/projector")
NOT_YET = ("the-hint-of-the-question", "the-reason-of-the-question")


def paths_of(app, run):
    """Every address that can be read, except the instructor's, with values filled in."""
    values = {
        **{"id": run, "name": "small", "scenario": "two_paths"},
        "wanted": version("plotly"),
        "filename": "icon.svg",
    }
    for rule in app.url_map.iter_rules():
        if "GET" in rule.methods and not rule.rule.startswith(("/instructor", "/api/instructor")):
            yield rule.build({key: values[key] for key in rule.arguments})[1]


def everything(app, client, run):
    """All that a student can read, as one text."""
    told = []
    for path in paths_of(app, run):
        if path in ENDLESS:
            with client.get(path, buffered=False) as stream:
                told.append(b"".join(islice(stream.response, 2)).decode())
            continue
        with client.get(path) as answer:
            not_for_students = path.startswith(PROJECTOR)
            assert answer.status_code in ((302, 403) if not_for_students else (200, 302)), path
            told.append(answer.data.decode("latin-1"))
    archive = zipfile.ZipFile(io.BytesIO(client.get("/api/class/download").data))
    zipped = [archive.read(name).decode() for name in archive.namelist()]
    assert len(zipped) > 5
    assert len(told) > 15
    return "".join(told + zipped)


def test_no_answer_to_a_student_holds_what_is_to_be_found(app, ada):
    for each in (*SECRETS, *NOT_YET):
        assert each in SHEET
    run = a_run(app, ada)
    told = [do(ada, "checks/enough").text, do(ada, "answers/rate", value=3).text]
    told += [do(ada, "answers/cause", value="one").text, do(ada, "answers/words", value="x").text]
    told.append(everything(app, ada, run))
    for each in (*SECRETS, *IN_OTHER_WORDS, *NOT_YET, '"expect"', '"to_try"'):
        assert each not in "".join(told), each
    assert "the-question-of-the-check" in told[-1]
    second = do(ada, "answers/cause", value="one").text  # the second wrong try
    assert "the-hint-of-the-question" in second
    assert "the-reason-of-the-question" not in second


def strings(document):
    if isinstance(document, dict):
        document = document.values()
    if isinstance(document, str):
        return [document]
    return [text for each in document for text in strings(each)] if is_many(document) else []


def is_many(document):
    return not isinstance(document, int | float | None)


@pytest.mark.parametrize("name", loading.names())
def test_a_shipped_worksheet_gives_nothing_away_at_first(app, ada, name):
    sheet = app.extensions["room"].folder.worksheets[name] = loading.load(name)
    shown = ada.post(f"/api/class/worksheets/{name}/open", json={}).json
    told = "\n".join(strings(shown))
    told += html.unescape(ada.get(f"/seat/{name}").text + projector_of(app).get("/projector").text)
    for task in sheet.tasks:
        hidden = [getattr(task, key, "") for key in ("hint", "why", "that")]
        if number := getattr(task, "number", None):
            hidden.append(str(getattr(number, "answer", "")))
        if getattr(task, "text", False):
            hidden.append(sheet.solution.answers[task.id])
        assert [each for each in hidden if each and each in told] == [], task.id
    assert [each.name for each in sheet.wrong if each.name in told] == []
    asked = [each.ask for each in sheet.tasks if not isinstance(each, Run)]
    assert [each for each in asked if each not in told] == []


def test_before_results_from_nobody_can_tell_right_from_wrong(app, ada, bo):
    room = app.extensions["room"]
    later = datetime.fromtimestamp(room.clock(), UTC) + timedelta(minutes=15)
    sheet = room.folder.worksheets["small"]
    room.folder.worksheets["small"] = sheet.model_copy(update={"results_from": later})
    bo.post("/api/class/worksheets/small/open", json={})
    for client, value in ((ada, "one"), (bo, "two")):
        a_run(app, client)
        for _ in range(4):
            assert do(client, "answers/cause", value=value).status_code == 200
        do(client, "checks/enough")
    shown = [client.get("/api/class/worksheets/small").json for client in (ada, bo)]
    step = [next(s for s in each["steps"] if s.get("id") == "cause") for each in shown]
    assert [each.pop("answer") for each in step] == ["one", "two"]
    assert step[0] == step[1]
    assert (step[0]["state"], step[0]["given_points"], shown[0]["points"]) == ("saved", None, None)
    assert "the-hint" not in json.dumps(shown)
    assert [s["figures"] for s in shown[0]["steps"] if s["kind"] == "check"] == [[]]
    room.clock.now = later.timestamp() + 1
    assert "the-reason-of-the-question" in bo.get("/api/class/worksheets/small").text
    assert do(ada, "answers/cause", value="two").status_code == 409
