"""Read the samples and events of a long run in bounded memory (docs/formats.md, long runs).

A file of up to `FULL_BYTES` is read in full. The samples of a larger one are divided into parts of
equally many samples, and each part becomes one or two samples.
"""

from __future__ import annotations

import copy
import json
import math
import threading
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from lab.metrics import SUM
from lab.results.effects import USUAL_S, WINDOW_S
from lab.results.flips import is_accepted
from lab.run.reading import GROUPS, Line, readable_events, readable_samples, size_of

FULL_BYTES = 64 * 2**20  # a larger file is thinned
THIN_BYTES = 16 * 2**20  # about what remains of it
BEFORE_S, AFTER_S = USUAL_S + 2 * WINDOW_S, 2 * WINDOW_S  # of a change: nothing is left out
FREQUENT = ("decision", "observation")  # kinds of events that are left out of a large file
LAST_EVENTS = 5_000  # of them, the last ones stay,
NEAR_EVENTS = 100_000  # and those near changes, up to this number
LEFT_OUT = "left_out"  # the kind of the event in the place of those that are left out
STATES = ("tier", "stations")  # numbers of which a mean says nothing: the last one counts


@dataclass(frozen=True)
class Thinned:
    """Samples in which the peaks of a run are kept, and the number of samples in its file."""

    samples: list[Line]
    count: int


def extremes(folder: Path) -> Thinned:
    """Return the samples of a run for charts.

    Of each part of a long run, one sample has the smallest value of every number and one has the
    largest. In both, the user `*` has those of the sums over all users. The last sample of the run
    is always as it was written.
    """
    each = _part(folder, 2)
    if each == 1:
        found = list(readable_samples(folder))
        return Thinned(found, len(found))
    kept: list[Line] = []
    part, last, count = _Part(), None, 0
    for line in readable_samples(folder):
        last, count = line, count + 1
        part.add(line)
        part.add_sums(line.get("user", {}))
        if part.count == each:
            kept += part.extremes()
            part = _Part()
    kept += part.extremes() if part.count else []
    return Thinned([*kept, last] if last else kept, count)


def means(folder: Path, times: Sequence[float] = ()) -> list[Line]:
    """Return the samples of a run for means over time.

    Of each part of a long run, one sample has the mean of every number, weighted by time. No part
    goes over one of `times`, in s, and the samples near them stay as they are (`BEFORE_S`,
    `AFTER_S`), up to `THIN_BYTES` of them.
    """
    each = _part(folder, 1)
    if each == 1:
        return list(readable_samples(folder))
    marks = sorted({0.0, *times})
    kept: list[Line] = []
    part, exact_bytes, was_s, was_place = _Part(), 0, 0.0, 0
    for line in readable_samples(folder):
        place, is_near = bisect_left(marks, line["t"]), _is_near(marks, line["t"])
        is_kept = is_near and exact_bytes < THIN_BYTES
        if part.count and (part.count >= each or is_kept or place != was_place):
            kept.append(part.mean())
            part = _Part()
        if is_kept:
            kept.append(line)
            exact_bytes += len(json.dumps(line))
        else:
            part.add(line, line["t"] - was_s)
        was_s, was_place = line["t"], place
    return [*kept, part.mean()] if part.count else kept


def events(folder: Path) -> list[Line]:
    """Return the events of a run; the n-th of the result is the n-th of the file.

    In a large file, decisions and observations are left out, except those near a change and the
    last `LAST_EVENTS`. In their place is an event of kind `LEFT_OUT`, the same object for
    successive ones.
    """
    if size_of(folder / "events.jsonl") <= FULL_BYTES:
        return list(readable_events(folder))
    marks = sorted({0.0, *(each["t"] for each in readable_events(folder) if is_accepted(each))})
    found: list[Line] = []
    recent: deque[int] = deque()
    near = 0
    for n, event in enumerate(readable_events(folder)):
        found.append(event)
        if event.get("kind") not in FREQUENT:
            continue
        if _is_near(marks, event["t"]) and near < NEAR_EVENTS:
            near += 1
        else:
            recent.append(n)
        if len(recent) > LAST_EVENTS:
            _leave_out(found, recent.popleft())
    return found


def _leave_out(found: list[Line], n: int) -> None:
    previous = found[n - 1] if n else {}
    if previous.get("kind") != LEFT_OUT:
        previous = {"t": found[n]["t"], "kind": LEFT_OUT, "count": 0}
    previous["count"] += 1
    found[n] = previous


def _is_near(marks: Sequence[float], t: float) -> bool:
    place = bisect_left(marks, t - AFTER_S)
    return place < len(marks) and marks[place] <= t + BEFORE_S


