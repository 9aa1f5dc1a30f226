"""Put flips into words. A flip is a change that was made while a run was going on.

A run that was changed by hand does not measure the same as a run of the unchanged scenario. Lists,
comparisons and statistics therefore name the changes, and never mix such runs with others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lab.run.flipping import SENT
from lab.scenario.schema import UNITS, described_strategy, strategies

FLIPS = "flips"  # the key of result.json
NAMED = 3  # changes in a label; it counts the others
NO_LIMIT = "none"
ALL_IT_GETS = "as much as it can get"


def is_accepted(event: Mapping[str, Any]) -> bool:
    """Return whether an event says that a change during the run has taken effect.

    Each change that took effect has one such event. Older versions of the lab wrote no field
    `state`, and no event when a change was sent.
    """
    return bool(event.get("kind") == "flip" and event.get("ok"))


def is_waiting(event: Mapping[str, Any]) -> bool:
    """Return whether an event says that a change during the run was sent.

    A later event says whether the change was applied or refused.
    """
    return bool(event.get("kind") == "flip" and event.get("state") == SENT)


def each_once(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the latest event of each change (flip), in the order in which the changes were
    sent."""
    latest: dict[Any, Mapping[str, Any]] = {}
    for n, event in enumerate(events):
        if event.get("kind") == "flip":
            latest[event.get("seq", n)] = event  # old flips of a scenario have no `seq`
    return list(latest.values())


