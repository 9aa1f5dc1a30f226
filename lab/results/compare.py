"""Compare runs: put repeated runs into groups, and say which differences between the groups are
unlikely to be chance.

1) put runs into one group if their scenarios differ in nothing but the seed
2) estimate the mean of each metric in each group, with a 95 % bootstrap interval
   (`lab.results.statistics`)
3) compare each group with the first one: a metric differs if the 95 % interval of the relative
   change of its mean does not contain 0

Runs with the same seed in the same network are compared in pairs. They have the same users, traffic
and random numbers, so what they share cancels out ("common random numbers", A. M. Law, "Simulation
Modeling and Analysis", section 11.2).

A metric is a number of result.json, such as `users.ue1.throughput_mbps`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from lab.errors import RequestError
from lab.frame import Frame
from lab.metrics import BUILT_IN, SECTIONS, Metric, Samples, of_number
from lab.results import flips, run_folders
from lab.results.documents import TIMED_HANDSHAKES_SCHEMA, WIRE_RATES_SCHEMA, figure
from lab.results.labels import TIMED_LABEL, clocks_label, heading, held, scale_text
from lab.results.statistics import MIN_RUNS, Estimate, Verdict, estimate, mean, verdict
from lab.run.manifest import made_by
from lab.run.reading import (
    changed,
    changed_text,
    declared_metrics,
    has_results_only,
    read_document,
    read_lines,
    refuse_results_only,
)
from lab.run.result import SCHEMA, sections
from lab.scenario import yaml_text
from lab.scenario.schema import PROSE
from lab.summaries import EPSILON_S, intervals, intervals_between

# Groups of runs
#
# The runs of a group differ only in the seed. Runs that were changed by hand while they went on
# form separate groups, with these changes (flips) in the title.
#
# result.json has three versions. Schema 1 held rates on the wire: scenario rates multiplied by
# `rate_scale`. Schema 2 has rates in the units of the scenario file. Since schema 3, simulated
# connections open with packets. Runs of different schemas are never compared.
#
# The content of a user's file counts as a setting: runs made before and after an edit are in two
# groups. A run whose files were edited after its end is left out.


NAMED_RUNS = 5
KEPT_SETTINGS = 2000  # runs
LEFT_OUT = (*PROSE, "seed", "slow_machine_rate_scale")  # repetitions may differ in these
SCALE_KEY = "rate_scale"
FLIPS_KEY = flips.FLIPS  # among the settings of a flipped run
FILE_KEY = "file "  # begins the setting for a user's file, whose value is a digest
DIGITS = 8  # of a digest that is shown
TOTAL = "throughput_mbps"  # a metric that every run has
Settings = Mapping[str, str]  # the keys of scenario.yaml by their path, with JSON values


@dataclass(frozen=True)
class Run:
    """The data of one run that a comparison needs.

    `settings` maps each key of the run's scenario to its value, except the seed and texts for
    people; runs with equal settings form a group. `rate_scale` is None in runs of schema 1, whose
    rates are those on the wire. `metrics` maps the path of each number of result.json, such as
    `fairness.jain`, to its value; None means that the run did not measure it.
    """

    run_id: str
    engine: str
    seed: int
    status: str
    overloaded: bool
    rate_scale: float | None
    settings: Settings
    metrics: Mapping[str, float | None]
    folder: Path
    own: tuple[Metric, ...] = ()  # metrics of users' files, which its manifest declares
    made_by: str = ""  # the version of the lab
    network: str = ""  # digest of its network; "" if the run does not say
    samples: str = ""  # digest of samples.jsonl; "" if the run does not say
    cc: str = ""  # the congestion control that was read back from its connections
    has_results_only: bool = False  # made with `--keep results`
    schema: int = SCHEMA  # of result.json
    time_dilation: float | None = None

    @property
    def scenario(self) -> str:
        return str(json.loads(self.settings["name"]))

    @property
    def strategy(self) -> str:
        return str(json.loads(self.settings["strategy.name"]))


@dataclass(frozen=True)
class Group:
    """Runs with the same settings and different seeds.

    `title` names the group in a table. `label` is unique: it is the title, with the rate scale
    added if several groups have the same title. `left_out` has the ids of runs that are not used
    because they repeat another run of the group.
    """

    label: str
    title: str
    settings: Settings
    runs: tuple[Run, ...]
    left_out: tuple[str, ...] = ()

    @property
    def rate_scale(self) -> float | None:
        """The rate scale of the runs; None if their rates are those on the wire (schema 1)."""
        return self.runs[0].rate_scale

    @property
    def heading(self) -> str:
        """The title of the group's column, such as `none (n = 5, rate scale 0.25)`."""
        return f"{heading(self.title, self.settings)} (n = {len(self.runs)}, {self.scale})"

    @property
    def name(self) -> str:
        """The label with its settings in words, such as `none, congestion control bbr`."""
        return heading(self.label, self.settings)

    @property
    def scale(self) -> str:
        """The rate scale, the form of older schemas, and how much slower clocks were, in words."""
        older = TIMED_LABEL if self.runs[0].schema == TIMED_HANDSHAKES_SCHEMA else ""
        slower = map(clocks_label, sorted({run.time_dilation or 1 for run in self.runs}))
        words = (scale_text(self.rate_scale), older, " or ".join(filter(None, slower)))
        return ", ".join(filter(None, words))

    def values(self, metric: str) -> list[float]:
        """Return the value of a metric in each run that measured it."""
        found = (run.metrics.get(metric) for run in self.runs)
        return [value for value in found if value is not None]

    def by_pair(self, metric: str) -> dict[tuple[int, str], float]:
        """Return the value of a metric by seed and network; the mean, if several runs have both."""
        found: dict[tuple[int, str], list[float]] = {}
        for run in self.runs:
            if (value := run.metrics.get(metric)) is not None:
                found.setdefault((run.seed, run.network), []).append(value)
        return {key: mean(values) for key, values in found.items()}


