"""Admission of students to a class: join code, list of students, PINs, and limits on guessing.

The methods of `Door` only return the event to record. The caller writes the event to the event log
of the class.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lab.classroom import roster, secrets
from lab.classroom.journal import Joined, Person, PinSet, Returned
from lab.classroom.lesson import Forbidden, Lesson, NotNow, TooMuch
from lab.classroom.state import SeatState
from lab.errors import RequestError, show

MOST_SEATS = 200
MOST_PEOPLE = 30  # on a seat; each PIN that they choose takes time to hash
WRONG_CODES_PER_MINUTE = 10  # from one address; 24^6 codes need no lock
WRONG_PINS_PER_MINUTE = 5  # for one name from one address; from then on each try is slow
# So somebody can try 20 PINs in a minute for one name from one address: half of the 10^4 PINs of
# four digits take 4 hours. A PIN that the instructor gives cannot be guessed, and has no limit.
SLOW_S = 3.0
MOST_WAITING = 20  # tries of one name from one address, beside the one that is evaluated
MOST_SLOW_PER_ADDRESS, MOST_SLOW = 40, 100  # each takes a thread of the server
JOINS_PER_ADDRESS, JOINS_WITHIN_S = 60, 600.0  # a whole class may share one address


@dataclass(frozen=True)
class Newcomer:
    """A person who wants to join a class. `pin` is empty if the person typed no PIN."""

    name: str
    pin: str = ""


class Door:
    """Decides who may join a class or return to it.

    In all methods, `address` is the network address of a browser. A right code or PIN is accepted
    even after and during many wrong ones, because students may share an address with somebody who
    tries to lock them out. Tests replace `sleep`.
    """

    def __init__(self, lesson: Lesson, sleep: Callable[[float], None] = time.sleep) -> None:
        self._lesson, self._sleep = lesson, sleep
        self._wrong_codes = Attempts(WRONG_CODES_PER_MINUTE, 60.0)
        self._wrong_pins = Attempts(WRONG_PINS_PER_MINUTE, 60.0)
        self._known_wrong: set[str] = set()  # hashes of wrong PINs with the hash of the right one
        self._joined = Attempts(JOINS_PER_ADDRESS, JOINS_WITHIN_S)
        self._lines = Lines()

    def people(self, address: str, code: str, newcomers: Sequence[Newcomer]) -> tuple[Person, ...]:
        """Check the people who want to join on one seat. Return them with hashes of their PINs.

        Raise `Forbidden` for a wrong code or PIN, `RequestError` for a name that cannot be used,
        `NotNow` for a name that is taken, and `TooMuch` after too many joins or wrong tries from
        this address.
        """
        self._check_code(address, code)
        self._joined.check(address)
        if not 1 <= len(newcomers) <= MOST_PEOPLE:
            raise RequestError(f"join: a seat is for 1 to {MOST_PEOPLE} people")
        names = [roster.cleaned(each.name) for each in newcomers]
        listed = self._lesson.folder.roster is not None
        if any(_is_taken(each, names[:n], listed) for n, each in enumerate(names)):
            raise RequestError("join: two of you have the same name")
        self._check_free(names)
        people = tuple(self._person(address, each) for each in newcomers)
        self._joined.count(address)
        return people

    def forget_joins(self) -> None:
        """Forget how often people joined from each address, so that all addresses may join
        again."""
        self._joined = Attempts(JOINS_PER_ADDRESS, JOINS_WITHIN_S)

    def joined(self, people: tuple[Person, ...], cookie: str) -> Joined:
        """Return the event that adds these people to the class. Nothing is recorded yet.

        `cookie` is the new secret of their browser. Raise `NotNow` if one of the names is taken
        already, and `TooMuch` if all `MOST_SEATS` seats of the class are taken.
        """
        state = self._lesson.state
        self._check_free([each.name for each in people])
        if len(state.taken()) >= MOST_SEATS:
            raise TooMuch(f"all {MOST_SEATS} seats of this class are taken", 60)
        seat = f"s{len(state.seats) + 1}"
        return Joined(seat=seat, people=people, browser=secrets.hashed(cookie))

    def returned(self, address: str, code: str, newcomer: Newcomer, cookie: str) -> Returned:
        """Return the event that lets a person who joined before continue in another browser.

        `cookie` is the new secret of that browser. Raise `Forbidden` if the code, the name or the
        PIN is wrong.
        """
        self._check_code(address, code)
        seat = self._lesson.state.seat_of_person(newcomer.name)
        if seat is None:
            raise Forbidden(f"come back: nobody of the name {show(newcomer.name)} has joined")
        self._check_pin(address, newcomer, _pin_of(seat, newcomer.name))
        return Returned(seat=seat.id, browser=secrets.hashed(cookie))

    def new_pin(self, seat: str) -> tuple[PinSet, str]:
        """Make a new PIN for the student at `seat`. Return the event to record, and the PIN.

        Raise `Unknown` if there is no such seat, `NotNow` if it was freed.
        """
        self._lesson.check_taken(seat)
        pin = secrets.new_pin()
        return PinSet(seat=seat, pin=secrets.new_pin_hash(pin)), pin

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

    def _check_free(self, names: Sequence[str]) -> None:
        taken = [name for seat in self._lesson.state.taken() for name in seat.names]
        listed = self._lesson.folder.roster is not None
        for each in names:
            if _is_taken(each, taken, listed):
                raise NotNow(
                    f"the name {show(each)} is taken. If it is you, come back with your PIN; "
                    "without one, ask the instructor"
                )

    def _check_code(self, address: str, code: str) -> None:
        if not secrets.same(code.strip().upper(), self._lesson.folder.settings.code):
            self._wrong_codes.check(address)
            self._wrong_codes.count(address)
            raise Forbidden("join: the code is wrong. It is on the instructor's screen")

    def _check_pin(self, address: str, newcomer: Newcomer, stored: str | None) -> None:
        """Raise `Forbidden` if the PIN is wrong or the person has none, `TooMuch` after too many
        tries.

        `stored` is the hash of the right PIN. After too many wrong PINs, each further try takes
        `SLOW_S` seconds, even with the right PIN. A PIN that was found wrong before is refused at
        once: it tells nobody anything, and must not keep the right one waiting.
        """
        wrong = Forbidden(
            f"the PIN for {show(newcomer.name)} is wrong, or there is none. The instructor can "
            "give you a new one"
        )
        if stored is None:
            raise wrong
        if secrets.is_new_pin(stored):
            if not secrets.is_pin(newcomer.pin, stored):
                raise wrong
            return
        self._check_guess((roster.folded(newcomer.name), address), newcomer.pin, stored, wrong)

    def _check_guess(self, tries: tuple[str, str], pin: str, stored: str, wrong: Forbidden) -> None:
        """Check a PIN that can be guessed, as `_check_pin` does. `tries` are name and address."""
        guess = secrets.hashed(stored + pin)
        if guess in self._known_wrong:
            raise wrong
        with self._lines.turn(*tries, lambda: self._wrong_pins.wait_s(tries) > 0) as slow:
            if guess in self._known_wrong:  # found while this one waited
                raise wrong
            if slow:
                self._sleep(SLOW_S)
            if secrets.is_pin(pin, stored):
                return
            if len(self._known_wrong) >= MOST_KEYS:
                self._known_wrong.clear()
            self._known_wrong.add(guess)
            self._wrong_pins.count(tries)
            if slow:
                raise TooMuch(f"{wrong}. There were many wrong tries: wait", SLOW_S)
            raise wrong


def _is_taken(name: str, others: Sequence[str], is_listed: bool) -> bool:
    """Return whether a name is one of `others`. Names that look alike are one, unless both are on
    the list of the class (`is_listed`)."""
    forms = [roster.folded] if is_listed else [roster.folded, roster.looks]
    return any(form(name) == form(other) for other in others for form in forms)


def _pin_of(seat: SeatState, name: str) -> str | None:
    wanted = roster.folded(name)
    return next((each.pin for each in seat.people if roster.folded(each.name) == wanted), None)


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
        """Raise `TooMuch` if the key may make no attempt now.

        The attempt itself is recorded by `count`, not by this method.
        """
        if wait_s := self.wait_s(key):
            raise TooMuch(f"too many tries: try again in {wait_s:.0f} s", max(1.0, wait_s))

    def wait_s(self, key: Hashable) -> float:
        """Seconds until the key may make an attempt; 0 if it may now."""
        with self._mutex:
            made = self._recent(key)
            if len(made) < self._most:
                return 0.0
            return made[0] + self._within_s - self._clock()

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


class Lines:
    """Lets tries of a PIN for the same name and from the same address go on one at a time, in order
    of arrival."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], deque[object]] = {}
        self._slow: Counter[str] = Counter()  # slow tries that wait or are evaluated, by address
        self._moved = threading.Condition()

    @contextmanager
    def turn(self, name: str, address: str, is_slow: Callable[[], bool]) -> Iterator[bool]:
        """Wait until the earlier tries for this name from this address are over. Then yield
        `is_slow()`: whether this try must be slow.

        Raise `TooMuch` at once if too many tries are waiting.
        """
        me, key = object(), (name, address)
        with self._moved:
            waiting = len(self._lines.get(key, ()))
            counted = waiting > 0 or is_slow()
            if counted:
                self._check_room(waiting, address)
                self._slow[address] += 1
            line = self._lines.setdefault(key, deque())
            line.append(me)
            self._moved.wait_for(lambda: line[0] is me)
        try:
            yield is_slow()
        finally:
            with self._moved:
                line.popleft()
                if not line:
                    del self._lines[key]
                if counted:
                    self._slow -= Counter([address])
                self._moved.notify_all()

    def _check_room(self, waiting: int, address: str) -> None:
        if (
            waiting > MOST_WAITING
            or self._slow[address] >= MOST_SLOW_PER_ADDRESS
            or self._slow.total() >= MOST_SLOW
        ):
            raise TooMuch("too many tries at once: try again in some seconds", SLOW_S)
