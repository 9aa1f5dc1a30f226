"""Comparisons of runs as text for the terminal, as tables in Markdown, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.results.compare import (
    OTHER_SCENARIOS,
    Comparison,
    Group,
    Parts,
    Window,
    careful,
    compared_by,
    own_metrics,
)
from lab.results.labels import label as metric_label
from lab.results.statistics import MIN_RUNS
from lab.results.tables import markdown_table, text_table

OPEN = "open, "  # begins the short verdict where runs are missing


def report(
    folders: Sequence[Path],
    as_json: bool = False,
    as_markdown: bool = False,
    window: Window | None = None,
    by: Sequence[str] = (),
) -> str:
    """Return the comparison of the runs in these folders as text, Markdown or JSON.

    The JSON object has the keys `groups`, `metrics`, `labels` (names of the metrics for people),
    `verdicts`, `notes` and `warnings`. With keys of the scenario file in `by`, there is one
    comparison for each combination of their values: JSON is then a list of such objects, each with
    the values in `by`.
    """
    found, not_used = compared_by(folders, window, by)
    return shown(found, not_used, as_json, as_markdown)


def shown(found: Parts, not_used: Sequence[str], as_json: bool, as_markdown: bool) -> str:
    """Return comparisons as `report` does."""
    if as_json:
        documents = [_document(each) | ({"by": value} if value else {}) for value, each in found]
        documents[0]["warnings"] = [*careful(not_used), *documents[0]["warnings"]]
        return json.dumps(documents if found[0][0] else documents[0], indent=1)
    texts = [text(each, value, as_markdown) for value, each in found]
    return "\n\n".join([*texts, *careful(not_used)])


def text(found: Comparison, by: Mapping[str, str], as_markdown: bool) -> str:
    """Return a comparison as text. `by` are the values of the keys of `--by`, as JSON."""
    head = ", ".join(f"{key} = {value}" for key, value in by.items())
    parts = [f"## {head}" if as_markdown else f"{head}:"] if head else []
    warnings = found.warnings
    if OTHER_SCENARIOS in warnings:
        warnings.remove(OTHER_SCENARIOS)
        parts.append(OTHER_SCENARIOS)
    parts += [_markdown(found)] if as_markdown else _plain(found)
    return "\n\n".join([*parts, *found.notes, *_explained(found), *warnings])


def _explained(found: Comparison) -> Iterator[str]:
    """Yield a text about the first run of each group: what each change during the run did, and why.

    Groups whose first run has no changes are skipped.
    """
    from lab.results.explain.stretches import told  # imported here, because it loads networkx

    for group in found.groups:
        run = group.runs[0]
        if words := told(run.folder):
            yield f"What the changes did, {group.name} (run {run.run_id}):\n{words}"


def _heads(found: Comparison) -> list[str]:
    return ["metric", *(group.heading for group in found.groups)]


def _shown(found: Comparison) -> list[str]:
    """Return the metrics to show. Networks without access points have no tiers."""
    has_aps = any(metric.startswith("aps.") for metric in found.estimates)
    return [each for each in found.estimates if has_aps or not each.startswith("tiers.")]


def _plain(found: Comparison) -> list[str]:
    rows = [[metric, *(each.text for each in found.estimates[metric])] for metric in _shown(found)]
    table = text_table(_heads(found), rows)
    return [table, *(_against_the_first(found, group) for group in found.groups[1:])]


def _against_the_first(found: Comparison, group: Group) -> str:
    """Return the verdicts about a group. With too few runs, that is said once, above them."""
    base = found.groups[0]
    verdicts = {metric: found.verdicts[group.label][metric] for metric in _shown(found)}
    head = f"{group.name} against {base.name}"
    n = min(len(base.runs), len(group.runs))
    if n < MIN_RUNS:
        few = "one run each" if n == 1 else f"n = {n}"
        head += f" ({few}): open, not enough runs to tell this from chance, add {MIN_RUNS - n}"
        words = {metric: each.short.removeprefix(OPEN) for metric, each in verdicts.items()}
    else:
        head += ":"
        words = {metric: each.text for metric, each in verdicts.items()}
    return "\n".join([head, *(f"  {metric}: {each}" for metric, each in words.items())])


def _markdown(found: Comparison) -> str:
    """Return a Markdown table with one row per metric and one column per group.

    A cell has the estimate and, except in the first group, the short verdict.
    """
    rows = []
    for metric in _shown(found):
        estimates = found.estimates[metric]
        verdicts = [f": {each[metric].short}" for each in found.verdicts.values()]
        cells = [
            f"{each.text}{words}" for each, words in zip(estimates, ["", *verdicts], strict=True)
        ]
        rows.append([f"`{metric}`", *cells])
    return markdown_table(_heads(found), rows)


def _document(found: Comparison) -> dict[str, Any]:
    groups = [
        {
            "label": group.label,
            "heading": group.name,
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
    own = own_metrics(found.groups)
    labels = {metric: str(metric_label(metric, own)) for metric in metrics}
    return {
        "groups": groups,
        "metrics": metrics,
        "labels": labels,
        "verdicts": verdicts,
        "notes": list(found.notes),
        "warnings": found.warnings,
    }