def pairs(base: Group, other: Group, metric: str) -> tuple[list[float], list[float]] | None:
    """Return the values of a metric in both groups, one for each seed and network that both have.

    Return None if they share fewer than `MIN_RUNS` of them and fewer than the smaller group has:
    pairs would then leave out too much.
    """
    first, second = base.by_pair(metric), other.by_pair(metric)
    shared = sorted(first.keys() & second.keys())
    if not shared or len(shared) < min(MIN_RUNS, len(first), len(second)):
        return None
    return [first[each] for each in shared], [second[each] for each in shared]


class Edited(RequestError):
    """Raised for a run whose files were edited after its end."""


@dataclass(frozen=True)
class Window:
    """The part of each run whose samples are compared: after `start_s`, and not after `end_s`."""

    start_s: float = 0.0
    end_s: float = math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.start_s < self.end_s:
            raise RequestError(
                f"compare from {self.start_s:g} s to {self.end_s:g} s: the end must be after the "
                "start, such as --from 20 --to 60"
            )

    @property
    def text(self) -> str:
        """Such as `from 20 s to 60 s`."""
        until = "the end" if self.end_s == math.inf else f"{self.end_s:g} s"
        return f"from {self.start_s:g} s to {until}"

    def numbers(self, folder: Path, own: Sequence[Metric]) -> dict[str, float | None]:
        """Return the numbers of a run that follow from its samples in the window, by their paths.

        Numbers about the whole run are left out, such as the time until the rates have settled.
        Raise `RequestError` if the run ended before the window does, or if its network cannot be
        read.
        """
        from lab.results.explain.present import network  # imported here: it loads networkx

        refuse_results_only(folder, f"compare {self.text}")
        times: list[float] = []
        frames: list[Frame] = []
        for line in read_lines(folder / "samples.jsonl"):
            times.append(line["t"])
            if self.start_s + EPSILON_S < line["t"] <= self.end_s + EPSILON_S:
                frames.append(Frame.from_json(line))
        inside = intervals_between(times, self.start_s, self.end_s)
        last_s, interval_s = (times[-1], intervals(times)[-1]) if times else (0.0, 0.0)
        if not inside or (self.end_s < math.inf and last_s + interval_s <= self.end_s):
            raise RequestError(
                f"compare {folder.name} {self.text}: its last sample is at {last_s:g} s. Choose an "
                "earlier part of the run, with --from and --to"
            )
        try:
            topology = network(folder)
        except LookupError as error:
            raise RequestError(f"compare {folder.name} {self.text}: {error}") from error
        samples = Samples(frames, [length_s for _, length_s in inside], topology)
        found = numbers({"connections": [], **sections(samples), "convergence_s": None}, own)
        return {path: value for path, value in found.items() if value is not None}


