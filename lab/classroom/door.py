"""Admission of students to a class: join code, list of students, PINs, and limits on guessing.

The methods of `Door` only return the event to record. The caller writes the event to the event log
of the class.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from lab.classroom import roster, secrets
from lab.classroom.journal import Joined, Person, PinSet, Returned
from lab.classroom.lesson import Forbidden, Lesson, NotNow, TooMuch
from lab.errors import RequestError, show

MOST_SEATS = 200
MOST_PEOPLE = 2  # on a seat
WRONG_PER_MINUTE, WRONG_OF_ALL_PER_MINUTE = 10, 300
JOINS_PER_ADDRESS, JOINS_WITHIN_S = 60, 600.0  # a whole class may share one address
# Compared if there is no PIN, so that the time does not show whether there is one
DUMMY = secrets.pin_hash("nobody")


@dataclass(frozen=True)
class Newcomer:
    """A person who wants to join a class. `pin` is empty if the person typed no PIN."""

    name: str
    pin: str = ""


class Door:
    """Decides who may join a class, or come back to it from another browser.

    The parameter `address` of its methods is the network address of the browser that asks.
    """

    def __init__(self, lesson: Lesson) -> None:
        self._lesson = lesson
        self._wrong = Attempts(WRONG_PER_MINUTE, 60.0)
        self._wrong_of_all = Attempts(WRONG_OF_ALL_PER_MINUTE, 60.0)
        self._joined = Attempts(JOINS_PER_ADDRESS, JOINS_WITHIN_S)

    def people(self, address: str, code: str, newcomers: Sequence[Newcomer]) -> tuple[Person, ...]:
        """Check the one or two people who want to join. Return them with hashes of their PINs.

        Raise `Forbidden` for a wrong code or PIN, `RequestError` for a name that cannot be used,
        and `TooMuch` after too many wrong tries or joins from this address.
        """
        self._check_code(address, code)
        self._joined.check(address)
        if not 1 <= len(newcomers) <= MOST_PEOPLE:
            raise RequestError(f"join: a seat is for 1 to {MOST_PEOPLE} people")
        people = tuple(self._person(address, each) for each in newcomers)
        if len({roster.folded(each.name) for each in people}) < len(people):
            raise RequestError("join: both have the same name")
        self._joined.count(address)
        return people

    def joined(self, people: tuple[Person, ...], cookie: str) -> Joined:
        """Return the event that adds these people to the class. Nothing is recorded yet.

        `cookie` is the new secret of their browser. Raise `NotNow` if one of the names is taken
        already, and `TooMuch` if the class has `MOST_SEATS` members or pairs.
        """
        seats = self._lesson.state.seats
        for each in people:
            if self._lesson.state.seat_of_person(each.name):
                raise NotNow(
                    f"the name {show(each.name)} is taken. If it is you, come back with your PIN; "
                    "without one, ask the instructor"
                )
        if len(seats) >= MOST_SEATS:
            raise TooMuch(f"all {MOST_SEATS} seats of this class are taken", 60)
        return Joined(seat=f"s{len(seats) + 1}", people=people, browser=secrets.hashed(cookie))

    def returned(self, address: str, code: str, newcomer: Newcomer, cookie: str) -> Returned:
        """Return the event that lets a person who joined before continue in another browser.

        `cookie` is the new secret of that browser. Raise `Forbidden` if the code, the name or the
        PIN is wrong.
        """
        self._check_code(address, code)
        seat = self._lesson.state.seat_of_person(newcomer.name)
        stored = self._pin_of(newcomer.name)
        self._check_pin(address, newcomer, stored)
        if seat is None:
            raise Forbidden(f"come back: nobody of the name {show(newcomer.name)} has joined")
        return Returned(seat=seat.id, browser=secrets.hashed(cookie))

    def new_pin(self, seat: str) -> tuple[PinSet, str]:
        """Make a new PIN for the student at `seat`. Return the event to record, and the PIN.

        If two people share the seat, the PIN is for the first of them. Raise `Unknown` if there is
        no such seat.
        """
        self._lesson.seat(seat)
        pin = secrets.new_pin()
        return PinSet(seat=seat, pin=secrets.pin_hash(pin)), pin

    def _person(self, address: str, newcomer: Newcomer) -> Person:
        name = roster.cleaned(newcomer.name)
        listed = self._lesson.folder.roster
        if listed is None:
            return Person(name=name, pin=secrets.pin_hash(newcomer.pin) if newcomer.pin else None)
        entry = listed.find(name)
        if entry is None:
            raise RequestError(f"join: {show(name)} is not in the list of this class")
        if entry.pin is not None:
            self._check_pin(address, newcomer, entry.pin)
            return Person(name=entry.name, pin=entry.pin)
        pin = secrets.pin_hash(newcomer.pin) if newcomer.pin else None
        return Person(name=entry.name, pin=pin)

    def _pin_of(self, name: str) -> str | None:
        seat = self._lesson.state.seat_of_person(name)
        for each in seat.people if seat else ():
            if roster.folded(each.name) == roster.folded(name):
                return each.pin
        return None

    def _check_code(self, address: str, code: str) -> None:
        self._wrong.check(address)
        self._wrong_of_all.check("all")
        if not secrets.same(code.strip().upper(), self._lesson.folder.settings.code):
            self._count_wrong(address)
            raise Forbidden("join: the code is wrong. It is on the instructor's screen")

    def _check_pin(self, address: str, newcomer: Newcomer, stored: str | None) -> None:
        person = roster.folded(newcomer.name)
        self._wrong.check(person)
        right = secrets.is_pin(newcomer.pin, stored or DUMMY)
        if stored is None or not right:
            self._count_wrong(address)
            self._wrong.count(person)
            raise Forbidden(
                f"the PIN for {show(newcomer.name)} is wrong, or there is none. The instructor can "
                "give you a new one"
            )

    def _count_wrong(self, address: str) -> None:
        self._wrong.count(address)
        self._wrong_of_all.count("all")


# Limits on attempts, so that nobody can guess codes and PINs


MOST_KEYS = 10_000  # at this number, keys without recent attempts are forgotten


class Attempts:
    """A rate limit: for each key, such as a network address, at most `most` attempts in `within_s`
    seconds."""

    def __init__(
        self, most: int, within_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._within_s, self._clock = most, within_s, clock
        self._made: dict[Hashable, deque[float]] = {}
        self._mutex = threading.Lock()

    def check(self, key: Hashable) -> None:
        """Raise `TooMuch` if this key may make no attempt now. Does not count the attempt; `count`
        does."""
        with self._mutex:
            made = self._recent(key)
            if len(made) >= self._most:
                wait_s = made[0] + self._within_s - self._clock()
                raise TooMuch(f"too many tries: try again in {wait_s:.0f} s", max(1.0, wait_s))

    def count(self, key: Hashable) -> None:
        with self._mutex:
            if len(self._made) >= MOST_KEYS:
                self._made = {
                    each: made for each in list(self._made) if (made := self._recent(each))
                }
            self._made.setdefault(key, deque(maxlen=self._most)).append(self._clock())

    def _recent(self, key: Hashable) -> deque[float]:
        made = self._made.get(key, deque())
        while made and made[0] <= self._clock() - self._within_s:
            made.popleft()
        return made
