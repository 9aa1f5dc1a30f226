"""Define how the page of each paper begins: what the paper claims in plain words, and a chart of
its main result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lab.evaluation.bar_chart import Bars
from lab.evaluation.reproduction import dtmc, rat_study_runs, s_mptcp
from lab.evaluation.reproduction.base import Claim, Paper, average
from lab.evaluation.reproduction.causes import cause
from lab.evaluation.reproduction.mp_sdn_runs import NONE, REGULATED, SHARES, share_name
from lab.evaluation.reproduction.mptcp_la_benefit import Benefit, pairs_of
from lab.evaluation.reproduction.mptcp_la_runs import AWARE, LOSSES, PLAIN
from lab.evaluation.reproduction.relations import Found
from lab.evaluation.reproduction.s_mptcp_runs import (
    BY_PACING,
    DELAY_BASED,
    LOSS_BASED,
    NETWORK,
    pooling,
)

PARALLEL = (1, 5, 10)  # connections per node


@dataclass(frozen=True)
class Opening:
    """Hold one sentence or two that a student understands, and the chart of the main result."""

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
    """Return what was claimed, how many of the judged claims hold with each stack, and what decides
    the others.

    `titles` names each stack in words.
    """
    judged = _judged(paper)
    held = [
        f"{sum(each.verdict(numbers) == 'agrees' for each in judged)} hold with the Multipath TCP "
        f"of {titles[stack]}"
        for stack, numbers in found.items()
    ]
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
    """Return a Markdown list of the judged claims: those that hold with every stack, then the
    others with cause and reason. Claims with the same cause and reason share an item."""
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
    """Return the chart of the paper `name` for each stack, with the stack in its title."""
    made = {stack: OPENINGS[name].bars(numbers) for stack, numbers in found.items()}
    return [replace(each, title=f"{each.title}: {titles[stack]}") for stack, each in made.items()]
