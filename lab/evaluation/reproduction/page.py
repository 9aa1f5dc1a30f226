"""Write the page of a paper that was reproduced in the simulator, as Markdown.

The page judges each claim twice: with the Multipath TCP of the papers' kernel and with today's
(`lab.scenario.engine_table`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import lab
from lab.evaluation.bar_chart import svg
from lab.evaluation.reproduction.base import Claim, Paper, joined
from lab.evaluation.reproduction.causes import cause
from lab.evaluation.reproduction.not_judged import NOT_JUDGED
from lab.evaluation.reproduction.openings import OPENINGS, charts, paragraph, reasons
from lab.evaluation.reproduction.relations import Found
from lab.evaluation.reproduction.sweep_table import SWEEPS
from lab.results.tables import markdown_table

STACK_TITLES = {"paper": "the papers' kernel", "linux": "today's Linux"}
ORIGIN = """## How this page was made

Made by `./run_lab.sh reproduce {name}{options}` with version {version} of the lab ({commits}), in
the simulator, seeds 1 to {seeds}, stacks {stacks}, {runs} runs, which took {minutes:.0f} minutes on
{processors} processors. Nothing was tuned to a number of the paper.

A stack is an implementation of Multipath TCP: `paper` schedules, retransmits and penalises as the
multipath-tcp.org kernel of the papers does, `linux` as upstream Linux 6.12 does
(`lab/scenario/engine_table.py`).

A claim is a list of relations between means over the seeds. `>` holds if the 95 % interval of the
ratio is above 1; `>=` and `<=` hold unless that interval says the opposite; `~` holds if the means
are within 5 %. Medians and single runs are compared as plain numbers. A claim agrees if all its
relations hold and disagrees if one fails; otherwise it is not significant.

The runs of a seed have the same network and users, so intervals compare seed by seed.

Strength: S, the paper states the claim plainly and confirms it; M, once; W, weakly. The judged
claims, called the main claims above, decide whether the reproduction succeeds. A claim that does
not agree with both stacks has a cause: the deciding experiments are in the last column{elsewhere}.
"""
MADE_WITH = re.compile(r"seeds 1 to (\d+),(?:\s+stacks ([a-z, ]+),)?", re.ASCII)
QUICK = " --quick"  # in the options of a page with the quick cases only


@dataclass(frozen=True)
class Origin:
    """Hold how the runs of a page were made: `commits` of the lab, the wall time in minutes, and
    `options`, the command line options that differ from the defaults, with a leading space."""

    seeds: int
    runs: int
    commits: str
    minutes: float
    processors: int
    options: str


def page(paper: Paper, found: Mapping[str, Found], origin: Origin) -> str:
    """Return the text of the page. `found` holds, for each stack, the numbers of all runs."""
    origin_text = ORIGIN.format(
        name=paper.name,
        version=lab.__version__,
        stacks=", ".join(found),
        elsewhere=f" and in [{paper.name}_sensitivity.md]({paper.name}_sensitivity.md)"
        if paper.name in SWEEPS
        else "",
        **vars(origin),
    )
    claims: tuple[str, ...] = ()
    if paper.claims:
        claims = ("## Claims", paper.note, _claims_table(paper, found), *not_judged(paper.name))
    tables = [
        f"## Measured with the stack of {STACK_TITLES[stack]}\n\n{_lowered(paper.tables(each))}"
        for stack, each in found.items()
    ]
    opening = _opening(paper, found)
    return f"# {paper.title}\n\n{joined(*opening, origin_text.rstrip(), *claims, *tables)}\n"


def _opening(paper: Paper, found: Mapping[str, Found]) -> Iterator[str]:
    if paper.name in OPENINGS:
        yield paragraph(paper, found, STACK_TITLES)
        title = " and ".join(STACK_TITLES[stack] for stack in found)
        yield f"![{paper.title}: the main result with {title}]({paper.name}.svg)"
        yield reasons(paper, found, STACK_TITLES)


def figure(paper: Paper, found: Mapping[str, Found]) -> str:
    """Return the chart of the paper's main result as SVG, or an empty text if it has none."""
    return svg(charts(paper.name, found, STACK_TITLES)) if paper.name in OPENINGS else ""


def is_of_more(text: str, seeds: int, stacks: Mapping[str, object], quick: bool = False) -> bool:
    """Return whether the page with this text was made from more seeds, from further stacks, or with
    the same stacks from more cases. `quick` says that the new page has the quick cases only."""
    made = MADE_WITH.search(text)
    if made is None:
        return False
    before = set((made[2] or "").split(", ")) - {""}
    whole = quick and QUICK not in text and before == set(stacks)
    return int(made[1]) > seeds or not before <= set(stacks) or whole


def not_judged(name: str) -> tuple[str, ...]:
    """Return the parts of the page about results of the paper `name` that no claim judges."""
    if name not in NOT_JUDGED:
        return ()
    items = "\n".join(f"- {what}. {why}." for what, why in NOT_JUDGED[name])
    return "### Not judged", items


def _claims_table(paper: Paper, found: Mapping[str, Found]) -> str:
    rows = []
    for claim in paper.claims:
        verdicts = [claim.verdict(each) for each in found.values()]
        strength = f"{claim.strength}, judged" if claim.judged else claim.strength
        rows.append([claim.name, strength, claim.text, *verdicts, _evidence(claim, found)])
    titles = (f"with {STACK_TITLES[stack]}" for stack in found)
    head = ("claim", "strength", "the paper says", *titles, "relations that hold, and figures")
    return markdown_table(head, rows)


def _evidence(claim: Claim, found: Mapping[str, Found]) -> str:
    parts = [f"`{stack}`: {claim.evidence(each)}" for stack, each in found.items()]
    if because := cause(claim, found, STACK_TITLES):
        parts.append(f"Cause: {because}")
        parts += [claim.why] if claim.why else []
    return ". ".join(parts)


def _lowered(text: str) -> str:
    """Return Markdown with every heading one level deeper."""
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)