def grouped(folders: Sequence[Path]) -> list[Group]:
    """Read the runs in these folders and return them in groups.

    Edited runs are left out. Groups with the strategy `none` come first, because the first group is
    the one that all others are compared with. Of several such groups, those without changes during
    the run (flips) come first. Raise `RequestError` if a folder has no result, if all runs are
    edited, or if the runs have different schemas.
    """
    return groups_and_left_out(folders)[0]


def groups_and_left_out(
    folders: Sequence[Path], window: Window | None = None
) -> tuple[list[Group], list[str]]:
    """Return the groups as `grouped` does, and a sentence about each run that is left out."""
    runs, left_out = _unedited(folders, window)
    return _groups(runs), left_out


def _unedited(folders: Sequence[Path], window: Window | None = None) -> tuple[list[Run], list[str]]:
    """Return the runs in and below these folders, and a sentence about each that is left out.

    An edited run is left out. One that cannot be read is left out if it is only below a folder, and
    else an error.
    """
    runs, not_used = [], []
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        for each in run_folders.below(folder):
            try:
                runs.append(read_run(each, window))
            except RequestError as error:
                if each == folder and not isinstance(error, Edited):
                    raise
                not_used.append(str(error) if each == folder else left_out(each, error))
    if not_used and not runs:
        raise RequestError("\n".join(few(not_used)))
    return runs, not_used


def few(left_out: Sequence[str]) -> list[str]:
    """Return the first sentences about runs that are left out, and how many there are more."""
    more = len(left_out) - NAMED_RUNS
    return [*left_out[:NAMED_RUNS], f"{more} more runs are left out"] if more > 1 else [*left_out]


def left_out(folder: Path, error: RequestError) -> str:
    """Return a sentence that names a run that cannot be used, and the reason."""
    return f"{folder}: {error}" if isinstance(error, Edited) else f"{folder} is left out: {error}"


def _groups(runs: Sequence[Run]) -> list[Group]:
    refuse_mixed_schemas(runs)
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(json.dumps(run.settings, sort_keys=True), []).append(run)
    named = titles([several[0].settings for several in found.values()])
    groups = [
        _group(several, title, named.count(title) > 1)
        for several, title in zip(found.values(), named, strict=True)
    ]
    return sorted(groups, key=_not_a_base)


def read_run(folder: Path, window: Window | None = None) -> Run:
    """Read result.json, manifest.json and scenario.yaml of a run. With a `window`, compute the
    metrics from the samples in it.

    Raise `RequestError` if the lab did not write them, or if a field is missing or wrong. Raise
    `Edited` if files were edited after the run.
    """
    try:
        return _run(folder, window)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RequestError(
            f"compare {folder}: result.json lacks a field or holds a wrong one: {error}"
        ) from error


def _run(folder: Path, window: Window | None) -> Run:
    result = read_document(folder, "result.json")
    if names := changed(folder, result):
        raise Edited(f"run {folder.name} is left out: {changed_text(names)}")
    settings = dict(_settings(folder / "scenario.yaml", _stamp(folder / "scenario.yaml")))
    if "strategy.name" not in settings:
        raise RequestError(
            f"compare {folder}: its scenario.yaml names no strategy: this lab did not write it"
        )
    settings["engine"] = result["engine"]
    if made := result.get(flips.FLIPS):
        settings[FLIPS_KEY] = flips.setting(made)
    settings |= {f"{FILE_KEY}{name}": sha[:DIGITS] for name, sha in _files(result).items()}
    own, manifest = declared_metrics(folder), _manifest(folder)
    rate_scale, schema = None, result.get("schema", WIRE_RATES_SCHEMA)
    if schema > WIRE_RATES_SCHEMA:
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
        window.numbers(folder, own) if window else numbers(result, own),
        folder,
        own,
        made_by(versions) if (versions := manifest.get("versions")) else "",
        str(manifest.get("topology_sha256") or ""),
        str(result.get("samples_sha256") or ""),
        str(result.get("cc") or ""),
        has_results_only(result),
        schema,
        result.get("time_dilation"),
    )


