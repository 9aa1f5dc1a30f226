"""Make the tables of MP-SDN's page."""

from __future__ import annotations

from lab.evaluation.reproduction.base import average, joined
from lab.evaluation.reproduction.mp_sdn_equations import by_equations
from lab.evaluation.reproduction.mp_sdn_runs import (
    ALPHAS,
    CATEGORISED_S,
    INTERVALS_S,
    SHARES,
    cases,
    name,
)
from lab.evaluation.reproduction.relations import Found
from lab.results.tables import markdown_table
from lab.topologies.wireless_set import Params

KINDS = {
    "down": "30 users, 200 m",
    "up": "30 users, 200 m, uploads",
    "few": "15 users",
    "wide": "300 m",
}


def tables(found: Found) -> str:
    """Return Markdown tables over the parameters that were varied."""
    walks = [f"{average(found, name('walk', each), 'T'):.1f}" for each in CATEGORISED_S]
    return joined(
        "## Shares of multipath users (Figures 5, 10, 11, 18)",
        "All access points together; in brackets the mean of a single-path user and of a "
        "multipath user.",
        _shares_table(found),
        "## The same by the paper's equations",
        "Computed by equations (2) and (3) for the same networks, without congestion control: "
        "eq (2) with Bianchi's model for k. Rates of frames, in the same order.",
        _equations_table(len(next(iter(found.values())))),
        "## Execution interval and alpha (Figures 14, 15)",
        "wifi1; Tier 1 demands 10 and 5 Mb/s in turn, 10 s each. In brackets: T1-BW-Un "
        "without negative terms.",
        _sweeps_table(found),
        "## Walking users (Figure 16)",
        markdown_table(
            ("primary connections are chosen every", *(f"{each} s" for each in CATEGORISED_S)),
            [["Mb/s", *walks]],
        ),
    )


def _shares_table(found: Found) -> str:
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for case in cases():
        if case.scenario == "thirty_users":
            kind, percent, strategy, cc = case.name.split("-")
            total, single, multi = (average(found, case.name, each) for each in ("T", "sp", "mp"))
            row = rows.setdefault((kind, cc, strategy), {})
            row[percent] = f"{total:.1f} ({single:.2f}, {multi:.2f})"
    lines = [
        [f"{KINDS[kind]}, {cc}", strategy, *(row.get(str(each), "-") for each in SHARES)]
        for (kind, cc, strategy), row in rows.items()
    ]
    return markdown_table(("", "strategy", *(f"{each} %" for each in SHARES)), lines)


def _equations_table(seeds: int) -> str:
    kinds = {"down": Params(), "few": Params(users=15), "wide": Params(area_m=300)}
    rows = []
    for kind, usual in kinds.items():
        row = [KINDS[kind]]
        for percent in SHARES:
            params = usual.model_copy(update={"multipath_percent": percent})
            means = by_equations(params, range(1, seeds + 1))
            row.append(f"{means.total:.1f} ({means.single:.2f}, {means.multi:.2f})")
        rows.append(row)
    return markdown_table(("", *(f"{each} %" for each in SHARES)), rows)


def _sweeps_table(found: Found) -> str:
    rows = []
    for key, values in (("interval_s", INTERVALS_S), ("alpha", ALPHAS)):
        for value in values:
            case = name("swap", key, value)
            lacking, positive, tier2 = (average(found, case, each) for each in ("un", "un+", "ac"))
            rows.append([key, f"{value:g}", f"{lacking:.2f} ({positive:.2f})", f"{tier2:.2f}"])
    return markdown_table(("parameter", "", "T1-BW-Un", "T2-BW-Ac"), rows)
