"""Write docs/notebook/crosscheck.md, which compares the simulator with the emulation.

Both engines run the same cases with the same random seeds. A case is a scenario with a strategy and
changed settings. The page has one section for each study (`papers.studies`). A section says how its
runs were made, and has two tables:
1) for each case and metric: mean and range over the seeds in each engine, the difference of the
   simulator in percent, and whether this difference meets the goal
2) if a paper gives values: the ratio of each case's value to that of the first case, in both
   engines and in the paper

A table row is `independent` if the two engines share no code or data that determines its number. It
is `shared model` if both engines use the same radio model. Agreement then only shows that both
apply the model correctly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import lab
from lab.errors import RequestError, unknown
from lab.results.statistics import mean
from lab.results.tables import markdown_table
from lab.run.manifest import ROOT
from lab.run.reading import read_document, read_samples
from papers import agreement
from papers.page_file import read_page, write_page
from papers.paired_runs import Experiment, PairedRuns, hosts
from papers.studies import STUDIES, Case, Measured, Metric, Study

RUNS = ROOT / "data" / "crosscheck"


@dataclass(frozen=True)
class CrossCheck:
    """Makes the runs of studies, and writes docs/notebook/crosscheck.md from them. A study is one
    scenario in several cases (`papers.studies`).

    The folder ENGINE/SCENARIO/CASE of the runs has one run folder per seed.
    """

    runs: PairedRuns

    def make(self, names: Sequence[str], engine: str) -> bool:
        """Make the missing runs of the named studies in one engine. Return False if the user
        interrupted. Raise `RequestError` if a study does not use the engine."""
        studies = chosen(names)
        for study in studies:
            if engine not in study.engines:
                raise RequestError(
                    f"--engine: '{engine}' is not compared here: "
                    f"choose from {', '.join(study.engines)}"
                )
        return all(self._paired(study).make(_experiments(study), (engine,)) for study in studies)

    def write(self, names: Sequence[str], page: Path) -> bool:
        """Make the missing runs of the named studies in both engines, and write their sections of
        the file `page`.

        Return False if the user interrupted. `page` is then unchanged, and finished runs are kept.
        """
        sections = {}
        for study in chosen(names):
            runs, wanted = self._paired(study), _experiments(study)
            if not runs.make(wanted):
                return False
            folders = {
                (engine, case.name): [run.folder for run, _ in runs.finished(each, engine)]
                for engine in study.engines
                for case, each in zip(study.cases, wanted, strict=True)
            }
            found = {key: [read(folder) for folder in each] for key, each in folders.items()}
            made_on = hosts((engine, each) for (engine, _), row in folders.items() for each in row)
            sections[study.name] = section(study, found, self._made_by(study, made_on))
        write_page(page, composed(read_page(page), sections))
        return True

    def _paired(self, study: Study) -> PairedRuns:
        return replace(self.runs, engines=study.engines)

    def _made_by(self, study: Study, made_on: Iterable[str]) -> str:
        """Return a sentence about how the runs were made: the command, the version of the lab, and
        the machines."""
        return (
            f"Made by `./run_lab.sh crosscheck {study.name} --repeat {self.runs.repeat}` "
            f"with version {lab.__version__} of the lab; {'; '.join(made_on)}."
        )


def _experiments(study: Study) -> list[Experiment]:
    return [
        Experiment(
            f"{study.name}/{case.name}",
            study.scenario,
            case.strategy,
            case.settings,
            duration_s=case.duration_s or study.duration_s,
        )
        for case in study.cases
    ]


def read(folder: Path) -> Measured:
    return Measured(read_document(folder, "result.json"), read_samples(folder))


Found = Mapping[tuple[str, str], Sequence[Measured]]  # (engine, case) -> one run per seed
PAGE = ROOT / "docs" / "notebook" / "crosscheck.md"
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
    """Return the studies of the named scenarios. If `names` is empty, return all studies. Raise
    `RequestError` if a named scenario has no study."""
    known = {study.name: study for study in STUDIES}
    for name in names:
        if name not in known:
            raise RequestError(f"crosscheck: study {unknown(name, known)}")
    return tuple(study for study in STUDIES if not names or study.name in names)


def sections(text: str) -> dict[str, str]:
    """Split a Markdown page at its `## ` headings. Return the sections by title, without the text
    before the first heading."""
    parts = SECTION.split(text)[1:]
    return {part.partition("\n")[0].removeprefix("## "): part.strip() for part in parts}


def composed(before: str, made: Mapping[str, str]) -> str:
    """Return the new Markdown page. It has the sections of the old page `before`; the sections in
    `made` are added or replaced.

    Sections have the order of the studies. Sections that belong to no study come last.
    """
    parts = sections(before) | dict(made)
    order = [study.name for study in STUDIES if study.name in parts]
    order += [title for title in parts if title not in order]
    return "\n\n".join([INTRODUCTION.strip(), *(parts[title] for title in order)]) + "\n"


def section(study: Study, found: Found, made_by: str) -> str:
    """Return the section of a study as Markdown. `made_by` is a sentence about how the runs were
    made."""
    parts = [f"## {study.name}", f"{made_by}\n{_about(study, found)}", _table(study, found)]
    if any(metric.goal_percent for metric in study.metrics):
        parts.append(_goals_met(study, found))
    if any(metric.paper for metric in study.metrics):
        first = study.cases[0].name
        parts.append(f"Ratios to `{first}`; the paper's values are from {study.source}.")
        parts.append(_ratios(study, found))
    return "\n\n".join([*parts, study.remarks] if study.remarks else parts)


def evidence(runs: Sequence[Measured]) -> list[Measured]:
    """Return those runs that can be used (see `studies.is_evidence`)."""
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
        goal = [_verdict(metric, *cells)] if has_goals else []
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
    """Return a sentence that says how many table rows meet their goal. Rows without a goal, or
    without a value in one engine, do not count."""
    verdicts = [
        _verdict(metric, *(_values(found, engine, case, metric) for engine in study.engines))
        for case, metric in _rows(study)
    ]
    judged = [verdict for verdict in verdicts if "met" in verdict]
    met = sum("not met" not in verdict for verdict in judged)
    is_open = sum("open" in verdict for verdict in judged)
    return (
        f"{met} of {len(judged)} rows meet their goal in the means; {is_open} are open: their runs "
        "do not decide it (docs/definitions.md, Verdicts)."
    )


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
    """Return the relative difference of the simulator's mean from the emulation's mean, as a
    fraction. Return None if an engine has no value, or if the emulation's mean is 0."""
    if not emulated or not simulated or not mean(emulated):
        return None
    return mean(simulated) / mean(emulated) - 1


def _signed(difference: float | None) -> str:
    return "-" if difference is None else f"{100 * difference:+.0f} %"


def _verdict(metric: Metric, emulated: Sequence[float], simulated: Sequence[float]) -> str:
    difference = _difference(emulated, simulated)
    if metric.goal_percent is None or difference is None:
        return "-"
    met = 100 * abs(difference) <= metric.goal_percent
    judgement = agreement.within(emulated, simulated, metric.goal_percent / 100)
    is_open = f", {judgement.text}" if judgement.said == "open" else ""
    return f"{metric.goal_percent} %: {'met' if met else 'not met'}{is_open}"


def _ratio(values: Sequence[float], base: Sequence[float]) -> str:
    return f"{mean(values) / mean(base):.2f}" if values and base and mean(base) else "-"
