"""Make the page docs/reproduction/PAPER_mininet.md: the verdict on each claim in both engines.

The simulator's verdicts are from runs with the same settings as those of the emulation. The page
has three tables: the claims that were checked, the claims that were not, and how many runs are
valid. A command that checks some claims replaces only the rows of these claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.evaluation.reproduction.base import Paper
from lab.evaluation.reproduction.emulated_claims import CLAIMS, Restricted, not_chosen
from lab.evaluation.reproduction.relations import Found, Numbers
from lab.evaluation.table_rows import Row, merged, rows_below
from lab.results.tables import markdown_table

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
emulation; the column "relations" says how many these are. With few runs a verdict is
weak, above all if the claim is about a share of the runs."""


@dataclass(frozen=True)
class Side:
    """Hold the numbers of the valid runs of a case (an experiment) in one engine.

    `text` says how many runs are valid, and why the others are not.
    """

    numbers: tuple[Numbers, ...] = ()
    text: str = "-"


@dataclass(frozen=True)
class CheckedCase:
    """Hold the numbers of a case (an experiment) in both engines.

    If the emulation refuses the case, `refusal` says why; otherwise it is empty. `length_s` is the
    duration of a run in s, `scale` the rate scale, and `made_on` names the machines.
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
    """Return the Markdown text of the page with the rows of these claims and cases.

    `before` is the old text of the page: its rows of other claims and cases are kept.
    """
    claim_names = [each.name for each in CLAIMS[paper.name]]
    case_names = [case.name for case in paper.cases]
    rows = merged(
        rows_below(before, CHECKED), [_row(each, cases) for each in claims], _first, claim_names
    )
    made = merged(rows_below(before, RUNS), [_made(each) for each in cases], _first, case_names)
    reasons = [(each.name, each.text, reason) for each, reason in not_chosen(paper.name)]
    parts = [
        INTRODUCTION.format(title=paper.title, name=paper.name),
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
    """Return the row of a claim: its verdicts in both engines, and the figures behind them."""
    needed = [case for case in cases if case.name in restricted.cases]
    emulated = {case.name: case.emulated.numbers for case in needed}
    simulated = {case.name: case.simulated.numbers for case in needed}
    claim, part = restricted.claim, restricted.part
    share = f"{len(part.relations)} of {len(claim.relations)}"
    relations = f"{share}; refused: {restricted.refused}" if restricted.refused else share
    strength = f"{claim.strength}, judged" if claim.judged else claim.strength
    verdicts = [_verdict(restricted, found) for found in (emulated, simulated)]
    figures = [
        part.evidence(found) if judged else "-"
        for found, (judged, _) in zip((emulated, simulated), verdicts, strict=True)
    ]
    return (
        *(claim.name, strength, claim.text, relations),
        *(verdict for _, verdict in verdicts),
        *figures,
    )


def _verdict(restricted: Restricted, found: Found) -> tuple[bool, str]:
    """Return whether a claim can be judged from the runs of one engine, and the verdict.

    `found` holds the numbers of all runs by case. If the claim cannot be judged, the text says why
    instead.
    """
    if not restricted.part.relations:
        return False, "refused" if restricted.refused else "not judged: no case fits"
    missing = sorted(case for case in restricted.cases if not found.get(case))
    if missing:
        return False, f"not judged: no valid run of {len(missing)} cases, such as {missing[0]}"
    return True, restricted.part.verdict(found)


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
