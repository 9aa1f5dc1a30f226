"""Each line of a journal names the one before it: what was changed later is named, and does not
count."""

from __future__ import annotations

import json
import random

import pytest
from forged import edited, put, texts, without_digests
from hypothesis import given, settings
from hypothesis import strategies as some

from lab.classroom import chain, journal
from lab.classroom.journal import Extended, Journal
from lab.errors import RequestError

LINES = 8


@pytest.fixture
def path(tmp_path):
    written(tmp_path / "journal", range(1, LINES + 1))
    return tmp_path / "journal"


def written(path, minutes):
    made = Journal(path)
    for each in minutes:
        made.append(Extended(worksheet="small", minutes=each))
    made.close()


def read(path):
    """The numbers of the lines that are named, and the minutes of those that are believed."""
    found = journal.read(path)
    return {each.line for each in found.faults}, {round(each.minutes) for each in found.events}


def test_a_line_names_the_one_before_it(path):
    lines = [json.loads(line) for line in texts(path)]
    assert [each["before"] for each in lines[1:]] == [each["sha256"] for each in lines[:-1]]
    found = journal.read(path)
    assert (found.faults, found.older, found.count) == ((), 0, LINES)
    assert found.head == lines[-1]["sha256"]


@pytest.mark.parametrize("own_digest", [False, True])
def test_an_edited_line_is_named_and_does_not_count(path, own_digest):
    whole = texts(path)
    for n, line in enumerate(whole[:-1], 1):
        forged = line.replace(b'"minutes":%d' % n, b'"minutes":99')
        assert forged != line
        changed = edited(line, minutes=99) if own_digest else forged
        put(path, [*whole[: n - 1], changed, *whole[n:]])
        named, believed = read(path)
        assert n in named
        assert named <= {n - 1, n, n + 1}
        assert 99 not in believed
        assert believed >= set(range(1, LINES + 1)) - {n - 1, n}
        with pytest.raises(RequestError, match="line"):
            Journal(path)


def test_an_edited_last_line_is_named(path):
    whole = texts(path)
    put(path, [*whole[:-1], whole[-1].replace(b'"minutes":8', b'"minutes":99')])
    assert LINES in read(path)[0]
    assert 99 not in read(path)[1]


def test_a_removed_line_is_named(path):
    whole = texts(path)
    for n in range(1, LINES):
        put(path, [*whole[: n - 1], *whole[n:]])
        named, believed = read(path)
        assert n in named
        assert believed >= set(range(1, LINES + 1)) - {n - 1, n}


@settings(max_examples=40)
@given(places=some.permutations(range(LINES)).filter(lambda each: list(each) != sorted(each)))
def test_lines_in_another_order_are_named(tmp_path_factory, places):
    path = tmp_path_factory.mktemp("moved") / "journal"
    written(path, range(1, LINES + 1))
    whole = texts(path)
    put(path, [whole[each] for each in places])
    assert read(path)[0]


def test_an_added_line_is_named_and_does_not_count(path):
    whole = texts(path)
    digests = [json.loads(line)["sha256"] for line in whole]
    body = b'{"n":5,"at":0,"kind":"extend","worksheet":"small","minutes":99}'
    for n in range(LINES):
        for before in (digests[n - 1], "0" * 64):
            put(path, [*whole[:n], chain.sealed(body, before)[0], *whole[n:]])
            named, believed = read(path)
            assert n + 1 in named
            assert believed == set(range(1, LINES + 1))
        put(path, [*whole[:n], whole[3], *whole[n:]])  # a line of its own, once more
        assert (n == 3) or (n + 1 in read(path)[0])


def test_every_flipped_bit_is_seen(path):
    whole = path.read_bytes()
    rng = random.Random(7)
    places = [rng.randrange(8 * len(whole)) for _ in range(800)]
    last = [8 * (len(whole) - 1) + bit for bit in range(8)]  # the last newline
    for place in (*places, *last):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        assert journal.read(path).faults, place


def test_a_cut_at_any_byte_leaves_everything_before_it(path):
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        found = journal.read(path)
        assert found.faults == ()
        assert len(found.events) == whole[:end].count(b"\n")


@pytest.mark.parametrize("junk", [b"junk", b'{"n":13,', b'{"before":"x', b"x" * 999])
def test_what_is_no_line_that_was_cut_off_is_named(path, junk):
    whole = path.read_bytes()
    path.write_bytes(whole + junk)
    assert [each.line for each in journal.read(path).faults] == [LINES, LINES + 1]
    path.write_bytes(junk)
    assert journal.read(path).faults or junk == b'{"n":13,'  # so begins a line of an older version


def test_zeros_after_a_power_cut_are_left_out(path):
    whole = path.read_bytes()
    written(path, [LINES + 1])
    line = path.read_bytes()[len(whole) :]
    for end in (0, 9, 100, len(line) - 1):
        path.write_bytes(whole + line[:end] + bytes(len(line) - end))
        found = journal.read(path)
        assert (found.faults, len(found.events)) == ((), LINES)


def test_a_journal_of_an_older_version_goes_on_with_digests(path):
    without_digests(path)
    found = journal.read(path)
    assert (found.faults, found.older, len(found.events)) == ((), LINES, LINES)
    written(path, [LINES + 1, LINES + 2])
    found = journal.read(path)
    assert (found.faults, found.older, len(found.events)) == ((), LINES, LINES + 2)
    path.write_bytes(path.read_bytes().replace(b'"minutes": 3', b'"minutes": 9'))
    assert read(path) == ({LINES, LINES + 1}, {LINES + 1, LINES + 2})


def test_a_journal_that_began_with_digests_does_not_lose_them(path):
    without_digests(path)
    assert len(journal.read(path, may_be_older=False).faults) == LINES
    with pytest.raises(RequestError, match="line 1: it was changed"):
        Journal(path, may_be_older=False)


def test_a_digest_that_was_written_down_shows_a_journal_made_anew(path):
    head = journal.read(path).head
    written(path, [LINES + 1])
    assert head in journal.read(path).heads
    whole = texts(path)
    lines, before = [], "0" * 64
    for line in whole:
        found = json.loads(line) | {"minutes": 99, "before": before}
        lines.append(edited(json.dumps(found).encode()))
        before = json.loads(lines[-1])["sha256"]
    put(path, lines)
    assert head not in journal.read(path).heads
