"""The paper MPTCP-LA (loss-aware MPTCP). It measures the benefit of a second path that loses
packets, and the gain from no longer using this path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from statistics import quantiles

from lab.results.tables import markdown_table
from papers.base import Claim, Paper, average, joined
from papers.mptcp_la_benefit import (
    TITLES,
    Benefit,
    Bound,
    Falls,
    ThresholdsApart,
    pairs_of,
    percent,
)
from papers.mptcp_la_runs import (
    AWARE,
    DYNAMIC,
    GAMMA,
    LOSSES,
    PAIRS,
    PLAIN,
    QUICK_PAIRS,
    RTT_MS,
    Pair,
    cases,
    measure,
    pair_name,
)
from papers.relations import (
    Constant,
    Every,
    Found,
    Judged,
    Operator,
    Relation,
    Value,
    within,
)

# Why claims do not agree


RISES = (
    "While the receive buffer is full, a path that loses 10 % carries so few segments that it "
    "blocks the other path less often than one that loses 1 %, so the benefit rises again"
)
SMALL_BUFFER = (
    "With a receive buffer of 64 kB, the kernel's size without automatic buffers, the claim "
    "agrees; with a larger one, lost packets are retransmitted before it is full. With the paper's "
    "jitter, WiFi that loses 0.1 % adds nothing that five seeds can tell (sensitivity page)"
)
LONGER_FIRST = (
    "What a path can carry falls with its round trip times the root of its loss (Mathis), so LTE, "
    "with the longer round trip, adds nothing from a smaller loss on than WiFi, not from a larger"
)
STILL_FAST = (
    "By Mathis, a WiFi path of 10 ms that loses 0.1 % carries 44 Mb/s, so leaving it for a slower "
    "LTE path costs throughput. No receive buffer from 64 to 4000 kB changes that, nor do jitter "
    "and reordering (sensitivity page)"
)
FEW_PACKETS = (
    "The paper does not state over how many packets the loss is counted (here 1000). Today's Linux "
    "sends so few over a lossy LTE path that this takes up to half of a run of 20 s. With the "
    "papers' kernel, a WiFi path is also left that loses 0.01 or 0.1 % and alone carries more than "
    "LTE"
)
DYNAMIC_BUFFER = (
    "With a receive buffer of 64 or 250 kB the claim agrees, and so it does with a jitter of 5 and "
    "35 ms each way (44 Mb/s). With 1000 kB or more, and the same jitter of the round trip or "
    "none, both paths together carry more than one (sensitivity page)"
)
BACK = (
    "The window grows back within seconds after the last loss, with both stacks and each receive "
    "buffer, jitter and reordering tried (sensitivity page)"
)
CAUSES = {  # claim: where the disagreement comes from, and why
    "3": ("setting", RISES),
    "3a": ("setting", SMALL_BUFFER),
    "3a/b": ("paper", LONGER_FIRST),
    **dict.fromkeys(("4a", "4a, more", "4a, 10"), ("paper", STILL_FAST)),
    "4": ("setting", FEW_PACKETS),
    "5, 50": ("setting", DYNAMIC_BUFFER),
    "6, after": ("kernel", BACK),
}


def explained(claim: Claim) -> Claim:
    """Return the claim with the cause of its disagreement, if a cause is known."""
    cause, why = CAUSES.get(claim.name, ("", ""))
    return replace(claim, cause=cause, why=why)


def _pair(side: str, loss: float, pair: Pair, strategy: str) -> Value:
    title = f"T({TITLES[side]} {percent(loss)}, {pair[0]}+{pair[1]}, {strategy})"
    return Value(pair_name(side, loss, pair, strategy), "T", title)


def _aware(
    side: str, losses: Iterable[float], pairs: Iterable[Pair], operator: Operator
) -> tuple[Judged, ...]:
    """Return relations that compare the goodput of MPTCP-LA (left side) with that of MPTCP (right
    side). There is one for each loss and each pair of bandwidths. `side` ("wifi" or "lte") is the
    path that loses packets."""
    return tuple(
        Relation(_pair(side, loss, pair, AWARE), operator, _pair(side, loss, pair, PLAIN))
        for loss in losses
        for pair in pairs
    )


def _within_ten_percent(losses: Iterable[float], pairs: Iterable[Pair]) -> Iterable[Judged]:
    for loss, pair in product(losses, pairs):
        aware, plain = _pair("wifi", loss, pair, AWARE), _pair("wifi", loss, pair, PLAIN)
        yield from within(aware, plain, 0.9, 1.1)


def _dynamic(strategy: str, number: str) -> Value:
    return Value(f"{DYNAMIC}-{strategy}", number, f"{number}({strategy})")


def _no_gain(side: str, losses: Iterable[float], pairs: tuple[Pair, ...]) -> tuple[Judged, ...]:
    return tuple(Bound(Benefit(side, loss, pairs=pairs), False, 0.0) for loss in losses)


def _as_good_as_best(pairs: tuple[Pair, ...]) -> tuple[Judged, ...]:
    return tuple(
        Bound(Benefit(side, loss, AWARE, pairs), True, -0.05)
        for side in RTT_MS
        for loss in LOSSES
        if loss >= GAMMA[side]
    )


def _of_the_benefit(pairs: tuple[Pair, ...]) -> tuple[Claim, ...]:
    """Return the claims about unmodified Multipath TCP (Figure 3)."""
    return (
        Claim(
            "3",
            "S",
            "The median benefit falls with the loss of a path (it may rise by 0.02)",
            (Falls("wifi", pairs), Falls("lte", pairs)),
            True,
        ),
        Claim(
            "3a",
            "S",
            "A WiFi path that loses 0.01 % or more adds nothing",
            _no_gain("wifi", LOSSES[2:], pairs),
            False,
        ),
        Claim(
            "3b",
            "S",
            "An LTE path that loses 1 % or more adds nothing",
            _no_gain("lte", LOSSES[4:], pairs),
            False,
        ),
        Claim(
            "3a/b",
            "S",
            "LTE may lose ten times as much as WiFi before it adds nothing",
            (ThresholdsApart(pairs),),
            True,
        ),
        Claim(
            "3, 0 %",
            "S",
            "Without loss the second path adds throughput",
            (Bound(Benefit("wifi", 0.0, pairs=pairs), True, 0.0),),
        ),
    )


def _of_leaving(pairs: tuple[Pair, ...]) -> tuple[Claim, ...]:
    """Return the claims about leaving a path that loses packets (Figure 4)."""
    fast = [pair for pair in pairs if pair[0] >= 30]
    slow = [pair for pair in pairs if pair[0] == 10]
    return (
        Claim(
            "4a",
            "S",
            "WiFi of 30 Mb/s or more loses 0.1 % or more: MPTCP-LA carries as much as MPTCP",
            _aware("wifi", LOSSES[3:], fast, ">="),
            True,
        ),
        Claim(
            "4a, more",
            "S",
            "WiFi of 30 Mb/s or more loses 0.01 % or more: MPTCP-LA carries more than MPTCP",
            _aware("wifi", LOSSES[2:], fast, ">"),
            False,
        ),
        Claim(
            "4a, 10",
            "S",
            "WiFi of 10 Mb/s loses 0.1 % or more: both are within 10 %",
            tuple(_within_ten_percent(LOSSES[3:], slow)),
            True,
        ),
        Claim(
            "4b",
            "S",
            "LTE loses 1 % or more: MPTCP-LA carries at least as much as MPTCP",
            _aware("lte", LOSSES[4:], pairs, ">="),
            False,
        ),
        Claim(
            "4",
            "S",
            "MPTCP-LA is as good as the better path alone (median benefit about 0 or more)",
            _as_good_as_best(pairs),
        ),
    )


DYNAMIC_CLAIMS = (
    Claim(
        "5",
        "S",
        "With 30 s of loss, MPTCP-LA carries more than MPTCP",
        (Relation(_dynamic(AWARE, "T"), ">", _dynamic(PLAIN, "T")),),
        True,
    ),
    Claim(
        "5, 50",
        "S",
        "With 30 s of loss, MPTCP carries on average less than the 50 Mb/s of one path",
        (Relation(_dynamic(PLAIN, "T"), "<=", Constant(50.0)),),
        False,
    ),
    Claim(
        "6, LA",
        "S",
        "MPTCP-LA leaves WiFi within 1 s (below 1 Mb/s), and within 5 s after the loss WiFi is "
        "back above 10 Mb/s",
        (
            Every(_dynamic(AWARE, "wifi_lossy_most"), "<=", 1.0),
            Every(_dynamic(AWARE, "wifi_back_most"), ">=", 10.0),
        ),
        True,
    ),
    Claim(
        "6, LTE",
        "S",
        "Meanwhile LTE carries more than under MPTCP, where LTE also carries more than WiFi",
        (
            Relation(_dynamic(AWARE, "lte_lossy"), ">", _dynamic(PLAIN, "lte_lossy")),
            Relation(_dynamic(PLAIN, "lte_lossy"), ">", _dynamic(PLAIN, "wifi_lossy")),
        ),
    ),
    Claim(
        "6, after",
        "S",
        "Under MPTCP, WiFi hardly recovers after the loss (less than half of the rate before)",
        (Relation(_dynamic(PLAIN, "wifi_late"), "<=", _dynamic(PLAIN, "wifi_before"), 0.5),),
        False,
    ),
)


def claims(pairs: tuple[Pair, ...] = PAIRS) -> tuple[Claim, ...]:
    """Return all claims of the paper, to be judged with these pairs of bandwidths (WiFi, LTE).

    Relations about all pairs count as not run if `pairs` are fewer.
    """
    every = zip(_stated(pairs), _stated(PAIRS), strict=True)
    return tuple(
        replace(explained(each), not_run=len({*whole.relations} - {*each.relations}))
        for each, whole in every
    )


def _stated(pairs: tuple[Pair, ...]) -> tuple[Claim, ...]:
    return (*_of_the_benefit(pairs), *_of_leaving(pairs), *DYNAMIC_CLAIMS)


CLAIMS = claims()


def tables(found: Found) -> str:
    """Return two Markdown tables: the benefit of the strategy for each loss probability, and the
    rates in the runs whose loss changes during the run."""
    return joined(
        "## Benefit of the second path (Figure 3) and of leaving it (Figure 4)",
        f"Median, and in brackets first and third quartile, of {len(pairs_of(found))} pairs of "
        "bandwidths. Runs of 20 s, receive buffer 1000 kB, no jitter. The goodput of a path alone "
        "is reduced to the payload of Multipath TCP: 1420 of plain TCP's 1448 bytes.",
        _benefits_table(found),
        "## Loss for 30 s (Figures 5 and 6)",
        "Mb/s, means over the seeds: in total, and of each path from 10 to 30 s (before), "
        "from 31 to 60 s (WiFi loses 5 %) and from 75 to 90 s (after).",
        _dynamics_table(found),
    )


def _benefits_table(found: Found) -> str:
    rows = []
    for side, strategy in product(RTT_MS, (PLAIN, AWARE)):
        cells = []
        for loss in LOSSES:
            benefit = Benefit(side, loss, strategy, pairs_of(found))
            first, middle, third = quantiles(benefit.of(found), n=4)
            cells.append(f"{middle:.2f} ({first:.2f}, {third:.2f})")
        rows.append([f"{TITLES[side]} loses", strategy, *cells])
    return markdown_table(("", "strategy", *map(percent, LOSSES)), rows)


def _dynamics_table(found: Found) -> str:
    numbers = ("T", "wifi_before", "lte_before", "wifi_lossy", "lte_lossy", "wifi_late", "lte_late")
    phases = ("before", "lossy", "after")
    titles = [f"{side}, {phase}" for phase in phases for side in TITLES.values()]
    rows = []
    for strategy in (PLAIN, AWARE):
        means = (average(found, f"{DYNAMIC}-{strategy}", number) for number in numbers)
        rows.append([strategy, *(f"{each:.1f}" for each in means)])
    return markdown_table(("strategy", "total", *titles), rows)


TITLE = "A path that loses packets: use it or leave it"
NOTE = "T is goodput in Mb/s; a+b are the rates of WiFi and LTE in Mb/s."
FEWER = "The bandwidths are 10, 30 and 50 Mb/s only; without `--quick`, also 20 and 40."
MPTCP_LA = Paper(
    "mptcp_la",
    TITLE,
    tuple(cases()),
    measure,
    tables,
    CLAIMS,
    NOTE,
    Paper(
        "mptcp_la",
        TITLE,
        tuple(cases(QUICK_PAIRS)),
        measure,
        tables,
        claims(QUICK_PAIRS),
        f"{NOTE} {FEWER}",
    ),
)
