"""Load a scenario file: return a frozen `Scenario`, or raise `RequestError`.

All checks are made here, before a run starts anything. `load` finds and reads the file. `from_data`
processes its content in these steps:

1) apply the options of the command line, and read a network that another program has described
2) check topology and strategy, then all other keys
3) build the network
4) check that traffic, mobility and strategy fit the network
5) replace the user "all" by one flow per user, and apply the loss of links in the directions in
   which data travels
6) check the changes that the file makes during the run (`events`) or suggests (`try`)
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import string
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller.bounded_json import parse_object
from controller.strategy_names import base_name
from controller.units import mbps_from_bps
from controller.user_file import described
from lab import extensions, inputs, metrics, plain_file, user_file
from lab.errors import RequestError, show, unknown
from lab.extensions import Extension
from lab.scenario import code_paths, targets
from lab.scenario.blame import blamed
from lab.scenario.csv_files import with_csv_files
from lab.scenario.engine_table import ENGINES, with_stack
from lab.scenario.files import INPUTS, Files, named_in, with_files
from lab.scenario.flows import expected_flows
from lab.scenario.interfaces import Interfaces, SetEndpoint, SetInterfaceUp, check_endpoints
from lab.scenario.movement import begun
from lab.scenario.network_files import KEYS, with_network
from lab.scenario.other_files import explained
from lab.scenario.schema import (
    PROSE,
    Scenario,
    Suggestion,
    TopologyChoice,
    check_strategy_fits,
    checked_strategy,
    validate,
    where,
)
from lab.scenario.subflows import check_calls
from lab.scenario.traffic import KINDS_OF_KEYS, Traffic
from lab.scenario.yaml_text import parse, read
from lab.topologies import nodes_and_links
from lab.topologies.checks import checked
from lab.topologies.families import BUILT_IN, TOPOLOGIES
from lab.topologies.topology import Topology, wire, with_loss_on_data

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
FIELD = "field"  # folder inside: questions that people asked in public
MOST_FLOWS = 12_000  # of all workloads of a run
EVERYONE = "all"  # as the user of a flow
RESOLVED = "slow_machine_rate_scale"  # resolved to rate_scale
AUTO = "auto"
PLACEHOLDERS = {"before", "after", "seconds"}
NEEDED = {"before", "after"}


@dataclass(frozen=True)
class Overrides:
    """The command-line options that change the content of a scenario file.

    `settings` has the values of all options `--set`; they are applied last. On a `slow_machine`,
    `rate_scale: auto` means `slow_machine_rate_scale`. Errors name options that `are_typed`.
    """

    strategy: str | None = None
    cc: str | None = None
    seed: int | None = None
    duration_s: float | None = None
    settings: tuple[str, ...] = ()
    slow_machine: bool = False
    stack: str | None = None
    are_typed: bool = field(default=False, compare=False)


NO_OVERRIDES = Overrides()


def load(
    wanted: str, overrides: Overrides = NO_OVERRIDES, *, may_run_code: bool = False
) -> Scenario:
    """Load the scenario `wanted`, apply `overrides`, and check the result. `wanted` is a name, a
    path or a run folder (see `find`).

    With `may_run_code`, the scenario file may name a Python file in its own folder or below, and
    this Python file is imported. Set `may_run_code` only for scenarios that the user names on the
    command line, not for those named in worksheets, over HTTP or in run folders.
    """
    path = find(wanted)
    files = _files_for(wanted, path, overrides, may_run_code)
    try:
        return from_data(_content(path), path.name, overrides, files)
    except RequestError as error:
        text = blamed(str(error), path.name, overrides)
        raise RequestError(f"{text}{_files_of_a_run(path.parent, text)}") from error


def with_seed(scenario: Scenario, seed: int) -> Scenario:
    """Return a loaded scenario with another seed, as if it had been loaded with this one."""
    other = scenario.model_copy(update={"seed": seed})
    if not _has_positions(other):
        return other
    network = with_loss_on_data(_network(other, f"{other.name}, seed {seed}"), other.data_flows)
    return other.with_network(network)


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a scenario file. If it is another kind of file, the error says which
    one."""
    try:
        raw = read(path)
    except RequestError as error:
        if what := explained(path, None):
            raise RequestError(f"{path.name} is no scenario: {what}") from error
        raise
    if what := explained(path, raw):
        raise RequestError(f"{path.name} is no scenario: {what}")
    return raw


