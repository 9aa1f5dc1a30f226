"""Runs side by side: repeats are taken together, and a verdict says in words whether a difference can be told from chance.

1) group the runs whose scenarios differ in nothing but the seed
2) mean and 95 % bootstrap interval of each metric in each group
3) verdict per metric: relative difference to the first group, with the 95 % bootstrap interval of that ratio
A percentile interval of few values is too narrow; it is widened as Student's t widens a normal one (T. Hesterberg, "What teachers
should know about the bootstrap", The American Statistician 69, 2015, section 3.2, "expanded percentile"). Each metric is judged by
itself: of twenty that do not differ one may be told to, by chance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import MachineLacks, RequestError
from lab.results.tables import markdown_table, text_table
from lab.run.recorder import read_document
from lab.scenario import checking
from lab.scenario.loading import PROSE

MIN_REPEATS = 5  # a bootstrap of fewer values promises more than it holds
MAX_MORE = 200
MOST_TIMES = 1000
RESAMPLES = 4999
CONFIDENCE = 0.95
WORDS = {
    1: ("better", "worse"),
    -1: ("worse", "better"),
    0: ("higher", "lower"),
}  # by whether more is good
Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Group:
    """Repeats of one experiment; `plain` is their scenario, flat, without prose and seed. `again` are runs that tell nothing new."""

    label: str
    plain: dict[str, str]
    results: tuple[dict[str, Any], ...]
    again: tuple[str, ...] = ()

    def values(self, metric: str) -> list[float]:
        found = (numbers(result).get(metric) for result in self.results)
        return [value for value in found if value is not None]


@dataclass(frozen=True)
class Comparison:
    """Groups, the estimate of each metric in each of them, and verdicts on all but the first."""

    groups: Sequence[Group]
    rows: dict[str, list[dict[str, Any]]]
    verdicts: dict[str, dict[str, str]]


def compared(folders: Sequence[Path]) -> Comparison:
    """What there is to say about these runs."""
    groups = grouped(folders)
    metrics = list(
        dict.fromkeys(
            metric for group in groups for result in group.results for metric in numbers(result)
        )
    )
    rows = {metric: [_estimate(group.values(metric)) for group in groups] for metric in metrics}
    verdicts = {
        group.label: {
            metric: verdict(groups[0].values(metric), group.values(metric), good(metric))
            for metric in metrics
        }
        for group in groups[1:]
    }
    return Comparison(groups, rows, verdicts)


def report(folders: Sequence[Path], as_json: bool = False, as_markdown: bool = False) -> str:
    """The comparison as text, as a table in Markdown, or as JSON {"groups", "metrics", "verdicts", "warnings"}."""
    found = compared(folders)
    if as_json:
        return json.dumps(_document(found), indent=1)
    parts = _markdown(found) if as_markdown else _text(found)
    return "\n\n".join([*parts, *warnings(found.groups)])


def _document(found: Comparison) -> dict[str, Any]:
    counts = [
        {
            "label": group.label,
            "n": len(group.results),
            "runs": [r["run_id"] for r in group.results],
        }
        for group in found.groups
    ]
    named = {
        metric: {g.label: cell for g, cell in zip(found.groups, cells, strict=True)}
        for metric, cells in found.rows.items()
    }
    return {
        "groups": counts,
        "metrics": named,
        "verdicts": found.verdicts,
        "warnings": list(warnings(found.groups)),
    }


def _heads(found: Comparison) -> list[str]:
    return ["metric", *(f"{group.label} (n = {len(group.results)})" for group in found.groups)]


def _text(found: Comparison) -> list[str]:
    """A table, and a list of verdicts for each group but the first."""
    parts = [
        text_table(
            _heads(found), [[metric, *map(_shown, cells)] for metric, cells in found.rows.items()]
        )
    ]
    for label, said in found.verdicts.items():
        words = (f"  {metric}: {words}" for metric, words in said.items())
        parts.append("\n".join([f"{label} against {found.groups[0].label}:", *words]))
    return parts


def _markdown(found: Comparison) -> list[str]:
    """One table, each verdict beside its estimate; the number of runs stands in its head."""
    rows = []
    for metric, cells in found.rows.items():
        said = [
            "",
            *(f": {verdict[metric].split(', n = ')[0]}" for verdict in found.verdicts.values()),
        ]
        rows.append(
            [
                f"`{metric}`",
                *(f"{_shown(cell)}{words}" for cell, words in zip(cells, said, strict=True)),
            ]
        )
    return [markdown_table(_heads(found), rows)]


def grouped(folders: Sequence[Path]) -> list[Group]:
    """The groups, strategy `none` first as the one to compare with, else in the order of their first folder."""
    found: dict[str, tuple[dict[str, str], list[dict[str, Any]]]] = {}
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        result = read_document(folder, "result.json")
        plain = dict(
            _flat(
                {
                    k: v
                    for k, v in checking.read(folder / "scenario.yaml").items()
                    if k not in (*PROSE, "seed")
                }
            )
        )
        plain["engine"] = result["engine"]
        found.setdefault(json.dumps(plain, sort_keys=True), (plain, []))[1].append(result)
    plains = [plain for plain, _ in found.values()]
    groups = []
    for plain, results in found.values():
        told = _told_once(results)
        again = tuple(each["run_id"] for each in results if all(each is not one for one in told))
        groups.append(
            Group(
                _label(plain, plains),
                plain,
                tuple(sorted(told, key=lambda each: each["seed"])),
                again,
            )
        )
    return sorted(groups, key=lambda group: group.plain["strategy.name"] != '"none"')


def _told_once(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One of each run, and in the simulator, where a seed gives the same again, one of each seed, preferably a complete one."""
    told: dict[Any, dict[str, Any]] = {}
    for each in sorted(results, key=lambda each: each["status"] != "complete"):
        told.setdefault(each["seed"] if each["engine"] == "sim" else each["run_id"], each)
    return list(told.values())


