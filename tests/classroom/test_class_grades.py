"""Grades from the files alone: the same again, and each difference with its reason."""

from __future__ import annotations

import csv
import io
import json

import pytest
from class_clients import a_run, do
from click.testing import CliRunner
from forged import change, put, texts, without_digests

from lab.classroom import folder, grades, roster
from lab.classroom.room import Room
from lab.cli.commands import cli
from lab.errors import RequestError
from lab.run.manifest import present


@pytest.fixture
def worked(app, ada, monkeypatch, class_folder, finished_run):
    """A class in which Ada has 1 of 9 points for a prediction, 0 for a check that failed, 2 for a
    choice, 1 for a number, and a text that nobody has graded."""
    monkeypatch.setattr(folder, "CLASSES", class_folder.path.parent)
    a_run(app, ada)
    measured = json.loads((finished_run / "result.json").read_text())["throughput_mbps"]
    do(ada, "checks/enough")
    for step, value in (("cause", "two"), ("rate", measured + 4321), ("words", "=1+1")):
        assert do(ada, f"answers/{step}", value=value).json["saved"]
    return class_folder


def graded(*argv):
    return CliRunner().invoke(cli, ["grade", "test", *argv])


def test_grades_are_printed_and_the_same_again(worked):
    assert graded().stdout.splitlines() == [
        "seat  people  worksheet  points  of",
        "s1    Ada     small           4   8",
    ]
    done = graded("--again")
    head = grades.read_record(worked).log.head
    lines = len(worked.journal.read_text().splitlines())
    assert (done.exit_code, done.stderr.splitlines()) == (
        0,
        [
            f"journal: {lines} lines, the last one with the digest {head}",
            "again: 4 marked steps, 0 differences",
        ],
    )


def test_a_submission_names_its_runs_by_digest_and_the_version_that_marked_it(worked):
    (found,) = json.loads(graded("--json").stdout)
    steps = {each["step"]: each for each in found["steps"]}
    assert {each["checker"] for each in steps.values()} == {present()}
    assert steps["rate"]["runs"]["both"]["run"] == "s1-small-both-1"
    assert len(steps["rate"]["runs"]["both"]["digest"]) == 64
    assert steps["words"] | {"answer": "=1+1", "passed": None, "points": 0} == steps["words"]


def test_a_run_that_was_edited_and_points_that_were_edited_are_differences(worked):
    path = worked.runs / "s1-small-both-1" / "result.json"
    result = json.loads(path.read_text())
    path.write_text(json.dumps(result | {"throughput_mbps": 9001}))
    done = graded("--again")
    assert done.exit_code == 4
    assert [line.partition(", small, ")[2] for line in done.stdout.splitlines()[2:]] == [
        "enough, rate: run s1-small-both-1: its files were changed after it had ended",
        "rate: 1 points, now 0",
    ]
    path.write_text(json.dumps(result))
    change(worked.journal, {"step": "cause"}, points=1)
    assert "small, cause: 1 points, now 2" in graded("--again").stdout