@lru_cache(maxsize=KEPT_SETTINGS)
def _settings(file: Path, _: object) -> dict[str, str]:
    """Return the settings in a scenario file. They are kept as long as its stamp is the same: to
    parse the file takes longer than all else that is read of a run."""
    return dict(_flat({k: v for k, v in yaml_text.read(file).items() if k not in LEFT_OUT}))


def _stamp(file: Path) -> object:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _files(result: Mapping[str, Any]) -> dict[str, str]:
    """The SHA-256 digest of each file of the user that the run has used, by file name."""
    found = result.get("inputs", {})
    return {str(name): str(digest) for name, digest in found.items()}


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        return read_document(folder, "manifest.json")
    except RequestError:
        return {}


def numbers(result: Mapping[str, Any], more: Sequence[Metric] = ()) -> dict[str, float | None]:
    """Return the numbers of a result.json that can be compared, by their paths.

    A path is like `aps.wifi1.throughput_mbps`. None means that the run did not measure the number.
    `more` are metrics that the manifest of the run declares.
    """
    found: dict[str, float | None] = {}
    known = (each for each in (*BUILT_IN, *more) if each.is_in(result))
    compared = (each for each in known if each.number and each.compared)
    for of, metrics in groupby(compared, lambda metric: metric.of):
        several = list(metrics)
        for owner in ("",) if of == "run" else result.get(SECTIONS[of], {}):
            for each in several:
                path = each.number_path(owner)
                found[path] = each.read(result) if each.read else figure(result, path)
    return found


def _not_a_base(group: Group) -> tuple[bool, bool]:
    return group.settings["strategy.name"] != '"none"', FLIPS_KEY in group.settings


def differing_keys(all_settings: Sequence[Settings]) -> list[str]:
    """Return the keys of the scenario file whose values differ in `all_settings`.

    Return [] if the scenarios have different names.
    """
    if len({settings["name"] for settings in all_settings}) > 1:
        return []
    keys = dict.fromkeys(key for settings in all_settings for key in settings)
    return [key for key in keys if len({settings.get(key) for settings in all_settings}) > 1]


def varied(runs: Sequence[Run]) -> list[str]:
    """Return the keys of the scenario file whose values differ between runs of the same scenario
    and strategy."""
    alike: dict[tuple[str, str], list[Settings]] = {}
    for run in runs:
        alike.setdefault((run.scenario, run.strategy), []).append(run.settings)
    keys = dict.fromkeys(key for several in alike.values() for key in differing_keys(several))
    return [
        key
        for key in keys
        if key not in ("engine", SCALE_KEY, FLIPS_KEY) and not key.startswith(FILE_KEY)
    ]


def refuse_mixed_schemas(runs: Sequence[Run]) -> None:
    """Raise `RequestError` if the runs have different schemas: their numbers are not alike."""
    by_schema: dict[int, list[str]] = {}
    for run in runs:
        by_schema.setdefault(run.schema, []).append(run.run_id)
    if len(by_schema) < 2:
        return
    parts = [f"{_listed(by_schema[n])} hold {held(n)} (schema {n})" for n in sorted(by_schema)]
    older = " and ".join(map(str, sorted(by_schema)[:-1]))
    raise RequestError(
        f"compare: {', and '.join(parts)}: these cannot be compared. Repeat the runs of schema "
        f"{older} with this version, or compare runs of one schema only"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_RUNS} more" if len(names) > NAMED_RUNS else ""
    return f"{'runs' if len(names) > 1 else 'run'} {', '.join(names[:NAMED_RUNS])}{more}"


def _group(several: Sequence[Run], title: str, is_shared: bool) -> Group:
    """Return the group of these runs. `is_shared` says that another group has the same title."""
    kept = _without_repeats(several)
    left_out = tuple(run.run_id for run in several if all(run is not each for each in kept))
    settings = several[0].settings
    scale = f" {SCALE_KEY}={settings[SCALE_KEY]}" if is_shared else ""
    runs = tuple(sorted(kept, key=lambda run: run.seed))
    return Group(f"{title}{scale}", title, settings, runs, left_out)


def _without_repeats(runs: Sequence[Run]) -> list[Run]:
    """Return the runs without repetitions of the same measurement.

    A simulation always gives the same result for the same seed, so one simulated run per seed is
    kept. Emulations vary, so only emulated runs with the same run id count as repetitions. Complete
    runs are preferred.
    """
    kept: dict[int | str, Run] = {}
    for run in sorted(runs, key=lambda run: run.status != "complete"):
        kept.setdefault(run.seed if run.engine == "sim" else run.run_id, run)
    return list(kept.values())


