"""Write docs/notebook/crosscheck_all.md, which compares the simulator with the emulation on every
scenario.

Each scenario is run with the strategy `none` and with its own strategy, and some with uploads. The
first table compares numbers in result.json, with one row for each scenario, strategy and number.
The second table counts the runs of each scenario and strategy, and says why some were left out. The
numbers of older runs are stored (`run_figures`), so a command need not make all runs again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.batch.job import Job
from lab.errors import RequestError, unknown
from lab.results.documents import FinishedRun
from lab.results.statistics import mean
from lab.results.tables import markdown_table
from lab.run.manifest import ROOT
from lab.run.outcome import Result, is_whole
from lab.run.reading import read_document
from lab.scenario import engine_table, loading
from lab.scenario.yaml_text import read
from papers.agreement import (
    BEYOND,
    NOT_JUDGED,
    NOT_STEADY,
    WITHIN_FAR,
    WITHIN_NEAR,
    judged,
    shown,
)
from papers.page_file import Row, write_page
from papers.paired_runs import Experiment, PairedRuns, hosts
from papers.run_figures import RunFigures, read_figures, with_new, write_figures

# Cases: scenarios with the strategy `none` and with their own


PLAIN = "none"
OWN = {  # strategies of scenarios whose files say `none`; the others have only `none`
    "campus": "expected_throughput",
    "collision_between": "expected_throughput",
    "collision_within": "expected_throughput",
    "fat_tree": "expected_throughput",
    "pooling": "expected_throughput",
    "testbed_wifi_lte": "meter_throttling",
    "thirty_users": "meter_throttling",
}
UPLOADS = ("testbed_wifi_lte", "two_paths")  # run once more, with the users as senders
# Rate scales, on a slow machine, of scenarios whose files are too small at their
# `slow_machine_rate_scale`: a file of one connection would have 31 to 105 segments, of which the
# initial windows of its two subflows are 20. The results would depend on the first retransmission
# timeouts, and not on what the scenario compares. 20 s are enough for all files. Without KVM the VM
# needs clocks that are 4 times slower.
RATE_SCALES = {"rat_setup_1": 0.2, "rat_setup_2": 0.12, "rat_setup_3": 0.2}
FILES_S, FILES_MB = 20.0, 15
AS_STORED = {"campus": ("topology.air=cell",)}  # so that new runs join the stored ones

# Factors that are expected to suffice for an emulation at rate scale 1 in a VM without KVM on two
# processors, by scenario or by SCENARIO/STRATEGY. With `--dilation auto`, runs begin here, because
# an overloaded attempt takes minutes. Beside each, what single runs showed: the least idle share of
# the processors with a factor. None of them was marked as overloaded, except where it says why.
FACTORS = {
    "campus": 8.0,  # 0.55 with 8
    "dynamic_loss": 3.0,  # 0.59 with 3
    "fat_tree": 3.0,  # 0.40 with 3
    "fat_tree/expected_throughput": 5.0,  # not run
    "idle_lte": 8.0,  # not run; as testbed_wifi_lte
    "idle_wifi": 8.0,  # not run; as testbed_wifi_lte
    "moving_users": 5.0,  # 0.61 with 8
    "pooling/expected_throughput": 5.0,  # not run
    "rat_setup_1": 8.0,  # not run; as rat_setup_2
    "rat_setup_2": 8.0,  # 0.16 with 8
    "rat_setup_3": 8.0,  # not run; as rat_setup_2
    "testbed_wifi_lte": 8.0,  # 0.59 with 8
    "thirty_users": 5.0,  # 0.64 with 8
}
USUAL_FACTOR = 3.0  # two_paths, uneven_paths and three_paths: 0.79 to 0.89 with 3


def expected_factor(job: Job) -> float:
    """Return the factor with which a run is expected not to overload the machine: the largest of
    its case's runs with other seeds, if there are any. The packets of a second, and so the factors
    of `FACTORS`, grow with the rate scale."""
    scenario = job.scenario
    own = FACTORS.get(f"{scenario.name}/{scenario.strategy.name}")
    factor = own or FACTORS.get(scenario.name, USUAL_FACTOR)
    usual = max(1.0, math.ceil(factor * scenario.rate_scale))
    others = job.out.parent.glob("*/result.json") if job.out else ()
    found = [read_document(each.parent, each.name) for each in others]
    needed = [each.get("time_dilation") or 1.0 for each in found if is_whole(each)]
    return max(needed, default=usual)


@dataclass(frozen=True)
class Case:
    """One scenario with one strategy. With `is_up`, the users send instead of receiving."""

    scenario: str
    strategy: str
    is_up: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The scenario and the strategy, as the page names them."""
        return self.scenario, f"{self.strategy}, up" if self.is_up else self.strategy

    def experiment(self, rate_scale: float | None = None) -> Experiment:
        """Return the experiment that is run for this case. If the scenario file names this
        strategy, the file's parameters of the strategy are used. If a `rate_scale` is asked for,
        all other settings are those of the scenario file."""
        name = f"{self.scenario}/{self.strategy}"
        if self.is_up:
            up = ("traffic_direction=up",)
            return Experiment(f"{name}-up", self.scenario, self.strategy, up)
        if rate_scale is not None:
            return Experiment(name, self.scenario, self.strategy)
        if self.scenario not in RATE_SCALES:
            stored = AS_STORED.get(self.scenario, ())
            return Experiment(name, self.scenario, self.strategy, stored)
        settings = (f"rate_scale={RATE_SCALES[self.scenario]}", f"traffic_volume_mb={FILES_MB}")
        return Experiment(name, self.scenario, self.strategy, settings, duration_s=FILES_S)


