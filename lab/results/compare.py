"""Compare runs: group repeated runs, and say which differences can be told from chance.

1) group the runs whose scenarios differ in nothing but the seed (`lab.results.groups`)
2) estimate the mean of each metric in each group, with a 95 % bootstrap interval
3) judge each metric against the first group by the interval of the ratio
   (`lab.results.statistics`)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.results.groups import SCALE_KEY, Group, differing_keys, grouped, scale_text
from lab.results.statistics import Estimate, Verdict, estimate, verdict
from lab.results.tables import markdown_table, text_table

LESS_IS_BETTER = ("fairness.sd_mbps", "out_of_order_fraction", "convergence_s")


@dataclass(frozen=True)
class Comparison:
    """Hold groups of runs, their estimates, and a verdict on each group but the first.

    `estimates` maps a metric to one estimate per group. `verdicts` maps the label of a group to a
    verdict per metric, against the first group.
    """

    groups: Sequence[Group]
    estimates: dict[str, list[Estimate]]
    verdicts: dict[str, dict[str, Verdict]]


def compared(folders: Sequence[Path]) -> Comparison:
    """Compare the runs in these folders. Raise `RequestError` if they cannot be compared."""
    groups = grouped(folders)
    runs = [run for group in groups for run in group.runs]
    metrics = list(dict.fromkeys(metric for run in runs for metric in run.metrics))
    base = groups[0]
    return Comparison(
        groups,
        {metric: [estimate(group.values(metric)) for group in groups] for metric in metrics},
        {
            group.label: {
                metric: verdict(base.values(metric), group.values(metric), direction(metric))
                for metric in metrics
            }
            for group in groups[1:]
        },
    )


def report(folders: Sequence[Path], as_json: bool = False, as_markdown: bool = False) -> str:
    """Return the comparison of the runs in these folders as text, as Markdown, or as JSON.

    The JSON object has the keys `groups`, `metrics`, `verdicts` and `warnings`.
    """
    found = compared(folders)
    if as_json:
        return json.dumps(_document(found), indent=1)
    parts = [_markdown(found)] if as_markdown else _text(found)
    return "\n\n".join([*parts, *warnings(found.groups)])


def direction(metric: str) -> int:
    """Return 1 if a larger value of the metric is better, -1 if a smaller one is, else 0."""
    if metric in LESS_IS_BETTER:
        return -1
    return 1 if metric.endswith("throughput_mbps") or metric == "fairness.jain" else 0


def warnings(groups: Sequence[Group]) -> Iterator[str]:
    """Yield one line for each reason to doubt the comparison, such as an overloaded machine."""
    if len({group.settings["name"] for group in groups}) > 1:
        yield "careful: these are different scenarios"
    scales = list(dict.fromkeys(group.rate_scale for group in groups))
    if len(scales) > 1:
        yield (
            f"careful: these runs have {' and '.join(map(scale_text, scales))}: "
            "queueing delay grows as 1/scale"
        )
    unnamed = [
        key
        for key in differing_keys([group.settings for group in groups])
        if not key.startswith("strategy.") and (key != SCALE_KEY or len(scales) == 1)
        if not all(key in group.label for group in groups)
    ]
    if unnamed:
        yield f"careful: they differ in {', '.join(unnamed)}, too"
    for run_id in (run_id for group in groups for run_id in group.left_out):
        yield f"careful: run {run_id} repeats a run or a seed, so it is left out"
    for run in (run for group in groups for run in group.runs):
        if run.status != "complete":
            yield f"careful: run {run.run_id} is {run.status}"
        if run.overloaded:
            yield f"careful: run {run.run_id} overloaded the machine"


def _document(found: Comparison) -> dict[str, Any]:
    groups = [
        {
            "label": group.label,
            "n": len(group.runs),
            "rate_scale": group.rate_scale,
            "runs": [run.run_id for run in group.runs],
        }
        for group in found.groups
    ]
    metrics = {
        metric: {g.label: asdict(each) for g, each in zip(found.groups, row, strict=True)}
        for metric, row in found.estimates.items()
    }
    verdicts = {
        label: {metric: each.text for metric, each in row.items()}
        for label, row in found.verdicts.items()
    }
    notes = list(warnings(found.groups))
    return {"groups": groups, "metrics": metrics, "verdicts": verdicts, "warnings": notes}


def _heads(found: Comparison) -> list[str]:
    return ["metric", *(group.heading for group in found.groups)]


def _text(found: Comparison) -> list[str]:
    """Return a table of all estimates, then for each group but the first a list of its verdicts."""
    rows = [[metric, *(each.text for each in row)] for metric, row in found.estimates.items()]
    parts = [text_table(_heads(found), rows)]
    for group in found.groups[1:]:
        lines = (f"  {metric}: {each.text}" for metric, each in found.verdicts[group.label].items())
        parts.append("\n".join([f"{group.label} against {found.groups[0].label}:", *lines]))
    return parts


def _markdown(found: Comparison) -> str:
    """Return one Markdown table whose cells hold the estimate followed by the verdict in short."""
    rows = []
    for metric, estimates in found.estimates.items():
        verdicts = [f": {each[metric].short}" for each in found.verdicts.values()]
        cells = [
            f"{each.text}{words}" for each, words in zip(estimates, ["", *verdicts], strict=True)
        ]
        rows.append([f"`{metric}`", *cells])
    return markdown_table(_heads(found), rows)
