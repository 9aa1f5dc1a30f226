"""Name a run by its flips: the changes that were made by hand while it was running.

A flipped run is another experiment than a run of the same scenario without flips, so lists,
comparisons and statistics name its flips and never pool the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FLIPS = "flips"  # the key of result.json
NAMED = 3  # flips that a label names one by one


def value_text(value: Any) -> str:
    """Format the value of a changed setting for people.

    A boolean becomes "on" or "off", and None "unlimited". A strategy becomes its name, followed by
    its parameters in brackets.
    """
    if isinstance(value, dict):
        params = value.get("params")
        named = params.items() if isinstance(params, dict) else ()
        inside = ", ".join(f"{key} {value_text(each)}" for key, each in named)
        name = str(value.get("name", value))
        return f"{name} ({inside})" if inside and "name" in value else name
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "unlimited"
    return f"{value:g}" if isinstance(value, float) else str(value)


def flip_text(flip: Mapping[str, Any]) -> str:
    """Return a flip as text, such as `strategy.cth: 0.85 -> 0.3`, or `strategy.cth = 0.3` if a run
    of an older version did not record the old value.

    `flip` holds `target`, `value` and perhaps `old`. A strategy is named without its parameters.
    """
    new = value_name(flip.get("value"))
    if "old" in flip:
        return f"{flip['target']}: {value_name(flip['old'])} -> {new}"
    return f"{flip['target']} = {new}"


def value_name(value: Any) -> str:
    """Format the value of a changed setting for people; a strategy is its name only."""
    is_strategy = isinstance(value, dict) and "name" in value
    return str(value["name"]) if is_strategy else value_text(value)


def label(flips: Sequence[Mapping[str, Any]]) -> str:
    """Return the flips of a run as text, such as `changed: strategy: none -> disjoint at 12 s`.

    After `NAMED` flips, the text says how many more there are. It is empty without flips.
    """
    if not flips:
        return ""
    named = [f"{flip_text(each)} at {each['t']:g} s" for each in flips[:NAMED]]
    more = f" and {len(flips) - NAMED} more" if len(flips) > NAMED else ""
    return f"changed: {', '.join(named)}{more}"


def made_by_hand(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the accepted flips among `events` that came from outside, in the form that
    result.json has: each as {"t", "target", "old", "value"}.

    This is for runs without a result.
    """
    return [
        {"t": each["t"], "target": str(each.get("target"))}
        | {key: each[key] for key in ("old",) if key in each}
        | {"value": each.get("value")}
        for each in events
        if each.get("kind") == "flip" and each.get("ok") and each.get("source") == "inbox"
    ]
