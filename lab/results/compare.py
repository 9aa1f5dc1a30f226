"""Compare runs: collect repeated runs in groups, and say which differences between the groups are
unlikely to be chance.

1) put runs into one group if their scenarios differ in nothing but the seed
   (`lab.results.groups`)
2) estimate the mean of each metric in each group, with a 95 % bootstrap interval
3) compare each metric with the first group, by the interval of the ratio of the means
   (`lab.results.statistics`)

A metric is a number of result.json, such as `users.ue1.throughput_mbps`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab.results.groups import FLIPS_KEY, SCALE_KEY, Group, differing_keys, grouped, scale_text
from lab.results.metric_labels import heading
from lab.results.metric_labels import label as metric_label
from lab.results.statistics import Estimate, Verdict, estimate, verdict
from lab.results.tables import markdown_table, text_table

LESS_IS_BETTER = ("fairness.sd_mbps", "out_of_order_fraction", "convergence_s")


@dataclass(frozen=True)
class Comparison:
    """Hold the groups of runs, the estimates of all metrics, and the verdicts on each group but the
    first.

    `estimates[metric]` holds one estimate per group, in the order of `groups`.
    `verdicts[label][metric]` compares the group `label` with the first group.
    """

    groups: Sequence[Group]
    estimates: dict[str, list[Estimate]]
    verdicts: dict[str, dict[str, Verdict]]


def compared(folders: Sequence[Path]) -> Comparison:
    """Compare the runs in these run folders. Raise `RequestError` if the runs cannot be
    compared."""
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
    """Return the comparison of the runs in these run folders as a text, a Markdown table or a JSON
    text.

    The JSON object has the keys `groups`, `metrics`, `labels` (of the metrics, for people),
    `verdicts` and `warnings`.
    """
    found = compared(folders)
    if as_json:
        return json.dumps(_document(found), indent=1)
    parts = [_markdown(found)] if as_markdown else _text(found)
    return "\n\n".join([*parts, *warnings(found.groups)])


def direction(metric: str) -> int:
    """Return 1 if a larger value of the metric is better, -1 if a smaller value is better, and 0 if
    neither is."""
    if metric in LESS_IS_BETTER:
        return -1
    return 1 if metric.endswith("throughput_mbps") or metric == "fairness.jain" else 0


def warnings(groups: Sequence[Group]) -> Iterator[str]:
    """Yield one line of text for each reason to doubt the comparison, such as an overloaded
    machine."""
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
        if key != FLIPS_KEY  # always named
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
            "heading": heading(group.label, group.settings),
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
    labels = {metric: str(metric_label(metric)) for metric in metrics}
    return {
        "groups": groups,
        "metrics": metrics,
        "labels": labels,
        "verdicts": verdicts,
        "warnings": notes,
    }


def _heads(found: Comparison) -> list[str]:
    return ["metric", *(group.heading for group in found.groups)]


def _text(found: Comparison) -> list[str]:
    """Return a table of all estimates, followed by one text per group but the first: a verdict for
    each metric."""
    rows = [[metric, *(each.text for each in row)] for metric, row in found.estimates.items()]
    parts = [text_table(_heads(found), rows)]
    for group in found.groups[1:]:
        lines = (f"  {metric}: {each.text}" for metric, each in found.verdicts[group.label].items())
        parts.append("\n".join([f"{group.label} against {found.groups[0].label}:", *lines]))
    return parts


def _markdown(found: Comparison) -> str:
    """Return a Markdown table with one row per metric and one column per group. A cell holds the
    estimate and, except in the first group, the short verdict."""
    rows = []
    for metric, estimates in found.estimates.items():
        verdicts = [f": {each[metric].short}" for each in found.verdicts.values()]
        cells = [
            f"{each.text}{words}" for each, words in zip(estimates, ["", *verdicts], strict=True)
        ]
        rows.append([f"`{metric}`", *cells])
    return markdown_table(_heads(found), rows)
