"""Check claims of a paper in the emulation and in the simulator, by runs with the same settings,
and write the results to docs/notebook/reproduction/PAPER_mininet.md.

The page has three tables: the claims that were checked, the claims that were not, and the number of
valid runs. If a command checks only some claims, the table rows of all other claims are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab.errors import RequestError, unknown
from lab.results.documents import FinishedRun
from lab.results.statistics import MIN_RUNS
from lab.results.tables import markdown_table
from papers.base import Case, Paper
from papers.emulated_claims import CLAIMS, Restricted, chosen, fitting_cases, not_chosen, restricted
from papers.list import PAPERS
from papers.page_file import Row, merged, read_page, rows_below, write_page
from papers.paired_runs import Account, Experiment, PairedRuns, hosts
from papers.relations import Found, Numbers

CHECKED, NOT_CHECKED, RUNS = "## Claims", "## Claims that were not checked", "## Runs"
CLAIM_HEAD = (
    *("claim", "strength", "the paper says", "relations", "mininet", "sim"),
    *("figures of mininet", "figures of sim"),
)
RUN_HEAD = ("case", "seconds", "rate scale", "valid runs: mininet", "sim", "made on")
INTRODUCTION = """\
# {title}: in the emulation

Written by `./run_lab.sh reproduce {name} --engine mininet`. `mininet` is the real stack: kernel
MPTCP, Open vSwitch, hostapd and hwsim; the controller runs in POX. `sim` is the simulator with the
same settings, seeds, rate scale and packet scheduler (that of the kernel), so its verdicts can
differ from those in [{name}.md]({name}.md), which has full rates, the scheduler of the papers'
kernels, and the meaning of the verdicts. Runs that failed or overloaded the machine are left out;
the last table counts them. A claim is restricted to the relations whose cases fit into the
emulation; the column "relations" says how many these are, and which cases are not run. A claim of
which a relation was not run does not agree: it is open, or disagrees if a relation fails. With
fewer than {least} runs of a case all is open, but for a single run that refutes what is claimed of
every run."""


@dataclass(frozen=True)
class Side:
    """The numbers of the valid runs of a case (an experiment) in one engine.

    `text` says how many runs are valid, and why other runs are not.
    """

    numbers: tuple[Numbers, ...] = ()
    text: str = "-"


@dataclass(frozen=True)
class CheckedCase:
    """The numbers of a case (an experiment) in both engines.

    `refusal` says why the emulation refuses the case. It is empty if the emulation runs the case.
    `length_s` is the duration of a run, `scale` is the rate scale, and `made_on` names the
    machines.
    """

    name: str
    refusal: str = ""
    emulated: Side = Side()
    simulated: Side = Side()
    length_s: float = 0.0
    scale: float = 1.0
    made_on: str = "-"


def page(
    paper: Paper, claims: Sequence[Restricted], cases: Sequence[CheckedCase], before: str
) -> str:
    """Return the whole page as Markdown, with table rows for these claims and cases (experiments).
    Rows of other claims and cases are kept from the old page, `before`."""
    claim_names = [each.name for each in CLAIMS[paper.name]]
    case_names = [case.name for case in paper.cases]
    rows = merged(
        rows_below(before, CHECKED), [_row(each, cases) for each in claims], _first, claim_names
    )
    made = merged(rows_below(before, RUNS), [_made(each) for each in cases], _first, case_names)
    reasons = [(each.name, each.text, reason) for each, reason in not_chosen(paper.name)]
    parts = [
        INTRODUCTION.format(title=paper.title, name=paper.name, least=MIN_RUNS),
        CHECKED,
        markdown_table(CLAIM_HEAD, rows),
        NOT_CHECKED,
        markdown_table(("claim", "the paper says", "reason"), reasons),
        RUNS,
        markdown_table(RUN_HEAD, made),
    ]
    return "\n\n".join(parts) + "\n"


def _first(row: Row) -> Row:
    return row[:1]


def _row(restricted: Restricted, cases: Iterable[CheckedCase]) -> Row:
    """Return the table row of a claim, with the verdict and the measured values of both engines."""
    needed = [case for case in cases if case.name in restricted.cases]
    emulated = {case.name: case.emulated.numbers for case in needed}
    simulated = {case.name: case.simulated.numbers for case in needed}
    claim = restricted.claim
    share = f"{len(restricted.part.relations)} of {len(claim.relations)}"
    if restricted.not_run:
        share += f"; not run: {', '.join(restricted.not_run)}"
    relations = f"{share}; refused: {restricted.refused}" if restricted.refused else share
    strength = f"{claim.strength}, judged" if claim.judged else claim.strength
    emulation, simulator = (_verdict(restricted, found) for found in (emulated, simulated))
    verdicts, figures = zip(emulation, simulator, strict=True)
    return (claim.name, strength, claim.text, relations, *verdicts, *figures)


def _verdict(restricted: Restricted, found: Found) -> tuple[str, str]:
    """Judge a claim by the runs of one engine. Return the verdict, and how many relations hold. If
    nothing can be judged, return the reason and "-"."""
    if not restricted.part.relations:
        return "refused" if restricted.refused else "not judged: no case fits", "-"
    missing = sorted(case for case in restricted.cases if not found.get(case))
    part = restricted.part.part(lambda each: each.cases().isdisjoint(missing))
    without = f"no valid run of {len(missing)} cases, such as {missing[0]}" if missing else ""
    if not part.relations:
        return f"not judged: {without}", "-"
    evidence = part.evidence(found)
    return part.verdict(found), f"{evidence}; {without}" if without else evidence


def _made(case: CheckedCase) -> Row:
    if case.refusal:
        return (case.name, "-", "-", f"refused: {case.refusal}", "-", "-")
    return (
        case.name,
        f"{case.length_s:g}",
        f"{case.scale:g}",
        case.emulated.text,
        case.simulated.text,
        case.made_on,
    )


def reproduce_in_emulation(
    name: str, claims: Sequence[str], runs: PairedRuns, pages: Path
) -> Path | None:
    """Make the missing runs for claims of a paper in both engines, and write the results to a
    Markdown page. Return the path of the page. Return None if the user interrupted: the page is
    then unchanged, and finished runs are kept.

    `name` is the paper, and `claims` names the claims. If `claims` is empty, all claims that fit
    into the emulation are checked. Experiments that the emulation refuses are left out. Raise
    `RequestError` for an unknown paper or claim.
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
    """Measure each valid run of a case (an experiment). A run counts as left out if the paper's
    numbers cannot be computed from it, for example because it ended too early."""
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