def load_recorded(folder: Path, doing: str) -> Scenario:
    """Load the scenario in a run folder.

    The folder may come from another person, so a scenario that names the path of a code file is
    refused. `doing` begins the error message, such as "show the run".
    """
    path = folder / "scenario.yaml"
    code_paths.refuse_code_paths(read(path), doing)
    return load(str(path))


def _files_for(wanted: str, path: Path, overrides: Overrides, may_run_code: bool) -> Files:
    """Return which files the scenario file `path` may name.

    The scenario file of a run may come from somebody else. It may name only code that the user
    trusts, even if the user names the run on the command line. With an option such as
    `--set topology.file=PATH`, any file may be named, because the user names it directly.
    """
    folder = path.parent
    in_run = Path(wanted).is_dir() or (folder / "manifest.json").exists()
    is_run = in_run and path.name == "scenario.yaml"
    named = {each.partition("=")[0] for each in overrides.settings} if may_run_code else set()
    if named & {f"topology.{key}" for key in code_paths.FILE_KEYS}:
        return Files(folder, Path("/"), reads_anywhere=True, is_run=is_run)
    of_user = path in extensions.scenario_files().values()
    trusted = of_user or (may_run_code and not is_run)
    reads_anywhere = trusted or bool(named & {f"topology.{key}" for key in KEYS})
    return Files(folder, folder if trusted else None, reads_anywhere, is_run)


def _files_of_a_run(folder: Path, said: str) -> str:
    """Return a hint for the end of the error message `said`: which of the user's files a run lacks.

    The hint names the options `--with` for code that the run in `folder` used and that is not
    registered now, and files named in `said` that were read then and are not there now. It is "" if
    there are none, or if `folder` is no run folder.
    """
    try:
        manifest = parse_object(plain_file.read(folder / "manifest.json"))
        paths = [str(each["path"]) for each in manifest["extensions"]]
        read = [(str(each["name"]), str(each["path"])) for each in manifest.get("inputs", [])]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    present = {str(each.path) for each in extensions.registered()}
    missing = [path for path in paths if path not in present]
    here = [f"--with {path}" for path in missing if os.path.exists(path)]
    hint = f". That run used a file of your own: add {' '.join(here)}" if here else ""
    if there := [Path(path).name for path in missing if not os.path.exists(path)]:
        hint += (
            f". That run used {', '.join(there)}, which is not on this machine: read the copy in "
            f"{folder / extensions.COPIES}, copy it out and give it by --with"
        )
    gone = [each for each in read if Path(each[1]).name in said and not Path(each[1]).is_file()]
    for name, path in gone:
        copy = folder / INPUTS / name
        found = (
            f"a copy is {copy}. As a parameter of type Path, it would be found there"
            if copy.is_file()
            else "its folder has no copy"
        )
        hint += f". That run read {path}, which is not on this machine ({found})"
    return hint


def from_data(
    raw: dict[str, Any],
    source: str,
    overrides: Overrides = NO_OVERRIDES,
    files: Files | None = None,
) -> Scenario:
    """Return the checked scenario in `raw`, the content of a scenario file.

    Error messages begin with `source`. `files` says which files the topology may name; without it,
    every such key is refused.
    """
    raw = _with_overrides(raw, overrides)
    raw, opened = with_network(with_csv_files(raw, source, files), source, files)
    with inputs.collected() as read:
        scenario = _checked(raw, source, files)
        scenario = scenario.with_network(_network(scenario, source))
    named = _digests_of_named(scenario, source)
    scenario = scenario.with_inputs({**read, **named, **(opened or _recorded(scenario, files))})
    _check_against_network(scenario, source)
    check_calls(scenario, source)
    scenario = _with_flow_of_each_user(scenario)
    check_workloads(scenario, MOST_FLOWS, source)
    scenario = scenario.with_network(with_loss_on_data(scenario.network, scenario.data_flows))
    _check_events(scenario, source)
    to_try = _suggestions(scenario, source, is_changed=overrides != NO_OVERRIDES)
    return scenario.model_copy(update={"to_try": to_try})


# Finding the file


