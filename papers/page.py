"""Write the Markdown page of a paper that was reproduced in the simulator.

The page judges each claim with two stacks: the Multipath TCP of the papers' kernel, and today's
(`lab.scenario.engine_table`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import lab
from lab.results.statistics import MIN_RUNS
from lab.results.tables import markdown_table
from papers import dtmc, rat_study_runs, s_mptcp
from papers.bar_chart import Bars, svg
from papers.base import Claim, Paper, average, joined
from papers.mp_sdn_runs import NONE, REGULATED, SHARES, share_name
from papers.mptcp_la_benefit import Benefit, pairs_of
from papers.mptcp_la_runs import AWARE, LOSSES, PLAIN
from papers.relations import Found
from papers.s_mptcp import BY_PACING, DELAY_BASED, LOSS_BASED, NETWORK, pooling
from papers.sweep_table import SWEEPS

# Causes of disagreement
#
# Each claim that does not agree needs an experiment that can tell the causes apart: a run, a
# computation or a series of runs. Series over a setting that the paper does not state are on a
# separate page (`papers.sweeps`).


CAUSES = {
    "setting": "a setting that the paper does not state",
    "kernel": "the kernel of the paper, v0.90, whose code is not run here",
    "paper": "the paper",
    "here": "cannot be measured here",
}
UNDECIDED = "not looked for"
TOO_FEW = "too few runs to decide it"


def cause(claim: Claim, found: Mapping[str, Found], titles: Mapping[str, str]) -> str:
    """Return in words why a claim does not agree with every stack (version of Multipath TCP).
    Return "" if it agrees with every stack.

    `titles` names each stack in words. If the claim has no `cause`, and disagrees with some of the
    stacks only, the text says that the stack makes the difference.
    """
    said = {titles[stack]: claim.verdict(each) for stack, each in found.items()}
    if {*said.values()} == {"agrees"}:
        return ""
    if claim.cause:
        return CAUSES[claim.cause]
    if "disagrees" not in said.values():
        return TOO_FEW
    for verdict, words in (("agrees", "holds"), ("open", "is open")):
        if stacks := [title for title, each in said.items() if each == verdict]:
            return f"the stack: it {words} with {' and '.join(stacks)}"
    return UNDECIDED


# Results of the papers that no claim judges, and why. Every other result that a paper states in
# words or in a table is a claim.


NOT_JUDGED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "mp_sdn": (
        (
            "Figure 3: under plain Multipath TCP, UE1 keeps 0.68 of its rate",
            "The paper contradicts itself. Its equation (2) gives 0.48: two near stations (42 Mb/s "
            "each alone) share 21 Mb/s each, and 10 each with a third station of 19.1 Mb/s, the "
            "rate that explains the total of 30 Mb/s. Claim 4 judges UE1 with MP-SDN",
        ),
        (
            "Figure 6: WiFi loses much and LTE little with each weak station",
            "It plots equations (2) and (3) for rates that the paper does not state. The table of "
            "the equations below shows the same for the networks of claim 1",
        ),
        (
            "Figure 14a: T1-BW-Un is also large, above 1 Mb/s, with an interval of 1 s",
            "A setting that the paper does not state: how the occupancy of the queue is sampled. "
            "The paper explains the figure by samples that miss a full queue. Here the occupancy "
            "is a mean over the interval, and T1-BW-Un is smallest at 1 s (table below). Claim 7 "
            "judges the other intervals",
        ),
        (
            "Figure 17: the rate of one access point over time, with intervals of 5 and 30 s",
            "A curve of one run. Claim 8 judges the same effect by the rate of the network, and "
            "its cause applies here",
        ),
    ),
    "s_mptcp": (
        (
            "Table 6: alpha and beta of the window-based flow control",
            "S-MPTCP limits subflows by their pacing rate here, which has neither. The form by "
            "window is fixed at the recommended values 5 and 1 (row `S-MPTCP by window` below)",
        ),
        (
            "Table 4: how long the maximum flow of a fat tree takes",
            "Cannot be measured here: these are times of another machine and programming language",
        ),
        (
            "Table 10: between connections, hashing carries more (30.9 Mb/s) than disjoint paths "
            "(27.3)",
            "The paper's ten runs do not show it. Either loses 10 Mb/s in a collision and expects "
            "one collision in each run, so both carry 28.3 Mb/s on average, and a mean of ten runs "
            "scatters by 2.1. Here both carry the same (table below)",
        ),
        (
            "Section 6: S-MPTCP works if less than 1 % is lost",
            "The paper states no figure with which a run could be compared",
        ),
    ),
    "mptcp_la": (
        (
            "Section 4.3.1: leaving a slow WiFi path saves power",
            "Cannot be measured here: nothing models the power of a radio",
        ),
    ),
    "dtmc": (
        (
            "Figure 4: the forecast receive buffer is that of the emulation",
            "The paper contradicts itself. By its equation (17) paths of the same round trip need "
            "no buffer, and its three paths have the same links",
        ),
        (
            "Figures 9 and 10: windows settle faster with the chosen paths",
            "The paper does not say when a window has settled; it shows one run",
        ),
    ),
    "rat_study": (
        (
            "Figure 7c: LTE carries a little more with one of the receive buffers (Setup II, "
            "802.11a)",
            "The study does not say with which. Claim B3 judges the rest of the figure",
        ),
        (
            "Why the orders are as they are: round trips, collisions, windows",
            "The study explains its results by them and states no figures. The claims judge the "
            "results",
        ),
    ),
}


# Beginnings of the pages


PARALLEL = (1, 5, 10)  # connections per node


@dataclass(frozen=True)
class Opening:
    """The beginning of a paper's page: one or two sentences that a student understands, and a chart
    of the main result."""

    claimed: str
    bars: Callable[[Found], Bars]


def _mp_sdn(found: Found) -> Bars:
    def totals(strategy: str) -> tuple[float, ...]:
        names = (share_name(each, strategy if each else NONE, "reno") for each in SHARES)
        return tuple(average(found, name, "T") for name in names)

    shares = tuple(f"{each} %" for each in SHARES)
    series = {"plain Multipath TCP": totals(NONE), "MP-SDN": totals(REGULATED)}
    return Bars("All users together, by the share of multipath users", "Mb/s", shares, series)


def _s_mptcp(found: Found) -> Bars:
    cases = {
        **{cc: pooling(cc) for cc in (*LOSS_BASED, DELAY_BASED)},
        "S-MPTCP": BY_PACING,
    }
    here = tuple(average(found, case, "sd") for case in cases.values())
    paper = [s_mptcp.PAPER.get(each, s_mptcp.PAPER[NETWORK])[1] for each in cases]
    scaled = tuple(each * s_mptcp.PAPER_SCALE for each in paper)
    title = "Standard deviation of three connections that share links"
    return Bars(title, "Mb/s", tuple(cases), {"here": here, "in the paper": scaled})


def _mptcp_la(found: Found) -> Bars:
    def medians(strategy: str) -> tuple[float, ...]:
        pairs = pairs_of(found)
        return tuple(Benefit("wifi", each, strategy, pairs).median(found) for each in LOSSES)

    losses = tuple(f"{100 * each:g} %" for each in LOSSES)
    series = {"plain": medians(PLAIN), "MPTCP-LA": medians(AWARE)}
    return Bars("Benefit of the second path (median), by the loss of WiFi", "1", losses, series)


def _dtmc(found: Found) -> Bars:
    counts = dtmc.SEVERAL
    series = {
        title: tuple(average(found, dtmc.first(n, strategy), "T") for n in counts)
        for title, strategy in (("all paths", dtmc.PLAIN), ("chosen paths", dtmc.CHOSEN))
    }
    return Bars(
        "Goodput with the first n of fifteen paths", "Mb/s", tuple(map(str, counts)), series
    )


def _rat_study(found: Found) -> Bars:
    def name(parallel: int, cc: str) -> str:
        return rat_study_runs.Cell(1, "11n5", parallel, cc=cc).name

    controls = (rat_study_runs.CUBIC, rat_study_runs.LIA, rat_study_runs.OLIA)
    counts = [each for each in PARALLEL if name(each, controls[0]) in found]
    series = {cc: tuple(average(found, name(n, cc), "T") for n in counts) for cc in controls}
    titles = tuple(f"{each} connections" for each in counts)
    return Bars("Throughput of a node in Setup I", "Mb/s", titles, series)


OPENINGS: Mapping[str, Opening] = {
    "mp_sdn": Opening(
        "Phones that use WiFi and LTE at the same time slow down those that use one, and the "
        "network as a whole. A controller that limits second paths while an access point is busy "
        "gives back what was lost.",
        _mp_sdn,
    ),
    "s_mptcp": Opening(
        "Connections with several paths should get equal rates, but congestion control alone does "
        "not see the whole network. A controller that chooses paths and rates makes them equal, "
        "at once and without losing capacity.",
        _s_mptcp,
    ),
    "mptcp_la": Opening(
        "A second path that loses packets can make a connection slower than one path alone. "
        "Leaving such a path while it loses packets avoids this.",
        _mptcp_la,
    ),
    "dtmc": Opening(
        "With a small receive buffer, more paths are not always better. A Markov chain forecasts "
        "what each set of paths carries, and the best set is used.",
        _dtmc,
    ),
    "rat_study": Opening(
        "Which congestion control is best over LTE and WiFi depends on the network: coupled ones "
        "leave a crowded WiFi alone, Cubic on each path takes more.",
        _rat_study,
    ),
}


def paragraph(paper: Paper, found: Mapping[str, Found], titles: Mapping[str, str]) -> str:
    """Return the first paragraph of a paper's page: what the paper claims, how many of its main
    claims hold with each stack (version of Multipath TCP), and why the others do not.

    `titles` names each stack in words.
    """
    judged = _judged(paper)
    held = []
    for stack, numbers in found.items():
        said = Counter(each.verdict(numbers) for each in judged)
        is_open = f" ({said['open']} more may)" if said["open"] else ""
        held.append(f"{said['agrees']} hold with the Multipath TCP of {titles[stack]}{is_open}")
    parts = [
        OPENINGS[paper.name].claimed,
        f"Of the paper's {len(judged)} main claims {' and '.join(held)}.",
    ]
    causes = Counter(cause(each, found, titles).split(":")[0] for each in judged)
    del causes[""]  # they hold with every stack
    if causes:
        listed = ", ".join(f"{because} ({count})" for because, count in causes.most_common())
        parts.append(f"Where a claim does not hold with a stack, the cause is: {listed}.")
    return " ".join(parts)


def reasons(paper: Paper, found: Mapping[str, Found], titles: Mapping[str, str]) -> str:
    """Return a Markdown list of the judged claims. Claims that hold with every stack (version of
    Multipath TCP) come first, then the others with cause and reason. Claims with the same cause and
    reason share a list item. `titles` names each stack in words."""
    texts: dict[tuple[str, str], list[str]] = {("", ""): []}
    for each in _judged(paper):
        because = cause(each, found, titles)
        key = (because, each.why.rstrip(".") if because else "")
        texts.setdefault(key, []).append(f"{each.text} ({each.name})")
    held = texts.pop(("", ""))
    items = [f"- These hold with every stack: {'; '.join(held)}."] if held else []
    for (because, why), them in texts.items():
        reason = f" {why}." if why else ""
        subject = "does" if len(them) == 1 else "do"
        items.append(
            f"- {'; '.join(them)}: {subject} not hold with every stack. Cause: {because}.{reason}"
        )
    return "\n".join(items)


def _judged(paper: Paper) -> list[Claim]:
    return [each for each in paper.claims if each.judged]


def charts(name: str, found: Mapping[str, Found], titles: Mapping[str, str]) -> list[Bars]:
    """Return the chart of a paper's main result, once for each stack (version of Multipath TCP).
    `name` is the paper, and `titles` names each stack in words."""
    made = {stack: OPENINGS[name].bars(numbers) for stack, numbers in found.items()}
    return [replace(each, title=f"{each.title}: {titles[stack]}") for stack, each in made.items()]


STACK_TITLES = {"paper": "the papers' kernel", "linux": "today's Linux"}
ORIGIN = """## How this page was made

