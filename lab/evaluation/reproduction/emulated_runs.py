"""Check claims of a paper in the emulation and in the simulator with the same settings.

The result is the page docs/reproduction/PAPER_mininet.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab.errors import RequestError, unknown
from lab.evaluation.crosscheck_runs import hosts
from lab.evaluation.page_file import read_page, write_page
from lab.evaluation.paired_runs import Account, Experiment, PairedRuns
from lab.evaluation.reproduction import PAPERS
from lab.evaluation.reproduction.base import Case, Paper
from lab.evaluation.reproduction.emulated_claims import chosen, fitting_cases, restricted
from lab.evaluation.reproduction.emulated_page import CheckedCase, Side, page
from lab.evaluation.reproduction.relations import Numbers
from lab.results.documents import FinishedRun


def reproduce_in_emulation(
    name: str, claims: Sequence[str], runs: PairedRuns, pages: Path
) -> Path | None:
    """Make the missing runs of a paper's claims in both engines, and write the paper's page.

    `name` is the paper. `claims` names the claims; if it is empty, all claims that fit into the
    emulation are checked. Cases that the emulation refuses are left out. Return the path of the
    page, or None if the user interrupted: the page is then unchanged, and runs that have ended are
    kept. Raise `RequestError` for an unknown paper or claim.
    """
    if name not in PAPERS:
        raise RequestError(f"reproduce: paper {unknown(name, sorted(PAPERS))}")
    paper, checked = PAPERS[name], chosen(name, claims)
    runs = replace(runs, runs=runs.runs / name)
    cases = fitting_cases(paper, checked)
    refusals = {}
    for case in cases:
        if refusal := runs.refusal(_experiment(case)):
            refusals[case.name] = refusal
            runs.display.say(f"{case.name}: refused: {refusal}")
    able = [case for case in cases if case.name not in refusals]
    if not runs.make([_experiment(case) for case in able]):
        return None
    made = [_checked(paper, case, runs) for case in able]
    made += [CheckedCase(case.name, refusals[case.name]) for case in cases if case not in able]
    path = pages / f"{name}_mininet.md"
    scales = {case.name: runs.scale(_experiment(case)) for case in able}
    parts = [restricted(name, claim, refusals, scales) for claim in checked]
    write_page(path, page(paper, parts, made, read_page(path)))
    return path


def _experiment(case: Case) -> Experiment:
    return Experiment(
        case.name, case.scenario, case.strategy, case.settings, case.cc, case.duration_s
    )


def _checked(paper: Paper, case: Case, runs: PairedRuns) -> CheckedCase:
    experiment = _experiment(case)
    accounts = [runs.account(experiment, engine) for engine in runs.engines]
    emulated, simulated = (_side(paper, case, account) for account in accounts)
    folders = [
        (engine, run.folder)
        for engine, account in zip(runs.engines, accounts, strict=True)
        for run in account.valid
    ]
    return CheckedCase(
        case.name,
        "",
        emulated,
        simulated,
        runs.length_s(experiment),
        runs.scale(experiment),
        "; ".join(hosts(folders)).replace("|", "/") or "-",
    )


def _side(paper: Paper, case: Case, account: Account) -> Side:
    """Return the paper's numbers for each usable run of a case, and a text about all its runs.

    The text says how many of the planned runs are usable, and why the others are not. A run is
    usable if `account` lists it as valid and the paper's numbers can be computed from it. They
    cannot be computed, for example, from a run that ended too early.
    """
    numbers: list[Numbers] = []
    valid, left_out = [], list(account.left_out)
    for run in account.valid:
        try:
            numbers.append(paper.measure(case, FinishedRun(run.result, run.folder)))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            left_out.append(f"not measured: {type(error).__name__}: {error}")
        else:
            valid.append(run)
    return Side(tuple(numbers), Account(tuple(valid), tuple(left_out), account.planned).text)
