"""Conversion of the events of a run to rows of the event log, and to marks in charts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from lab.results.flips import flip_words, is_accepted, is_waiting, value_text
from lab.run.flipping import APPLIED, REFUSED

# Parts of the network that an event is about


NAMES = ("link", "user", "ap", "from", "to", "subflow", "connection", "switch")
Line = dict[str, Any]  # a line of events.jsonl


def subjects(event: Line) -> tuple[str, ...]:
    """Return the ids of the links, users, access points, switches and subflows that an event is
    about."""
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


def drawn_facts(event: Line) -> dict[str, Any]:
    """Return the fields of an event that the browser needs to update drawings. Empty for most
    events.

    For a reported subflow, these are its ids and its route through the network. For an accepted
    change during the run, these are the name and the new value. For a completed file, it is the
    user.
    """
    if event.get("kind") == "subflow":
        return {key: event.get(key) for key in ("connection", "subflow", "user", "path")}
    if event.get("kind") == "completion":
        return {"user": event.get("user")}
    if is_accepted(event):
        return {key: event.get(key) for key in ("target", "value")}
    return {}


ON_REQUEST = {"observation", "subflow", "ready"}  # the log shows them with "show everything"
MARKED = {"flip", "handover", "link", "strategy", "control", "switch", "error"}
LABELS = {"error": "Failed", "flip": "Change", "completion": "Finished"}
Event = dict[str, Any]


@dataclass(frozen=True)
class LogRow:
    """One row of the event log.

    `n` counts the events of a run from 1, and `t` is the time of the event in s. `mark` says how
    charts show the event: "line", "tick" or "none". A `quiet` row is hidden until the user chooses
    "show everything". `seq` is the number of the message that caused the event; it is empty if no
    message did. `about` has the ids of the nodes, links and subflows concerned. `facts` has the
    fields that the browser needs to update drawings.

    `subject` and `orders` are used only for a decision of the strategy. `subject` is the access
    point, subflow or connection that the decision is about. `orders` is the decision without its
    time and reason, as text. If `orders` is the same as in the previous decision about the same
    subject, the decision changes nothing.
    """

    n: int
    t: float
    kind: str
    word: str
    title: str
    reason: str
    ok: bool
    mark: str
    quiet: bool
    subject: str = ""
    orders: str = ""
    seq: str = ""
    state: str = ""
    about: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def describe(event: Event, n: int) -> LogRow:
    """Convert the `n`-th event of a run to a row of the event log.

    If a field has a type that the lab never writes, the row says that the event is damaged.
    """
    try:
        return _described(event, n)
    except (TypeError, ValueError, AttributeError, KeyError):
        damaged = {"t": event["t"], "kind": "warning", "text": "this event is damaged"}
        return _described(damaged, n)


def _described(event: Event, n: int) -> LogRow:
    kind = str(event.get("kind", "event"))
    is_decision, sent = kind == "decision", is_waiting(event)
    ok = event.get("ok", True) is not False and not sent
    changes_nothing = is_decision and event.get("action") in ("keep", "forecast")
    return LogRow(
        n=n,
        t=event.get("t", 0),
        kind=kind,
        word=LABELS.get(kind, kind.capitalize()),
        title=_title(kind, event),
        reason=_reason(kind, event),
        ok=ok,
        mark="tick" if is_decision else "line" if kind in MARKED and ok else "none",
        quiet=kind in ON_REQUEST or changes_nothing or "traffic" in event,
        subject=_subject(event) if is_decision else "",
        orders=_orders(event) if is_decision else "",
        seq="" if is_decision else str(event.get("seq") or ""),
        state=_state(event, ok) if kind == "flip" else "",
        about=subjects(event),
        facts=drawn_facts(event),
    )


def _state(flip: Event, ok: bool) -> str:
    return str(flip.get("state") or (APPLIED if ok else REFUSED))


def _title(kind: str, event: Event) -> str:
    match kind:
        case "flip":
            return _flip(event)
        case "decision":
            return f"{_subject(event)}: {_action(event)}"
        case "handover":
            new = event.get("to", event.get("ap", ""))
            return f"{event.get('user', '')}: {event.get('from', '')} to {new}"
        case "control":
            value = f" {event['value']}" if "value" in event else ""
            return f"{event.get('control', '')}{value}"
        case "subflow":
            over = event.get("ap") or "path"
            return f"{event.get('user', '')} over {over}, Tier {event.get('tier', '?')}"
        case "switch":
            return f"{event.get('switch', '')} {event.get('state', '')}"
        case "reroute":
            return f"link {event['link']}: {event['flows_moved']} flows moved"
        case "completion":
            what = "its data" if "traffic" in event else "its file"
            return f"{event['connection']}: {what} arrived in {event['completion_s']:.1f} s"
    named = (event.get(key) for key in ("link", "strategy", "user", "ap"))
    return " ".join(str(each) for each in named if each is not None)


def _flip(event: Event) -> str:
    if "target" not in event:
        return str(event.get("what", "a file in the inbox"))
    place, _, what = str(event["target"]).rpartition(".")
    if what == "up" and not is_accepted(event):  # it did not happen, or not yet
        return f"{'repair' if event.get('value') else 'cut'} {place.replace('.', ' ')}"
    if what == "position" and not is_accepted(event):
        user, to = place.rpartition(".")[2], event.get("value")
        return f"let {user} walk on" if to is None else f"move {user} to {value_text(to)}"
    return flip_words(event)


def _action(event: Event) -> str:
    match event.get("action"):
        case "meter":
            return f"limit Tier 2 to {_rate(event.get('meter_mbps'))}"
        case "release":
            return "remove the limit on Tier 2"
        case "route":
            return f"route over {', '.join(event.get('path', []))}"
        case "expect":
            rate = event.get("expected_mbps")
            return "no pacing rate" if rate is None else f"pacing rate {_rate(rate)}"
        case "backup":
            return "set to backup"
        case "normal":
            return "no longer a backup"
        case "forecast":
            active = len(event.get("active", []))
            return f"forecast {_rate(event.get('forecast_mbps'))} over {active} subflows"
        case "keep":
            return "no change"
        case other:
            return str(other or "")


def _rate(mbps: Any) -> str:
    return f"{mbps:.3g} Mb/s" if isinstance(mbps, (int, float)) else "an unknown rate"


def _subject(event: Event) -> str:
    return str(next((event[key] for key in ("ap", "subflow", "connection") if key in event), ""))


def _orders(event: Event) -> str:
    """Return a decision as JSON text, without its time, number and reason.

    Two decisions that give the same commands have equal texts.
    """
    return json.dumps(
        {key: value for key, value in event.items() if key not in ("t", "at", "seq", "reason")}
    )


def _reason(kind: str, event: Event) -> str:
    if error := event.get("why") or event.get("error"):
        return ("refused: " if kind in ("flip", "control") else "") + str(error)
    if is_waiting(event):
        return f"sent at {event['t']:.1f} s …"
    if event.get("reason") or event.get("text"):
        return str(event.get("reason") or event["text"])
    if kind == "flip":
        by_scenario = event.get("source") == "scenario"
        return "from the scenario file" if by_scenario else f"changed by you at {event['t']:.1f} s"
    if kind == "observation":
        return ", ".join(
            f"{ap}: occupancy {value_text(each.get('mac_occupancy'))}"
            for ap, each in event.get("aps", {}).items()
        )
    return ""