def _part(folder: Path, lines: int) -> int:
    """Return how many samples a part has, of which `lines` samples remain; 1 if all remain."""
    size = size_of(folder / "samples.jsonl")
    return 1 if size <= FULL_BYTES else max(2, math.ceil(lines * size / THIN_BYTES))


LOW, HIGH, SUM_OF, WEIGHT, LATEST = range(5)  # of a number in a part
Figures = dict[str, list[Any]]  # by name, as above


class _Part:
    """Successive samples of which only the smallest, largest and mean numbers are kept."""

    def __init__(self) -> None:
        self.count, self._first_s, self._last_s = 0, 0.0, 0.0
        self._owners: dict[tuple[str, str], Figures] = {}

    def add(self, line: Line, seconds: float = 1.0) -> None:
        """Add a sample. `seconds` is the length of its interval."""
        self._first_s = self._first_s if self.count else line["t"]
        self._last_s = line["t"]
        self.count += 1
        for of in GROUPS:
            for owner, figures in line.get(of, {}).items():
                self._add((of, owner), figures, seconds)
        if "run" in line:
            self._add(("run", ""), line["run"], seconds)

    def add_sums(self, users: Line) -> None:
        """Add the sums of the numbers of all users of a sample."""
        sums: dict[str, float] = {}
        for figures in users.values():
            for name, figure in figures.items():
                if type(figure) in (int, float):
                    sums[name] = sums.get(name, 0.0) + figure
        self._add(("user", SUM), sums, 1.0)

    def _add(self, owner: tuple[str, str], figures: Line, seconds: float) -> None:
        mine = self._owners.setdefault(owner, {})
        for name, figure in figures.items():
            kept = mine.get(name)
            if kept is None:
                kept = mine[name] = [None, None, 0.0, 0.0, None]
            kept[LATEST] = figure
            if type(figure) not in (int, float):
                continue
            if kept[LOW] is None or figure < kept[LOW]:
                kept[LOW] = figure
            if kept[HIGH] is None or figure > kept[HIGH]:
                kept[HIGH] = figure
            kept[SUM_OF] += figure * seconds
            kept[WEIGHT] += seconds

    def extremes(self) -> list[Line]:
        low = self._line(self._first_s, lambda kept: kept[LOW])
        return [low, self._line(self._last_s, lambda kept: kept[HIGH])]

    def mean(self) -> Line:
        return self._line(self._last_s, lambda kept: kept[SUM_OF] / kept[WEIGHT])

    def _line(self, t: float, number: Callable[[list[Any]], Any]) -> Line:
        line: Line = {"t": t, **{of: {} for of in GROUPS}}
        for (of, owner), figures in self._owners.items():
            found = {
                name: kept[LATEST] if name in STATES or not kept[WEIGHT] else number(kept)
                for name, kept in figures.items()
            }
            if of == "run":
                line["run"] = found
            else:
                line[of][owner] = found
        return line


# Answers about long runs: one at a time, and each once

ANSWERS = 32  # that are kept
STAMPED = ("samples.jsonl", "events.jsonl", "scenario.yaml", "manifest.json", "result.json")
Stamp = tuple[tuple[int, int, int], ...]
P = ParamSpec("P")
T = TypeVar("T")
_turn = threading.RLock()
_answers: OrderedDict[Any, Any] = OrderedDict()


def is_long(folder: Path) -> bool:
    return any(size > FULL_BYTES for _, size, _ in _stamp(folder)[:2])


@contextmanager
def turn(folders: Iterable[Path]) -> Iterator[None]:
    """Wait until nobody else reads long runs, if one of the runs in `folders` is long."""
    with _turn if any(map(is_long, folders)) else nullcontext():
        yield


def in_turn(make: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function of a run folder that reads its samples or events.

    Of long runs, only one such answer is made at a time, and it is kept until files of the run
    change. Whoever asks for the same answer waits for the first.
    """

    @wraps(make)
    def answer(*args: P.args, **more: P.kwargs) -> T:
        folder = args[0]
        assert isinstance(folder, Path)
        if not is_long(folder):
            return make(*args, **more)
        with turn([folder]):
            key = (make, args, tuple(more.items()), _stamp(folder))
            if key not in _answers:
                _answers[key] = make(*args, **more)
                while len(_answers) > ANSWERS:
                    _answers.popitem(last=False)
            kept: T = copy.deepcopy(_answers[key])
            return kept

    return answer


def _stamp(folder: Path) -> Stamp:
    return tuple(_of_file(folder / name) for name in STAMPED)


def _of_file(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns
