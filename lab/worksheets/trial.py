"""Trial of a worksheet: the runs of its example attempts are made and marked.

The solution and the attempts in `also_right` must pass everything. Each wrong attempt must fail
exactly the steps in its list `fails`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab.batch import jobs
from lab.batch.job import Job
from lab.batch.jobs import Display
from lab.batch.request import placed
from lab.worksheets.evaluation import RunFiles, evaluate_number
from lab.worksheets.language import parse_number
from lab.worksheets.marking import Mark, mark
from lab.worksheets.planning import Seat, request
from lab.worksheets.schema import Answer, Attempt, Question, Worksheet

SOLUTION = "solution"


@dataclass(frozen=True)
class Tried:
    """The marks of one example attempt. `fails` has the ids of the steps that the attempt must
    fail."""

    name: str
    marks: tuple[Mark, ...]
    fails: frozenset[str]

    @property
    def surprises(self) -> tuple[Mark, ...]:
        """The marks that differ from what is expected. Texts that a person grades are left out."""
        return tuple(
            each
            for each in self.marks
            if each.passed is not None and each.passed == (each.step in self.fails)
        )


@dataclass(frozen=True)
class Making:
    """How to make the runs of a trial: for which imagined student, in which folder, in which
    engine.

    If `engine` is None, the engine in the worksheet is used. If `vm`, emulations run in the virtual
    machine.
    """

    seat: Seat
    folder: Path
    engine: str | None = None
    vm: bool = False


def attempts(worksheet: Worksheet) -> dict[str, Attempt]:
    """Return the example attempts of a worksheet by name. An answer or setting that an attempt does
    not give is taken from the solution."""
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
    """Make the runs of all example attempts, once for each entry of `makings`, and mark them.

    Return one list of marked attempts for each entry. Return None if the user interrupted or a run
    failed. Equal runs of one imagined student are made only once. Runs that exist already are not
    made again.
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
    """Return the answers of an example attempt. An answer that is an expression is replaced by its
    value in the runs of this attempt.

    A value that was not measured becomes NaN, which is never right.
    """
    numbers = {each.id for each in worksheet.tasks if isinstance(each, Question) and each.number}
    found = dict(attempt.answers)
    for name, answer in attempt.answers.items():
        if name in numbers and isinstance(answer, str):
            value, _ = evaluate_number(parse_number(answer), runs)
            found[name] = math.nan if value is None else value
    return found


def _jobs(worksheet: Worksheet, attempt: Attempt, making: Making) -> dict[str, Job]:
    """Return one run to make for each step of a worksheet that needs a run, by the id of the step.

    The name of the run folder has a hash of the settings, so that equal runs share a folder.
    """
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
