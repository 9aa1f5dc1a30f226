"""Find the present settings of a run: its scenario with all changes that were made so far."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from lab.errors import LabError, RequestError
from lab.results.flips import each_once, is_accepted, is_waiting
from lab.run import inbox
from lab.run.reading import readable_events
from lab.scenario import loading, targets
from lab.scenario.schema import Scenario
from lab.scenario.targets import Target
from lab.topologies.topology import Topology


def loaded(folder: Path) -> Scenario:
    """Return the complete scenario in a run folder. Raise `LookupError` if it cannot be read."""
    try:
        return _loaded(folder, (folder / "scenario.yaml").stat().st_mtime_ns)
    except (OSError, LabError) as error:
        raise LookupError(f"{folder.name} has no scenario yet: {error}") from error


def network(folder: Path) -> Topology:
    """Return the network of a run. Raise `LookupError` if its scenario cannot be read."""
    return loaded(folder).network


def present(folder: Path, by_hand: bool = True) -> tuple[Scenario, dict[str, Any]]:
    """Return the scenario with all changes so far, and the new value of each changed parameter.

    Changes that still wait in the inbox of the run are included. Changes that the run would refuse
    are not. Without `by_hand`, only changes by the scenario's own events count.
    """
    scenario = loaded(folder)
    values: dict[str, Any] = {}
    for target, value in _flipped(folder, by_hand):
        try:
            checked = targets.check_flip(scenario, target, value)
        except RequestError:  # the run refuses this change with the same words
            continue
        scenario = targets.after(scenario, target, checked)
        values = {
            name: each for name, each in values.items() if not targets.is_replaced(name, target)
        }
        values[target] = checked
    return scenario, values


def already_so(folder: Path, changes: Iterable[tuple[str, Any]]) -> list[bool]:
    """Return for each change whether it would leave the run as it is now.

    A change is a pair: the name of a parameter, such as `link.up1.rate_mbps`, and its new value.
    """
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
    """Return the present value of each parameter that can be changed while the run goes on.

    The value of `strategy` is the name of the strategy.
    """
    scenario, values = present(folder)
    known = targets.targets(scenario)
    return {name: present_value(each, values) for name, each in known.items()}


def present_value(target: Target, values: dict[str, Any]) -> Any:
    value = values.get(target.name, target.value)
    return value["name"] if target.name == "strategy" and isinstance(value, dict) else value


def _flipped(folder: Path, by_hand: bool) -> list[tuple[str, Any]]:
    """Return the changes of a run as pairs (name of a parameter, new value).

    First come the changes in the event log that were applied or wait for an answer, then those in
    the inbox. The inbox is read before the event log. A change that the run takes between the two
    reads is found in both, but returned only once.
    """
    waiting = {
        number: (str(message["target"]), message.get("value"))
        for number, message in inbox.waiting(folder).items()
        if "target" in message
    }
    flips = [
        event
        for event in readable_events(folder)
        if event.get("kind") == "flip" and (by_hand or event.get("source") != "inbox")
    ]
    done = [
        (str(event["target"]), event.get("value"))
        for event in each_once(flips)
        if (is_accepted(event) or is_waiting(event)) and "target" in event
    ]
    if not by_hand:
        return done
    recorded = {event.get("seq") for event in flips}
    return done + [message for seq, message in waiting.items() if seq not in recorded]


@lru_cache(maxsize=64)
def _loaded(folder: Path, changed_ns: int) -> Scenario:
    return loading.load_recorded(folder, "show the run")