def cases(scenarios: Sequence[str] = ()) -> list[Case]:
    """Return the cases (scenario and strategy) of the named scenarios, without duplicates. If no
    scenarios are named, return the cases of all. Raise `RequestError` for an unknown scenario."""
    known = loading.names()
    for name in scenarios:
        if name not in known:
            raise RequestError(f"crosscheck: scenario {unknown(name, known)}")
    return [case for name in dict.fromkeys(scenarios or known) for case in _cases_of(name)]


def _cases_of(scenario: str) -> Iterator[Case]:
    yield Case(scenario, PLAIN)
    own = loading.load(scenario).strategy.name
    own = OWN.get(scenario, PLAIN) if own == PLAIN else own
    if own != PLAIN:
        yield Case(scenario, own)
    if scenario in UPLOADS:
        yield Case(scenario, PLAIN, is_up=True)


PAGE = ROOT / "docs" / "notebook" / "crosscheck_all.md"
REASONS = ROOT / "docs" / "notebook" / "crosscheck_reasons.yaml"
COMPARISON, RUNS = "## Comparison", "## Runs"
SCALE_OF_KEY = "@"
COMPARED = ("scenario", "strategy", "number", "mininet", "sim", "difference", "result", "reason")
VALID = "valid runs: mininet"
MADE = (
    *("scenario", "strategy", "seconds", "rate scale", "clocks slower", "wall time [s]"),
    *(VALID, "sim", "Multipath TCP", "idle %: mean, least", "made on"),
)
INTRODUCTION = """\
# Every scenario in both engines

Written by `./run_lab.sh crosscheck all`. `mininet` is the real stack: kernel MPTCP, Open vSwitch,
hostapd and hwsim; the controller runs in POX. `sim` is the embedded simulator. Both ran with the
same settings, seeds, rate scale and packet scheduler (that of the kernel). Each scenario runs with
`none` and, if it has one, with its own strategy; "up" means that the users send. The second table
has the rate scale. With `--rate-scale 1` rates, files and durations are those of the scenario
files, and a VM without KVM needs slower clocks (`--dilation auto`). Without this option such a VM
uses the `slow_machine_rate_scale` of each scenario; the RAT setups then have four times this scale,
and shorter files, which would otherwise be too small. Rates
are goodput in Mb/s of the scenario; values are means over the seeds, with the smallest and the
largest value. Times of pages, answers, flows and files are those of the ones that were complete. A
seed determines where users are, how they walk, which ports they use and when
on-off flows pause, so only equal seeds are compared: the simulator's values are those of the
emulation's seeds. The difference is that of the simulator from the emulation. Runs that failed,
overloaded the machine or lacked a subflow are left out; the second table counts them. A row whose
values vary over all seeds of the simulator by 20 % or more (standard deviation over mean) is not
steady, and not judged. A result is that of the means; with "open" the runs do not decide it, and
about so many more seeds probably would (docs/definitions.md, Verdicts). Reasons for rows beyond
10 % are in crosscheck_reasons.yaml. The figures of each run are in crosscheck_all.jsonl.
[crosscheck.md](crosscheck.md) has two scenarios in detail.

In the second table, "Multipath TCP" counts the valid runs of the emulation in which every
connection of a multipath user was Multipath TCP with all its subflows, and none fell back to TCP.
"Idle" is the idle share of the emulating machine's processors, over these runs. "Clocks slower" is
the factor by which their clocks were slower than real time, and "wall time" their mean time with
the start of the VM, of the attempt that counts."""


