"""Runs of a race, its lanes: they stay within one sample of each other in simulated time.

A lane is an ordinary run with a process and a folder of its own. `lanes` in manifest.json names all
lanes of its race. Samples of a lane say how far it is, so no other file is needed:

1) A lane waits after each sample until no other lane is behind it. A lane whose process has ended
   is not waited for. One that is slow, paused or suspended holds the others.
2) A lane records a sample in its turn, which one process has at a time. Who sends a change to
   several lanes has the turn meanwhile, reads how far the furthest is, and writes this time into
   the message (`after_s`). Each lane makes the change at its first sample after this time.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.errors import LabError
from lab.run import process
from lab.run.reading import Follower, last_readable, read_document

LANES = "MULTIPATH_LAB_LANES"  # an environment variable: the ids of all lanes, with commas between
BEHIND_POLL_S = 0.005
LOOKS_EVERY_S = 0.25  # whether a lane that is behind still goes on
BEGINS_WITHIN_S = 60.0
TURN_WITHIN_S = 2.0  # a process that was suspended in its turn does not give it back
SHORT_S = 0.002


class Lanes:
    """The race of the run in `folder`. `names` are the ids of all its lanes; a run without a race
    has none."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folders = [folder.parent / name for name in names]
        self._others = [_Lane(each) for each in self.folders if each.name != folder.name]

    def wait_s(self, now_s: float) -> float:
        """Return 0 if no other lane is behind `now_s`, else how long to wait before asking again
        [s of real time]."""
        return BEHIND_POLL_S if any(each.holds(now_s) for each in self._others) else 0.0


class _Lane:
    def __init__(self, folder: Path) -> None:
        self.folder, self._reached, self._ended = folder, 0.0, False
        self._samples = Follower(folder / "samples.jsonl", lambda line: json.loads(line)["t"])
        self._began = self._looked = time.monotonic()

    def holds(self, now_s: float) -> bool:
        """Return whether this lane goes on and has not reached the simulated time `now_s`."""
        if self._ended or self._reached >= now_s:
            return False
        self._reached = max([self._reached, *self._new()])
        if self._reached < now_s and time.monotonic() - self._looked > LOOKS_EVERY_S:
            self._looked = time.monotonic()
            self._ended = not self._goes_on()
        return not self._ended and self._reached < now_s

    def _new(self) -> list[float]:
        try:
            return self._samples.new()
        except LabError:
            return []

    def _goes_on(self) -> bool:
        try:
            manifest = read_document(self.folder, "manifest.json")
        except LabError:  # it is still starting, or it could not start
            is_starting = time.monotonic() - self._began < BEGINS_WITHIN_S
            return self.folder.is_dir() and is_starting
        has_result = (self.folder / "result.json").exists()
        return not has_result and process.alive(manifest, self.folder)


def reached_s(folders: Sequence[Path]) -> float:
    """Return the simulated time in s of the furthest lane."""
    return max(float((last_readable(each) or {"t": 0.0})["t"]) for each in folders)


@contextmanager
def turn(folders: Sequence[Path]) -> Iterator[bool]:
    """Have the turn of a race inside the `with` block. Without lanes, do nothing.

    `folders` are those of all its lanes. The block is entered also if the turn was not free within
    `TURN_WITHIN_S`; the value of `with` is then False. A process that ends gives its turn back.
    """
    first = next((each for each in folders if each.is_dir()), None)
    if first is None:
        yield True
        return
    handle = os.open(first, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _taken(handle)
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    ends = time.monotonic() + TURN_WITHIN_S
    wait_s = SHORT_S / 20
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > ends:
                return False
        time.sleep(wait_s)
        wait_s = min(SHORT_S, 2 * wait_s)
