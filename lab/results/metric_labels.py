"""Name metrics and settings for people, with their units.

A metric is a number of result.json, which docs/definitions.md defines, and a setting is a value of
scenario.yaml. Both have paths such as `users.ue1.throughput_mbps`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from lab.results.flips import value_text
from lab.scenario.checking import UNITS

RATE = "Mb/s"
WHOLE = {
    "throughput_mbps": ("all users: throughput", RATE),
    "fairness.jain": ("Jain's fairness index (1: equal shares)", ""),
    "fairness.sd_mbps": ("standard deviation of the users' throughput", RATE),
    "out_of_order_fraction": ("fraction of segments that arrived out of order", ""),
    "convergence_s": ("time until all rates have settled", "s"),
}
OF_AP = {
    "throughput_mbps": ("throughput", RATE),
    "mac_occupancy_mean": ("mean MAC occupancy (1: full)", ""),
}
SHORT = ("strategy.params.", "strategy.", "topology.", "multipath.")  # beginnings of paths


@dataclass(frozen=True)
class Label:
    """Hold the name of a metric for people and its unit, which is empty if it has none."""

    text: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.text}, {self.unit}" if self.unit else self.text


def label(metric: str) -> Label:
    """Return the label of a metric, such as `ue1: throughput` in Mb/s for
    `users.ue1.throughput_mbps`. An unknown metric is its own label."""
    if metric in WHOLE:
        return Label(*WHOLE[metric])
    match metric.split("."):
        case ["tiers", tier]:
            return Label(f"Tier {tier}: throughput", RATE)
        case ["aps", ap, field] if field in OF_AP:
            text, unit = OF_AP[field]
            return Label(f"{ap}: {text}", unit)
        case ["users", user, "throughput_mbps"]:
            return Label(f"{user}: throughput", RATE)
    return Label(metric)


def setting_text(path: str, value: str) -> str:
    """Return a setting in words, such as `interval 2 s` for `strategy.params.interval_s`.

    `value` is JSON text, as in the settings of a group of runs.
    """
    name = next((path.removeprefix(each) for each in SHORT if path.startswith(each)), path)
    name, unit = (name, "") if name != "cc" else ("congestion control", "")
    words, _, last = name.rpartition("_")
    if words and last in UNITS:
        name, unit = words, f" {UNITS[last]}"
    found = json.loads(value)
    text = value if isinstance(found, list | dict) else value_text(found)
    return f"{name.replace('_', ' ').replace('.', ' ')} {text}{unit if found is not None else ''}"


def heading(label: str, settings: Mapping[str, str]) -> str:
    """Return the label of a group of runs with each of its `settings` in words.

    A label names settings as `PATH=VALUE`, separated by spaces.
    """
    for path in sorted(settings, key=len, reverse=True):
        named = f" {path}={settings[path]}"
        if named in label:
            label = label.replace(named, f", {setting_text(path, settings[path])}")
    return label
