"""Labels in plain words for settings of runs and for measured numbers.

Students read the labels instead of keys such as `topology.rate_mbps`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.errors import LabError
from lab.metrics import of_number, sampled
from lab.scenario import schema
from lab.worksheets import language as at
from lab.worksheets.language import Expression, Occurrence, parse_number, spelled

UNITS = schema.UNITS | {"percent": "%"}
SETTINGS = {
    "strategy": "strategy",
    "strategy.name": "strategy",
    "seed": "seed of the random numbers",
    "cc": "congestion control",
    "multipath.cc": "congestion control",
    "multipath.server_enabled": "Multipath TCP at the server",
    "topology.multipath": "users with Multipath TCP",
}
NAMES = {"joins": "subflows that joined", "fallbacks": "fallbacks to plain TCP"}
FOLDS = {"mean": "mean", "min": "lowest", "max": "highest", "last": "last"}
PLACES = {"ap": "at", "link": "on link", "user": "of", "sf": "of subflow"}
EVENTS = {"decision": "decision of the controller", "completion": "completed file"}


@dataclass(frozen=True)
class Label:
    """The name of a quantity in words. `unit` is empty if the quantity has none."""

    words: str
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.words} ({self.unit})" if self.unit else self.words


def setting(key: str) -> Label:
    """Return the label of a key of the scenario, such as `topology.paths.1.delay_ms`.

    The key can also name a value that is changed during a run, such as `link.path1.loss`.
    """
    if key in SETTINGS:
        return Label(SETTINGS[key])
    *before, last = key.split(".")
    name, place = _name(last), _place(before)
    return Label(f"{name.words} of {place}" if place else name.words, name.unit)


def curve(path: str) -> Label:
    """Return the label of a quantity in the samples of a run, such as `ap.wifi1.tier2_mbps`."""
    kind, _, rest = path.partition(".")
    of, _, figure = rest.rpartition(".")
    metric = sampled(kind).get(figure)
    name = Label(metric.label, metric.unit) if metric else _name(figure)
    return Label(f"{name.words} {PLACES.get(kind, 'of')} {of}" if of else name.words, name.unit)


def figure(text: str, steps: Mapping[str, int]) -> Label:
    """Return the label of a measured number that decided a check.

    `text` is the expression for the number in the language of checks. If the expression cannot be
    parsed, the label is the text itself. `steps` maps the id of each step to its number in the
    worksheet, for words such as "step 3".
    """
    try:
        return _figure(parse_number(text), steps)
    except LabError:
        return Label(text)


def _figure(tree: Expression, steps: Mapping[str, int]) -> Label:
    match tree:
        case at.Sampled(fold, path, start_s, end_s, run):
            name = curve(path)
            span = f"{start_s:g} to {end_s:g} s"
            return Label(f"{FOLDS[fold]} {name.words}, {span}{_of(run, steps)}", name.unit)
        case at.Measured(path, run):
            name = _measured(path)
            return Label(f"{name.words}, whole run{_of(run, steps)}", name.unit)
        case at.Time(event):
            return Label(f"time of the first {_event(event)}{_of(event.run, steps)}", "s")
        case at.Count(event):
            return Label(f"number of events: {_event(event)}{_of(event.run, steps)}")
    return Label(spelled(tree))


def _measured(path: str) -> Label:
    """Return the label of the number at `path` in result.json."""
    if (found := of_number(path)) is None:
        return _name(path.rpartition(".")[2])
    metric, owner = found
    return Label(
        f"{metric.label} {PLACES[metric.of]} {owner}" if owner else metric.label, metric.unit
    )


def _event(event: Occurrence) -> str:
    """Return words for an event, such as `change of strategy to none`."""
    where = dict(event.where)
    if event.kind == "flip" and "target" in where:
        to = f" to {where['value']}" if "value" in where else ""
        return f"change of {setting(where['target']).words}{to}"
    fields = ", ".join(f"{field} {value}" for field, value in where.items())
    return EVENTS.get(event.kind, event.kind) + (f" ({fields})" if fields else "")


def _of(run: str, steps: Mapping[str, int]) -> str:
    return f", step {steps[run]}" if run in steps else ""


def _name(key: str) -> Label:
    """Return the label of the last part of a key, such as `receive_buffer_kb`."""
    words, _, unit = key.rpartition("_")
    known = NAMES.get(key) or (words if unit in UNITS else key).replace("_", " ")
    return Label(known, UNITS.get(unit, ""))


def _place(before: list[str]) -> str:
    """Return words for the thing to which a key belongs, such as `path 1` for `["topology",
    "paths", "1"]`.

    The result is empty for a key that belongs to the whole network.
    """
    match before:
        case ["strategy", *_]:
            return "the strategy"
        case ["cell", *names]:
            return " at ".join(reversed(names))
        case ["link", *names]:
            return f"link {' '.join(names)}"
        case [first, *names]:
            names = [first, *names] if names and names[0].isdigit() else names
            numbered = zip(names, [*names[1:], ""], strict=False)
            return " ".join(n.removesuffix("s") if after.isdigit() else n for n, after in numbered)
    return ""
