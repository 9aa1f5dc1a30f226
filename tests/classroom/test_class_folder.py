"""The folder of a class, its roster and its secrets."""

from __future__ import annotations

import json
import os

import pytest

from lab.classroom import folder, roster, secrets
from lab.classroom.door import Newcomer
from lab.classroom.lesson import Forbidden
from lab.classroom.room import Room
from lab.errors import RequestError


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "students.csv"
    path.write_text("\ufeffName;PIN;email\nAda Lovelace;4711;ada@example.org\nBo;;bo@example.org\n")
    return path


def test_only_the_owner_reads_the_folder_and_its_secrets(class_folder):
    assert class_folder.path.stat().st_mode & 0o777 == 0o700
    assert (class_folder.path / "class.json").stat().st_mode & 0o777 == 0o600
    settings = json.loads((class_folder.path / "class.json").read_text())
    assert len(settings["code"]) == 6
    assert len({settings[each] for each in ("secret", "instructor_key", "projector_key")}) == 3


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_umask_opens_nothing(tmp_path, sheet, csv, umask):
    before = os.umask(umask)
    try:
        made = folder.make("t", [str(sheet)], roster.from_csv(csv), tmp_path / "data" / "classes")
        room = Room(made)
        room.join("here", made.settings.code, [Newcomer("Ada Lovelace", "4711")])
        room.close()
    finally:
        os.umask(before)
    found = [tmp_path / "data" / "classes", *(tmp_path / "data" / "classes").rglob("*")]
    assert len(found) == 8
    assert not [each for each in found if each.stat().st_mode & 0o077]


def test_no_secret_of_a_browser_or_person_is_in_a_file(class_folder):
    room = Room(class_folder)
    _, cookie = room.join("here", class_folder.settings.code, [Newcomer("Ada", "a-pin-of-ada")])
    _, again = room.come_back("here", class_folder.settings.code, Newcomer("Ada", "a-pin-of-ada"))
    _, pin = room.readmit("s1")
    room.close()
    files = [each.read_text() for each in class_folder.path.rglob("*") if each.is_file()]
    for secret in (cookie, again, "a-pin-of-ada", pin, pin.replace(" ", "")):
        assert not any(secret in text for text in files)


def test_a_class_goes_on_with_its_own_copies_of_the_worksheets(class_folder, sheet, tmp_path):
    sheet.write_text("title: changed")
    found = folder.find("test", tmp_path / "classes")
    assert found.worksheets["small"].title == "Two paths"
    copy = found.path / "worksheets" / "small.yaml"
    copy.write_text(copy.read_text() + "\n")
    with pytest.raises(RequestError, match="was changed after the class began"):
        folder.find("test", tmp_path / "classes")


def test_a_class_is_not_made_twice(class_folder, sheet, tmp_path):
    with pytest.raises(RequestError, match="there already"):
        folder.make("test", [str(sheet)], classes=tmp_path / "classes")


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "x" * 41, "a b", ".hidden", "a\n"])
def test_a_name_that_is_no_folder_is_refused(tmp_path, name):
    for act in (folder.find, folder.wipe):
        with pytest.raises(RequestError, match="write at most 40"):
            act(name, tmp_path)


def test_wiping_leaves_nothing(class_folder, tmp_path):
    (class_folder.runs / "s1-small-both-1").mkdir()
    folder.wipe("test", tmp_path / "classes")
    assert list((tmp_path / "classes").iterdir()) == []
    with pytest.raises(RequestError, match="unknown"):
        folder.wipe("test", tmp_path / "classes")


def test_a_roster_keeps_its_columns_and_no_pin(csv, tmp_path, sheet):
    found = roster.from_csv(csv)
    made = folder.make("listed", [str(sheet)], found, tmp_path / "classes")
    again = folder.find("listed", tmp_path / "classes").roster
    assert again == made.roster
    assert again.find(" ada  LOVELACE").columns == {"email": "ada@example.org"}
    assert again.find("Cy") is None
    assert again.has_pins
    assert "4711" not in (made.path / "roster.json").read_text()


def test_with_a_roster_only_its_students_join_with_their_pins(csv, tmp_path, sheet):
    made = folder.make("listed", [str(sheet)], roster.from_csv(csv), tmp_path / "classes")
    room, code = Room(made), made.settings.code
    with pytest.raises(RequestError, match="not in the list"):
        room.join("here", code, [Newcomer("Cy")])
    with pytest.raises(Forbidden, match="PIN"):
        room.join("here", code, [Newcomer("Ada Lovelace", "0000")])
    with pytest.raises(Forbidden, match="PIN"):
        room.join("here", code, [Newcomer("Ada Lovelace")])
    seat, _ = room.join("here", code, [Newcomer("ada lovelace", "4711"), Newcomer("Bo")])
    assert room.lesson.seat(seat).names == ["Ada Lovelace", "Bo"]
    assert room.seat_of(room.come_back("x", code, Newcomer("Ada Lovelace", "4711"))[1]) == seat
    room.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("email\nx\n", "no column 'name'"),
        ("name\n", "0 students"),
        ("name\nAda\nada\n", "line 3.*twice"),
        ("name,pin\nAda,12\n", "line 2.*PIN"),
        ("name,Name\nAda,Bo\n", "same name"),
        ("name\n" + "x" * 50 + "\n", "line 2"),
    ],
)
def test_a_roster_that_cannot_be_used_is_refused(tmp_path, text, words):
    path = tmp_path / "students.csv"
    path.write_text(text)
    with pytest.raises(RequestError, match=words):
        roster.from_csv(path)


@pytest.mark.parametrize(("count", "length"), [(1, 40), (1000, 5)])
def test_a_roster_has_up_to_a_thousand_names_of_up_to_forty_letters(tmp_path, count, length):
    path = tmp_path / "students.csv"
    names = [f"{number:0{length}}" for number in range(count)]
    path.write_text("\n".join(["name", *names]))
    assert len(roster.from_csv(path).entries) == count
    more = ["name", *names, f"{count:0{length + 1}}"] if length == 40 else ["name", *names, "last"]
    path.write_text("\n".join(more))
    with pytest.raises(RequestError, match=r"line 3|1001 students"):
        roster.from_csv(path)


@pytest.mark.parametrize(
    "text", [b"name\rAda\nBo\r\n", b"name,pin\nA\rB,1\n", b'name\n"' + b"x" * 200_000 + b'"\n']
)
def test_a_roster_that_is_no_csv_is_refused(tmp_path, text):
    path = tmp_path / "students.csv"
    path.write_bytes(text)
    with pytest.raises(RequestError, match=r"students\.csv: line [12]"):
        roster.from_csv(path)


def test_codes_are_easy_to_read_and_pins_are_checked():
    codes = {secrets.join_code() for _ in range(200)}
    assert len(codes) > 190
    assert not set("".join(codes)) & set("IO01")
    stored = secrets.pin_hash("4711")
    assert stored != secrets.pin_hash("4711")
    assert secrets.is_pin("4711", stored)
    assert not secrets.is_pin("4712", stored)
    for short in ("", "123", "x" * 33):
        with pytest.raises(RequestError, match="4 to 32"):
            secrets.pin_hash(short)