def find(wanted: str) -> Path:
    """Return the path of a scenario file.

    `wanted` is a name from `names`, the path of a file, or a run folder. Raise `RequestError` if it
    is none of these.
    """
    path, files = Path(wanted), _files()
    if wanted in files:
        return files[wanted]
    if os.path.isfile(path / "scenario.yaml"):  # also of a name that is too long for a file
        return path / "scenario.yaml"
    if os.path.isfile(path):
        return path
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        wrong = "that folder is no run's" if os.path.isdir(path) else "there is no such file"
        raise RequestError(
            f"read scenario {wanted}: {wrong}. Give a file, or a name from ./run_lab.sh list"
            " scenarios"
        )
    raise RequestError(f"scenario {unknown(wanted, sorted(files))}, or give a path")


def names() -> list[str]:
    """Return the names of all scenarios: those of the lab, and those that the option `--with`
    adds."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    files = {path.stem: path for path in _of_lab()}
    for name, path in extensions.scenario_files().items():
        if name in files:
            raise RequestError(f"use {path}: a built-in scenario has this name: rename the file")
        files[name] = path
    return files


def _of_lab() -> list[Path]:
    return [path for folder in (FOLDER, FOLDER / FIELD) for path in folder.glob("*.yaml")]


def refuse_code_of_others(name: str, doing: str) -> None:
    """Raise `RequestError` if the scenario `name` has the path of a code file that must not run.

    A scenario in a folder of `--with` is the user's own. Its topology may name code, which `load`
    accepts in this folder or below. Such a scenario, and one of the lab, may name data there.
    """
    path = find(name)
    raw = read(path)
    topology = raw.get("topology")
    is_of_user = path in extensions.scenario_files().values()
    if is_of_user and isinstance(topology, dict):
        kept = {each: topology[each] for each in topology if each not in code_paths.PATHS}
        raw = raw | {"topology": kept}
    data = path.parent if is_of_user or path in _of_lab() else None
    code_paths.refuse_code_paths(raw, doing, data)


# 1) The options of the command line


def _with_overrides(raw: dict[str, Any], overrides: Overrides) -> dict[str, Any]:
    """Return a copy of `raw`, the content of a scenario file, changed by `overrides`.

    `rate_scale: auto`, the default, becomes `slow_machine_rate_scale` on a slow machine, else 1.
    """
    raw = copy.deepcopy(raw)
    if overrides.strategy is not None:
        raw["strategy"] = _chosen_strategy(raw.get("strategy"), overrides.strategy)
    if overrides.cc is not None:
        set_value(raw, f"multipath.cc={overrides.cc}")
    if overrides.stack is not None:
        raw["multipath"] = with_stack(overrides.stack, raw.get("multipath"))
    if overrides.seed is not None:
        raw["seed"] = overrides.seed
    if overrides.duration_s is not None:
        raw["duration_s"] = float(overrides.duration_s)
    for setting in overrides.settings:
        set_value(raw, setting)
    if raw.get("rate_scale", AUTO) == AUTO:
        slow = raw.get("slow_machine_rate_scale", 1)
        raw["rate_scale"] = slow if overrides.slow_machine else 1
    return raw


def _chosen_strategy(present: Any, name: str) -> Mapping[str, Any]:
    """Return the value of the key `strategy` in a scenario file that chooses the strategy `name`.

    `present` is the old value. Its parameters are kept if it chooses the same strategy. `NAME` and
    `NAME/improved` count as the same.
    """
    if isinstance(present, dict) and base_name(str(present.get("name"))) == base_name(name):
        return present | {"name": name}
    return {"name": name}


def set_value(raw: dict[str, Any], setting: str) -> None:
    """Apply one option `--set key.path=value` to `raw`, the content of a scenario file.

    The value is parsed as YAML. An entry of a list is selected by its `id`, or by its number
    counted from 1. `strategy.cth` is short for `strategy.params.cth`. Raise `RequestError` if the
    path does not fit the file.
    """
    path, equals, text = setting.partition("=")
    steps = path.strip().split(".")
    if not equals or not all(steps):
        raise RequestError(f"--set {setting}: write key.path=value, such as topology.multipath=[]")
    if len(steps) == 2 and steps[0] == "strategy" and steps[1] not in ("name", "params"):
        steps.insert(1, "params")
    here: Any = raw
    for step in steps[:-1]:
        if isinstance(here, list):
            here = here[_position(here, step, setting)]
        elif isinstance(here, dict):
            if here.get(step) is None:
                here[step] = {}
            here = here[step]
        else:
            raise RequestError(f"--set {setting}: '{step}' is inside a plain value")
    value = parse(text, f"--set {path}")
    if isinstance(here, list):
        here[_position(here, steps[-1], setting)] = value
    elif isinstance(here, dict):
        here[steps[-1]] = value
    else:
        raise RequestError(f"--set {setting}: '{steps[-1]}' is inside a plain value")


def _position(entries: list[Any], step: str, setting: str) -> int:
    ids = [
        str(each["id"]) if isinstance(each, dict) and "id" in each else str(n)
        for n, each in enumerate(entries, 1)
    ]
    if step in ids:
        return ids.index(step)
    if step.isascii() and step.isdecimal() and len(step) < 9 and 1 <= int(step) <= len(entries):
        return int(step) - 1
    raise RequestError(
        f"--set {setting}: no entry '{step}': choose from {', '.join(ids) or 'an empty list'}"
    )


# 2) Topology and strategy with all their parameters, then all other keys


def _checked(raw: dict[str, Any], source: str, files: Files | None) -> Scenario:
    choices: dict[str, Any] = {}
    if "topology" in raw:
        choices["topology"] = _topology(raw["topology"], source, files)
    choices["strategy"] = checked_strategy(raw.get("strategy", {}), source)
    scenario = validate(Scenario, raw | choices, source)
    flows = (_with_common_settings(flow, scenario) for flow in scenario.traffic)
    return scenario.model_copy(update={"traffic": tuple(flows)})


def _topology(raw: Any, source: str, files: Files | None) -> TopologyChoice:
    if not isinstance(raw, dict):
        raise RequestError(
            f"{source}: topology: {show(raw)} is no mapping: write 'topology: {{kind: ...}}'"
        )
    params = dict(raw)
    kind = params.pop("kind", None)
    if "file" in params:
        kind = _topology_in_file(params.pop("file"), kind, source, files)
    if kind is None and "nodes" in params:
        raise RequestError(
            f"{source}: topology: this is a topology of containerlab. Write 'topology: {{kind: "
            "nodes_and_links, users: [{id: HOST}], servers: [HOST], switches: [NODE], "
            "links: [{a: HOST, b: NODE, rate_mbps: 10}]}' and traffic"
        )
    if not isinstance(kind, str) or kind not in TOPOLOGIES:
        problem = (
            f"is missing: choose from {', '.join(TOPOLOGIES)}"
            if kind is None
            else unknown(kind, TOPOLOGIES)
        )
        raise RequestError(f"{source}: topology.kind: {problem}")

    def find(name: str) -> Path:
        if files is None:
            raise RequestError(f"{source}: topology: a path is accepted only in a scenario file")
        try:
            return files.find(name)
        except RequestError as error:
            raise RequestError(f"{source}: topology: {error}") from error

    model = TOPOLOGIES[kind].Params
    if files and files.is_run and kind in BUILT_IN:  # runs write all keys that there are
        later = {key: then for part, key, then in LATER_KEYS if part == "topology"}
        params = {key: later[key] for key in later if key in model.model_fields} | params
    with _errors_in(kind, source):
        checked_params = validate(model, with_files(model, params, find), source, "topology")
        return TopologyChoice(kind=kind, params=checked_params)


def _topology_in_file(file: Any, kind: Any, source: str, files: Files | None) -> str:
    """Register the user's Python file that defines a topology, and return the topology's name.

    `kind` is the value of `topology.kind` in the scenario file, or None. Raise `RequestError` if
    `kind` is another name, or if the file cannot be used.
    """
    place = f"{source}: topology.file"
    if files is None:
        raise RequestError(f"{place}: a path is accepted only in a scenario file")
    if not isinstance(file, str):
        raise RequestError(f"{place}: {show(file)} is not the path of a Python file")
    try:
        found = extensions.add_topology(files.folder / file, files.refused(files.folder / file))
    except RequestError as error:
        raise RequestError(f"{place}: {error}") from error
    if kind not in (None, found):
        raise RequestError(f"{place}: it defines '{found}', and kind is '{kind}': leave out kind")
    return found


@contextmanager
def _errors_in(kind: str, source: str) -> Iterator[None]:
    """Raise `RequestError`, with file and line, instead of an exception in a user's topology."""
    family = TOPOLOGIES[kind]
    try:
        yield
    except RequestError:
        raise
    except (Exception, SystemExit) as error:
        if kind in BUILT_IN:
            raise
        text = described(error, str(family.__file__), family.build.__code__.co_firstlineno)
        raise RequestError(f"{source}: topology '{kind}': {text}") from error