def numbers(result: dict[str, Any]) -> dict[str, float | None]:
    """The metrics of a result that can be compared, by their path in result.json."""
    rows: dict[str, float | None] = {"throughput_mbps": result["throughput_mbps"]}
    rows |= {f"tiers.{tier}": rate for tier, rate in result["tiers"].items()}
    for ap, each in result["aps"].items():
        rows |= {f"aps.{ap}.{key}": each[key] for key in ("throughput_mbps", "mac_occupancy_mean")}
    rows |= {
        f"users.{user}.throughput_mbps": each["throughput_mbps"]
        for user, each in result["users"].items()
    }
    rows |= {f"fairness.{key}": result["fairness"][key] for key in ("jain", "sd_mbps")}
    late = [
        each["out_of_order_fraction"]
        for each in result["connections"]
        if each["out_of_order_fraction"] is not None
    ]
    return rows | {
        "out_of_order_fraction": _mean(late) if late else None,
        "convergence_s": result["convergence_s"],
    }


def good(metric: str) -> int:
    """1 where more is better, -1 where less is, 0 where it is neither."""
    if metric in ("fairness.sd_mbps", "out_of_order_fraction", "convergence_s"):
        return -1
    return 1 if metric.endswith("throughput_mbps") or metric == "fairness.jain" else 0


def verdict(base: Sequence[float], other: Sequence[float], good: int = 1) -> str:
    """'better by 18 % [14, 22], n = 10', 'worse by ...', or 'cannot tell ..., run n more'; `good` is 1 where more is better."""
    n = min(len(base), len(other))
    if not n:
        return "cannot tell: not measured"
    if not any(base):
        return (
            f"cannot tell: {_mean(other):.3g} and nothing to compare it with"
            if any(other)
            else f"the same in every run, n = {n}"
        )
    change = 100 * (_mean(other) / _mean(base) - 1)
    around = f"{round(change):+d} %"
    if n < MIN_REPEATS:
        return f"{around}, but cannot tell: n = {n}, run {MIN_REPEATS - n} more"
    low, high = ratio_interval(base, other)
    near, far = sorted((abs(low), abs(high)))
    size = f"[{_percent(near)}, {_percent(far)}], n = {n}"
    if low == high == 0:
        return f"the same in every run, n = {n}"
    if low > 0 or high < 0:
        return f"{WORDS[good][change < 0]} by {_percent(abs(change))} % {size}"
    needed = n * ((high - low) / 2 / abs(change)) ** 2 if change else math.inf
    more = min(MAX_MORE, max(1, math.ceil(min(needed, n + MAX_MORE)) - n))
    return f"cannot tell: {around} [{round(low)}, {round(high)}], n = {n}, run {more} more"