def value_text(value: Any) -> str:
    """Format the value of a setting: a boolean as "on" or "off", None as "unlimited", a place as
    "12, 40 m"."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "unlimited"
    if isinstance(value, list) and all(isinstance(each, int | float) for each in value):
        return f"{', '.join(f'{each:g}' for each in value)} m"
    return f"{value:g}" if isinstance(value, float) else str(value)


def flip_text(flip: Mapping[str, Any]) -> str:
    """Return a change as text, such as `strategy.cth: 0.85 -> 0.3`.

    The text is `strategy.cth = 0.3` if the old value is unknown, as in runs of older versions. A
    strategy is named without its parameters.
    """
    new = value_name(flip.get("value"))
    if "old" in flip:
        return f"{flip['target']}: {value_name(flip['old'])} -> {new}"
    return f"{flip['target']} = {new}"


def flip_words(flip: Mapping[str, Any], link_name: Callable[[str], str] = str) -> str:
    """Return a change in plain words, such as `link up1 was cut` or `rate of link up1: 6 Mb/s
    instead of 10`.

    `link_name` converts the id of a link to its name in the text. Return `flip_text` for a
    parameter that has no such words.
    """
    target, new = str(flip.get("target")), flip.get("value")
    match target.split("."):
        case ["strategy"]:
            return f"strategy {_own_settings(flip) or _instead(flip)}"
        case ["strategy", name]:
            return f"setting {name} of the strategy: {_instead(flip, name)}"
        case ["cc"]:
            return f"congestion control {_instead(flip)}"
        case ["link", link, "up"]:
            return f"link {link_name(link)} {'was repaired' if new else 'was cut'}"
        case ["link", link, "queue", "packets"]:
            return f"queue of link {link_name(link)}: {_instead(flip, 'queue_packets')}"
        case ["link", link, "up" | "down" as way, "queue", "packets"]:
            return f"queue of link {link_name(link)} ({way}): {_instead(flip, 'queue_packets')}"
        case ["link", link, "up" | "down" as way, field]:
            return f"{_what(field)} of link {link_name(link)} ({way}): {_instead(flip, field)}"
        case ["link", link, field]:
            return f"{_what(field)} of link {link_name(link)}: {_instead(flip, field)}"
        case ["cell", ap, "tier1_mbps"]:
            return f"limit of Tier 1 at {ap}: {_instead(flip, 'tier1_mbps', NO_LIMIT)}"
        case ["cell", ap, user, "rate_mbps"]:
            return f"rate of {user} at {ap} when alone there: {_instead(flip, 'rate_mbps')}"
        case ["cell", ap, user, "up" | "down" as way, "rate_mbps"]:
            what = f"rate of {user} at {ap} ({way}) when alone there"
            return f"{what}: {_instead(flip, 'rate_mbps')}"
        case ["iface", user, name, "up"]:
            return f"interface {name} of {user} was switched {'on' if new else 'off'}"
        case ["endpoint", user, name]:
            return f"endpoint {name} of {user}: {_instead(flip)}"
        case ["user", user, "demand_mbps"]:
            return f"{user} asks for {_instead(flip, 'demand_mbps', ALL_IT_GETS)}"
        case ["user", user, "position"]:
            return f"{user} walks on" if new is None else f"{user} moved to {value_text(new)}"
    return flip_text(flip)


def _own_settings(flip: Mapping[str, Any]) -> str:
    """Return a strategy and its settings that are not the defaults, if the strategy before the
    change had the same name, else ""."""
    new = flip.get("value")
    if not isinstance(new, dict) or value_name(flip.get("old")) != new.get("name"):
        return ""
    known = described_strategy(new["name"]) if new["name"] in strategies() else []
    defaults = {each["name"]: each["default"] for each in known}
    own = [
        f"{key} {_instead({'value': value}, key)}"
        for key, value in (new.get("params") or {}).items()
        if key in defaults and value != defaults[key]
    ]
    return f"{new['name']} with {', '.join(own) or 'its default settings'}"


def _what(field: str) -> str:
    """Return the name of a field in words, without its unit: `rate_mbps` is `rate`."""
    name, _, suffix = field.rpartition("_")
    return (name if suffix in UNITS else field).replace("_", " ")


def _instead(flip: Mapping[str, Any], field: str = "", none: str = "unlimited") -> str:
    """Return the new value of a change with its unit, and the old value if it is known.

    `none` stands for None. The unit is at the new value; if that is None, at the old one.
    """
    unit = UNITS.get(field.rpartition("_")[2], "")
    percent = field == "loss"

    def text(value: Any, unit: str) -> str:
        if value is None:
            return none
        if percent and isinstance(value, int | float):
            return f"{100 * value:g} %"
        return f"{value_name(value)}{unit and f' {unit}'}"

    value = flip.get("value")
    new = text(value, unit)
    if "old" not in flip:
        return new
    if value == flip["old"]:
        return f"{new}, as before"
    return f"{new} instead of {text(flip['old'], unit if value is None else '')}"


def value_name(value: Any) -> str:
    """Format the value of a setting as `value_text` does; a strategy becomes its name."""
    is_strategy = isinstance(value, dict) and "name" in value
    return str(value["name"]) if is_strategy else value_text(value)


def label(flips: Sequence[Mapping[str, Any]]) -> str:
    """Return the changes of a run as one text, such as `changed: strategy: none -> disjoint at 12
    s`.

    Only the first `NAMED` changes are named. The text says how many others there are.
    """
    if not flips:
        return ""
    named = [
        f"{flip_text(each)} at {each['t']:g} s{'' if has_effect(each) else ' (no answer)'}"
        for each in flips[:NAMED]
    ]
    more = f" and {len(flips) - NAMED} more" if len(flips) > NAMED else ""
    return f"changed: {', '.join(named)}{more}"


def made_by_hand(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes that were made by hand and not refused, from the events of a run.

    The result has the form of `flips` in result.json. It is for runs that have no result.json.
    """
    return [
        {"t": each["t"], "target": str(each.get("target"))}
        | {key: each[key] for key in ("old",) if key in each}
        | {"value": each.get("value")}
        | ({"state": each["state"], "ok": is_accepted(each)} if "state" in each else {})
        for each in each_once(events)
        if (is_accepted(each) or is_waiting(each)) and each.get("source") == "inbox"
    ]


def has_effect(flip: Mapping[str, Any]) -> bool:
    """Return whether a change in `flips` of result.json took effect.

    A change without the field `ok` is from an older version of the lab, and took effect.
    """
    return bool(flip.get("ok", True))


def setting(flips: Iterable[Mapping[str, Any]]) -> str:
    """Return JSON text that is equal for runs with the same changes.

    The fields `state` and `ok` are left out of changes that took effect, because older versions do
    not record them.
    """
    alike = [
        {key: value for key, value in each.items() if key not in ("state", "ok")}
        if has_effect(each)
        else each
        for each in flips
    ]
    return json.dumps(alike, sort_keys=True)