def titles(all_settings: Sequence[Settings]) -> list[str]:
    """Return a title for each group: the name of its strategy, with the settings in which groups of
    the same strategy differ."""
    alike: dict[tuple[str, str], list[Settings]] = {}
    for each in all_settings:
        alike.setdefault((each["strategy.name"], each["name"]), []).append(each)
    differing = {of: differing_keys(several) for of, several in alike.items()}
    several = len({each["name"] for each in all_settings}) > 1
    return [
        _title(each, differing[each["strategy.name"], each["name"]], several)
        for each in all_settings
    ]


def _title(settings: Settings, differing: Sequence[str], with_scenario: bool) -> str:
    scenario = [json.loads(settings["name"])] if with_scenario else []
    named = settings.keys() - {SCALE_KEY, FLIPS_KEY}
    parts = [*scenario, json.loads(settings["strategy.name"])]
    parts += [f"{key}={settings[key]}" for key in differing if key in named]
    if FLIPS_KEY in settings:
        parts.append(f"({flips.label(json.loads(settings[FLIPS_KEY]))})")
    return " ".join(parts)


def _flat(data: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, JSON text) for every value in nested dictionaries and lists below `path`.

    A list without dictionaries counts as one value.
    """
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list) and any(isinstance(each, dict) for each in data):
        for n, value in enumerate(data, 1):
            yield from _flat(value, f"{path}.{n}")
    else:
        yield path, json.dumps(data)


@dataclass(frozen=True)
class Comparison:
    """The estimates of all groups, and the comparisons with the first group.

    `verdicts[label][metric]` compares the group `label` with the first group. `notes` say how runs
    were paired and what the intervals describe. `left_out` says which runs are left out, and why.
    """

    groups: Sequence[Group]
    estimates: dict[str, list[Estimate]]
    verdicts: dict[str, dict[str, Verdict]]
    notes: Sequence[str] = ()
    left_out: Sequence[str] = ()

    @property
    def warnings(self) -> list[str]:
        return [*careful(self.left_out), *warnings(self.groups)]


def compared(folders: Sequence[Path], window: Window | None = None) -> Comparison:
    """Compare the runs in these folders. Raise `RequestError` if they cannot be compared."""
    return _compared(*_unedited(folders, window), window)


def _compared(found: Sequence[Run], left_out: Sequence[str], window: Window | None) -> Comparison:
    groups = _groups(found)
    runs = [run for group in groups for run in group.runs]
    metrics = list(dict.fromkeys(metric for run in runs for metric in run.metrics))
    base, own = groups[0], own_metrics(groups)
    return Comparison(
        groups,
        {metric: [estimate(group.values(metric)) for group in groups] for metric in metrics},
        {
            group.label: {metric: _verdict(base, group, metric, own) for metric in metrics}
            for group in groups[1:]
        },
        [*([f"samples {window.text}"] if window else []), *_notes(groups)],
        left_out,
    )


def _verdict(base: Group, other: Group, metric: str, own: Sequence[Metric]) -> Verdict:
    paired = pairs(base, other, metric)
    values = paired or (base.values(metric), other.values(metric))
    return verdict(*values, direction(metric, own), paired=paired is not None)


def _notes(groups: Sequence[Group]) -> Iterator[str]:
    """Yield a sentence for each group that is compared in pairs with the first one, and one if the
    seeds did not change the network."""
    base = groups[0]
    for group in groups[1:]:
        if (n := _shared(base, group)) is None:
            continue
        names = f"{group.name} and {base.name}"
        if _same_samples(base, group):
            yield f"{names}: the samples are identical, in {_pairs(n)} of the same seed"
        else:
            yield f"{names}: compared in {_pairs(n)} of the same seed and network"
    networks = {run.network for group in groups for run in group.runs}
    seeds = {run.seed for group in groups for run in group.runs}
    if len(networks) == 1 and networks != {""} and len(seeds) > 1:
        yield (
            "the network is the same for every seed: intervals describe how much timing matters in "
            "this network, not other networks"
        )


def _pairs(n: int) -> str:
    return f"{n} {'pair' if n == 1 else 'pairs'}"


def _shared(base: Group, other: Group) -> int | None:
    """Return how many pairs of seed and network both groups have; None if they are not compared in
    pairs."""
    found = pairs(base, other, TOTAL)
    return len(found[0]) if found else None


def _same_samples(base: Group, other: Group) -> bool:
    """Return whether the runs of both groups have the same samples for every seed that both have.

    It is False if a run has no digest of its samples.
    """
    seeds = {run.seed for run in base.runs} & {run.seed for run in other.runs}
    first, second = (
        {(run.seed, run.samples) for run in group.runs if run.seed in seeds}
        for group in (base, other)
    )
    return first == second and all(samples for _, samples in first)


def own_metrics(groups: Sequence[Group]) -> tuple[Metric, ...]:
    return tuple(each for group in groups for run in group.runs for each in run.own)


OTHER_SCENARIOS = "careful: these are different scenarios"  # the first line of a text
Parts = list[tuple[dict[str, str], Comparison]]  # by the values of the keys of `--by`, as JSON


def compared_by(
    folders: Sequence[Path], window: Window | None, by: Sequence[str]
) -> tuple[Parts, list[str]]:
    """Return one comparison for each combination of the values of the keys in `by`, and a sentence
    about each run that is left out."""
    runs, not_used = _unedited(folders, window)
    return [(value, _compared(each, (), window)) for value, each in _parts(runs, by)], not_used


def careful(left_out: Sequence[str]) -> list[str]:
    return [f"careful: {each}" for each in few(left_out)]


def _parts(runs: Sequence[Run], by: Sequence[str]) -> list[tuple[dict[str, str], list[Run]]]:
    """Return the runs of each combination of values of the keys in `by`, with these values as JSON
    text (`null` where a run has no such key). Raise `RequestError` for a key that all share."""
    for key in by:
        if len({run.settings.get(key) for run in runs}) == 1:
            names = ", ".join(varied(runs)) or "no key"
            raise RequestError(f"compare --by {key}: all runs have one value. They vary in {names}")
    parts: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        parts.setdefault(tuple(run.settings.get(key, "null") for key in by), []).append(run)
    return [(dict(zip(by, values, strict=True)), each) for values, each in parts.items()]


def direction(path: str, more: Sequence[Metric] = ()) -> int:
    """Return 1 if more is better for the metric at `path`, -1 if less is better, else 0.

    `more` are metrics in users' files.
    """
    found = of_number(path, more)
    return found[0].better if found else 0


def unit(path: str, more: Sequence[Metric] = ()) -> str:
    """Return the unit of the metric at `path`, "" if it has none or is unknown."""
    found = of_number(path, more)
    return found[0].unit if found else ""


def warnings(groups: Sequence[Group]) -> Iterator[str]:
    """Yield a line for each reason to doubt the comparison, such as an overloaded machine."""
    if len({group.settings["name"] for group in groups}) > 1:
        yield OTHER_SCENARIOS
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
        if not (key.startswith(FILE_KEY) and _only_some_use(key, groups))
        if not all(key in group.label for group in groups)
    ]
    if unnamed:
        yield f"careful: they differ in {', '.join(unnamed)}, too"
    yield from _several_versions(groups)
    for run_id in (run_id for group in groups for run_id in group.left_out):
        yield f"careful: run {run_id} repeats a run or a seed, so it is left out"
    for run in (run for group in groups for run in group.runs):
        if run.status != "complete":
            yield f"careful: run {run.run_id} is {run.status}"
        if run.overloaded:
            yield f"careful: run {run.run_id} overloaded the machine"


def _only_some_use(key: str, groups: Sequence[Group]) -> bool:
    """Return whether a user's file had the same content in all groups that used the file.

    `key` is the setting that has the file's digest. Groups without the file do not count.
    """
    found = {group.settings.get(key) for group in groups}
    return len(found - {None}) == 1


def _several_versions(groups: Sequence[Group]) -> Iterator[str]:
    runs = [run for group in groups for run in group.runs]
    versions = list(dict.fromkeys(run.made_by for run in runs if run.made_by))
    if len(versions) > 1:
        made = (
            f"{_listed([run.run_id for run in runs if run.made_by == each])} by {each}"
            for each in versions
        )
        yield f"careful: several versions of the lab made these runs: {'; '.join(made)}"
