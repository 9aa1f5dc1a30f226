"""Load a scenario file: return a frozen `Scenario`, or raise `RequestError`.

All checks are made here, before a run starts anything:

1) read the file, refuse duplicate keys       2) apply the options of the command line
3) check topology and strategy parameters     4) check all other keys
5) build the network                          6) check traffic and mobility against the network
7) replace the user "all" by one flow per user  8) check events and suggestions
"""

from __future__ import annotations

import copy
import hashlib
import json
import string
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from controller.bounded_json import parse_object
from lab import extensions, plain_file
from lab.errors import RequestError, show, unknown
from lab.scenario import checking, strategy_table, targets, watched
from lab.scenario.checking import where
from lab.scenario.overrides import Overrides, apply
from lab.scenario.schema import Scenario, StrategyChoice, Suggestion, TopologyChoice, Traffic
from lab.scenario.used import user_files
from lab.scenario.yaml_text import read
from lab.topologies.families import TOPOLOGIES
from lab.topologies.topology import Topology, checked, with_loss_on_data

# Changes that a scenario file suggests under `try`
#
# A suggestion is valid in any order with the others and after any other change. Only parameters of
# a strategy depend on earlier changes, so they are refused here: a suggestion names the strategy
# with its parameters instead.


PLACEHOLDERS = {"before", "after", "seconds"}
NEEDED = {"before", "after"}


def possible(scenario: Scenario, source: str, is_changed: bool) -> tuple[Suggestion, ...]:
    """Return the suggestions of the scenario that fit its network.

    If options change the scenario, suggestions that no longer fit are left out. Otherwise raise a
    `RequestError` that begins with `source` for a suggestion that does not fit.
    """
    found = []
    for n, each in enumerate(scenario.to_try):
        try:
            _check(scenario, each)
        except RequestError as error:
            if is_changed:
                continue
            raise RequestError(f"{source}: {where(['try', n])}: {error}") from error
        found.append(each)
    return tuple(found)


def _check(scenario: Scenario, suggestion: Suggestion) -> None:
    if suggestion.target.startswith("strategy."):
        raise RequestError(
            f"target {suggestion.target}: a change of the strategy could make it invalid. Write "
            "'target: strategy' and 'value: {name: NAME, params: {...}}'"
        )
    targets.check_flip(scenario, suggestion.target, suggestion.value)
    try:
        watched.parsed(suggestion.watch, scenario.network)
    except RequestError as error:
        raise RequestError(f"watch: {error}") from error
    used = _placeholders(suggestion.after)
    if wrong := sorted(used - PLACEHOLDERS):
        raise RequestError(
            f"after: {{{wrong[0]}}} is unknown: use {{before}}, {{after}}, {{seconds}}"
        )
    if missing := sorted(NEEDED - used):
        raise RequestError(f"after: quote the measurement: {{{missing[0]}}} is missing")


def _placeholders(text: str) -> set[str]:
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise RequestError(f"after: {error}") from error


FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
EVERYONE = "all"  # as the user of a flow
# Texts for people: they affect no result.
PROSE = ("title", "paper", "question", "expect", "minutes", "try")
RESOLVED = "slow_machine_rate_scale"  # resolved to rate_scale
AUTO = "auto"
NO_OVERRIDES = Overrides()


