"""Readable names, with units, of numbers in result.json, of settings and of groups of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.metrics import Metric, of_number
from lab.results.documents import TIMED_HANDSHAKES_SCHEMA, WIRE_RATES_SCHEMA
from lab.results.flips import value_text
from lab.run.result import SCHEMA
from lab.scenario.schema import UNITS

SHORT = ("strategy.params.", "strategy.", "topology.", "multipath.")  # beginnings of paths


@dataclass(frozen=True)
class Label:
    text: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.text}, {self.unit}" if self.unit else self.text


def label(path: str, more: Sequence[Metric] = ()) -> Label:
    """Return the label of a number of result.json.

    For `users.ue1.throughput_mbps` it is `ue1: throughput` in Mb/s. The label of an unknown path is
    the path itself. `more` are metrics that the manifest of the run declares.
    """
    if (found := of_number(path, more)) is None:
        return Label(path)
    metric, owner = found
    text = metric.number_label or metric.label
    return Label(f"{owner}: {text}" if owner else text, metric.unit)


def setting_text(path: str, value: str) -> str:
    """Return a setting in words, such as `interval 2 s` for `strategy.params.interval_s`.

    `path` is a key of the scenario file, and `value` its value as JSON text.
    """
    name, unit = _name_and_unit(path)
    found = json.loads(value)
    text = value if isinstance(found, list | dict) else value_text(found)
    return f"{name} {text}{f' {unit}' if unit and found is not None else ''}"


def key_label(path: str) -> str:
    """Return the label of an axis for a key of the scenario file, such as `interval (s)`."""
    name, unit = _name_and_unit(path)
    return f"{name} ({unit})" if unit else name


def _name_and_unit(path: str) -> tuple[str, str]:
    name = next((path.removeprefix(each) for each in SHORT if path.startswith(each)), path)
    if name == "cc":
        return "congestion control", ""
    words, _, last = name.rpartition("_")
    is_unit = bool(words) and last in UNITS
    text = (words if is_unit else name).replace("_", " ").replace(".", " ")
    return text, UNITS[last] if is_unit else ""


def heading(label: str, settings: Mapping[str, str]) -> str:
    """Return the label of a group of runs with each `PATH=VALUE` replaced by words.

    `settings` maps paths to values; `setting_text` makes the words.
    """
    for path in sorted(settings, key=len, reverse=True):
        named = f" {path}={settings[path]}"
        if named in label:
            label = label.replace(named, f", {setting_text(path, settings[path])}")
    return label


# Units of rates
#
# The user interface shows rates in the units of the scenario file. On the wire, each rate is
# multiplied by `rate_scale`. Results of schema 1, from an older version of the lab, hold wire
# rates. In runs of schema 2, simulated handshakes sent no packets. Neither can be compared with
# newer results.


WIRE_LABEL, TIMED_LABEL = "wire rates", "handshakes without packets"
HELD = {  # by schema
    WIRE_RATES_SCHEMA: WIRE_LABEL,
    TIMED_HANDSHAKES_SCHEMA: TIMED_LABEL,
    SCHEMA: "handshakes of packets",
}
WIRE_NOTE = (
    "An older version recorded this run: its rates are wire rates, not those of the scenario. "
    "It cannot be compared with newer runs. Repeat the run to compare it."
)
TIMED_NOTE = (
    "An older version recorded this run: simulated connections opened without packets. "
    "It cannot be compared with newer runs. Repeat the run to compare it."
)


def held(schema: int) -> str:
    """Return what tells the runs of a schema from those of others."""
    return HELD.get(schema, "results of another version")


def note(scale: float | None, schema: int = SCHEMA) -> str:
    """Return a text that explains to the user how the rates of a run are scaled, and what else
    differs in a run of an older schema. It is "" if there is nothing to explain."""
    if schema == WIRE_RATES_SCHEMA:
        return WIRE_NOTE
    older = TIMED_NOTE if schema == TIMED_HANDSHAKES_SCHEMA else ""
    return " ".join(filter(None, (_scale_note(scale), older)))


def _scale_note(scale: float | None) -> str:
    if scale in (None, 1):
        return ""
    return (
        f"Rates on the wire are scaled by {scale:g}; rates shown are those of the scenario. "
        f"Delays are not scaled, so queueing delay is {1 / scale:.3g} times as long."
    )


def scale_label(scale: float | None, schema: int = SCHEMA) -> str:
    """Return a label such as `rate scale 0.25`, or "" if `scale` is 1 or None. The label of an
    older schema says in what its runs differ."""
    if schema == WIRE_RATES_SCHEMA:
        return WIRE_LABEL
    scaled = "" if scale in (None, 1) else f"rate scale {scale:g}"
    older = TIMED_LABEL if schema == TIMED_HANDSHAKES_SCHEMA else ""
    return ", ".join(filter(None, (scaled, older)))


def scale_text(rate_scale: float | None) -> str:
    """Return `rate scale X`, or `wire rates` if `rate_scale` is None."""
    return WIRE_LABEL if rate_scale is None else f"rate scale {rate_scale:g}"


def clocks_label(dilation: float | None) -> str:
    """Return a label such as `clocks 4 times slower` for a run in a VM whose clocks ran slower than
    real time by a factor; "" for real time."""
    return "" if dilation in (None, 1) else f"clocks {dilation:g} times slower"


def clocks_note(dilation: float | None) -> str:
    """Return a text that explains to the user what slower clocks mean; "" for real time."""
    if dilation in (None, 1):
        return ""
    return (
        f"Slow motion: the clocks of the VM are {dilation:g} times slower than real time. A second "
        f"of the run takes {dilation:g} s; rates and delays are those of the VM's clocks."
    )


def describe(mptcp: Mapping[str, Any]) -> str:
    """Return a sentence that says whether a run really used Multipath TCP.

    `mptcp` is the object `mptcp` of result.json. An example is "Multipath TCP verified: 2 extra
    subflows, no fallback to plain TCP".
    """
    joins, fallbacks = mptcp.get("joins") or 0, mptcp.get("fallbacks") or 0
    extra = counted(joins, "extra subflow") if joins else "no extra subflow"
    fell_back = counted(fallbacks, "fallback") if fallbacks else "no fallback"
    verified = "verified" if mptcp.get("verified") else "NOT verified"
    why = f" ({mptcp['why']})" if mptcp.get("why") and not mptcp.get("verified") else ""
    return f"Multipath TCP {verified}: {extra}, {fell_back} to plain TCP{why}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in singular or plural, such as `1 fallback` or `2 fallbacks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key with which `ue2` comes before `ue10`."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
