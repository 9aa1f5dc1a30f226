"""The queue of the runs of a class: which run starts next, and the command that starts it.

Students take turns: the one whose last run started longest ago comes first. A student has at most
one simulation in progress. The machine has at most one emulation in progress. A simulation starts
if fewer simulations run than the machine has processors, or if the measured load permits one more.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from lab.batch import request as batch
from lab.batch.request import Request
from lab.classroom.lesson import Lesson
from lab.classroom.state import ClassRun
from lab.scenario import engine_table
from lab.worksheets import planning

BUSY = 0.85  # fraction of all processors; no more simulations start from here on
LEAST_FREE_BYTES = 512 * 2**20  # of memory
ALONE = "mininet"  # the engine that can have one run at a time on a machine


@dataclass(frozen=True)
class Entry:
    """A run in the queue. `seat` is the student or pair that requested it, None for the
    instructor."""

    run: str
    seat: str | None
    engine: str


@dataclass(frozen=True)
class Load:
    """The measured load of a machine.

    `busy` is the used fraction of the time of all processors, from 0 to 1. `free_bytes` is free
    memory.
    """

    busy: float
    processors: int
    free_bytes: int

    def admits(self, running: int) -> bool:
        """Return whether one more simulation may start while `running` others are in progress."""
        if running < self.processors:
            return True
        return self.busy < BUSY and self.free_bytes > LEAST_FREE_BYTES


class Queue:
    """The waiting runs and the running runs of a class. The queue starts no run; its caller
    does."""

    def __init__(self) -> None:
        self._waiting: list[Entry] = []
        self._running: dict[str, Entry] = {}
        self._turns: dict[str | None, int] = {}  # number of the last start of each seat
        self._starts = 0

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def seats(self) -> set[str | None]:
        """Return the students with a waiting run. None in the set stands for the instructor."""
        return {each.seat for each in self._waiting}

    def add(self, entry: Entry) -> None:
        """Add a waiting run. It will start after the earlier runs of the same student."""
        self._waiting.append(entry)

    def resume(self, entry: Entry) -> None:
        """Add a run that is in progress already, because an earlier server started it."""
        self._start(entry)

    def next(self, load: Load) -> Entry | None:
        """Choose the next run that may start under this load, and move it to the running runs.

        Return None if no run may start.
        """
        for entry in self.order():
            if self._may_start(entry, load):
                self._waiting.remove(entry)
                self._start(entry)
                return entry
        return None

    def remove(self, run: str) -> None:
        """Remove a run that has ended or is no longer wanted."""
        self._running.pop(run, None)
        self._waiting = [each for each in self._waiting if each.run != run]

    def order(self) -> list[Entry]:
        """Return the waiting runs in the order in which they will start.

        In each round, one run of every student starts. Within a round, the student whose last run
        started longest ago comes first. A student with a run in progress has to wait for the second
        round.
        """
        rounds: dict[str | None, int] = {}
        ranked = []
        for position, entry in enumerate(self._waiting):
            turn = rounds[entry.seat] = rounds.get(entry.seat, self._is_running(entry.seat)) + 1
            ranked.append((turn, self._turns.get(entry.seat, 0), position, entry))
        return [entry for *_, entry in sorted(ranked, key=lambda each: each[:3])]

    def place(self, run: str) -> int | None:
        """Return the position of a run among the waiting runs, counted from 1. Return None if it is
        not waiting.

        Emulations and simulations are counted separately.
        """
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


# Load of this machine


PROC = Path("/proc")
UNKNOWN_FREE = 2**40  # bytes, if the free memory cannot be read: it then limits nothing
SHORTEST_S = 0.5  # between two measurements


class LoadMeter:
    """Measures the load of this machine from /proc: processors and free memory.

    The load of the processors is their mean since the previous measurement.
    """

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._last = self._ticks()
        self._at, self._busy = time.monotonic(), 0.0
        self.last = Load(0.0, os.cpu_count() or 1, self._free_bytes())  # what `read` returned last

    def read(self) -> Load:
        """Return the load. The load of the processors is measured anew only if the previous
        measurement is at least `SHORTEST_S` seconds old."""
        if time.monotonic() - self._at >= SHORTEST_S:
            now = self._ticks()
            busy, all_ticks = (new - old for new, old in zip(now, self._last, strict=True))
            if all_ticks > 0:
                self._busy = min(1.0, max(0.0, busy / all_ticks))
            self._last, self._at = now, time.monotonic()
        self.last = Load(self._busy, os.cpu_count() or 1, self._free_bytes())
        return self.last

    def _ticks(self) -> tuple[int, int]:
        """Return the busy ticks and all ticks of all processors since the machine booted.

        If there is no /proc, the two numbers are estimated from the load average. Then only their
        increase between two calls has a meaning.
        """
        try:
            first = (self._proc / "stat").read_text(encoding="ascii").splitlines()[0]
        except OSError:
            share = os.getloadavg()[0] / (os.cpu_count() or 1)
            now = int(time.monotonic() * 100)
            return int(now * min(1.0, share)), now
        fields = [int(each) for each in first.split()[1:9]]
        idle = fields[3] + fields[4]
        return sum(fields) - idle, sum(fields)

    def _free_bytes(self) -> int:
        try:
            text = (self._proc / "meminfo").read_text(encoding="ascii")
        except OSError:
            return UNKNOWN_FREE
        for line in text.splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return UNKNOWN_FREE


# The command that makes a run


SHARED_SEAT = "class"  # the variant of the instructor's runs is that of a seat with this id
LATE_S = 60.0  # a run may take this much longer than `SLOWEST` times its planned time
SLOWEST = 3.0


def run_request(lesson: Lesson, run: ClassRun, speed: float, vm: bool) -> Request:
    """Return the request that makes this run, in the form that `lab.batch` takes.

    `speed` is simulated time over real time. If `vm`, emulations run in the virtual machine.
    Emulations always run in real time, so `speed` does not apply to them.
    """
    step = lesson.run_step(run).model_copy(update={"engine": run.engine})
    variant = lesson.variant(run.seat or SHARED_SEAT, run.worksheet)
    asked = planning.request(step, variant, run.chosen)
    real_time = engine_table.entry(run.engine).real_time
    return replace(
        asked, speed=None if real_time else f"{speed:g}", vm=vm and real_time, wait=real_time
    )


def check_can_run(request: Request) -> None:
    """Raise `LabError` if the requested run cannot be made.

    The scenario may be invalid with the settings in `request`, or the engine or this machine cannot
    run it.
    """
    batch.checked(request)


def run_arguments(request: Request, folder: Path) -> list[str]:
    """Return the arguments of the lab's command line that make the run and write it into
    `folder`."""
    argv = ["run", request.scenario, "--engine", request.engine, "--quiet", "--out", str(folder)]
    argv += [word for name in request.strategies for word in ("--strategy", name)]
    argv += ["--vm"] * request.vm + ["--wait"] * request.wait
    options = {"seed": request.seed, "duration": request.duration_s, "speed": request.speed}
    argv += [
        word
        for name, value in options.items()
        if value is not None
        for word in (f"--{name}", str(value))
    ]
    return argv + [word for each in request.settings for word in ("--set", each)]


def longest_s(request: Request, speed: float) -> float:
    """Return the real time in seconds after which a run counts as hanging and is stopped."""
    assert request.duration_s is not None
    planned_s = request.duration_s / (speed if request.speed else 1.0)
    return planned_s * SLOWEST + LATE_S + (600.0 if request.vm else 0.0)