def names() -> list[str]:
    """Return the names of all scenarios: those of the lab, and those in users' files (`--with`)."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    files = {path.stem: path for path in FOLDER.glob("*.yaml")}
    for name, path in extensions.scenario_files().items():
        if name in files:
            raise RequestError(f"use {path}: a built-in scenario has this name: rename the file")
        files[name] = path
    return files


def find(wanted: str) -> Path:
    """Return the path of a scenario file. `wanted` is a name from `names`, a path or a run
    folder."""
    path, files = Path(wanted), _files()
    if wanted in files:
        return files[wanted]
    if path.is_dir() and (path / "scenario.yaml").is_file():
        return path / "scenario.yaml"
    if path.is_file():
        return path
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        wrong = "that folder is no run's" if path.is_dir() else "there is no such file"
        raise RequestError(
            f"read scenario {wanted}: {wrong}. Give a file, or a name from ./run_lab.sh list"
            " scenarios"
        )
    raise RequestError(f"scenario {unknown(wanted, sorted(files))}, or give a path")


def load(wanted: str, overrides: Overrides = NO_OVERRIDES) -> Scenario:
    """Return the scenario `wanted` (see `find`), changed by `overrides` and checked."""
    path = find(wanted)
    try:
        return from_data(read(path), path.name, overrides, path.parent)
    except RequestError as error:
        raise RequestError(f"{error}{_files_of_a_run(path.parent)}") from error


def _files_of_a_run(folder: Path) -> str:
    """Return the end of an error message: the `--with` options for users' files that the run in
    `folder` used and that are not registered now; "" if there are none."""
    try:
        manifest = parse_object(plain_file.read(folder / "manifest.json"))
        paths = [each["path"] for each in manifest["extensions"]]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    present = {str(each.path) for each in extensions.registered()}
    missing = [f"--with {path}" for path in paths if path not in present]
    return f". That run used a file of your own: add {' '.join(missing)}" if missing else ""


def from_data(
    raw: dict[str, Any],
    source: str,
    overrides: Overrides = NO_OVERRIDES,
    folder: Path | None = None,
) -> Scenario:
    """Return the scenario in `raw`, the content of a scenario file.

    Error messages begin with `source`. The path in `topology.file` is relative to `folder`; without
    `folder`, this key is refused.
    """
    raw = copy.deepcopy(raw)
    apply(raw, overrides)
    _resolve_rate_scale(raw, overrides.slow_machine)
    scenario = checking.validate(Scenario, _with_choices(raw, source, folder), source)
    scenario = scenario.model_copy(
        update={
            "traffic": tuple(_with_common_settings(flow, scenario) for flow in scenario.traffic)
        }
    )
    scenario = scenario.with_network(_built(scenario, source))
    _check_against(scenario, source)
    flows = tuple(_for_everyone(scenario.traffic, scenario.network.users))
    scenario = scenario.model_copy(update={"traffic": flows})
    scenario = scenario.with_network(with_loss_on_data(scenario.network, scenario.data_flows))
    _check_events(scenario, source)
    to_try = possible(scenario, source, is_changed=overrides != NO_OVERRIDES)
    return scenario.model_copy(update={"to_try": to_try})


def _with_common_settings(flow: Traffic, scenario: Scenario) -> Traffic:
    """Apply the scenario's keys `traffic_...`, which hold for all flows."""
    common = {
        "direction": scenario.traffic_direction,
        "parallel": scenario.traffic_parallel,
        "volume_mb": scenario.traffic_volume_mb,
        "kind": None if scenario.traffic_volume_mb is None else "file",
    }
    return flow.model_copy(
        update={key: value for key, value in common.items() if value is not None}
    )


def _for_everyone(traffic: Iterable[Traffic], users: Iterable[str]) -> Iterator[Traffic]:
    """Replace each flow of the user "all" by one flow for each of `users`."""
    for flow in traffic:
        for user in users if flow.user == EVERYONE else (flow.user,):
            yield flow.model_copy(update={"user": user})


def _resolve_rate_scale(raw: dict[str, Any], slow_machine: bool) -> None:
    """Replace `rate_scale: auto`, the default, by `slow_machine_rate_scale` on a slow machine, else
    1."""
    if raw.get("rate_scale", AUTO) == AUTO:
        raw["rate_scale"] = raw.get("slow_machine_rate_scale", 1) if slow_machine else 1


def _build(scenario: Scenario) -> Topology:
    """Return the network of a scenario, with rates multiplied by `rate_scale` as on the wire."""
    params = scenario.topology.params
    family = TOPOLOGIES[scenario.topology.kind]
    positions = {"seed": scenario.seed} if has_positions(scenario) else {}
    topology: Topology = family.build(params, scenario.rate_scale, **positions)
    return checked(topology)


def has_positions(scenario: Scenario) -> bool:
    """Return whether the topology gives its users positions, which depend on the seed."""
    return bool(getattr(TOPOLOGIES[scenario.topology.kind], "POSITIONS", False))


def scaled_traffic(scenario: Scenario) -> tuple[Traffic, ...]:
    """Return the flows with rates and volumes times `rate_scale`, and with the congestion control.

    Volumes are scaled so that completion times do not depend on `rate_scale`.
    """
    return tuple(
        flow.model_copy(
            update={
                "rate_mbps": _scaled(flow.rate_mbps, scenario.rate_scale),
                "volume_mb": _scaled(flow.volume_mb, scenario.rate_scale),
                "cc": flow.cc or scenario.multipath.cc,
            }
        )
        for flow in scenario.traffic
    )


def _scaled(figure: float | None, rate_scale: float) -> float | None:
    return None if figure is None else figure * rate_scale


def resolved(scenario: Scenario) -> dict[str, Any]:
    """Return the complete scenario, defaults included, as plain data that `from_data` accepts."""
    data = scenario.model_dump(mode="json", by_alias=True)
    data["topology"] = {
        "kind": scenario.topology.kind,
        **scenario.topology.params.model_dump(mode="json"),
    }
    return data