FORGERIES = {  # what is made of one line of the journal, and what `grade --again` says
    "more for a prediction": (
        {"step": "guess"},
        {"points": 53},
        ["guess: 53 points are recorded, of 1", "guess: 53 points, now 1"],
    ),
    "fewer than none": (
        {"step": "cause"},
        {"points": -3},
        ["cause: -3 points are recorded, of 2", "cause: -3 points, now 2"],
    ),
    "another answer": ({"step": "cause"}, {"value": "one"}, ["cause: 2 points, now 0"]),
    "another number": ({"step": "rate"}, {"value": 3}, ["rate: 1 points, now 0"]),
    "a check that passed": (
        {"step": "enough"},
        {"passed": True, "points": 1, "problem": ""},
        ["enough: 1 points, now 0"],
    ),
    "points of the lab for a text": (
        {"step": "words"},
        {"passed": True, "points": 3},
        ["words: 3 points, now 0"],
    ),
    "a mark that says nothing": (
        {"step": "cause"},
        {"passed": None},
        ["cause: recorded as not decided, now passed"],
    ),
    "a mark that says the opposite": (
        {"step": "cause"},
        {"passed": False},
        ["cause: 2 points, now 1"],
    ),
    "a try that says it passed": (
        {"step": "enough"},
        {"passed": True, "points": 0, "problem": ""},
        ["enough: recorded as passed, now failed"],
    ),
    "a run that was never made": (
        {"step": "rate"},
        {"runs": {"both": "../../else"}},
        ["rate: run '../../else': the journal has no such run", "rate: 1 points, now 0"],
    ),
    "a run of another step": (
        {"step": "rate"},
        {"runs": {"shown": "s1-small-both-1"}},
        ["was not made in step 'shown' by this seat", "rate: 1 points, now 0"],
    ),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_what_was_made_of_the_journal_is_marked_again(worked, kind):
    """Even if all digests were made anew."""
    wanted, changes, said = FORGERIES[kind]
    change(worked.journal, wanted, **changes)
    done = graded("--again")
    assert done.exit_code == 4
    for each in said:
        assert each in done.stdout
    assert int(done.stdout.splitlines()[1].split()[-2]) <= 8


@pytest.mark.parametrize(("step", "points"), [("words", 103), ("words", -1), ("cause", 2)])
def test_points_by_hand_are_those_of_a_text(worked, app, instructor, step, points):
    body = {"seat": "s1", "worksheet": "small", "step": "words", "points": 3, "comment": ""}
    assert instructor.post("/api/instructor/grades", json=body).status_code == 200
    change(worked.journal, {"kind": "grade"}, step=step, points=points)
    done = graded("--again")
    assert done.exit_code == 4
    assert f"{step}: {points} points" in done.stdout
    assert done.stdout.splitlines()[1].split()[-2:] == ["4", "8"]


def test_the_run_of_somebody_else_is_no_evidence(worked, app, ada, bo):
    bo.post("/api/class/worksheets/small/open", json={})
    theirs = a_run(app, bo)
    change(worked.journal, {"step": "rate", "kind": "answer"}, runs={"both": theirs})
    done = graded("--again")
    assert f"rate: run '{theirs}': it was not made in step 'both' by this seat" in done.stdout
    assert "rate: 1 points, now 0" in done.stdout


def test_an_edited_line_is_named_and_does_not_count(worked):
    head = grades.read_record(worked).log.head
    text = worked.journal.read_text()
    number = next(n for n, line in enumerate(text.splitlines(), 1) if '"step":"cause"' in line)
    worked.journal.write_text(text.replace('"points":2', '"points":1'))
    done = graded("--digest", head)
    assert done.exit_code == 4
    assert f"journal, line {number}: it was changed after it was written" in done.stdout
    assert done.stdout.splitlines()[1].split()[-2:] == ["2", "8"]
    with pytest.raises(RequestError, match=f"and .* more.*grade {worked.name}"):
        Room(worked)


def test_a_journal_made_anew_lacks_the_digest_that_was_written_down(worked):
    head = grades.read_record(worked).log.head
    assert graded("--again", "--digest", head).exit_code == 0
    change(worked.journal, {"step": "cause"}, value="two", at=1)
    assert graded("--again").exit_code == 0
    done = graded("--digest", head)
    assert (done.exit_code, f"it does not have the line {head}" in done.stdout) == (4, True)


def test_an_older_journal_is_graded_and_labelled(worked):
    without_digests(worked.journal)
    assert graded().exit_code == 4  # this class began with digests
    settings = worked.path / "class.json"
    found = json.loads(settings.read_text())
    del found["digests"]
    settings.write_text(json.dumps(found))
    done = graded("--again")
    assert done.exit_code == 0
    assert "wrote lines 1 to" in done.stderr
    assert done.stdout.splitlines()[1].split()[-2:] == ["4", "8"]


@pytest.mark.parametrize("kind", ["join", "open", "run"])
def test_a_journal_whose_lines_do_not_fit_each_other_says_so(worked, kind):
    """Without the line of a seat, a worksheet or a run, with all digests made anew."""
    found = [json.loads(line) for line in texts(worked.journal)]
    del found[next(n for n, each in enumerate(found) if each["kind"] == kind)]
    put(worked.journal, [json.dumps(each).encode() for each in found])
    change(worked.journal, {"kind": "answer"})
    done = graded("--again")
    assert (done.exit_code, type(done.exception)) == (4, SystemExit)
    assert "which no line before it has made" in done.stdout
    with pytest.raises(RequestError, match="which no line before it has made"):
        Room(worked)


def test_a_run_that_is_lost_is_named(worked):
    import shutil

    shutil.rmtree(worked.runs / "s1-small-both-1")
    done = graded("--again")
    assert "run s1-small-both-1: its folder is missing" in done.stdout
    assert "rate: 1 points, now 0" in done.stdout


def test_another_version_of_the_checker_is_named(worked):
    change(worked.journal, {"step": "words"}, checker="0.0.9 (abc)")
    done = graded("--again")
    assert done.exit_code == 0
    assert f"marked by version 0.0.9 (abc), and again by {present()}" in done.stderr.splitlines()


def test_points_by_hand_count_and_are_not_marked_again(worked, app, instructor):
    body = {"seat": "s1", "worksheet": "small", "step": "words", "points": 3, "comment": "good"}
    assert instructor.post("/api/instructor/grades", json=body).status_code == 200
    assert graded().stdout.splitlines()[1].split()[-2:] == ["7", "8"]
    assert graded("--again").exit_code == 0


def test_runs_that_cannot_be_repeated_are_named(worked):
    path = worked.runs / "s1-small-both-1" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["versions"] = {"lab": "0.0.9", "commit": "abc"}
    path.write_text(json.dumps(manifest))
    done = graded("--repeat-runs")
    assert done.exit_code == 4
    assert "repeat run s1-small-both-1: version 0.0.9 (abc) made it, and this is" in done.stdout


def test_an_unknown_class_and_one_without_work_are_said_plainly(class_folder, monkeypatch):
    monkeypatch.setattr(folder, "CLASSES", class_folder.path.parent)
    class_folder.journal.touch()
    assert graded().stdout == "class 'test': nobody has opened a worksheet\n"
    assert CliRunner().invoke(cli, ["grade", "tets"]).exit_code == 2


ROSTER = """name,First name,Last name,Student ID,E-Mail,Section
Ada Lovelace,Ada,Lovelace,17,ada@example.edu,A
"Bo Ek",Bo,"=cmd()",18,bo@example.edu,B
"""


def table(columns, worked, tmp_path, people):
    path = tmp_path / "roster.csv"
    path.write_text(ROSTER)
    state = grades.read_record(worked).state
    handed_in = grades.submissions(worked, state)
    listed = roster.from_csv(path)
    text = grades.to_csv(columns, worked.worksheets, handed_in, people, listed)
    return list(csv.reader(io.StringIO(text)))


def test_the_table_has_moodles_columns_and_a_line_for_each_person(worked, tmp_path):
    people = {"s1": ["ada lovelace", "Bo Ek"], "s2": ["-Guest"]}
    assert table("moodle", worked, tmp_path, people) == [
        ["First name", "Last name", "ID number", "Email address", "Two paths", "Total"],
        ["Ada", "Lovelace", "17", "ada@example.edu", "4", "4"],
        ["Bo", "'=cmd()", "18", "bo@example.edu", "4", "4"],
        ["'-Guest", "", "", "", "", "0"],
    ]


def test_the_table_has_canvas_columns_and_the_points_that_can_be_had(worked, tmp_path):
    assert table("canvas", worked, tmp_path, {"s1": ["Ada Lovelace"]}) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Two paths"],
        ["    Points Possible", "", "", "", "", "8"],
        ["Ada Lovelace", "", "17", "ada@example.edu", "A", "4"],
    ]


def test_the_table_is_for_the_instructor_and_is_the_commands(
    worked, app, ada, instructor, tmp_path
):
    page = instructor.get("/instructor/grades.csv?columns=canvas")
    assert page.mimetype == "text/csv"
    assert graded("--csv", str(tmp_path / "a.csv"), "--columns", "canvas").exit_code == 0
    assert (tmp_path / "a.csv").read_text() == page.text
    assert instructor.get("/instructor/grades.csv?columns=x").status_code == 422
    assert ada.get("/instructor/grades.csv").status_code == 302
