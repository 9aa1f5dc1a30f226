"""Read finished runs and group them: the runs of a group differ only in the seed.

Rates are in scenario units since schema 2 of result.json. Runs of schema 1 hold wire rates, that
is scenario rates multiplied by `rate_scale`; they are never mixed with runs of schema 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import RequestError
from lab.results.documents import WIRE_RATES_SCHEMA
from lab.results.rate_scale import WIRE_LABEL
from lab.results.statistics import mean
from lab.run.reading import read_document
from lab.scenario import yaml_text
from lab.scenario.loading import PROSE

NAMED_RUNS = 5
LEFT_OUT = (*PROSE, "seed", "slow_machine_rate_scale")  # do not set experiments apart
SCALE_KEY = "rate_scale"
Settings = Mapping[str, str]  # the keys of scenario.yaml by their path, with JSON values


@dataclass(frozen=True)
class Run:
    """Hold what a comparison needs of one run.

    `rate_scale` is None in runs of schema 1, which hold wire rates. `metrics` maps the paths of
    numbers in result.json to their values, None where they were not measured.
    """

    run_id: str
    engine: str
    seed: int
    status: str
    overloaded: bool
    rate_scale: float | None
    settings: Settings
    metrics: Mapping[str, float | None]


@dataclass(frozen=True)
class Group:
    """Hold the runs of one experiment, which differ only in the seed.

    `title` names the group in a table; `label` also says the rate scale where that differs, and
    no other group has it. `left_out` names runs that repeat a run or a seed of the group.
    """

    label: str
    title: str
    settings: Settings
    runs: tuple[Run, ...]
    left_out: tuple[str, ...] = ()

    @property
    def rate_scale(self) -> float | None:
        """Return the rate scale of the runs; None: wire rates."""
        return self.runs[0].rate_scale

    @property
    def heading(self) -> str:
        """Return the title of a column, such as `none (n = 5, rate scale 0.25)`."""
        return f"{self.title} (n = {len(self.runs)}, {scale_text(self.rate_scale)})"

    def values(self, metric: str) -> list[float]:
        """Return the values of a metric in the runs that measured it."""
        found = (run.metrics.get(metric) for run in self.runs)
        return [value for value in found if value is not None]


def scale_text(rate_scale: float | None) -> str:
    """Return `rate scale X`, or `wire rates` for a run of schema 1."""
    return WIRE_LABEL if rate_scale is None else f"rate scale {rate_scale:g}"


def grouped(folders: Sequence[Path]) -> list[Group]:
    """Return the groups of the runs in these folders, in the order of their first folder.

    Strategy `none` comes first: the other groups are compared with it. Raise `RequestError` for
    a folder without a result, and for runs of schema 1 beside runs of schema 2.
    """
    runs = [read_run(folder) for folder in dict.fromkeys(folder.resolve() for folder in folders)]
    _refuse_mixed_schemas(runs)
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(json.dumps(run.settings, sort_keys=True), []).append(run)
    all_settings = [several[0].settings for several in found.values()]
    groups = [_group(several, all_settings) for several in found.values()]
    return sorted(groups, key=lambda group: group.settings["strategy.name"] != '"none"')


def read_run(folder: Path) -> Run:
    """Read a finished run from its folder."""
    result = read_document(folder, "result.json")
    scenario = yaml_text.read(folder / "scenario.yaml")
    settings = dict(_flat({k: v for k, v in scenario.items() if k not in LEFT_OUT}))
    if "strategy.name" not in settings:
        raise RequestError(
            f"compare {folder}: its scenario.yaml names no strategy: this lab did not write it"
        )
    settings["engine"] = result["engine"]
    rate_scale = None
    if result.get("schema", WIRE_RATES_SCHEMA) > WIRE_RATES_SCHEMA:
        rate_scale = float(result["rate_scale"])
        settings[SCALE_KEY] = json.dumps(rate_scale)
    return Run(
        result["run_id"],
        result["engine"],
        result["seed"],
        result["status"],
        result["overloaded"],
        rate_scale,
        settings,
        numbers(result),
    )


def numbers(result: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the numbers of a result that can be compared, by their path in result.json."""
    rows: dict[str, float | None] = {"throughput_mbps": result["throughput_mbps"]}
    rows |= {f"tiers.{tier}": rate for tier, rate in result["tiers"].items()}
    for ap, each in result["aps"].items():
        rows |= {f"aps.{ap}.{key}": each[key] for key in ("throughput_mbps", "mac_occupancy_mean")}
    rows |= {
        f"users.{user}.throughput_mbps": each["throughput_mbps"]
        for user, each in result["users"].items()
    }
    rows |= {f"fairness.{key}": result["fairness"][key] for key in ("jain", "sd_mbps")}
    fractions = [each["out_of_order_fraction"] for each in result["connections"]]
    measured = [each for each in fractions if each is not None]
    return rows | {
        "out_of_order_fraction": mean(measured) if measured else None,
        "convergence_s": result["convergence_s"],
    }