Made by `./run_lab.sh reproduce {name}{options}` with version {version} of the lab ({commits}), in
the simulator, seeds 1 to {seeds}, stacks {stacks}, {runs} runs, which took {minutes:.0f} minutes on
{processors} processors. Nothing was tuned to a number of the paper.

A stack is an implementation of Multipath TCP: `paper` schedules, retransmits and penalises as the
multipath-tcp.org kernel of the papers does, `linux` as upstream Linux 6.12 does
(`lab/scenario/engine_table.py`).

A claim is a list of relations between means over the seeds (docs/definitions.md, Verdicts). A
relation holds if the whole 95 % interval says so, and fails if the whole interval says the
opposite; `~` means within 5 %. Otherwise it is open: "add 12" says that about twelve more runs of
each case would probably decide it. With fewer than {least} runs all is open. A claim agrees if all
its relations hold and disagrees if one fails; otherwise, or if some were not run, it is open.

The runs of a seed have the same network and users, so intervals compare seed by seed.

Strength: S, the paper states the claim plainly and confirms it; M, once; W, weakly. The judged
claims, called the main claims above, decide whether the reproduction succeeds. A claim that does
not agree with both stacks has a cause: the deciding experiments are in the last column{elsewhere}.
"""
MADE_WITH = re.compile(r"seeds 1 to (\d+),(?:\s+stacks ([a-z, ]+),)?", re.ASCII)
QUICK = " --quick"  # in the options of a page with the quick cases only


@dataclass(frozen=True)
class Origin:
    """How the runs of a page were made.

    `commits` are git commits of the lab. `minutes` is the time that the runs took. `options` has
    those command line options that differ from the defaults, each with a leading space.
    """

    seeds: int
    runs: int
    commits: str
    minutes: float
    processors: int
    options: str


def page(paper: Paper, found: Mapping[str, Found], origin: Origin) -> str:
    """Return the whole page of a paper as Markdown. `found` has the numbers of all runs, by stack
    (version of Multipath TCP)."""
    origin_text = ORIGIN.format(
        name=paper.name,
        version=lab.__version__,
        least=MIN_RUNS,
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
    """Return the chart of the paper's main result as SVG. Return "" if the paper has no chart."""
    return svg(charts(paper.name, found, STACK_TITLES)) if paper.name in OPENINGS else ""


def is_of_more(text: str, seeds: int, stacks: Mapping[str, object], quick: bool = False) -> bool:
    """Return True if an existing page is based on more runs than a new one. It may have more seeds,
    other stacks (versions of Multipath TCP), or more experiments with the same stacks.

    `text` is the existing page. `seeds`, `stacks` and `quick` describe the new page; `quick` means
    that some experiments are left out.
    """
    made = MADE_WITH.search(text)
    if made is None:
        return False
    before = set((made[2] or "").split(", ")) - {""}
    whole = quick and QUICK not in text and before == set(stacks)
    return int(made[1]) > seeds or not before <= set(stacks) or whole


def not_judged(name: str) -> tuple[str, ...]:
    """Return a heading and a Markdown list of those results of the paper that no claim covers.
    Return an empty tuple if there are none."""
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
    """Make every Markdown heading one level deeper."""
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)
