"""Reproduce the RAT study (RAT: radio access technology): MPTCP with Cubic, LIA and OLIA over LTE
and WiFi."""

from __future__ import annotations

from lab.evaluation.reproduction.base import Paper, joined
from lab.evaluation.reproduction.rat_study_claims import CLAIMS
from lab.evaluation.reproduction.rat_study_relations import CONGESTION_CONTROLS
from lab.evaluation.reproduction.rat_study_runs import cell, measure
from lab.evaluation.reproduction.relations import Found, Relation, Value
from lab.results.statistics import mean
from lab.results.tables import markdown_table


def _names() -> list[str]:
    """Return the names of all experiments that occur in a claim, without repetition."""
    relations = [each for claim in CLAIMS for each in claim.relations if isinstance(each, Relation)]
    sides = [side for each in relations for side in (each.left, each.right)]
    return list(dict.fromkeys(side.case for side in sides if isinstance(side, Value)))


NOTE = (
    "T is the volume of a node over the time until all of it has arrived, in Mb/s; W and L are its "
    "parts by WiFi and by LTE (in Setups II and III, by the path that begins on LTE). Roman "
    "numbers are setups; C, A and O are Cubic, LIA and OLIA; (n) connections per node; [v] MB if "
    "not 15; {b} KB of receive buffer if not 1000. The standard is 802.11n at 5 GHz unless another "
    "is named."
)


def tables(found: Found) -> str:
    """Return a Markdown table of all experiments."""
    return joined(
        "## All cells",
        "T (W + L) in Mb/s per node, means over the seeds.",
        _cells_table(found),
    )


def _cells_table(found: Found) -> str:
    rows: dict[str, dict[str, str]] = {}
    for name, each in CELLS.items():
        total, wifi, lte = (
            mean([numbers[key] for numbers in found[name]]) for key in ("T", "W", "L")
        )
        rows.setdefault(each.about, {})[each.cc] = f"{total:.2f} ({wifi:.2f} + {lte:.2f})"
    lines = [
        [about, *(row.get(cc, "-") for cc in CONGESTION_CONTROLS)]
        for about, row in sorted(rows.items())
    ]
    return markdown_table(("", *CONGESTION_CONTROLS), lines)


CELLS = {name: cell(name) for name in _names()}
RAT_STUDY = Paper(
    "rat_study",
    "Cubic, LIA and OLIA over LTE and WiFi",
    tuple(each.case for each in CELLS.values()),
    measure,
    tables,
    CLAIMS,
    NOTE,
)