def _with_common_settings(flow: Traffic, scenario: Scenario) -> Traffic:
    """Apply the scenario's keys `traffic_direction`, `traffic_parallel` and `traffic_volume_mb` to
    one entry of `traffic`."""
    common = {
        "direction": scenario.traffic_direction,
        "parallel": scenario.traffic_parallel,
        "volume_mb": scenario.traffic_volume_mb,
        "kind": None if scenario.traffic_volume_mb is None else "file",
    }
    return flow.model_copy(
        update={key: value for key, value in common.items() if value is not None}
    )


# 3) The network


def _network(scenario: Scenario, source: str) -> Topology:
    """Return the network of a scenario. Its rates are those on the wire: the rates of the scenario
    file times `rate_scale`."""
    kind = scenario.topology.kind
    family = TOPOLOGIES[kind]
    positions = {"seed": scenario.seed} if _has_positions(scenario) else {}
    with _errors_in(kind, source):
        try:
            built = family.build(scenario.topology.params, scenario.rate_scale, **positions)
            if not isinstance(built, Topology):
                raise TypeError(f"build returned {show(built)}, and not a Topology")
            network = checked(built)
            if kind not in BUILT_IN:
                wire(network)  # so that a wrong type in its parts is found here
            return begun(network, scenario.mobility) if scenario.mobility else network
        except RequestError as error:
            raise RequestError(f"{source}: {error}") from error