def read_reasons(path: Path = REASONS) -> dict[str, str]:
    """Return the known reasons for differences between the engines, from a file that is edited by
    hand.

    The file has the reasons below its key `reasons`. The key of each reason is
    SCENARIO/STRATEGY/NUMBER, SCENARIO/STRATEGY or SCENARIO. The reason belongs to all table rows
    whose first columns have these values. A key that ends with `@SCALE` is for runs at this rate
    scale only. Raise `RequestError` if a key has an unknown scenario, or a strategy with which the
    scenario is not run.
    """
    found = read(path)["reasons"] if path.exists() else {}
    known = {"/".join(case.key) for case in cases()} | set(loading.names())
    for key in found:
        case = "/".join(key.partition(SCALE_OF_KEY)[0].split("/")[:2])
        if case not in known:
            raise RequestError(f"{path.name}: {unknown(case, sorted(known))}")
    return {key: " ".join(str(text).split()).replace("|", "/") for key, text in found.items()}


def page_text(
    runs: Sequence[RunFigures],
    reasons: Mapping[str, str],
    refusals: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """Return the whole page as Markdown. `runs` must be sorted by case (scenario and strategy).

    `refusals` maps a case to the reason why the emulation cannot run it. The reason is ignored if
    the case has runs.
    """
    by_case: dict[tuple[str, str], list[RunFigures]] = {}
    for run in runs:
        by_case.setdefault(run.case, []).append(run)
    rows = [
        _with_reason(row, reasons, found[0].rate_scale)
        for case, found in by_case.items()
        for row in _rows(case, found)
    ]
    made = [_made(case, found) for case, found in by_case.items()]
    made += [
        (*case, *("-",) * 4, f"refused: {why}", *("-",) * 4)
        for case, why in (refusals or {}).items()
        if case not in by_case
    ]
    parts = [
        INTRODUCTION,
        COMPARISON,
        _counts(rows, made),
        markdown_table(COMPARED, rows),
        RUNS,
        markdown_table(MADE, made),
    ]
    return "\n\n".join(parts) + "\n"


def _counts(rows: Sequence[Row], made: Sequence[Row]) -> str:
    results = Counter(row[6].partition(",")[0] for row in rows)
    refused = sum(row[MADE.index(VALID)].startswith("refused") for row in made)
    classes = (WITHIN_NEAR, WITHIN_FAR, BEYOND, NOT_STEADY, NOT_JUDGED)
    parts = [f"{results[each]} {each}" for each in classes]
    near = results[WITHIN_NEAR] + results[WITHIN_FAR]
    steady = near + results[BEYOND]
    share = ""
    if steady:
        decided = steady - sum(", open" in row[6] for row in rows)
        share = (
            f" Of {steady} steady rows, {100 * near / steady:.0f} % are within 10 % in the means, "
            f"and {decided} are decided by their runs."
        )
    return (
        f"{len(made)} cases ({refused} of them refused by the emulation), {len(rows)} rows: "
        f"{', '.join(parts)}.{share}"
    )


def _with_reason(row: Row, reasons: Mapping[str, str], rate_scale: float) -> Row:
    if not row[6].startswith(BEYOND):
        return (*row[:7], row[7] if row[6] == NOT_JUDGED else "-")
    names = ["/".join(row[:n]) for n in (3, 2, 1)]
    keys = [f"{name}{at}" for name in names for at in (f"{SCALE_OF_KEY}{rate_scale:g}", "")]
    return (*row[:7], next((reasons[key] for key in keys if key in reasons), "not found yet"))


def _made(case: tuple[str, str], runs: Sequence[RunFigures]) -> Row:
    emulated, simulated = (
        [run for run in runs if _is_emulated(run) is side] for side in (True, False)
    )
    valid = [run for run in emulated if not run.left_out]
    return (
        *case,
        f"{runs[0].duration_s:g}",
        f"{runs[0].rate_scale:g}",
        _slower(valid),
        _wall(valid),
        _account(emulated),
        _account(simulated),
        _verified(valid),
        _idle(valid),
        "; ".join(sorted({run.made_on for run in runs if not run.left_out})) or "-",
    )


def _is_emulated(run: RunFigures) -> bool:
    return engine_table.entry(run.engine).real_time


def _slower(runs: Sequence[RunFigures]) -> str:
    """Return as text by which factors the clocks were slower, such as `3, 6`. The text is "-" if
    none is known."""
    factors = sorted({run.dilation for run in runs if run.dilation is not None})
    return ", ".join(f"{each:g}" for each in factors) or "-"


def _wall(runs: Sequence[RunFigures]) -> str:
    times = [run.wall_s for run in runs if run.wall_s is not None]
    return f"{mean(times):.0f}" if times else "-"


def _account(runs: Sequence[RunFigures]) -> str:
    """Return as text how many runs are valid, and why the others are not."""
    reasons = Counter(run.left_out for run in runs if run.left_out)
    parts = [f"{count} {why}" if count > 1 else why for why, count in reasons.items()]
    return "; ".join([f"{len(runs) - reasons.total()} of {len(runs)}", *parts])


def _verified(runs: Sequence[RunFigures]) -> str:
    """Return as text in how many runs Multipath TCP was verified. The text is "-" if no run had
    multipath users."""
    checked = [run.verified for run in runs if run.verified is not None]
    return f"{sum(checked)} of {len(checked)}" if checked else "-"


def _idle(runs: Sequence[RunFigures]) -> str:
    """Return the idle share of the processors in percent as text: the mean over all runs, and the
    smallest of all samples. The text is "-" if no run has measured it."""
    means = [run.idle_mean for run in runs if run.idle_mean is not None]
    least = [run.idle_min for run in runs if run.idle_min is not None]
    return f"{100 * mean(means):.0f}, {100 * min(least):.0f}" if means and least else "-"


def _rows(case: tuple[str, str], runs: Sequence[RunFigures]) -> Iterator[Row]:
    """Yield one table row for each number that the valid runs of a case have. The reason for a
    difference is filled in later."""
    valid = [run for run in runs if not run.left_out]
    for title in dict.fromkeys(title for run in valid for title in run.numbers):
        emulated, simulated = (
            {
                run.seed: run.numbers[title]
                for run in valid
                if title in run.numbers and _is_emulated(run) is emulation
            }
            for emulation in (True, False)
        )
        difference, result = judged(emulated, simulated)
        same = [value for seed, value in simulated.items() if seed in emulated or not emulated]
        lacking = "" if emulated else "no valid run of the emulation"
        values = (shown(list(emulated.values())), shown(same))
        yield (*case, title, *values, difference, result, lacking or "-")


def figures(
    case: Case, run: FinishedRun, left_out: str, made_on: str, length_s: float
) -> RunFigures:
    """Return the measured numbers of a run. `left_out` says why the run is not valid, and is empty
    for a valid run. `made_on` names the machine, and `length_s` is the planned duration."""
    result = run.result
    overload = result.get("overload") or {}
    return RunFigures(
        *case.key,
        engine=result["engine"],
        seed=result["seed"],
        rate_scale=result["rate_scale"],
        duration_s=length_s,
        numbers={} if left_out else _known(numbers(result)),
        left_out=left_out.replace("|", "/"),
        verified=result.get("mptcp", {}).get("verified"),
        idle_mean=overload.get("idle_share_mean"),
        idle_min=overload.get("idle_share_min"),
        made_on=made_on.replace("|", "/"),
        dilation=result.get("time_dilation"),
        wall_s=_wall_s(run.folder),
    )


def _wall_s(folder: Path) -> float:
    """Return how long a run took, in s, by the times of its files on this machine. In the VM, the
    clock of the run itself may be slower."""
    first = next(
        each for each in (folder / "vm" / "start.sh", folder / "scenario.yaml") if each.exists()
    )
    return round((folder / "result.json").stat().st_mtime - first.stat().st_mtime, 1)


def _known(values: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    return {title: round(value, 4) for title, value in values if value is not None}


TRANSFERS = {"web": "pages", "rpc": "answers", "workload": "flows"}


def numbers(result: Result) -> Iterator[tuple[str, float | None]]:
    """Yield name and value of each number in result.json that is compared: throughput in Mb/s,
    Jain's fairness index, times of transfers in s, and what viewers and callers notice.

    The throughput of Tier 2 (secondary subflows) is left out if there are no access points. The
    fairness index is left out if there is a single user. The mean time until a file has arrived is
    left out unless every connection has transferred a whole file. Times of pages, answers and flows
    are those of the ones that were complete; how many were complete is a number, too.
    """
    yield "total", result["throughput_mbps"]
    for ap, figures in sorted(result["aps"].items()):
        yield ap, figures["throughput_mbps"]
    if result["aps"]:
        yield "Tier 2", result["tiers"]["2"]
    if len(result["users"]) > 1:
        yield "Jain's index", result["fairness"]["jain"]
    times = [each["completion_s"] for each in result["connections"]]
    if times and None not in times:
        yield "time to complete [s]", mean(times)
    for kind, of_kind in result.get("flows", {}).get("by_kind", {}).items():
        if title := TRANSFERS.get(kind):
            yield f"{title} complete", of_kind["completed"]
            for p in (50, 95):
                yield f"{title}: {p} % within [s]", of_kind[f"fct_p{p}_s"]
    if "video" in result:
        yield "bitrate of the video", result["video"]["bitrate_mbps"]
    if "call" in result:
        yield "MOS of the call", result["call"]["mos"]
        yield "MOS of its worst 5 s", result["call"]["mos_worst"]


@dataclass(frozen=True)
class CrossCheckAll:
    """Makes the runs of scenarios in both engines, and writes the page that compares them.
    `reasons` is a file with known reasons for differences."""

    runs: PairedRuns
    reasons: Path = REASONS

    def _experiment(self, case: Case) -> Experiment:
        return case.experiment(self.runs.rate_scale)

    def make(self, scenarios: Sequence[str], engine: str) -> bool:
        """Make the missing runs of the named scenarios in one engine. If no scenarios are named,
        make the runs of all.

        Return False if the user interrupted. Raise `RequestError` for an engine that is not
        compared.
        """
        if engine not in self.runs.engines:
            known = ", ".join(self.runs.engines)
            raise RequestError(f"--engine: '{engine}' is not compared here: choose from {known}")
        able = [case for case, refusal in self._admitted(scenarios) if not refusal]
        return self.runs.make(list(map(self._experiment, able)), (engine,))

    def write(self, scenarios: Sequence[str], page: Path) -> bool:
        """Make the missing runs of the named scenarios in both engines, and update the file `page`.
        If no scenarios are named, make the runs of all.

        The numbers of all runs, old and new, are in another file beside the page. The page is
        written from this file. Return False if the user interrupted. The page is then unchanged,
        and finished runs are kept.
        """
        reasons = read_reasons(self.reasons)
        admitted = self._admitted(scenarios)
        able = [case for case, refusal in admitted if not refusal]
        if not self.runs.make(list(map(self._experiment, able))):
            return False
        made = [run for case in able for run in self._figures(case)]
        order = [case.key for case in cases()]
        file = page.with_suffix(".jsonl")
        figures = with_new(read_figures(file), made, order)
        write_figures(file, figures)
        refusals = {case.key: why for case, why in admitted if why}
        write_page(page, page_text(figures, reasons, refusals))
        return True

    def _admitted(self, scenarios: Sequence[str]) -> list[tuple[Case, str]]:
        """Return each case (scenario and strategy) with the reason why the emulation refuses it.
        The reason is "" if the emulation can run the case."""
        found = []
        for case in cases(scenarios):
            refusal = self.runs.refusal(self._experiment(case))
            if refusal:
                self.runs.display.say(f"{', '.join(case.key)}: refused: {refusal}")
            found.append((case, refusal))
        return found

    def _figures(self, case: Case) -> Iterator[RunFigures]:
        experiment = self._experiment(case)
        length_s = self.runs.length_s(experiment)
        for engine in self.runs.engines:
            for run, why in self.runs.finished(experiment, engine):
                (made_on,) = hosts([(engine, run.folder)])
                yield figures(case, run, why, made_on, length_s)
