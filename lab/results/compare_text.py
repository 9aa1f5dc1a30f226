"""A comparison of runs as text for the terminal, or as a table in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lab.results.statistics import MIN_RUNS
from lab.results.tables import markdown_table, text_table

if TYPE_CHECKING:
    from lab.results.compare import Comparison, Group

OTHER_SCENARIOS = "careful: these are different scenarios"  # the first line, if it is true
OPEN = "open, "  # begins the short verdict where runs are missing


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
