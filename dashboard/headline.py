"""Say in a few sentences what each change of a finished run did, and why."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dashboard.lessons import Row
from dashboard.reasons.scene import listed
from lab.results.effects import number_text

NAMED = 3  # changes; of more, the ones with the greatest effect on all users are named
NEARLY = 0.8  # of the greatest change of a user: the others that are named, too
NOTED = 0.03  # of a rate: a smaller change of it is not named
MINUS = "\u2212"
ALL_USERS = "all users"
NO_CAUSE = "The measurements do not show the cause."
Part = dict[str, Any]  # a row of `dashboard.stretches`


def headline(parts: Sequence[Part], changes: Sequence[Row]) -> str:
    """Return what happened and why: one or two sentences for each part of the run that a change
    began. `parts` are the rows of the times between the changes, and `changes` those of the
    changes. The result is empty for a run without changes."""
    by_number = {each["n"]: each for each in changes}
    found = [
        (abs(_total(now) - _total(was)), n, _part(was, now, by_number))
        for n, (was, now) in enumerate(pairwise(parts))
    ]
    chosen = sorted(sorted(found, reverse=True)[:NAMED], key=lambda each: each[1])
    more = len(found) - len(chosen)
    texts = [text for _, _, text in chosen]
    return "\n".join([*texts, *([f"{more} other changes had smaller effects."] if more else [])])


def _part(was: Part, now: Part, by_number: dict[int, Row]) -> str:
    """Return who got what in two parts of a run, and the main cause of the difference."""
    begun = [by_number[n] for n in now["n"] if n in by_number]
    is_clear = not begun or any(each["is_clear"] for each in begun)
    name = now["name"].removeprefix("after ")
    order = now.get("order")
    first = "" if order is None else f"; the first order came at {order:.1f} s"
    span = f"{now['from'] if order is None else order:.1f} to {now['to']:.1f} s"
    text = f"{span} ({name} from {now['from']:.1f} s on{first}): {_who(was, now, is_clear)}"
    if not is_clear:
        subject = begun[-1]["watch"].replace(": ", ", ")
        text += (
            f" No clear change of {subject}: its mean over the "
            f"{begun[-1]['seconds']:.3g} s after is in the range of such means before."
        )
        return f"{text} {now['cause']}".strip()
    why = f"Why: {now['cause']}" if now["cause"] else NO_CAUSE
    return f"{text} {why}"


def _who(was: Part, now: Part, has_users: bool) -> str:
    """Return the rates of all users together, and of the users whose rates changed most in Mb/s:
    the greatest change, and others that are nearly as great. Without `has_users`, none is
    named."""
    pairs = [
        (label, old, new)
        for (label, unit, old), (_, _, new) in zip(was["means"], now["means"], strict=True)
        if unit == "Mb/s" and not label.startswith("Tier") and None not in (old, new)
    ]
    if not pairs:
        return "nothing was measured."
    together = _pair(*pairs[0])
    users = pairs[1:]
    users.sort(key=lambda each: -abs(each[2] - each[1]))
    most = users[:1]
    if not has_users or not most or abs(most[0][2] - most[0][1]) <= NOTED * max(most[0][1:]):
        return f"{together}."
    least = NEARLY * abs(most[0][2] - most[0][1])
    most += [each for each in users[1:NAMED] if abs(each[2] - each[1]) >= least]
    changes = "change" if len(most) == 1 else "changes"
    return f"{together}. The greatest {changes} in Mb/s: {listed([_pair(*each) for each in most])}."


def _pair(label: str, old: float, new: float) -> str:
    if abs(new - old) <= NOTED * max(old, new):
        return f"{label} got {number_text(new)} Mb/s, about as before"
    part = f", {100 * (new / old - 1):+.0f} %" if old > NOTED else ""
    change = f"{'+' if new > old else '-'}{number_text(abs(new - old))}{part}".replace("-", MINUS)
    return f"{label} got {number_text(new)} instead of {number_text(old)} Mb/s ({change})"


def _total(part: Part) -> float:
    return next((mean or 0.0 for label, _, mean in part["means"] if label == ALL_USERS), 0.0)
