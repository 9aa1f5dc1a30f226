"""Waits and time limits of a class when the clock of the machine is set, also between servers."""

from __future__ import annotations

import random

import pytest
from class_clients import do

from lab.classroom.clock import ClassClock
from lab.classroom.door import Newcomer
from lab.classroom.lesson import LONGEST_WAIT_S, NotNow, Place, TooMuch
from lab.classroom.room import Room

DAY_S = 86_400.0
CAUSE = Place("s1", "small", "cause")
JUMPS_S = [-DAY_S + 1, -3600.0, -31.0, 31.0, DAY_S, *random.Random(4).sample(range(-(10**6), 0), 3)]


class Machine:
    """The two clocks of a machine: one that somebody may set, and one that nobody can."""

    def __init__(self) -> None:
        self.wall_s, self.up_s = 1_800_000_000.0, 500.0

    def passes(self, seconds: float) -> None:
        self.wall_s += seconds
        self.up_s += seconds

    def serves(self, class_folder) -> Room:
        clock = ClassClock(lambda: self.wall_s, lambda: self.up_s)
        return Room(class_folder, clock)


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def begun(class_folder, machine):
    """A class in which Ada has opened a worksheet."""
    room = machine.serves(class_folder)
    room.join("here", room.folder.settings.code, [Newcomer("Ada")])
    room.open("s1", "small")
    yield room
    room.close()


def wrong(room, times):
    for _ in range(times):
        room.answer(CAUSE, "one")


@pytest.mark.parametrize("jump_s", JUMPS_S)
@pytest.mark.parametrize("restarts", [False, True])
def test_a_wait_is_as_long_as_it_is_said(begun, class_folder, machine, jump_s, restarts):
    room = begun
    wrong(room, 3)
    machine.wall_s += jump_s
    if restarts:
        room.close()
        room = machine.serves(class_folder)
    wait_s = room.lesson.wait_s(CAUSE, room.clock())
    assert 0 <= wait_s <= LONGEST_WAIT_S
    if wait_s:  # put forward between two servers, it is over
        assert wait_s == pytest.approx(15.0, abs=0.01)
        with pytest.raises(TooMuch, match="in 15 s"):
            room.answer(CAUSE, "one")
    else:
        assert restarts
        assert jump_s > 0
        room.extend("small", None, 2 * DAY_S / 60)  # the time of the worksheet has passed, too
    machine.passes(wait_s + 0.1)
    room.answer(CAUSE, "two")
    assert room.lesson.step(CAUSE).passed
    times = [event.at for event in room._journal.log.events]
    assert times == sorted(times)
    room.close()


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_the_time_for_a_worksheet_stays_the_same(begun, machine, jump_s):
    machine.passes(60)
    machine.wall_s += jump_s
    assert begun.lesson.left_s("s1", "small", begun.clock()) == pytest.approx(19 * 60)
    begun.freeze(True)
    machine.wall_s -= jump_s
    machine.passes(600)
    begun.freeze(False)
    assert begun.lesson.left_s("s1", "small", begun.clock()) == pytest.approx(19 * 60)
    machine.passes(19 * 60 + 1)
    with pytest.raises(NotNow, match="is over"):
        begun.answer(CAUSE, "two")


@pytest.mark.parametrize("jump_s", [-DAY_S, -31.0, 31.0, DAY_S])
def test_the_instructor_and_the_log_are_told_once(machine, caplog, jump_s):
    clock = ClassClock(lambda: machine.wall_s, lambda: machine.up_s)
    machine.passes(10**6)
    assert not clock.warning()
    machine.wall_s += jump_s
    assert all(f"by {abs(jump_s):.0f} s" in clock.warning() for _ in range(3))
    assert len(caplog.messages) == 1
    machine.wall_s -= jump_s
    assert not clock.warning()


def test_a_clock_that_was_put_back_between_servers_is_told(begun, class_folder, machine):
    begun.close()
    machine.wall_s -= DAY_S
    assert "put back by 86400 s" in machine.serves(class_folder).clock.warning()


def test_the_page_of_the_instructor_has_the_warning(app, ada, instructor, clock, monkeypatch):
    do(ada, "answers/cause", value="one")
    assert instructor.get("/api/instructor/class").json["grid"]["clock"] == ""
    monkeypatch.setattr(clock, "_wall", lambda: clock.now - DAY_S)
    assert "put back" in instructor.get("/api/instructor/class").json["grid"]["clock"]


def test_elapsed_time_does_not_follow_the_clock_of_the_machine(monkeypatch):
    clock = ClassClock()
    before = clock()
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert before <= clock() < before + 60
