"""Say which parts of the network an event concerns, for selections and for the drawing."""

from __future__ import annotations

from typing import Any

from lab.results.flips import is_accepted

NAMES = ("link", "user", "ap", "from", "to", "subflow", "connection", "switch")
Event = dict[str, Any]  # a line of events.jsonl


def subjects(event: Event) -> tuple[str, ...]:
    """Return the ids of the links, users, access points, switches and subflows of an event."""
    found = [str(event[key]) for key in NAMES if isinstance(event.get(key), str)]
    if event.get("kind") == "subflow":
        found.append(f"{event.get('connection')}/{event.get('subflow')}")
    if event.get("kind") == "flip":
        found += str(event.get("target", "")).split(".")[1:-1]
    for name in list(found):  # ue1-1/2 is also about its connection's user
        user, dash, number = name.partition("/")[0].rpartition("-")
        if dash and number.isdigit():
            found.append(user)
    return tuple(dict.fromkeys(found))


def drawn_facts(event: Event) -> dict[str, Any]:
    """Return what the drawing needs of an event; empty if the event does not change the drawing.

    The result has the fields of `lab.results.explain.paths.Paths`: those of a reported subflow, or
    the target and value of an accepted flip. For a completed file it has the user, for the charts.
    """
    if event.get("kind") == "subflow":
        return {key: event.get(key) for key in ("connection", "subflow", "user", "path")}
    if event.get("kind") == "completion":
        return {"user": event.get("user")}
    if is_accepted(event):
        return {key: event.get(key) for key in ("target", "value")}
    return {}
