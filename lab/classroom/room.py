"""The live object of a class: it turns requests into recorded events, and events change the state.

An event is on the disk before the state changes and before the request is answered.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from lab.classroom import folder as folder_files
from lab.classroom import journal, rules, secrets
from lab.classroom.clock import ClassClock
from lab.classroom.door import Door, Newcomer
from lab.classroom.folder import ClassFolder
from lab.classroom.journal import Journal
from lab.classroom.lesson import Lesson, NotNow, Place
from lab.classroom.predictions import of_class
from lab.classroom.queue import Entry, Load, Queue
from lab.classroom.state import ClassRun, ClassState, replay
from lab.errors import RequestError
from lab.worksheets.evaluation import RunFiles

READ_RUNS = 48  # runs whose files are kept in memory
CheckRun = Callable[[ClassRun], None]  # raises a `LabError` if the run cannot be made
One = TypeVar("One", bound=journal.Event)


class Room:
    """A class in progress: its event log, its state and its queue of runs. Several threads may use
    it.

    Hold `mutex` while you read or change the state. `news` wakes the threads that send the state to
    browsers. `run_files` returns the files of a run by its id, and caches them. `clock` returns
    the time in s since 1970.
    """

    def __init__(self, folder: ClassFolder, clock: ClassClock | None = None) -> None:
        self.clock = clock or ClassClock()
        self._journal = folder.open_journal(self.clock)
        self.clock.go_on_from(max((each.at for each in self._journal.log.events), default=0.0))
        self.lesson = Lesson(folder, _state(self._journal))
        self.queue = Queue()
        self.door = Door(self.lesson)
        self.mutex = threading.RLock()
        self.news = News(self.mutex)
        self.run_files = lru_cache(maxsize=READ_RUNS)(self._read_run)

    @property
    def folder(self) -> ClassFolder:
        return self.lesson.folder

    @property
    def state(self) -> ClassState:
        return self.lesson.state

    def record(self, event: One) -> One:
        """Write an event to the disk, change the state accordingly, and wake the threads that send
        it to browsers."""
        with self.mutex:
            made = self._journal.append(event)
            self.state.apply(made)
            self.news.report([self._concerned(made)])
            return made

    def journal_end(self) -> tuple[int, str]:
        """Return the number of lines of the event log, and the digest of the last one."""
        return self._journal.count, self._journal.head

    def close(self) -> None:
        self._journal.close()

    # --- students

    def join(self, address: str, code: str, newcomers: Sequence[Newcomer]) -> tuple[str, str]:
        """Admit people to the class, who share a seat. Return its id, and the cookie for the
        browser."""
        people = self.door.people(address, code, newcomers)
        cookie = secrets.key()
        with self.mutex:
            return self.record(self.door.joined(people, cookie)).seat, cookie

    def come_back(self, address: str, code: str, newcomer: Newcomer) -> tuple[str, str]:
        """Let a student continue in another browser. Return the id of the student's place, and a
        new cookie."""
        cookie = secrets.key()
        event = self.door.returned(address, code, newcomer, cookie)
        with self.mutex:
            self.lesson.check_taken(event.seat)
            return self.record(event).seat, cookie

    def seat_of(self, cookie: str) -> str | None:
        """Return the id of the student or pair to whom a cookie belongs, or None."""
        return self.state.browsers.get(secrets.hashed(cookie))

    def open(self, seat: str, worksheet: str) -> None:
        """Open a worksheet for the student or pair at `seat`. Nothing happens if it is open
        already."""
        with self.mutex:
            if event := rules.opened(self.lesson, seat, worksheet):
                if self.state.frozen:
                    raise NotNow("the instructor has stopped the class for a moment: wait")
                self.record(event)

    def answer(self, at: Place, value: Any) -> None:
        """Mark an answer and save it. Raise an error of `lab.classroom.lesson` if the answer is
        refused."""
        self._read_evidence(at)
        with self.mutex:
            self.record(rules.answered(self.lesson, at, value, self.clock(), self.run_files))

    def check(self, at: Place) -> None:
        """Evaluate a check, which is a condition on a student's latest complete runs. Save the
        result."""
        self._read_evidence(at)
        with self.mutex:
            if event := rules.checked(self.lesson, at, self.clock(), self.run_files):
                self.record(event)

    def request_run(self, at: Place, chosen: Mapping[str, Any], check: CheckRun) -> ClassRun:
        """Put a run of a student into the queue. `check` raises `LabError` if the run cannot be
        made."""
        used = self._used_bytes(at.seat)
        return self._queued(
            lambda: rules.requested(self.lesson, at, chosen, self.clock(), used), check
        )

    # --- the instructor

    def request_run_for_all(
        self, worksheet: str, step: str, engine: str | None, check: CheckRun
    ) -> ClassRun:
        """Put a run of the instructor into the queue. All students will see it.

        `engine` replaces the engine in the worksheet unless it is None. `check` raises `LabError`
        if the run cannot be made.
        """
        return self._queued(
            lambda: rules.requested_for_all(self.lesson, worksheet, step, engine), check
        )

    def point_at(
        self,
        run: str | None,
        worksheet: str | None,
        step: str | None,
        predictions: bool = False,
    ) -> None:
        """Show a run, a worksheet or one step of a worksheet on all screens.

        With `predictions`, the projector shows what all students predicted in this step. If all
        parameters are None, show nothing any longer.
        """
        with self.mutex:
            if predictions:
                of_class(self.lesson, worksheet or "", step or "")
            if run is not None:
                self.lesson.run(run, None)
            elif worksheet is not None and step is not None:
                self.lesson.task(worksheet, step)
            elif worksheet is not None:
                self.lesson.worksheet(worksheet)
            shown = {"worksheet": worksheet, "step": step, "predictions": predictions}
            self.record(journal.Looked(run=run, **shown))

    def freeze(self, frozen: bool) -> None:
        """Stop the work of all students, or let it continue if `frozen` is False."""
        with self.mutex:
            if frozen != self.state.frozen:
                self.record(journal.Froze(frozen=frozen))

    def extend(self, worksheet: str, seat: str | None, minutes: float) -> None:
        """Give more time for a worksheet to the student at `seat`. If `seat` is None, give it to
        all."""
        with self.mutex:
            self.lesson.worksheet(worksheet)
            if seat is not None:
                self.lesson.seat(seat)
            self.record(journal.Extended(worksheet=worksheet, seat=seat, minutes=minutes))

    def grade(self, at: Place, points: int, comment: str) -> None:
        """Save the points that the instructor gives for a text that a student wrote."""
        with self.mutex:
            self.record(rules.graded(self.lesson, at, points, comment))

    def readmit(self, seat: str) -> tuple[str, str]:
        """Give a student a new PIN. Return the student's name and the PIN.

        If two people share the seat, the PIN is for the first of them.
        """
        event, pin = self.door.new_pin(seat)
        self.record(event)
        return self.lesson.seat(seat).names[0], pin

    def free(self, seat: str) -> None:
        """Give up a seat. It can no longer be used, and its students can join again with a new
        seat.

        Waiting runs of the seat are taken out of the queue. Raise `Unknown` if there is no such
        seat, `NotNow` if it was freed already.
        """
        with self.mutex:
            self.lesson.check_taken(seat)
            self._withdraw_all(seat)
            self.record(journal.Freed(seat=seat))

    def remove(self, seat: str) -> None:
        """Remove a seat: it is freed, and its work counts no longer.

        Raise `Unknown` if there is no such seat, `NotNow` if it was removed already.
        """
        with self.mutex:
            if self.lesson.seat(seat).removed:
                raise NotNow(f"seat '{seat}' was removed already")
            self._withdraw_all(seat)
            self.record(journal.Removed(seat=seat))

    def merge(self, seat: str, into: str) -> None:
        """Let the people of `seat` work on at the seat `into`.

        Its work on worksheets that `into` has not opened goes with them, its other work does not
        count. Raise `Unknown` or `NotNow` if one of the seats does not exist or was freed,
        `RequestError` if both are one.
        """
        with self.mutex:
            if seat == into:
                raise RequestError(f"merge: '{seat}' is one seat: choose another one")
            self.lesson.check_taken(seat)
            self.lesson.check_taken(into)
            self._withdraw_all(seat)
            self.record(journal.Merged(seat=seat, into=into))

    def add_worksheet(self, name: str, text: str | None) -> None:
        """Add a worksheet to the class. `text` is the text of its file; without it, `name` is a
        worksheet that comes with the lab.

        Raise `RequestError` if the worksheet is not valid, `NotNow` if the class has one of this
        name.
        """
        if text is None:
            text = folder_files.shipped(name)
        sheet = folder_files.check_worksheet(name, text)
        with self.mutex:
            if name in self.folder.worksheets:
                raise NotNow(
                    f"worksheet '{name}' is part of this class: give the file another name"
                )
            self.lesson.folder = folder_files.add_worksheet(self.folder, name, text, sheet)
            digest = self.folder.settings.worksheets[name]
            self.record(journal.WorksheetAdded(worksheet=name, sha256=digest))

    def free_empty(self) -> list[str]:
        """Free all seats without work, return their ids, and let all addresses join again."""
        with self.mutex:
            seats = [each.id for each in self.state.taken() if not each.has_work]
            for each in seats:
                self.free(each)
            self.door.forget_joins()
            return seats

    # --- runs

    def take_next(self, load: Load) -> ClassRun | None:
        """Choose the run that is to start now, and mark it as running. Return None if no run is to
        start."""
        with self.mutex:
            entry = self.queue.next(load)
            if entry is None:
                return None
            run = self.state.runs[entry.run]
            run.status = "running"
            self._queue_moved(run)
            return run

    def resume(self, run: ClassRun, running: bool) -> None:
        """Put a run into the queue again after a restart of the server.

        If `running`, the run is in progress already. Otherwise it waits.
        """
        with self.mutex:
            entry = Entry(run.id, run.seat, run.engine)
            if running:
                self.queue.resume(entry)
                run.status = "running"
            else:
                self.queue.remove(run.id)
                self.queue.add(entry)
                run.status = "waiting"
            self._queue_moved(run)

    def ended(self, run: ClassRun, status: str, digest: str, error: str = "") -> None:
        """Record the end of a run. Nothing happens if the end is recorded already.

        `digest` is the digest of the files of the run.
        """
        with self.mutex:
            if not run.over:
                self.queue.remove(run.id)
                self.record(journal.Ended(run=run.id, status=status, digest=digest, error=error))
                self._queue_moved(run)

    def withdraw(self, run: ClassRun) -> bool:
        """Take a waiting run out of the queue. Return False if the run was not waiting."""
        with self.mutex:
            if run.status != "waiting":
                return False
            self.queue.remove(run.id)
            self.record(journal.Ended(run=run.id, status="interrupted", error="it was taken out"))
            self._queue_moved(run)
            return True

    def _withdraw_all(self, seat: str) -> None:
        for run in [each for each in self.state.unfinished() if each.seat == seat]:
            self.withdraw(run)

    def run_folder(self, run: str) -> Path:
        return self.folder.runs / run

    def _queued(self, decide: Callable[[], journal.Requested], check: CheckRun) -> ClassRun:
        """Put the run that `decide` returns into the queue, unless `decide` or `check` raises an
        error.

        `check` may take long, so it is called without `mutex`. The state may change meanwhile.
        Therefore `decide` is called both before and after `check`.
        """
        with self.mutex:
            event = decide()
        check(ClassRun.of(event))
        with self.mutex:
            event = self.record(decide())
            self.queue.add(Entry(event.run, event.seat, event.engine))
            run = self.state.runs[event.run]
            self._queue_moved(run)
            return run

    def _concerned(self, event: journal.Event) -> str | None:
        """Return the student whose view an event changes, or None if it may change the view of
        all."""
        if isinstance(event, journal.Ended | journal.Flipped):
            return self.state.runs[event.run].seat
        if isinstance(event, journal.Merged):
            return None
        seat: str | None = getattr(event, "seat", None)
        return seat

    def _queue_moved(self, run: ClassRun) -> None:
        """Wake the threads that show this run or any waiting run, because positions in the queue
        may have changed."""
        self.news.report([run.seat, *self.queue.seats()])

    def _read_run(self, run: str) -> RunFiles:
        return RunFiles.read(self.run_folder(run))

    def _read_evidence(self, at: Place) -> None:
        """Read the files of some runs into the cache: the runs that decide the mark of the step
        `at`.

        Reading takes time, so it is done without `mutex`.
        """
        with self.mutex:
            runs = self.lesson.evidence(at)
        for run in runs.values():
            self.run_files(run)

    def _used_bytes(self, seat: str) -> int:
        with self.mutex:
            runs = [each.id for each in self.state.runs.values() if each.seat == seat]
        return sum(size_of(self.run_folder(run)) for run in runs)


def _state(of: Journal) -> ClassState:
    """Return the state after the events of a log. Raise `RequestError` if one does not fit."""
    state, faults = replay(of.log)
    if faults:
        of.close()
        replace(of.log, faults=faults).check(of.path)
    return state


# News of changes
#
# Changes are counted for each seat, for all seats together, and in total. So a thread that shows
# one seat sleeps while only other seats change.


NO_SEAT = ""  # changes that only the instructor sees


class News:
    """Counts changes of the state of a class, and wakes the threads that wait for a change.

    `mutex` is the lock that is held while the state changes.
    """

    def __init__(self, mutex: threading.RLock) -> None:
        self._condition = threading.Condition(mutex)
        self._of: Counter[str] = Counter()
        self._common, self._count = 0, 0

    def report(self, seats: Iterable[str | None]) -> None:
        """Count a change that concerns these students. None among them stands for all students."""
        with self._condition:
            self._count += 1
            for seat in set(seats):
                if seat is None:
                    self._common += 1
                else:
                    self._of[seat] += 1
            self._condition.notify_all()

    def wait(self, seat: str | None, version: int, timeout_s: float) -> int:
        """Wait until the count of changes that concern `seat` is no longer `version`.

        Wait at most `timeout_s` seconds. Return the present count. If `seat` is None, every change
        counts.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._version(seat) != version, timeout_s)
            return self._version(seat)

    def _version(self, seat: str | None) -> int:
        return self._count if seat is None else self._common + self._of[seat]


def size_of(folder: Path) -> int:
    """Return the size in bytes of all files in a folder. Files that disappear meanwhile do not
    count."""
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found += os.lstat(os.path.join(place, name)).st_size
    return found
