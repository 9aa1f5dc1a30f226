"""The simulator beside the emulation: the same cases and seeds in both engines, and what they measured as a page.

1) every case runs in both engines, each run in a folder of its own; what is there already is kept
2) per metric: mean and range over the seeds in each engine, by how much the simulator differs, and whether that meets its goal
3) where a paper names values: what each case keeps of the first one, in both engines and in the paper
4) the page has a section per study, which says what it was made by; sections of other studies stay as they are

A row is `independent` if the two engines share nothing that decides it, and `shared model` if both ask the same model,
so that agreement proves only that both carry it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lab.errors import RequestError, unknown
from lab.evaluation.studies import STUDIES, Case, Metric, Result, Study
from lab.results.tables import markdown_table
from lab.run.manifest import ROOT

Results = Mapping[tuple[str, str], Sequence[Result]]  # (engine, case) -> one result per seed
PAGE = ROOT / "docs" / "crosscheck.md"
INTRODUCTION = """# Simulator and emulation beside each other

`mininet` is the real stack: kernel MPTCP, Open vSwitch, hostapd and hwsim, decided in POX. `sim` is the embedded simulator.
Values are means over the seeds, with the smallest and the largest. A witness is *independent* where the engines share
nothing that decides the number, and *shared model* where both ask the same model of the air: agreement then proves only
that both carry it out. Nothing was tuned to a number. A section is what its command made; another command leaves it as it is.
"""
SECTION = re.compile(r"^(?=## )", re.MULTILINE)


def chosen(names: Sequence[str]) -> tuple[Study, ...]:
    """The studies of these names, all if there are none."""
    known = {study.scenario: study for study in STUDIES}
    for name in names:
        if name not in known:
            raise RequestError(f"crosscheck: study {unknown(name, known)}")
    return tuple(study for study in STUDIES if not names or study.scenario in names)


def sections(text: str) -> dict[str, str]:
    """The parts of a page by their titles, `##` included; what comes before the first is left out."""
    parts = SECTION.split(text)[1:]
    return {part.partition("\n")[0].removeprefix("## "): part.strip() for part in parts}


def composed(before: str, made: Mapping[str, str]) -> str:
    """Return the page `before` with the sections in `made`; the other sections stay.

    Sections are in the order of the studies; sections of no study come last.
    """
    parts = sections(before) | dict(made)
    order = [study.scenario for study in STUDIES if study.scenario in parts]
    order += [title for title in parts if title not in order]
    return "\n\n".join([INTRODUCTION.strip(), *(parts[title] for title in order)]) + "\n"


def section(study: Study, found: Results, made_by: str) -> str:
    """The study as Markdown; `made_by` says how, where and when."""
    parts = [f"## {study.scenario}", f"{made_by}\n{_about(study, found)}", _table(study, found)]
    if any(metric.goal_percent for metric in study.metrics):
        parts.append(_goals_met(study, found))
    if any(metric.paper for metric in study.metrics):
        first = study.cases[0].name
        parts.append(f"What is left of `{first}`; the paper's values are from {study.source}.")
        parts.append(_ratios(study, found))
    return "\n\n".join([*parts, study.remarks] if study.remarks else parts)


def used(results: Sequence[Result]) -> list[Result]:
    """The runs that are evidence: complete, on a machine that kept up."""
    return [each for each in results if each["status"] == "complete" and not each["overloaded"]]


def _about(study: Study, found: Results) -> str:
    lengths = {case.duration_s or study.duration_s for case in study.cases}
    counts = ", ".join(
        f"{engine} " + "/".join(str(len(used(found[engine, case.name]))) for case in study.cases)
        for engine in study.engines
    )
    seeds = sorted({each["seed"] for results in found.values() for each in results})
    left_out = sum(len(results) - len(used(results)) for results in found.values())
    text = f"Runs of {' or '.join(f'{each:g}' for each in sorted(lengths, reverse=True))} s, seeds {', '.join(map(str, seeds))}"
    text = f"{text}; runs per case: {counts}."
    return (
        f"{text} Left out, because the machine was overloaded or the run cut: {left_out}."
        if left_out
        else text
    )


def _table(study: Study, found: Results) -> str:
    rows, goals = [], any(metric.goal_percent for metric in study.metrics)
    for case, metric in _rows(study):
        cells = [_values(found, engine, case, metric) for engine in study.engines]
        goal = [_verdict(metric, _difference(*cells))] if goals else []
        rows.append(
            [
                case.name,
                metric.title,
                *map(_shown, cells),
                _signed(_difference(*cells)),
                *goal,
                metric.witness,
            ]
        )
    head = (
        "case",
        "Mb/s at the receiver",
        *study.engines,
        " against ".join(reversed(study.engines)),
        *(["goal"] if goals else []),
        "witness",
    )
    return markdown_table(head, rows)


def _rows(study: Study) -> list[tuple[Case, Metric]]:
    return [
        (case, metric)
        for case in study.cases
        for metric in study.metrics
        if metric.belongs_to(case)
    ]


def _goals_met(study: Study, found: Results) -> str:
    """How many of the rows that have a goal and both values are within it."""
    verdicts = [
        _verdict(
            metric, _difference(*(_values(found, engine, case, metric) for engine in study.engines))
        )
        for case, metric in _rows(study)
    ]
    judged = [verdict for verdict in verdicts if verdict.endswith("met")]
    return (
        f"{sum('not' not in verdict for verdict in judged)} of {len(judged)} rows meet their goal."
    )


def _ratios(study: Study, found: Results) -> str:
    base = study.cases[0]
    rows = []
    for metric in (each for each in study.metrics if each.paper):
        for case in study.cases[1:]:
            here = [
                _ratio(_values(found, engine, case, metric), _values(found, engine, base, metric))
                for engine in study.engines
            ]
            rows.append(
                [
                    metric.title,
                    case.name,
                    *here,
                    f"{metric.paper[case.name] / metric.paper[base.name]:.2f}",
                ]
            )
    return markdown_table(("", "case", *study.engines, "paper"), rows)


def _values(found: Results, engine: str, case: Case, metric: Metric) -> list[float]:
    values = (metric.of(result) for result in used(found[engine, case.name]))
    return [value for value in values if value is not None]


def _shown(values: Sequence[float]) -> str:
    if not values:
        return "-"
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{_mean(values):.2f}{spread}"


def _difference(emulated: Sequence[float], simulated: Sequence[float]) -> float | None:
    """By how much of the emulation's mean the simulator's differs; None where there is nothing to compare with."""
    if not emulated or not simulated or not _mean(emulated):
        return None
    return _mean(simulated) / _mean(emulated) - 1


def _signed(difference: float | None) -> str:
    return "-" if difference is None else f"{100 * difference:+.0f} %"


def _verdict(metric: Metric, difference: float | None) -> str:
    if metric.goal_percent is None or difference is None:
        return "-"
    return f"{metric.goal_percent} %: {'met' if 100 * abs(difference) <= metric.goal_percent else 'not met'}"


def _ratio(values: Sequence[float], base: Sequence[float]) -> str:
    return f"{_mean(values) / _mean(base):.2f}" if values and base and _mean(base) else "-"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
