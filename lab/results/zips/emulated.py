"""Make the emulated runs of an archive again, and compare their means within intervals.

Emulations measure in real time, so no second run has the same bytes.

1) runs whose scenarios differ in nothing but the seed are a group; `useless` names runs that do
   not count
2) each run of a group of at least `MIN_RUNS` is made again, with its seed
3) a number of result.json differs if the 95 % intervals of its mean (`lab.results.statistics`),
   over the old and over the new runs, have no value in common, or if only the old or only the new
   runs measured it; a number that is measured in fewer than `MIN_RUNS` runs is not judged
4) what was read back from the connections of a run must be the same: `FACTS`

If nothing has changed, the two intervals of a number miss each other in 1.4 % of the cases with
five runs, and in fewer with more.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.batch.job import Job
from lab.batch.jobs import Display, run_each, time_left
from lab.engines import registry
from lab.errors import LabError, RequestError, show
from lab.results import compare
from lab.results.compare import FLIPS_KEY, Run
from lab.results.documents import WIRE_RATES_SCHEMA
from lab.results.statistics import MIN_RUNS, Estimate, estimate
from lab.run.engine import Options
from lab.run.outcome import EXIT_INTERRUPTED, is_whole
from lab.run.reading import ALL, RESULTS, read_document
from lab.scenario.schema import Scenario

FACTS = ("stack", "cc", "mptcp.verified")


@dataclass(frozen=True)
class Machine:
    """How emulations are made again: in the virtual machine with `vm`, and after the end of another
    emulation with `wait`."""

    display: Display
    vm: bool = False
    wait: bool = False


@dataclass(frozen=True)
class Repeated:
    """A run of the archive, its scenario, and the folder in which it is made again."""

    run: Run
    scenario: Scenario
    again: Path


def measured(run: Run) -> tuple[str, str]:
    """Return the settings of a run and the digest of its samples. If two runs agree in both, one is
    a copy of the other: emulations never measure exactly the same."""
    return json.dumps(run.settings, sort_keys=True), run.samples


def useless(run: Run, others: Collection[tuple[str, str]]) -> str:
    """Return why a run of the archive cannot be compared with new ones, or "". `others` has what
    `measured` returns for the runs before it."""
    if run.status != "complete":
        return f"it ended as {run.status}"
    if run.overloaded:
        return "it overloaded the machine that made it"
    if FLIPS_KEY in run.settings:
        return "it was changed by hand, and an emulation is not changed again"
    if run.schema <= WIRE_RATES_SCHEMA:
        return "its rates are those on the wire, as before version 0.2"
    if not run.samples:
        return "its result.json lacks the digest of its samples"
    if measured(run) in others:
        return "it is a copy of another run"
    return ""


def groups(runs: Iterable[Run]) -> list[list[Run]]:
    """Return the runs in groups that differ only in the seed."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(measured(run)[0], []).append(run)
    return list(found.values())


def make_again(runs: Sequence[Repeated], machine: Machine) -> list[Run]:
    """Make emulated runs again. Return the new ones that did not overload the machine.

    Raise `LabError` if there are too few runs, if this machine cannot emulate them, or if too few
    are left, and `KeyboardInterrupt` if the user interrupted.
    """
    if len(runs) < MIN_RUNS:
        raise RequestError(
            f"emulations are compared by intervals, which need {MIN_RUNS} runs that differ only in "
            f"the seed, and the archive has {len(runs)}: use --repeat {MIN_RUNS}"
        )
    jobs = [_job(each, machine) for each in runs]
    for job in jobs:
        registry.admit(job.engine, job.scenario, job.options)
    seconds = sum(job.scenario.duration_s for job in jobs)
    machine.display.say(f"{len(jobs)} emulated runs are made again: at least {time_left(seconds)}")
    ended = [outcome for _, outcome in run_each(jobs, machine.display)]
    if len(ended) < len(jobs) or any(each.exit_code == EXIT_INTERRUPTED for each in ended):
        raise KeyboardInterrupt
    new = [compare.read_run(each.folder) for each in ended if is_whole(each.result)]
    if len(new) < MIN_RUNS:
        errors = next((f": {each.error}" for each in ended if each.error), "")
        raise LabError(
            f"only {len(new)} of {len(jobs)} new runs were complete and did not overload this "
            f"machine, and {MIN_RUNS} are needed{errors}"
        )
    return new


def differences(old: Sequence[Run], new: Sequence[Run]) -> Iterator[str]:
    """Yield sentences about what differs between the old and the new runs of a group."""
    for fact in FACTS:
        one, other = (_facts(runs, fact) for runs in (old, new))
        if one != other:
            yield f"{fact}: {', '.join(sorted(one))}, now {', '.join(sorted(other))}"
    paths = dict.fromkeys(path for run in (*old, *new) for path in run.metrics)
    estimates = [
        (path, estimate(_values(old, path)), estimate(_values(new, path))) for path in paths
    ]
    measured = [each for each in estimates if each[1].n or each[2].n]
    differing = [each for each in measured if _differ(each[1], each[2], len(old), len(new))]
    if differing:
        yield f"{len(differing)} of {len(measured)} numbers differ"
    for path, before, now in differing:
        yield f"{path}: {_text(before)}, now {_text(now)}"


def _job(each: Repeated, machine: Machine) -> Job:
    keep = RESULTS if each.run.has_results_only else ALL
    options = Options(1.0, wait=machine.wait)
    return Job(each.scenario, each.run.engine, options, each.again, machine.vm, keep)


def _facts(runs: Iterable[Run], path: str) -> set[str]:
    return {show(_at(read_document(run.folder, "result.json"), path)) for run in runs}


def _at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _values(runs: Iterable[Run], path: str) -> list[float]:
    found = (run.metrics.get(path) for run in runs)
    return [value for value in found if value is not None]


def _differ(old: Estimate, new: Estimate, runs: int, new_runs: int) -> bool:
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return (old.n, new.n) in ((runs, 0), (0, new_runs))
    return old.low > new.high or new.low > old.high


def _text(of: Estimate) -> str:
    return f"{of.text} in {of.n} runs" if of.n else "not measured"
