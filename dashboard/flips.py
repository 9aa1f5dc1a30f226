"""Targets of a run (settings that can be changed while it runs), and flips (such changes).

A new value is checked against the present scenario: that of the run with all earlier changes.
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
from lab.scenario import catalogue, targets
from lab.scenario.targets import Target

GROUPS = {
    "strategy": "Strategy",
    "cell": "WiFi and LTE: rate of a user that is alone",
    "link": "Links",
    "user": "Users: rate limit of the application",
    "cc": "Congestion control",
}
UNIT = re.compile(r"_(mbps|ms|s|mb|kb)$")  # the page shows the unit after the number
Row = dict[str, Any]  # a JSON object that a page gets


class FlipRequest(Body):
    """A change of a target in a running run. A target is a setting that can be changed, such as the
    rate of a link."""

    target: str = Field(description="a name from the run's targets")
    value: Any = Field(description="in the target's unit, within its bounds")


def rows(folder: Path) -> list[Row]:
    """Return every target of a run as a JSON row, with its present value and its group on the
    page."""
    scenario, values = present(folder)
    return [
        _row(replace(each, value=present_value(each, values)))
        for each in targets.targets(scenario).values()
    ]


def check(folder: Path, engine: str, target: str, value: Any) -> Any:
    """Check a new value for a target of a run, and return it in the form to send.

    Raise the same `RequestError` as the run would, and if `engine` does not have the congestion
    control to change to. Raise `LookupError` if the scenario cannot be read yet.
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
    """Put a change into the inbox of a run without checking it. Return the number of the
    message."""
    return inbox.send(folder, {"target": target, "value": value})


def _row(target: Target) -> Row:
    first, _, rest = target.name.partition(".")
    what = rest.rpartition(".")[2] or first
    place = " ".join(rest.split(".")[:-1]) or what
    labels = {"cell": place, "user": place, "strategy": rest or "strategy", "cc": "cc"}
    label = UNIT.sub("", labels.get(first, f"{place} {what}")).replace("_", " ")
    return target.row() | {"group": GROUPS[first], "label": label}
