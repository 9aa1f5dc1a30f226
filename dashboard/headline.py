"""Say in a few sentences what each change of a finished run did, and why."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dashboard.lessons import Row
from lab.results.effects import number_text

NAMED = 3  # changes; of more, the ones with the greatest effect on all users are named
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
    name = now["name"].removeprefix("after ")
    text = f"From {now['from']:.1f} s on ({name}): {_who(was, now)}"
    if begun and not any(each["is_clear"] for each in begun):
        subject = begun[-1]["watch"].replace(": ", ", ")
        text += f" No clear change of {subject}: it stayed in the range of the time before."
        return " ".join([text, *(each["cause"] for each in begun[-1:] if each["cause"])])
    causes = [each["cause"] for each in begun if each["cause"]]
    return f"{text} {f'Why: {causes[0]}' if causes else NO_CAUSE}"


def _who(was: Part, now: Part) -> str:
    """Return the rates of all users together, and of the user whose rate changed most."""
    pairs = [
        (label, old, new)
        for (label, unit, old), (_, _, new) in zip(was["means"], now["means"], strict=True)
        if unit == "Mb/s" and not label.startswith("Tier") and None not in (old, new)
    ]
    if not pairs:
        return "nothing was measured."
    together = _pair(*pairs[0])
    users = pairs[1:]
    most = max(users, key=lambda each: abs(each[2] - each[1]), default=None)
    if most is None or abs(most[2] - most[1]) <= NOTED * max(most[1:]):
        return f"{together}."
    return f"{together}. The greatest change: {_pair(*most)}."


def _pair(label: str, old: float, new: float) -> str:
    if abs(new - old) <= NOTED * max(old, new):
        return f"{label} got {number_text(new)} Mb/s, about as before"
    change = f" ({100 * (new / old - 1):+.0f} %)".replace("-", MINUS) if old > NOTED else ""
    return f"{label} got {number_text(new)} instead of {number_text(old)} Mb/s{change}"


def _total(part: Part) -> float:
    return next((mean or 0.0 for label, _, mean in part["means"] if label == ALL_USERS), 0.0)