def _digests_of_named(scenario: Scenario, source: str) -> dict[str, str]:
    """Return the digests of the files that the parameters of the topology name, by path.

    Raise `RequestError` if two of them have the same name, by which a run records them.
    """
    paths = list(dict.fromkeys(named_in(scenario.topology.params)))
    names = [path.name for path in paths]
    for path in paths:
        if names.count(path.name) > 1:
            raise RequestError(f"{source}: topology: two files are called {path.name}: rename one")
    found = {}
    for path in paths:
        try:
            found[str(path)] = plain_file.digest(path, follow=True)
        except OSError as error:
            raise RequestError(f"{source}: topology: {path}: {error.strerror or error}") from error
    return found


def _recorded(scenario: Scenario, files: Files | None) -> inputs.Digests:
    """Return the digests of the files from which a run's network was read, by path.

    The path is that of the copy in the run folder, or only the file's name if there is no copy.
    """
    params, found = scenario.topology.params, {}
    for each in params.read_from if isinstance(params, nodes_and_links.Params) else ():
        copy = files.folder / INPUTS / each.name if files else Path(each.name)
        found[str(copy.absolute()) if copy.is_file() else each.name] = each.sha256
    return found


def _has_positions(scenario: Scenario) -> bool:
    """Return whether the topology gives its users positions, which depend on the seed."""
    return bool(getattr(TOPOLOGIES[scenario.topology.kind], "POSITIONS", False))


# 4) What must fit the network


def _check_against_network(scenario: Scenario, source: str) -> None:
    """Raise `RequestError` if the scenario does not fit its network.

    This is so if a user in `traffic` does not exist, or if the strategy can never act in this
    network.
    """
    topology = scenario.network
    check_strategy_fits(scenario.strategy.name, topology, source)
    for n, flow in enumerate(scenario.traffic):
        if flow.user not in (*topology.users, EVERYONE):
            place = where(["traffic", n, "user"])
            raise RequestError(f"{source}: {place}: {unknown(flow.user, topology.users)}")
        if flow.link is not None:
            shaped = [link.id for link in topology.links if link.rate_bps is not None]
            if flow.link not in shaped:
                place = where(["traffic", n, "link"])
                raise RequestError(f"{source}: {place}: {unknown(flow.link, shaped)}")


# 5) One flow per user


def _with_flow_of_each_user(scenario: Scenario) -> Scenario:
    """Replace each entry of `traffic` with the user "all" by one entry for each user."""
    flows = (
        flow.model_copy(update={"user": user, **_rate_of_load(scenario, flow)})
        for flow in scenario.traffic
        for user in _users_of(scenario, flow)
    )
    return scenario.model_copy(update={"traffic": tuple(flows)})