def experiment(scenario: Scenario, engine: str) -> str:
    """Return a SHA-256 digest of the engine and of all settings that affect measured values.

    It includes the seed and users' files, but no titles or other texts for people.
    """
    left_out = (*PROSE, RESOLVED)
    decides = {key: value for key, value in resolved(scenario).items() if key not in left_out}
    if decides["topology"].get("air") == "cell":  # runs from before the choice have the same digest
        del decides["topology"]["air"]
    if files := user_files(scenario, engine):
        decides["extensions"] = [[each.kind, each.name, each.sha256] for each in files]
    return hashlib.sha256(
        json.dumps({"engine": engine, **decides}, sort_keys=True).encode()
    ).hexdigest()


def _with_choices(raw: dict[str, Any], source: str, folder: Path | None) -> dict[str, Any]:
    """Return `raw` with `topology` and `strategy` replaced by checked objects with all parameters.

    A missing strategy becomes the default one.
    """
    out = dict(raw)
    if isinstance(raw.get("topology"), dict):
        out["topology"] = _topology(raw["topology"], source, folder)
    elif "topology" in raw:
        raise RequestError(
            f"{source}: topology: {show(raw['topology'])} is no mapping: write 'topology: {{kind:"
            " ...}'"
        )
    if "strategy" in raw:
        choice = checking.validate(StrategyChoice, raw["strategy"], source, "strategy")
        out["strategy"] = choice
    else:
        out["strategy"] = choice = StrategyChoice()
    params = strategy_table.checked_params(choice.name, choice.params, source, "strategy", "params")
    out["strategy"] = choice.model_copy(update={"params": params})
    return out


def _topology(raw: dict[str, Any], source: str, folder: Path | None) -> TopologyChoice:
    params = dict(raw)
    kind = params.pop("kind", None)
    if "file" in params:
        kind = _topology_in_file(params.pop("file"), kind, source, folder)
    if not isinstance(kind, str) or kind not in TOPOLOGIES:
        problem = (
            f"is missing: choose from {', '.join(TOPOLOGIES)}"
            if kind is None
            else unknown(kind, TOPOLOGIES)
        )
        raise RequestError(f"{source}: topology.kind: {problem}")
    return TopologyChoice(
        kind=kind, params=checking.validate(TOPOLOGIES[kind].Params, params, source, "topology")
    )


def _topology_in_file(file: Any, kind: Any, source: str, folder: Path | None) -> str:
    """Register the user's Python file that defines a topology, and return its kind.

    `kind` is the kind that the scenario names, or None. Raise `RequestError` if the two differ.
    """
    place = f"{source}: topology.file"
    if folder is None:
        raise RequestError(f"{place}: a path is accepted only in a scenario file")
    if not isinstance(file, str):
        raise RequestError(f"{place}: {show(file)} is not the path of a Python file")
    try:
        found = extensions.add_topology(folder / file)
    except RequestError as error:
        raise RequestError(f"{place}: {error}") from error
    if kind not in (None, found):
        raise RequestError(f"{place}: it defines '{found}', and kind is '{kind}': leave out kind")
    return found


def _built(scenario: Scenario, source: str) -> Topology:
    try:
        return _build(scenario)
    except RequestError as error:
        raise RequestError(f"{source}: {error}") from error


def _check_against(scenario: Scenario, source: str) -> None:
    """Raise `RequestError` if a user in `traffic` does not exist, if users move in a topology
    without positions, or if the strategy can never act in the network."""
    topology = scenario.network
    strategy_table.check_fit(scenario.strategy.name, topology, source)
    for n, flow in enumerate(scenario.traffic):
        if flow.user not in (*topology.users, EVERYONE):
            place = checking.where(["traffic", n, "user"])
            raise RequestError(f"{source}: {place}: {unknown(flow.user, topology.users)}")
    if scenario.mobility and not has_positions(scenario):
        raise RequestError(
            f"{source}: mobility: topology '{scenario.topology.kind}' gives nobody a position."
            " Leave out mobility"
        )


def _check_events(scenario: Scenario, source: str) -> None:
    """Raise `RequestError` if the target or value of an event is not allowed.

    Events are checked in the order of time, because one may change the strategy for the next.
    """
    now = scenario
    for n, event in sorted(enumerate(scenario.events), key=lambda pair: pair[1].at_s):
        try:
            value = targets.check_flip(now, event.target, event.value)
        except RequestError as error:
            raise RequestError(f"{source}: {checking.where(['events', n])}: {error}") from error
        now = targets.after(now, event.target, value)
