"""Changes of a run in progress. A target is a value that can be changed, such as the rate of a
link.

A new value is checked against the scenario of the run with all earlier changes.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from dashboard.base.requests import Body
from lab.errors import RequestError
from lab.results.explain.present import present, present_value
from lab.run import inbox
from lab.scenario import catalogue, schema, targets
from lab.scenario.schema import Scenario
from lab.scenario.targets import Target

GROUPS = {
    "strategy": "Strategy",
    "cell": "WiFi and LTE: rate of a user that is alone",
    "link": "Links",
    "iface": "Interfaces of users",
    "endpoint": "Subflows of interfaces",
    "user": "Users: rate limit of the application",
    "place": "Users: where they are",
    "cc": "Congestion control",
}
UNIT = re.compile(r"_(mbps|ms|s|mb|kb)$")  # the page shows the unit after the number
Row = dict[str, Any]  # a JSON object that a page gets


class FlipRequest(Body):
    """A change of a run in progress. `target` names a value that can be changed, such as the rate
    of a link."""

    target: str = Field(description="a name from the run's targets")
    value: Any = Field(description="in the target's unit, within its bounds")


def rows(folder: Path) -> list[Row]:
    """Return every value that can be changed while a run goes on, as JSON rows.

    A row has the present value, and the heading under which the page shows it. The strategies of
    the row `strategy` are those that can act in the network, and `meant` has those of the scenario.
    """
    scenario, values = present(folder)
    found = [
        _row(replace(each, value=present_value(each, values)))
        for each in targets.targets(scenario).values()
    ]
    unfit, meant = schema.why_unfit(scenario.network), meant_strategies(scenario)
    for row in found:
        if row["name"] == "strategy":
            row["meant"] = meant
            row["choices"] = [
                each for each in row["choices"] if each == row["value"] or not unfit.get(each)
            ]
    return found


def meant_strategies(scenario: Scenario) -> list[str]:
    """Return the strategies that a scenario is about: its own, those that it suggests, and none."""
    suggested = [each.value for each in scenario.to_try if each.target == "strategy"]
    names = [each["name"] if isinstance(each, dict) else str(each) for each in suggested]
    return list(dict.fromkeys(["none", scenario.strategy.name, *names]))


def check(folder: Path, engine: str, target: str, value: Any) -> Any:
    """Check a change of a run in progress, and return the value to send.

    `target` names what is changed, and `value` is the new value. Raise `RequestError` if the run
    would refuse the value, or if the value is a congestion control that `engine` does not have.
    Raise `LookupError` if the scenario of the run cannot be read yet.
    """
    scenario, _ = present(folder)
    checked = targets.check_flip(scenario, target, value)
    able = next((row["cc"] for row in catalogue.engine_rows() if row["name"] == engine), None)
    if target == "cc" and able is not None and checked not in able:
        raise RequestError(
            f"cc: engine '{engine}' cannot run '{checked}': choose from {', '.join(able)}"
        )
    return checked


def send(folder: Path, target: str, value: Any, after_s: float | None = None) -> str:
    """Send a change to a run in progress without checking it. Return the number of the message.

    A lane of a race makes the change at its first sample after the simulated time `after_s`.
    """
    when = {} if after_s is None else {"after_s": after_s}
    return inbox.send(folder, {"target": target, "value": value, **when})


def undoing(folder: Path) -> list[tuple[str, Any]]:
    """Return the changes that undo everything that was changed by hand.

    A change is a pair: the name of a target, and the value that it would have without changes by
    hand. Raise `LookupError` if the scenario of the run cannot be read yet.
    """
    own, own_values = present(folder, by_hand=False)
    now, values = present(folder)
    known, known_now, found = targets.targets(own), targets.targets(now), []
    if now.strategy != own.strategy:
        params = dict(own.strategy.params)
        found.append(("strategy", {"name": own.strategy.name, "params": params}))
    for name in dict.fromkeys((*values, *own_values)):
        if name.startswith("strategy") or name not in known:  # a rate where a user has moved to
            continue
        first = own_values.get(name, known[name].value)
        is_so = name in known_now and values.get(name, known_now[name].value) == first
        found += [] if is_so else [(name, first)]
    return sorted(found, key=lambda change: not change[0].endswith(".position"))  # then rates there


def _row(target: Target) -> Row:
    first, _, rest = target.name.partition(".")
    what = rest.rpartition(".")[2] or first
    place = " ".join(rest.split(".")[:-1]) or what
    labels = {
        "cell": place,
        "user": place,
        "iface": place,
        "endpoint": rest.replace(".", " "),
        "strategy": rest or "strategy",
        "cc": "cc",
    }
    label = UNIT.sub("", labels.get(first, f"{place} {what}")).replace("_", " ")
    group = GROUPS["place" if target.kind == "place" else first]
    return target.row() | {"group": group, "label": target.words or label}