def _users_of(scenario: Scenario, flow: Traffic) -> tuple[str, ...]:
    return scenario.network.users if flow.user == EVERYONE else (flow.user,)


def _rate_of_load(scenario: Scenario, flow: Traffic) -> dict[str, float | None]:
    """Return the rate of each user of a workload, instead of the load of a link."""
    if flow.load is None:
        return {}
    (link,) = (each for each in scenario.network.links if each.id == flow.link)
    assert link.rate_bps is not None, "_check_against_network has refused it"
    link_mbps = mbps_from_bps(link.rate_bps) / scenario.rate_scale
    rate_mbps = round(flow.load * link_mbps / len(_users_of(scenario, flow)), 6)
    return {"rate_mbps": rate_mbps, "load": None, "link": None}


def check_workloads(scenario: Scenario, most: int, where: str) -> None:
    """Raise `RequestError` if the workloads of a scenario have more flows than `most` on average.
    `where` begins the message."""
    workloads = (flow for flow in scenario.traffic if flow.kind == "workload")
    count = sum(expected_flows(flow, scenario.duration_s) for flow in workloads)
    if count > most:
        raise RequestError(
            f"{where}: traffic: the workloads have {count:,.0f} flows in {scenario.duration_s:g} s"
            f" on average: at most {most:,}. Choose a lower rate or load, a larger size_scale"
            " or a shorter duration_s"
        )


# 6) Changes: events, and what the file suggests under `try`
#
# A suggestion is valid in any order with the others and after any other change. Only parameters of
# a strategy depend on earlier changes, so they are refused here: a suggestion names the strategy
# with its parameters instead.


def _check_events(scenario: Scenario, source: str) -> None:
    """Raise `RequestError` if an event of the scenario makes a change that is not allowed.

    Events are checked in the order of time, because an event may change the strategy, and later
    events are checked against the new strategy. Endpoints are checked before.
    """
    if scenario.multipath.endpoints:
        check_endpoints(scenario, source)
    now, interfaces = scenario, None
    for n, event in sorted(enumerate(scenario.events), key=lambda pair: pair[1].at_s):
        try:
            value = targets.check_flip(now, event.target, event.value)
            change = targets.change(now, event.target, value)
            if isinstance(change, SetInterfaceUp | SetEndpoint):
                interfaces = interfaces or Interfaces(scenario)
                interfaces.change(change, event.at_s)
        except RequestError as error:
            raise RequestError(f"{source}: {where(['events', n])}: {error}") from error
        now = targets.after(now, event.target, value)


def _suggestions(scenario: Scenario, source: str, is_changed: bool) -> tuple[Suggestion, ...]:
    """Return the changes that the scenario suggests and that fit its network.

    Raise `RequestError`, which begins with `source`, if a suggestion does not fit. If command-line
    options changed the scenario (`is_changed`), such a suggestion is left out instead.
    """
    found = []
    for n, each in enumerate(scenario.to_try):
        try:
            _check_suggestion(scenario, each)
        except RequestError as error:
            if is_changed:
                continue
            raise RequestError(f"{source}: {where(['try', n])}: {error}") from error
        found.append(each)
    return tuple(found)


def _check_suggestion(scenario: Scenario, suggestion: Suggestion) -> None:
    if suggestion.target.startswith("strategy."):
        raise RequestError(
            f"target {suggestion.target}: a change of the strategy could make it invalid. Write "
            "'target: strategy' and 'value: {name: NAME, params: {...}}'"
        )
    targets.check_flip(scenario, suggestion.target, suggestion.value)
    try:
        metrics.watched_number(suggestion.watch, scenario.network)
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


# What a loaded scenario consists of


def resolved(scenario: Scenario) -> dict[str, Any]:
    """Return the complete scenario, defaults included, as plain data that `from_data` accepts.

    A file that the topology names is in it by its name without folder, as in a run's `inputs`.
    """
    data = scenario.model_dump(mode="json", by_alias=True)
    params = scenario.topology.params
    names = {str(path): path.name for path in named_in(params)}
    data["topology"] = {
        "kind": scenario.topology.kind,
        **_renamed(params.model_dump(mode="json"), names),
    }
    return data


