"""The RAT study (RAT: radio access technology). It compares Cubic, LIA and OLIA for Multipath TCP
over LTE and WiFi."""

from __future__ import annotations

from lab.results.tables import markdown_table
from papers.base import Claim, Paper, average, joined
from papers.rat_study_claims import CLAIMS
from papers.rat_study_relations import CONGESTION_CONTROLS
from papers.rat_study_runs import cell, measure
from papers.relations import Found
from papers.sweeps import with_cases

NOTE = (
    "T is the volume of a node over the time until all of it has arrived, in Mb/s; W and L are its "
    "parts by WiFi and by LTE (in Setups II and III, by the path that begins on LTE). Roman "
    "numbers are setups; C, A and O are Cubic, LIA and OLIA; (n) connections per node; [v] MB if "
    "not 15; {b} KB of receive buffer if not 1000. The standard is 802.11n at 5 GHz unless another "
    "is named."
)


def tables(found: Found) -> str:
    return joined(
        "## All cells",
        "T (W + L) in Mb/s per node, means over the seeds.",
        _cells_table(found),
    )


def _cells_table(found: Found) -> str:
    rows: dict[str, dict[str, str]] = {}
    for name in found:
        each = cell(name)
        total, wifi, lte = (average(found, name, number) for number in ("T", "W", "L"))
        rows.setdefault(each.about, {})[each.cc] = f"{total:.2f} ({wifi:.2f} + {lte:.2f})"
    lines = [
        [about, *(row.get(cc, "-") for cc in CONGESTION_CONTROLS)]
        for about, row in sorted(rows.items())
    ]
    return markdown_table(("", *CONGESTION_CONTROLS), lines)


def _paper(claims: tuple[Claim, ...], note: str, quick: Paper | None = None) -> Paper:
    """Return the study with these claims and all experiments that the claims need. The experiments
    have the order of the claims."""
    needed = (sorted(each.cases()) for claim in claims for each in claim.relations)
    names = dict.fromkeys(name for names in needed for name in names)
    cases = tuple(cell(name).case for name in names)
    return Paper("rat_study", TITLE, cases, measure, tables, claims, note, quick)


def _is_quick(case: str) -> bool:
    return cell(case).parallel <= MOST_QUICK


TITLE = "Cubic, LIA and OLIA over LTE and WiFi"
MOST_QUICK = 5  # connections per node
QUICK_NOTE = f"{NOTE} Only the judged claims, with at most five connections; all without `--quick`."
JUDGED = with_cases(CLAIMS, (each.name for each in CLAIMS if each.judged), _is_quick)
RAT_STUDY = _paper(CLAIMS, NOTE, _paper(JUDGED, QUICK_NOTE))