def differing_keys(all_settings: Sequence[Settings]) -> list[str]:
    """Return the keys in which experiments of one scenario differ; none for several scenarios."""
    if len({settings["name"] for settings in all_settings}) > 1:
        return []
    keys = dict.fromkeys(key for settings in all_settings for key in settings)
    return [key for key in keys if len({settings.get(key) for settings in all_settings}) > 1]


def _refuse_mixed_schemas(runs: Sequence[Run]) -> None:
    old = [run.run_id for run in runs if run.rate_scale is None]
    new = [run.run_id for run in runs if run.rate_scale is not None]
    if old and new:
        raise RequestError(
            f"compare: {_listed(old)} hold wire rates (schema 1), and {_listed(new)} hold rates in "
            "scenario units (schema 2): these are different units. Repeat the runs of schema 1 "
            "with this version, or compare runs of one schema only"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_RUNS} more" if len(names) > NAMED_RUNS else ""
    return f"{'runs' if len(names) > 1 else 'run'} {', '.join(names[:NAMED_RUNS])}{more}"


def _group(several: Sequence[Run], all_settings: Sequence[Settings]) -> Group:
    kept = _without_repeats(several)
    left_out = tuple(run.run_id for run in several if all(run is not each for each in kept))
    settings = several[0].settings
    title = _title(settings, all_settings)
    alike = [each for each in all_settings if _title(each, all_settings) == title]
    scale = f" {SCALE_KEY}={settings[SCALE_KEY]}" if len(alike) > 1 else ""
    runs = tuple(sorted(kept, key=lambda run: run.seed))
    return Group(f"{title}{scale}", title, settings, runs, left_out)


def _without_repeats(runs: Sequence[Run]) -> list[Run]:
    """Return each run once. A simulation gives the same result for the same seed: one per seed.

    Of several runs of a seed, a complete one is kept.
    """
    kept: dict[int | str, Run] = {}
    for run in sorted(runs, key=lambda run: run.status != "complete"):
        kept.setdefault(run.seed if run.engine == "sim" else run.run_id, run)
    return list(kept.values())


def _title(settings: Settings, all_settings: Sequence[Settings]) -> str:
    """Return the strategy and the keys in which groups of the same strategy differ."""
    alike = [
        each
        for each in all_settings
        if all(each.get(key) == settings[key] for key in ("strategy.name", "name"))
    ]
    several = len({each["name"] for each in all_settings}) > 1
    scenario = [json.loads(settings["name"])] if several else []
    keys = [key for key in differing_keys(alike) if key in settings and key != SCALE_KEY]
    parts = [*scenario, json.loads(settings["strategy.name"])]
    return " ".join([*parts, *(f"{key}={settings[key]}" for key in keys)])


def _flat(data: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value with its path; a list of plain values is one value."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list) and any(isinstance(each, dict) for each in data):
        for n, value in enumerate(data, 1):
            yield from _flat(value, f"{path}.{n}")
    else:
        yield path, json.dumps(data)