def _renamed(data: Any, names: Mapping[str, str]) -> Any:
    if isinstance(data, dict):
        return {key: _renamed(value, names) for key, value in data.items()}
    if isinstance(data, list):
        return [_renamed(each, names) for each in data]
    return names.get(data, data)


def input_files(scenario: Scenario, engine: str) -> dict[str, str]:
    """Return the digests of the files that decide what a scenario measures, by path.

    These are files that the scenario's topology names or was read from, and files that the user's
    code has read. The code itself is not among them (`user_files`).
    """
    files = user_files(scenario, engine)
    own = {str(each.path) for each in files}
    read = extensions.digests(files) | dict(scenario.inputs)
    return {path: read[path] for path in read if path not in own}


LATER_KEYS: tuple[tuple[str, str, Any], ...] = (
    ("topology", "air", "cell"),
    ("multipath", "endpoints", []),
    ("multipath", "limits", {"subflows": None, "add_addr_accepted": 8}),
    ("multipath", "ecn", False),
    ("topology", "one_server", False),
)
"""Keys that older runs do not have, and what held then (`air` has another default today). With
this value, a run has the same digest as before there was a choice."""
LATER_OF_USERS = ("wifi_up", "wifi_down", "lte_up", "lte_down", "lte_queue")


def experiment(scenario: Scenario, engine: str) -> str:
    """Return a SHA-256 digest of the engine and of all settings that affect measured values.

    The digest covers the seed, the users' files, and the files that their code reads. It does not
    cover titles and other texts for people.
    """
    left_out = (*PROSE, RESOLVED)
    decides = {key: value for key, value in resolved(scenario).items() if key not in left_out}
    if isinstance(scenario.topology.params, nodes_and_links.Params):  # for people
        del decides["topology"]["notes"]
    for part, key, then in LATER_KEYS:
        if decides[part].get(key) == then:
            del decides[part][key]
    for flow in decides["traffic"]:
        for key, kinds in KINDS_OF_KEYS.items():
            if flow["kind"] not in kinds:
                del flow[key]
    _leave_out_of_links(decides["topology"])
    _leave_out_of_links(decides["mobility"])
    if files := user_files(scenario, engine):
        decides["extensions"] = [[each.kind, each.name, each.sha256] for each in files]
    if data := inputs.by_name(input_files(scenario, engine)):
        decides["inputs"] = data
    return hashlib.sha256(
        json.dumps({"engine": engine, **decides}, sort_keys=True).encode()
    ).hexdigest()


def _leave_out_of_links(data: Any) -> None:
    """Leave out that links neither reorder nor duplicate, that their directions follow no trace,
    that queues have no `mark_packets` and stations no directions: older runs do not say so."""
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    for each in inner:
        _leave_out_of_links(each)
    if isinstance(data, dict):
        for key in ("reorder", "duplicate", "mark_packets", "walks", *LATER_OF_USERS):
            if key in data and not data[key]:
                del data[key]
        for way in (data.get("up"), data.get("down")):
            if isinstance(way, dict) and way.get("trace", "") is None:
                del way["trace"], way["trace_bin_ms"]


def user_files(scenario: Scenario, engine: str) -> tuple[Extension, ...]:
    """Return the users' files that are loaded when the scenario runs on this engine."""
    names = {
        *map(base_name, _strategies(scenario)),
        *scenario.congestion_controls,
        scenario.topology.kind,
    }
    return files_named(names, engine)


def files_named(names: Container[str], engine: str) -> tuple[Extension, ...]:
    """Return the users' registered files that define one of `names`, and those that define a
    metric.

    The files are sorted by name. A congestion control can have one file per engine; only the file
    for `engine` is returned.
    """
    suffix = ENGINES[engine].law_suffix if engine in ENGINES else user_file.PYTHON
    found = (
        each
        for each in extensions.registered()
        if (each.name in names or each.kind == "metric")
        and each.kind != "scenario"
        and (each.kind != "cc" or each.path.suffix == suffix)
    )
    return tuple(sorted(found, key=lambda each: each.name))


def _strategies(scenario: Scenario) -> list[str]:
    """Return the names of the strategies that a scenario uses.

    The strategy at the start comes first, then those to which events switch.
    """
    named = [scenario.strategy.name]
    for event in scenario.events:
        if event.target == "strategy":
            named.append(event.value["name"] if isinstance(event.value, dict) else event.value)
    return list(dict.fromkeys(named))
