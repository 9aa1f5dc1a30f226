"""A campaign: many trials, each made from a seed and a number, so that it can be repeated.

A trial raises `Failed` if the lab did something that it must never do. Any other exception is a
failure, too, and so is a trial that takes longer than `hangs_after_s`, or during which a server,
also in a copy of this process, logs an exception.
"""

from __future__ import annotations

import logging
import random
import signal
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

MOST_FAILURES = 10  # then the campaign ends


class Failed(Exception):
    """Raised when the lab did something that it must never do."""


class Impossible(Exception):
    """Raised when this machine lacks something that the campaign needs."""


class Hang(BaseException):
    """Raised when a trial takes too long. It is no `Exception`, so that the code under test does
    not catch it."""


@dataclass(frozen=True)
class Counts:
    """Inputs that a trial gave to the lab, and processes that it killed."""

    inputs: int = 0
    kills: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.inputs + other.inputs, self.kills + other.kills)


@dataclass
class Outcome:
    """Result of a campaign. A failure is (number of the trial, description)."""

    name: str
    counts: Counts = Counts()
    trials: int = 0
    seconds: float = 0.0
    failures: list[tuple[int, str]] = field(default_factory=list)
    skipped: str = ""


class Campaign:
    """Trials of one kind. A subclass sets `name` and `what`, and defines `trial`."""

    name = ""
    what = ""
    hangs_after_s = 5.0
    in_turn = True  # False: it runs only if it is named with --only

    def __init__(self, folder: Path) -> None:
        """`folder` is empty and belongs to this campaign."""
        self.folder = folder
        self.seed, self.number = 0, 0  # of the present trial

    def prepare(self) -> None:
        """Do once what all trials need; `Impossible` if this machine lacks something."""

    def trial(self, rng: random.Random) -> Counts:
        raise NotImplementedError

    def finish(self) -> None:
        """End what `prepare` has started."""


def run(campaign: Campaign, seed: int, minutes: float, numbers: Iterable[int]) -> Outcome:
    """Make the trials with these numbers: at least one, and no new one after `minutes`."""
    outcome, began = Outcome(campaign.name), time.monotonic()
    try:
        campaign.prepare()
        for number in numbers:
            late = time.monotonic() - began > 60 * minutes
            if (outcome.trials and late) or len(outcome.failures) == MOST_FAILURES:
                break
            campaign.seed, campaign.number = seed, number
            outcome.trials += 1
            rng = random.Random(f"{campaign.name}/{seed}/{number}")
            try:
                with within(campaign.hangs_after_s), no_exception_logged():
                    outcome.counts += campaign.trial(rng)
            except Hang:
                outcome.failures.append((number, f"no end within {campaign.hangs_after_s:g} s"))
            except Failed as failure:
                outcome.failures.append((number, str(failure)))
            except Exception as error:  # noqa: BLE001 - every exception is a finding
                where = traceback.extract_tb(error.__traceback__)[-1]
                text = (
                    f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
                )
                outcome.failures.append((number, text))
    except Impossible as error:
        outcome.skipped = str(error)
    finally:
        campaign.finish()
    outcome.seconds = time.monotonic() - began
    return outcome


@contextmanager
def no_exception_logged() -> Iterator[None]:
    """Raise `Failed` if the HTTP server (waitress) logs an exception in the `with` block."""
    with tempfile.TemporaryFile("a+") as log:
        handler = logging.StreamHandler(log)
        handler.addFilter(lambda record: bool(record.exc_info))
        logger = logging.getLogger("waitress")
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
        log.seek(0)
        if text := log.read().strip():
            raise Failed(f"the server logged an exception: {text[-250:]}")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `Hang` if the `with` block takes longer.

    Python ignores an exception in a destructor or a callback of a weak reference. So it is raised
    again each second, and at the end of the block.
    """
    rang = False

    def ring(_number: int, _frame: FrameType | None) -> None:
        nonlocal rang
        rang = True
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if rang:
        raise Hang


def table(outcomes: list[Outcome], seed: int) -> str:
    """One row per campaign, then for each failure its text and the command that repeats it."""
    rows = [("campaign", "trials", "inputs", "kills", "seconds", "failures")]
    for each in outcomes:
        failures = f"skipped: {each.skipped}" if each.skipped else str(len(each.failures))
        counts = (each.trials, each.counts.inputs, each.counts.kills, round(each.seconds))
        rows.append((each.name, *map(str, counts), failures))
    widths = [max(len(row[n]) for row in rows) for n in range(5)]
    lines = ["  ".join([*map(str.ljust, row[:5], widths), row[5]]) for row in rows]
    for each in outcomes:
        for number, text in each.failures:
            lines.append(f"{each.name}, trial {number}: {text[:300]}")
            lines.append(
                f"  ./run_lab.sh torture --only {each.name} --seed {seed} --trial {number}"
            )
    return "\n".join(lines)
