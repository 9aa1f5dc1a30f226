"""Try a worksheet: make the runs of its solution and of its wrong attempts, and mark them.

The solution and all that is right too must pass everything. Each wrong attempt must fail what it
names, and nothing else.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab.batch import jobs
from lab.batch.jobs import Display, Job
from lab.batch.request import placed
from lab.worksheets.evaluation import RunFiles, evaluate_number
from lab.worksheets.language import parse_number
from lab.worksheets.marking import Mark, mark
from lab.worksheets.planning import Seat, request
from lab.worksheets.schema import Answer, Attempt, Question, Worksheet

SOLUTION = "solution"


@dataclass(frozen=True)
class Tried:
    """The marks of one attempt, and the ids of the steps that it must fail."""

    name: str
    marks: tuple[Mark, ...]
    fails: frozenset[str]

    @property
    def surprises(self) -> tuple[Mark, ...]:
        """Return the marks that are not as they must be. A text for a person to grade is open."""
        return tuple(
            each
            for each in self.marks
            if each.passed is not None and each.passed == (each.step in self.fails)
        )


@dataclass(frozen=True)
class Making:
    """Say where the runs of a trial are made: the seat, the folder, and the engine of all runs if
    it is not the worksheet's."""

    seat: Seat
    folder: Path
    engine: str | None = None
    vm: bool = False


def attempts(worksheet: Worksheet) -> dict[str, Attempt]:
    """Return the attempts by their name; what an attempt does not name is the solution's."""
    right = worksheet.solution
    return {
        SOLUTION: right,
        **{
            each.name: Attempt(
                answers={**right.answers, **each.answers},
                choices={**right.choices, **each.choices},
                flips={**right.flips, **each.flips},
            )
            for each in (*worksheet.also_right, *worksheet.wrong)
        },
    }


def make(
    worksheet: Worksheet, makings: Sequence[Making], display: Display
) -> list[list[Tried]] | None:
    """Make all runs of all seats. Return the marks of each attempt, in one list for each entry of
    `makings`. Return None if the user interrupted.

    A run that two attempts of a seat have in common is made once. Runs that exist already are kept.
    """
    planned = [
        {name: _jobs(worksheet, each, making) for name, each in attempts(worksheet).items()}
        for making in makings
    ]
    unique = {job.out: job for seat in planned for each in seat.values() for job in each.values()}
    ended = jobs.run_all(list(unique.values()), display)
    if len(ended) < len(unique) or any(each.exit_code for each in ended):
        return None
    folders = {out: outcome.folder for out, outcome in zip(unique, ended, strict=True)}
    return [list(_marked(worksheet, each, folders)) for each in planned]


def _marked(
    worksheet: Worksheet,
    planned: Mapping[str, Mapping[str, Job]],
    folders: Mapping[Path | None, Path],
) -> Iterator[Tried]:
    used = {job.out for jobs_ in planned.values() for job in jobs_.values()}
    read = {folders[out]: RunFiles.read(folders[out]) for out in used}
    fails = {each.name: frozenset(each.fails) for each in worksheet.wrong}
    for name, attempt in attempts(worksheet).items():
        runs = {run: read[folders[job.out]] for run, job in planned[name].items()}
        marks = mark(worksheet, _answers(worksheet, attempt, runs), runs)
        yield Tried(name, marks, fails.get(name, frozenset()))


def _answers(
    worksheet: Worksheet, attempt: Attempt, runs: Mapping[str, RunFiles]
) -> dict[str, Answer]:
    """Return the answers of an attempt. Those that are a figure of its runs become its value, as a
    student would read it; one that was not measured becomes NaN, which is never right."""
    numbers = {each.id for each in worksheet.tasks if isinstance(each, Question) and each.number}
    found = dict(attempt.answers)
    for name, answer in attempt.answers.items():
        if name in numbers and isinstance(answer, str):
            value, _ = evaluate_number(parse_number(answer), runs)
            found[name] = math.nan if value is None else value
    return found


def _jobs(worksheet: Worksheet, attempt: Attempt, making: Making) -> dict[str, Job]:
    """Return the job of each run step, with a folder that is the same for equal runs."""
    found = {}
    for run in worksheet.runs.values():
        if making.engine:
            run = run.model_copy(update={"engine": making.engine})
        choices, flips = attempt.choices.get(run.id, {}), attempt.flips.get(run.id, ())
        planned = request(run, making.seat, choices, flips)
        digest = hashlib.sha256(repr(planned.settings).encode()).hexdigest()[:8]
        (found[run.id],) = placed(
            replace(
                planned,
                out=making.folder / f"{run.id}-{digest}",
                vm=making.vm and run.engine == "mininet",
            )
        )
    return found
