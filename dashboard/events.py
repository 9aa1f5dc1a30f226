"""Events of a run in words: what the event log says, and which are marked on the charts."""

from __future__ import annotations

import json
from typing import Any

QUIET = {"observation", "subflow", "ready"}  # in the log only if asked for
WORDS = {
    "control": "Control",
    "warning": "Warning",
    "error": "Failed",
    "subflow": "Subflow",
    "switch": "Switch",
    "ready": "Ready",
    "link": "Link",
    "strategy": "Strategy",
    "handover": "Handover",
    "decision": "Decision",
    "flip": "Flip",
    "observation": "Observation",
}
LINES = {
    "flip",
    "handover",
    "link",
    "strategy",
    "control",
    "switch",
    "error",
}  # drawn from top to bottom
Row = dict[str, Any]


def describe(event: Row, n: int) -> Row:
    """A row of the event log. `mark`: line, tick or none; `quiet`: shown if everything is asked for; `orders` is what a decision
    makes of its subject, by which the page knows one that changes nothing."""
    kind = str(event.get("kind", "event"))
    ok = event.get("ok", True) is not False
    kept = kind == "decision" and event.get("action") in ("keep", "forecast")
    mark = "tick" if kind == "decision" else "line" if kind in LINES and ok else "none"
    return {
        "n": n,
        "t": event.get("t", 0),
        "kind": kind,
        "word": WORDS.get(kind, kind.capitalize()),
        "title": _title(kind, event),
        "reason": _reason(kind, event),
        "ok": ok,
        "mark": mark,
        "quiet": kind in QUIET or kept,
        "subject": _subject(event) if kind == "decision" else "",
        "orders": _orders(event) if kind == "decision" else "",
    }


def show(value: Any) -> str:
    """A value as people write it."""
    if isinstance(value, dict):
        inside = ", ".join(f"{key} {show(each)}" for key, each in value.get("params", {}).items())
        return (
            f"{value['name']} ({inside})"
            if inside and "name" in value
            else str(value.get("name", value))
        )
    if isinstance(value, bool):
        return "on" if value else "off"
    return (
        "unlimited" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    )


def _title(kind: str, event: Row) -> str:
    if kind == "flip":
        value = event.get("value")
        name = value["name"] if isinstance(value, dict) and "name" in value else show(value)
        return (
            f"{event['target']} = {name}"
            if "target" in event
            else str(event.get("what", "a file in the inbox"))
        )
    if kind == "decision":
        limit = event.get("meter_mbps")
        return f"{_subject(event)} {event.get('action', '')}" + (
            f" {limit:.3g} Mb/s" if isinstance(limit, (int, float)) else ""
        )
    if kind == "handover":
        return f"{event.get('user', '')} {event.get('from', '')} to {event.get('to', event.get('ap', ''))}".strip()
    if kind == "control":
        return str(event.get("control", "")) + (f" {event['value']}" if "value" in event else "")
    if kind == "subflow":
        return f"{event.get('user', '')} over {event.get('ap') or 'path'}, Tier {event.get('tier', '?')}"
    if kind == "switch":
        return f"{event.get('switch', '')} {event.get('state', '')}"
    named = (
        event.get(key) for key in ("link", "strategy", "user", "ap") if event.get(key) is not None
    )
    return " ".join(str(each) for each in named)


def _orders(event: Row) -> str:
    """All of a decision but when and why."""
    return json.dumps(
        {key: value for key, value in event.items() if key not in ("t", "at", "seq", "reason")}
    )


def _subject(event: Row) -> str:
    """What a decision is about."""
    return str(next((event[key] for key in ("ap", "subflow", "connection") if key in event), ""))


def _reason(kind: str, event: Row) -> str:
    if event.get("error"):
        return ("refused: " if kind in ("flip", "control") else "") + str(event["error"])
    if event.get("reason") or event.get("text"):
        return str(event.get("reason") or event["text"])
    if kind == "flip":
        return (
            "from the scenario file"
            if event.get("source") == "scenario"
            else "asked for while the run went on"
        )
    if kind == "observation":
        return ", ".join(
            f"{ap}: occupancy {show(each.get('mac_occupancy'))}"
            for ap, each in event.get("aps", {}).items()
        )
    return ""
