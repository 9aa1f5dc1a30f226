"""Write the page of a paper's sweeps. A sweep is a series of runs over a setting that the paper
does not state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import lab
from lab.results.tables import markdown_table
from papers.bar_chart import Bars, svg
from papers.base import Claim, Paper, joined
from papers.page import STACK_TITLES, Origin
from papers.relations import Found
from papers.sweeps import Sweep

INTRODUCTION = """# {title}: settings that the paper does not state

Some claims do not agree on [the page of the paper]({name}.md). Here one setting at a time, which
the paper does not state, takes several plausible values, and the claims are judged with each of
them. A claim that agrees with some values depends on the setting. The value with "(page)" is that
of the page. Charts show how many of a claim's relations hold.

Made by `./run_lab.sh reproduce {name} --sensitivity{options}` with version {version} of the lab
({commits}), in the simulator, seeds 1 to {seeds}, {stacks}, {runs} runs, which took {minutes:.0f}
minutes on {processors} processors. Of claims with many cases only some relations are run. Such a
claim is open even if these hold.
"""
ByPoint = Sequence[Found]  # the numbers of all runs, for each value of the setting


def sweep_page(
    paper: Paper,
    sweeps: Sequence[Sweep],
    found: Mapping[str, Mapping[str, ByPoint]],
    origin: Origin,
) -> str:
    """Return the whole page as Markdown. `found` has the measured numbers, by stack (version of
    Multipath TCP) and by the name of the sweep."""
    stacks = " and ".join(f"Multipath TCP of {STACK_TITLES[each]}" for each in found)
    introduction = INTRODUCTION.format(
        title=paper.title,
        name=paper.name,
        version=lab.__version__,
        stacks=stacks,
        **vars(origin),
    )
    parts = [
        part
        for sweep in sweeps
        for part in (
            f"## {sweep.title}",
            sweep.about,
            f"![{sweep.title}: relations that hold]({figure_name(paper, sweep)})",
            *(
                f"With the stack of {STACK_TITLES[stack]}:\n\n{_table(sweep, each[sweep.name])}"
                for stack, each in found.items()
            ),
        )
    ]
    return f"{introduction}\n{joined(*parts)}\n"


def figure_name(paper: Paper, sweep: Sweep) -> str:
    return f"{paper.name}_{sweep.name}.svg"


def figure(sweep: Sweep, found: Mapping[str, Mapping[str, ByPoint]]) -> str:
    """Return the chart of a sweep as SVG, once for each stack (version of Multipath TCP). It shows
    the share of each claim's relations that hold, for each value of the setting. If some of the
    claims decide whether the reproduction succeeds, only these are shown."""
    claims = [each for each in sweep.claims if each.judged] or sweep.claims
    return svg(
        [
            Bars(
                f"{sweep.title}: relations that hold with {STACK_TITLES[stack]}",
                "%",
                tuple(point.title for point in sweep.points),
                {
                    claim.name: tuple(_held(claim, each) for each in by_sweep[sweep.name])
                    for claim in claims
                },
            )
            for stack, by_sweep in found.items()
        ]
    )


def _held(claim: Claim, found: Found) -> float:
    said = [each.judgement(found).said for each in claim.relations]
    return 100 * said.count("holds") / len(said)


def _table(sweep: Sweep, by_point: ByPoint) -> str:
    rows = [
        [claim.name, *(f"{claim.verdict(each)}: {claim.evidence(each)}" for each in by_point)]
        for claim in sweep.claims
    ]
    return markdown_table(("claim", *(point.title for point in sweep.points)), rows)
