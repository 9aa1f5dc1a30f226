"""The simulator beside the emulation: the same cases and seeds in both engines, and what they measured as a page.

1) every case runs in both engines, each run in a folder of its own; what is there already is kept
2) per metric: mean and range over the seeds in each engine, and by how much the simulator differs
3) where a paper names values: what each case keeps of the first one, in both engines and in the paper

A row is `independent` if the two engines share nothing that decides it, and `shared model` if both ask the same model,
so that agreement proves only that both carry it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Result = dict[str, Any]
Results = Mapping[tuple[str, str], Sequence[Result]]  # (engine, case) -> one result per seed
ENGINES = ("mininet", "sim")


@dataclass(frozen=True)
class Case:
    """One experiment of a study: what differs from the scenario as it is written."""

    name: str
    strategy: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Metric:
    """A number of result.json by its path; `paper` are a paper's values by case, in any unit, for ratios only."""

    title: str
    path: str
    witness: str = "independent"
    paper: Mapping[str, float] = field(default_factory=dict)

    def of(self, result: Result) -> float | None:
        value: Any = result
        for key in self.path.split("/"):
            value = value[key]
        return value if isinstance(value, int | float) else None


@dataclass(frozen=True)
class Study:
    """Cases of one scenario, and what is compared; ratios are taken to the first case."""

    scenario: str
    duration_s: float
    cases: tuple[Case, ...]
    metrics: tuple[Metric, ...]
    source: str = ""
    remarks: str = ""


REMARKS = """Why UE2 and UE3 differ under `meter_throttling`: the kernel hands data to a subflow in bursts of up to 64 kB
(`MPTCP_SEND_BURST_SIZE`), the simulator segment by segment. After 26 s of such a run `ss -tinm` on the server showed 75,532
bytes not yet sent on UE3's throttled subflow, which are 6 s of work at 0.1 Mb/s; whatever follows them waits in the receive
buffer, and then the first subflow has nothing to send: it was busy for 61.6 s, that of UE4 for 75.8 s of its connection. So UE2
and UE3 get less than their first path alone, in bursts, and UE1 and UE4 take what they leave, more than in the baseline. The
paper shows no such loss.

UE1 keeps less under `none` than in the paper: at equal round trips the cell's three flows share its packets about equally (here
2.9, 3.0 and 1.8 Mb/s), and the paper does not say what UE3 took of the WiFi cell."""

STUDIES = (
    Study(
        "testbed_wifi_lte",
        40,
        (
            Case("baseline", "none", ("topology.multipath=[]",)),
            Case("none", "none"),
            Case("meter_throttling", "meter_throttling"),
        ),
        (
            Metric("WiFi", "aps/wifi1/throughput_mbps", "shared model", {"baseline": 42, "none": 30, "meter_throttling": 38.5}),
            Metric("LTE", "aps/lte1/throughput_mbps", "shared model", {"baseline": 46, "none": 42, "meter_throttling": 42.9}),
            Metric("UE1", "users/ue1/throughput_mbps", "independent", {"baseline": 22, "none": 15, "meter_throttling": 20.5}),
            Metric("UE2", "users/ue2/throughput_mbps"),
            Metric("UE3", "users/ue3/throughput_mbps"),
            Metric("UE4", "users/ue4/throughput_mbps", "independent", {"baseline": 23, "none": 16, "meter_throttling": 21.3}),
            Metric("Tier 2 on WiFi", "aps/wifi1/tier2_mbps"),
            Metric("Tier 2 on LTE", "aps/lte1/tier2_mbps"),
            Metric("MAC occupancy of WiFi", "aps/wifi1/mac_occupancy_mean"),
        ),
        "MP-SDN, Figures 3 and 9, read from the text",
        REMARKS,
    ),
)


def page(study: Study, found: Results) -> str:
    """The study as Markdown."""
    parts = [f"## {study.scenario}", _about(study, found), _table(study, found)]
    if any(metric.paper for metric in study.metrics):
        first = study.cases[0].name
        parts.append(f"What is left of `{first}`; the paper's values are from {study.source}.")
        parts.append(_ratios(study, found))
    return "\n\n".join([*parts, study.remarks] if study.remarks else parts)


def used(results: Sequence[Result]) -> list[Result]:
    """The runs that are evidence: complete, on a machine that kept up."""
    return [each for each in results if each["status"] == "complete" and not each["overloaded"]]


def _about(study: Study, found: Results) -> str:
    counts = ", ".join(
        f"{engine} " + "/".join(str(len(used(found[engine, case.name]))) for case in study.cases) for engine in ENGINES
    )
    seeds = sorted({each["seed"] for results in found.values() for each in results})
    left_out = sum(len(results) - len(used(results)) for results in found.values())
    text = f"Runs of {study.duration_s:g} s, seeds {', '.join(map(str, seeds))}; runs per case: {counts}."
    return f"{text} Left out, because the machine was overloaded or the run cut: {left_out}." if left_out else text


def _table(study: Study, found: Results) -> str:
    rows = []
    for case in study.cases:
        for metric in study.metrics:
            cells = [_values(found, engine, case, metric) for engine in ENGINES]
            rows.append([case.name, metric.title, *map(_shown, cells), _difference(*cells), metric.witness])
    return markdown(("case", "Mb/s at the receiver", *ENGINES, "sim against mininet", "witness"), rows)


def _ratios(study: Study, found: Results) -> str:
    base = study.cases[0]
    rows = []
    for metric in (each for each in study.metrics if each.paper):
        for case in study.cases[1:]:
            here = [_ratio(_values(found, engine, case, metric), _values(found, engine, base, metric)) for engine in ENGINES]
            rows.append([metric.title, case.name, *here, f"{metric.paper[case.name] / metric.paper[base.name]:.2f}"])
    return markdown(("", "case", *ENGINES, "paper"), rows)


def _values(found: Results, engine: str, case: Case, metric: Metric) -> list[float]:
    values = (metric.of(result) for result in used(found[engine, case.name]))
    return [value for value in values if value is not None]


def _shown(values: Sequence[float]) -> str:
    if not values:
        return "-"
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{_mean(values):.2f}{spread}"


def _difference(emulated: Sequence[float], simulated: Sequence[float]) -> str:
    if not emulated or not simulated or not _mean(emulated):
        return "-"
    return f"{100 * (_mean(simulated) / _mean(emulated) - 1):+.0f} %"


def _ratio(values: Sequence[float], base: Sequence[float]) -> str:
    return f"{_mean(values) / _mean(base):.2f}" if values and base and _mean(base) else "-"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(_lines(head, rows))


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
