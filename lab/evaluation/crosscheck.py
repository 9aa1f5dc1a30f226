"""Make the page docs/crosscheck.md, which compares the simulator with the emulation for the same
cases and random seeds. A case is a scenario with a strategy and changed settings.

The page has one section per study (`lab.evaluation.studies`). A section says how its runs were
made, and holds:

1) for each case and metric: the mean and range over the seeds in each engine, the difference of
   the simulator in percent, and whether this difference meets the goal
2) if a paper gives values: the ratio of each case's value to that of the first,
   in both engines and the paper

A table row is `independent` if the two engines share no code or data that determines its number.
It is `shared model` if both use the same radio model: agreement then only shows that both apply
the model correctly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lab.errors import RequestError, unknown
from lab.evaluation import agreement
from lab.evaluation.studies import STUDIES, Case, Measured, Metric, Study
from lab.results.statistics import mean
from lab.results.tables import markdown_table
from lab.run.manifest import ROOT

Found = Mapping[tuple[str, str], Sequence[Measured]]  # (engine, case) -> one run per seed
PAGE = ROOT / "docs" / "crosscheck.md"
INTRODUCTION = """\
# Simulator and emulation compared

`mininet` is the real stack: kernel MPTCP, Open vSwitch, hostapd and hwsim; the controller runs in
POX. `sim` is the embedded simulator. Values are means over the seeds, with the smallest and the
largest value. A row is *independent* if the engines share nothing that decides its number. It is a
*shared model* if both use the same model of the air: agreement then shows only that both apply it
correctly. Nothing was tuned to a number. Each section is written by the command that it names.
"""
SECTION = re.compile(r"^(?=## )", re.MULTILINE)


def chosen(names: Sequence[str]) -> tuple[Study, ...]:
    """Return the studies of the scenarios `names`, or all studies if `names` is empty.

    Raise `RequestError` if there is no study of a named scenario.
    """
    known = {study.scenario: study for study in STUDIES}
    for name in names:
        if name not in known:
            raise RequestError(f"crosscheck: study {unknown(name, known)}")
    return tuple(study for study in STUDIES if not names or study.scenario in names)


def sections(text: str) -> dict[str, str]:
    """Split the Markdown text of a page at its `## ` headings. Return the sections by title. The
    text before the first heading is left out."""
    parts = SECTION.split(text)[1:]
    return {part.partition("\n")[0].removeprefix("## "): part.strip() for part in parts}


def composed(before: str, made: Mapping[str, str]) -> str:
    """Return the text of the page: the sections of the old text `before`, with those in `made`
    added or replaced.

    Sections are in the order of the studies. A section that belongs to no study comes last.
    """
    parts = sections(before) | dict(made)
    order = [study.scenario for study in STUDIES if study.scenario in parts]
    order += [title for title in parts if title not in order]
    return "\n\n".join([INTRODUCTION.strip(), *(parts[title] for title in order)]) + "\n"


def section(study: Study, found: Found, made_by: str) -> str:
    """Return the section of a study as Markdown. `found` holds the runs by engine and case.
    `made_by` is a sentence that says how and where the runs were made."""
    parts = [f"## {study.scenario}", f"{made_by}\n{_about(study, found)}", _table(study, found)]
    if any(metric.goal_percent for metric in study.metrics):
        parts.append(_goals_met(study, found))
    if any(metric.paper for metric in study.metrics):
        first = study.cases[0].name
        parts.append(f"Ratios to `{first}`; the paper's values are from {study.source}.")
        parts.append(_ratios(study, found))
    return "\n\n".join([*parts, study.remarks] if study.remarks else parts)


def evidence(runs: Sequence[Measured]) -> list[Measured]:
    """Return the runs that can be used: those that are complete, on a machine that was not
    overloaded."""
    return [each for each in runs if each.is_evidence]


def _about(study: Study, found: Found) -> str:
    durations = {case.duration_s or study.duration_s for case in study.cases}
    counts = ", ".join(
        f"{engine} "
        + "/".join(str(len(evidence(found[engine, case.name]))) for case in study.cases)
        for engine in study.engines
    )
    runs = [each for several in found.values() for each in several]
    seeds = ", ".join(map(str, sorted({each.result["seed"] for each in runs})))
    lengths = " or ".join(f"{each:g}" for each in sorted(durations, reverse=True))
    text = f"Runs of {lengths} s, seeds {seeds}; runs per case: {counts}.{_scales(runs)}"
    left_out = len(runs) - len(evidence(runs))
    return f"{text} Left out (overloaded or incomplete): {left_out}." if left_out else text


def _scales(runs: Sequence[Measured]) -> str:
    scales = sorted({each.result["rate_scale"] for each in runs if "rate_scale" in each.result})
    return f" Rate scale {', '.join(f'{each:g}' for each in scales)}." if scales else ""


def _table(study: Study, found: Found) -> str:
    has_goals = any(metric.goal_percent for metric in study.metrics)
    rows = []
    for case, metric in _rows(study):
        cells = [_values(found, engine, case, metric) for engine in study.engines]
        difference = _difference(*cells)
        goal = [_verdict(metric, difference)] if has_goals else []
        shown = [*map(agreement.shown, cells), _signed(difference), *goal]
        rows.append([case.name, metric.title, *shown, metric.witness])
    compared = " against ".join(reversed(study.engines))
    goal = ["goal"] if has_goals else []
    head = ("case", "Mb/s at the receiver", *study.engines, compared, *goal, "witness")
    return markdown_table(head, rows)


def _rows(study: Study) -> list[tuple[Case, Metric]]:
    return [
        (case, metric)
        for case in study.cases
        for metric in study.metrics
        if metric.belongs_to(case)
    ]


def _goals_met(study: Study, found: Found) -> str:
    """Return a sentence that says how many table rows meet their goal.

    Rows without a goal, or without a value in one of the engines, are not counted.
    """
    verdicts = [
        _verdict(
            metric, _difference(*(_values(found, engine, case, metric) for engine in study.engines))
        )
        for case, metric in _rows(study)
    ]
    judged = [verdict for verdict in verdicts if verdict.endswith("met")]
    met = sum("not" not in verdict for verdict in judged)
    return f"{met} of {len(judged)} rows meet their goal."


def _ratios(study: Study, found: Found) -> str:
    base = study.cases[0]
    rows = []
    for metric in (each for each in study.metrics if each.paper):
        for case in study.cases[1:]:
            measured = [
                _ratio(_values(found, engine, case, metric), _values(found, engine, base, metric))
                for engine in study.engines
            ]
            paper = metric.paper[case.name] / metric.paper[base.name]
            rows.append([metric.title, case.name, *measured, f"{paper:.2f}"])
    return markdown_table(("", "case", *study.engines, "paper"), rows)


def _values(found: Found, engine: str, case: Case, metric: Metric) -> list[float]:
    values = (metric.of(each) for each in evidence(found[engine, case.name]))
    return [value for value in values if value is not None]


def _difference(emulated: Sequence[float], simulated: Sequence[float]) -> float | None:
    """Return the difference of the simulator's mean from the emulation's mean, as a fraction of the
    emulation's mean.

    Return None if an engine has no value, or if the emulation's mean is 0.
    """
    if not emulated or not simulated or not mean(emulated):
        return None
    return mean(simulated) / mean(emulated) - 1


def _signed(difference: float | None) -> str:
    return "-" if difference is None else f"{100 * difference:+.0f} %"


def _verdict(metric: Metric, difference: float | None) -> str:
    if metric.goal_percent is None or difference is None:
        return "-"
    met = 100 * abs(difference) <= metric.goal_percent
    return f"{metric.goal_percent} %: {'met' if met else 'not met'}"


def _ratio(values: Sequence[float], base: Sequence[float]) -> str:
    return f"{mean(values) / mean(base):.2f}" if values and base and mean(base) else "-"
