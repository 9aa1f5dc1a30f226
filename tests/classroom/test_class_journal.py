"""The journal of a class: after any crash, everything is there that was reported as saved."""

from __future__ import annotations

import os
import signal
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lab.classroom import journal
from lab.classroom.journal import LINE, Answered, Extended, Froze, Joined, Journal, Opened, Person
from lab.errors import LabError, RequestError

ANSWERS = some.one_of(
    some.integers(-(2**60), 2**60),
    some.floats(allow_nan=False, allow_infinity=False),
    some.text(some.characters(exclude_categories=["Cs"])),
    some.lists(some.tuples(some.floats(0, 60), some.floats(0, 9)), min_size=2).map(tuple),
)


def written(path, minutes):
    made = Journal(path)
    for each in minutes:
        made.append(Extended(worksheet="small", minutes=each))
    made.close()
    return journal.read(path).events


@given(value=ANSWERS)
def test_every_answer_comes_back_as_it_was(value):
    event = Answered(seat="s1", worksheet="w", step="a", value=value, passed=None, points=0)
    line = event.model_dump_json()
    assert "\n" not in line
    again = LINE.validate_json(line)
    assert again == event
    assert type(again.value) is type(event.value)


def test_lines_are_numbered_and_have_a_time(tmp_path):
    events = written(tmp_path / "journal", [1, 2, 3])
    assert [each.n for each in events] == [1, 2, 3]
    assert all(each.at > 1e9 for each in events)
    assert written(tmp_path / "journal", [4])[-1].n == 4
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


def test_a_torn_last_line_is_cut_off_at_each_byte(tmp_path):
    path = tmp_path / "journal"
    written(path, [1, 2])
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole)):
        path.write_bytes(whole[:end])
        assert [each.minutes for each in journal.read(path).events] == [1]
        opened = Journal(path)
        assert len(opened.log.events) == 1
        opened.append(Froze(frozen=True))
        opened.close()
        assert [each.kind for each in journal.read(path).events] == ["extend", "freeze"]


@pytest.mark.parametrize("damage", [b"{}\n", b"x\n", b'{"kind":"freeze","n":1}\n', b"\n"])
def test_another_damaged_line_is_named(tmp_path, damage):
    path = tmp_path / "journal"
    written(path, [1, 2])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + damage + lines[1])
    found = journal.read(path)
    assert [each.line for each in found.faults] == [2]
    assert [each.minutes for each in found.events] == [1, 2]
    with pytest.raises(RequestError, match=r"line 2: .* \./run_lab\.sh grade"):
        Journal(path)


def test_what_cannot_be_written_is_neither_saved_nor_left_behind(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    opened = Journal(path)
    opened.append(Froze(frozen=True))
    real = os.write

    def full(descriptor, data):
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[:20])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LabError, match=r"No space left.*Nothing was saved"):
        opened.append(Froze(frozen=False))
    monkeypatch.undo()
    opened.append(Extended(worksheet="small", minutes=1))
    opened.close()
    assert [each.kind for each in journal.read(path).events] == ["freeze", "extend"]


def test_a_line_is_on_the_disk_before_append_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(os.fstat(fd).st_size))
    opened = Journal(tmp_path / "journal")
    opened.append(Froze(frozen=True))
    assert synced == [(tmp_path / "journal").stat().st_size]
    opened.close()


@pytest.mark.parametrize("wait_bytes", [1, 100])
def test_a_kill_loses_nothing_that_was_said_to_be_saved(tmp_path, wait_bytes):
    """A child process writes a byte to a pipe after each saved event, until it is killed."""
    path, (read, write) = tmp_path / "journal", os.pipe()
    child = os.fork()
    if child == 0:
        try:
            opened = Journal(path)
            for n in range(1, 10**6):
                opened.append(Extended(worksheet="small", minutes=n))
                os.write(write, b"s")
        finally:
            os._exit(1)
    os.close(write)
    said = 0
    while said < wait_bytes:
        said += len(os.read(read, 1000))
    os.kill(child, signal.SIGKILL)
    while more := os.read(read, 1000):
        said += len(more)
    os.waitpid(child, 0)
    os.close(read)
    assert len(Journal(path).log.events) in (said, said + 1)


def test_nothing_is_saved_in_a_class_that_has_ended(tmp_path):
    opened = Journal(tmp_path / "journal")
    opened.close()
    opened.close()
    with pytest.raises(LabError, match="has ended"):
        opened.append(Froze(frozen=True))


def test_people_and_seats_are_written_without_secrets():
    event = Joined(seat="s1", people=(Person(name="Ada"),), browser="x")
    assert LINE.validate_json(event.model_dump_json()) == event
    with pytest.raises(ValueError, match="extra"):
        LINE.validate_json('{"kind":"open","seat":"s1","worksheet":"w","more":1}')
    assert Opened(seat="s1", worksheet="w").n == 0


@pytest.mark.parametrize("event", get_args(journal.AnyEvent))
def test_an_event_is_known_by_its_kind(event):
    kind = event.model_fields["kind"]
    assert get_args(kind.annotation) == (kind.default,)
