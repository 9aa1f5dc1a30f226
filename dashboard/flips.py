"""What can be changed in a run, checked against what it is now: its scenario and every flip so far."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lab.errors import LabError, RequestError
from lab.run import inbox
from lab.run.recorder import read_lines
from lab.scenario import catalogue, strategy_table, targets
from lab.scenario import loading as scenario
from lab.scenario.schema import Scenario
from lab.scenario.targets import Target
from lab.topologies.topology import Topology

GROUPS = {
    "strategy": "Strategy",
    "cell": "Radio: rate of a station when alone",
    "link": "Links",
    "user": "Users: limit of the application",
    "cc": "Congestion control",
}
UNIT = re.compile(r"_(mbps|ms|s|mb|kb)$")  # is shown behind the number
Row = dict[str, Any]


def loaded(folder: Path) -> Scenario:
    """The complete scenario a run started with; `LookupError` while there is none."""
    path = folder / "scenario.yaml"
    try:
        return _loaded(path, path.stat().st_mtime_ns)
    except (OSError, LabError) as error:
        raise LookupError(f"{folder.name} has no scenario yet: {error}") from error


def topology(folder: Path) -> Topology:
    """The network of a run; `LookupError` while there is none."""
    return _built(loaded(folder))


def now(folder: Path) -> tuple[Scenario, dict[str, Any]]:
    """The scenario as flips have changed it, and the latest value of every flipped target, waiting ones included."""
    current, values = loaded(folder), {}
    for target, value in _flipped(folder):
        try:
            checked = targets.check_flip(current, target, value)
        except RequestError:  # the run refuses it in the same words
            continue
        current = targets.after(current, target, checked)
        values[target] = checked
        if target == "strategy":
            values = {
                name: each for name, each in values.items() if not name.startswith("strategy.")
            }
    return current, values


def rows(folder: Path) -> list[Row]:
    """Every target with its present value and the group it is shown in."""
    current, values = now(folder)
    return [
        _row(replace(each, value=_present(each, values)))
        for each in targets.targets(current).values()
    ]


def check(folder: Path, engine: str, target: str, value: Any) -> Any:
    """The value to send, or the error that the run would give."""
    current, _ = now(folder)
    checked = targets.check_flip(current, target, value)
    able = next((row["cc"] for row in catalogue.engine_rows() if row["name"] == engine), None)
    if target == "cc" and able is not None and checked not in able:
        raise RequestError(
            f"cc: engine '{engine}' cannot run '{checked}': choose from {', '.join(able)}"
        )
    return checked


def send(folder: Path, target: str, value: Any) -> str:
    """Put a checked flip into the inbox."""
    return inbox.send(folder, {"target": target, "value": value})


def to_try(folder: Path) -> list[Row]:
    """Three flips for a first minute, as {"target", "value", "text"}: the regulator, the far station, a cable."""
    current, _ = now(folder)
    known = targets.targets(current)
    return [
        *_regulator(current, known),
        *_far_station(current, known),
        *_cable(known),
        *_slower(known),
    ][:3]


def _regulator(current: Scenario, known: dict[str, Target]) -> list[Row]:
    network = _built(current)
    idle = strategy_table.unfit(network)
    able = [
        each
        for each in ("meter_throttling", "expected_throughput", *known["strategy"].choices)
        if not idle[each]
    ]
    other = (
        "none"
        if current.strategy.name != "none"
        else next((each for each in able if each != "none"), None)
    )
    if other is None:
        return []
    said = "take the regulator away" if other == "none" else f"let {other} regulate"
    watch = "Tier 2 and who pays for it" if network.cells else "which subflows carry what"
    found: list[Row] = [
        {"target": "strategy", "value": other, "text": f"{said.capitalize()}: watch {watch}"}
    ]
    if "strategy.cth" in known:
        text = "Call an access point congested much earlier: watch the limit fall"
        found.append({"target": "strategy.cth", "value": 0.3, "text": text})
    return found


def _far_station(current: Scenario, known: dict[str, Target]) -> list[Row]:
    """None where users walk: their rates are where they are."""
    rates = {
        name: each.value
        for name, each in known.items()
        if name.startswith("cell.wifi") and name.endswith(".rate_mbps")
    }
    if not rates:
        return []
    slowest = min(rates, key=lambda name: float(rates[name]))
    user = slowest.split(".")[2]
    value = round(float(rates[slowest]) / 3, 1)
    return [
        {
            "target": slowest,
            "value": value,
            "text": f"Carry {user} further away: one slow station slows everybody on WiFi",
        }
    ]


def _cable(known: dict[str, Target]) -> list[Row]:
    names = [name for name in known if name.startswith("link.") and name.endswith(".up")]
    name = next((each for each in names if each != "link.server.up"), None)
    return (
        [
            {
                "target": name,
                "value": False,
                "text": f"Unplug {name.split('.')[1]}: does traffic move elsewhere?",
            }
        ]
        if name
        else []
    )


def _slower(known: dict[str, Target]) -> list[Row]:
    found = []
    for name, each in known.items():
        if name.startswith("link.") and name.endswith(".rate_mbps"):
            link = name.split(".")[1]
            text = f"Narrow {link}: which connection gives way?"
            found.append({"target": name, "value": round(float(each.value) / 4, 2), "text": text})
    return found


def _present(target: Target, values: dict[str, Any]) -> Any:
    value = values.get(target.name, target.value)
    return value["name"] if target.name == "strategy" and isinstance(value, dict) else value


def _row(target: Target) -> Row:
    first, _, rest = target.name.partition(".")
    what = rest.rpartition(".")[2] or first
    place = " ".join(rest.split(".")[:-1]) or what
    label = {"cell": place, "user": place, "strategy": rest or "strategy", "cc": "cc"}.get(
        first, f"{place} {what}"
    )
    return target.row() | {"group": GROUPS[first], "label": UNIT.sub("", label).replace("_", " ")}


def _flipped(folder: Path) -> list[tuple[str, Any]]:
    """What was accepted so far, then what waits. The inbox is looked at first: see `inbox.receive`."""
    waiting = {}
    for path in sorted((folder / "inbox").glob("*.json")):
        try:
            message = json.loads(path.read_bytes())
            waiting[path.stem] = (str(message["target"]), message.get("value"))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # taken meanwhile, or no flip
    path = folder / "events.jsonl"
    flips = [
        each for each in (read_lines(path) if path.exists() else ()) if each.get("kind") == "flip"
    ]
    done = [
        (each["target"], each.get("value")) for each in flips if each.get("ok") and "target" in each
    ]
    recorded = {each.get("seq") for each in flips}
    done += [message for seq, message in waiting.items() if seq not in recorded]
    return done


@lru_cache(maxsize=64)
def _loaded(path: Path, changed_ns: int) -> Scenario:
    return scenario.load(str(path))


def _built(of: Scenario) -> Topology:
    return scenario.build(of)