def warnings(groups: Sequence[Group]) -> Iterator[str]:
    """What makes the comparison doubtful."""
    if len({group.plain["name"] for group in groups}) > 1:
        yield "careful: these are different scenarios"
    apart = [
        key for key in _apart([group.plain for group in groups]) if not key.startswith("strategy.")
    ]
    unsaid = [key for key in apart if not all(key in group.label for group in groups)]
    if unsaid:
        yield f"careful: they differ in {', '.join(unsaid)}, too"
    for run in (run for group in groups for run in group.again):
        yield f"careful: run {run} is a run or a seed that is there already, so it is left out"
    for result in (each for group in groups for each in group.results):
        if result["status"] != "complete":
            yield f"careful: run {result['run_id']} is {result['status']}"
        if result["overloaded"]:
            yield f"careful: run {result['run_id']} overloaded the machine"


def _percent(value: float) -> str:
    """Without decimals, unless nothing would be left."""
    return f"{value:.0f}" if value >= 1 or value == 0 else f"{value:.2g}"


def _estimate(values: Sequence[float]) -> dict[str, Any]:
    interval = _interval(values)
    return {
        "mean": _mean(values) if values else None,
        "low": interval and interval[0],
        "high": interval and interval[1],
        "n": len(values),
    }


def _shown(cell: dict[str, Any]) -> str:
    if cell["mean"] is None:
        return "-"
    return f"{cell['mean']:.3g}" + (
        "" if cell["low"] is None else f" [{cell['low']:.3g}, {cell['high']:.3g}]"
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _interval(values: Sequence[float]) -> Interval:
    if len(values) < MIN_REPEATS:
        return None
    return _bootstrap((values,), lambda x, axis: x.mean(axis=axis))


def ratio_interval(base: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Of the change of the mean [%]."""
    return _bootstrap((base, other), _change_percent)


def _change_percent(base: Any, other: Any, axis: int) -> Any:
    """From one mean to the other, of arrays. It ends at MOST_TIMES as much, for those that are drawn may all have had 0."""
    before, after = base.mean(axis=axis), other.mean(axis=axis)
    least = before.clip(after / MOST_TIMES)
    return 100 * (after - before) / (least + (least == 0))


def _bootstrap(samples: tuple[Sequence[float], ...], statistic: Any) -> tuple[float, float]:
    """The expanded percentile interval; a point if nothing varies. The same samples give the same interval."""
    try:
        import numpy
        from scipy.stats import bootstrap, norm, t
    except ImportError as error:
        raise MachineLacks(
            f"compute intervals: {error}. Try: ./run_lab.sh compare, which installs what is missing"
        ) from error
    arrays = [numpy.asarray(values, dtype=float) for values in samples]
    if all(each.min() == each.max() for each in arrays):
        estimate = float(statistic(*arrays, axis=0))
        return estimate, estimate
    rng, n = numpy.random.default_rng(1), min(map(len, samples))
    level = 1 - 2 * float(norm.cdf(-math.sqrt(n / (n - 1)) * t.ppf((1 + CONFIDENCE) / 2, n - 1)))
    found = bootstrap(
        arrays,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=level,
        method="percentile",
        vectorized=True,
        rng=rng,
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _flat(data: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value with its path; a list of plain values is one value."""
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list) and any(isinstance(each, dict) for each in data):
        for n, value in enumerate(data, 1):
            yield from _flat(value, f"{path}.{n}")
    else:
        yield path, json.dumps(data)


def _label(plain: dict[str, str], plains: Sequence[dict[str, str]]) -> str:
    """The strategy, and what else sets this group apart from those with the same strategy."""
    if "strategy.name" not in plain:
        raise RequestError(
            "compare: a run's scenario.yaml names no strategy: it was not written by this lab"
        )
    name = json.loads(plain["strategy.name"])
    alike = [
        each
        for each in plains
        if all(each.get(key) == plain[key] for key in ("strategy.name", "name"))
    ]
    title = [json.loads(plain["name"])] if len({each["name"] for each in plains}) > 1 else []
    return " ".join(
        [*title, name, *(f"{key}={plain[key]}" for key in _apart(alike) if key in plain)]
    )


def _apart(plains: Sequence[dict[str, str]]) -> list[str]:
    """In which keys these experiments differ, if they are of one scenario."""
    if len({plain["name"] for plain in plains}) > 1:
        return []
    keys = dict.fromkeys(key for plain in plains for key in plain)
    return [key for key in keys if len({plain.get(key) for plain in plains}) > 1]
