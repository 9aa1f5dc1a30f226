"""Decide which run starts next: one fair queue of a class for simulations, one for emulations.

Seats take turns: of the seats that have a run waiting and none running, the one whose last start is
longest ago comes first. A seat runs one run at a time. A run is admitted as long as the machine has
room by its measured load. As many runs as the machine has processors are always admitted, so that
the queue moves on a machine that is busy with something else.
"""

from __future__ import annotations

from dataclasses import dataclass

BUSY = 0.85  # of all processors: from here on, no more run starts
LEAST_FREE_BYTES = 512 * 2**20  # of memory
ALONE = "mininet"  # of this engine one run at a time is possible on a machine


@dataclass(frozen=True)
class Entry:
    """Describe a run in the queue. `seat` is None for a run of the instructor."""

    run: str
    seat: str | None
    engine: str


@dataclass(frozen=True)
class Load:
    """Hold the measured load of a machine: the share of all processors that is busy, from 0 to 1,
    the number of processors, and the free memory in bytes."""

    busy: float
    processors: int
    free_bytes: int

    def admits(self, running: int) -> bool:
        """Return whether one more run may start while `running` runs go on."""
        if running < self.processors:
            return True
        return self.busy < BUSY and self.free_bytes > LEAST_FREE_BYTES


class Queue:
    """Hold the runs that wait and those that run. It starts nothing."""

    def __init__(self) -> None:
        self._waiting: list[Entry] = []
        self._running: dict[str, Entry] = {}
        self._turns: dict[str | None, int] = {}  # number of the last start of each seat
        self._starts = 0

    @property
    def running(self) -> int:
        """Return the number of runs that go on."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Return the number of runs that wait."""
        return len(self._waiting)

    def seats(self) -> set[str | None]:
        """Return the seats that have a run waiting."""
        return {each.seat for each in self._waiting}

    def add(self, entry: Entry) -> None:
        """Put a run at the end of the runs of its seat."""
        self._waiting.append(entry)

    def resume(self, entry: Entry) -> None:
        """Enter a run that was running before the server was started once more."""
        self._start(entry)

    def next(self, load: Load) -> Entry | None:
        """Take the run that is to start now out of the queue, and return it; None if none is."""
        for entry in self.order():
            if self._may_start(entry, load):
                self._waiting.remove(entry)
                self._start(entry)
                return entry
        return None

    def remove(self, run: str) -> None:
        """Take a run out, because it has ended or is not wanted any more."""
        self._running.pop(run, None)
        self._waiting = [each for each in self._waiting if each.run != run]

    def order(self) -> list[Entry]:
        """Return the runs that wait, in the order in which they will start.

        Round after round, each seat has one turn. Within a round, the seat that has waited longest
        since its last start is first.
        """
        rounds: dict[str | None, int] = {}
        ranked = []
        for position, entry in enumerate(self._waiting):
            turn = rounds[entry.seat] = rounds.get(entry.seat, self._is_running(entry.seat)) + 1
            ranked.append((turn, self._turns.get(entry.seat, 0), position, entry))
        return [entry for *_, entry in sorted(ranked, key=lambda each: each[:3])]

    def place(self, run: str) -> int | None:
        """Return the place of a run among those that wait for the same kind of engine, from 1; None
        if it does not wait."""
        mine = next((each for each in self._waiting if each.run == run), None)
        if mine is None:
            return None
        alone = mine.engine == ALONE
        alike = [each.run for each in self.order() if (each.engine == ALONE) == alone]
        return alike.index(run) + 1

    def _is_running(self, seat: str | None) -> int:
        return sum(each.seat == seat for each in self._running.values())

    def _may_start(self, entry: Entry, load: Load) -> bool:
        if entry.engine == ALONE:
            return not any(each.engine == ALONE for each in self._running.values())
        if entry.seat is not None and self._is_running(entry.seat):
            return False
        simulated = sum(each.engine != ALONE for each in self._running.values())
        return load.admits(simulated)

    def _start(self, entry: Entry) -> None:
        self._starts += 1
        self._turns[entry.seat] = self._starts
        self._running[entry.run] = entry
