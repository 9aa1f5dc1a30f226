"""List the settings that can be changed during a run, check a change, and send it to the run.

A target is a setting with a name, such as `strategy.cth`. A flip is a change of a target during a
run. A new value is checked against the present scenario, which is the scenario of the run with all
earlier changes applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dashboard import code_paths
from lab.errors import LabError, RequestError
from lab.results.flips import each_once, is_accepted, is_waiting
from lab.run import inbox
from lab.run.reading import readable_events
from lab.scenario import catalogue, loading, targets, yaml_text
from lab.scenario.schema import Scenario
from lab.scenario.targets import Target
from lab.topologies.topology import Topology

GROUPS = {
    "strategy": "Strategy",
    "cell": "WiFi and LTE: rate of a user that is alone",
    "link": "Links",
    "user": "Users: rate limit of the application",
    "cc": "Congestion control",
}
UNIT = re.compile(r"_(mbps|ms|s|mb|kb)$")  # the page shows the unit after the number
Row = dict[str, Any]  # a JSON object that a page gets


def loaded(folder: Path) -> Scenario:
    """Return the complete scenario in a run folder; raise `LookupError` if it cannot be read."""
    path = folder / "scenario.yaml"
    try:
        return _loaded(path, path.stat().st_mtime_ns)
    except (OSError, LabError) as error:
        raise LookupError(f"{folder.name} has no scenario yet: {error}") from error


def network(folder: Path) -> Topology:
    """Return the network of a run; raise `LookupError` if its scenario cannot be read."""
    return loaded(folder).network


def present(folder: Path) -> tuple[Scenario, dict[str, Any]]:
    """Return the scenario with all changes so far, and the latest value of each changed target.

    Changes that wait in the inbox of the run are included. Changes that the run would refuse are
    not.
    """
    scenario, values = loaded(folder), {}
    for target, value in _flipped(folder):
        try:
            checked = targets.check_flip(scenario, target, value)
        except RequestError:  # the run refuses this change with the same words
            continue
        scenario = targets.after(scenario, target, checked)
        values[target] = checked
        if target == "strategy":
            values = {
                name: each for name, each in values.items() if not name.startswith("strategy.")
            }
    return scenario, values


def rows(folder: Path) -> list[Row]:
    """Return every target of a run as a JSON row.

    A row contains the present value, and the group of settings under which the page shows the
    target.
    """
    scenario, values = present(folder)
    return [
        _row(replace(each, value=_present_value(each, values)))
        for each in targets.targets(scenario).values()
    ]


def check(folder: Path, engine: str, target: str, value: Any) -> Any:
    """Check a new value for a target of a run, and return the value in the form to send.

    Raise the same `RequestError` as the run would. If the target is `cc`, the congestion control,
    also raise it if `engine` cannot change to the new one.
    """
    scenario, _ = present(folder)
    checked = targets.check_flip(scenario, target, value)
    able = next((row["cc"] for row in catalogue.engine_rows() if row["name"] == engine), None)
    if target == "cc" and able is not None and checked not in able:
        raise RequestError(
            f"cc: engine '{engine}' cannot run '{checked}': choose from {', '.join(able)}"
        )
    return checked


def send(folder: Path, target: str, value: Any) -> str:
    """Put a change that has been checked into the inbox of a run; return the message number."""
    return inbox.send(folder, {"target": target, "value": value})


def already_so(folder: Path, changes: Iterable[tuple[str, Any]]) -> list[bool]:
    """Return for each change, a pair (target, value), whether it would leave the run as it is."""
    scenario, values = present(folder)
    known = targets.targets(scenario)

    def is_same(target: str, value: Any) -> bool:
        try:
            checked = targets.check_flip(scenario, target, value)
        except RequestError:
            return False
        if target == "strategy":
            now = scenario.strategy
            return bool(checked == {"name": now.name, "params": dict(now.params)})
        return bool(checked == values.get(target, known[target].value))

    return [is_same(target, value) for target, value in changes]


def present_values(folder: Path) -> dict[str, Any]:
    """Return the present value of each target of a run; of the strategy, its name."""
    scenario, values = present(folder)
    known = targets.targets(scenario)
    return {name: _present_value(each, values) for name, each in known.items()}


def _present_value(target: Target, values: dict[str, Any]) -> Any:
    value = values.get(target.name, target.value)
    return value["name"] if target.name == "strategy" and isinstance(value, dict) else value


def _row(target: Target) -> Row:
    first, _, rest = target.name.partition(".")
    what = rest.rpartition(".")[2] or first
    place = " ".join(rest.split(".")[:-1]) or what
    labels = {"cell": place, "user": place, "strategy": rest or "strategy", "cc": "cc"}
    label = UNIT.sub("", labels.get(first, f"{place} {what}")).replace("_", " ")
    return target.row() | {"group": GROUPS[first], "label": label}


def _flipped(folder: Path) -> list[tuple[str, Any]]:
    """Return (target, value) of each change that was applied or waits for an answer, then of each
    change that waits in the inbox.

    The inbox is read before the event log. If the run takes a change between the two reads, the
    change is found in both, and it is returned once.
    """
    waiting = {
        number: (str(message["target"]), message.get("value"))
        for number, message in inbox.waiting(folder).items()
        if "target" in message
    }
    flips = [event for event in readable_events(folder) if event.get("kind") == "flip"]
    done = [
        (str(event["target"]), event.get("value"))
        for event in each_once(flips)
        if (is_accepted(event) or is_waiting(event)) and "target" in event
    ]
    recorded = {event.get("seq") for event in flips}
    return done + [message for seq, message in waiting.items() if seq not in recorded]


@lru_cache(maxsize=64)
def _loaded(path: Path, changed_ns: int) -> Scenario:
    code_paths.refuse(yaml_text.read(path), "show the run")
    return loading.load(str(path))
