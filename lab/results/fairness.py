"""Jain's fairness index of the users whose rate is a question of fairness.

A user who asks for little gets little: its rate says nothing about how a network shares. So only
users who send as much as they can are compared; a sentence says who is left out, and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import LabError
from lab.results.tables import cell_text
from lab.run.outcome import Result
from lab.scenario import yaml_text
from lab.scenario.traffic import TAKES_ALL
from lab.summaries import jain

NAMED = 5  # users


def fairness(result: Result, kinds: Mapping[str, Sequence[str]]) -> tuple[float | None, str]:
    """Return Jain's index of the users who send as much as they can, and a text about the others.

    It is None if fewer than two users do. `kinds` are the kinds of traffic of each user
    (`kinds_of_traffic`).
    """
    of_all: float | None = (result.get("fairness") or {}).get("jain")
    limited = [user for user, each in kinds.items() if not TAKES_ALL.intersection(each)]
    if not limited:
        return of_all, ""
    named = [f"{user} ({' and '.join(dict.fromkeys(kinds[user]))})" for user in limited[:NAMED]]
    more = f" and {len(limited) - NAMED} more" if len(limited) > NAMED else ""
    who, they_ask = f"{', '.join(named)}{more}", "they ask" if len(limited) > 1 else "it asks"
    others = [each for user, each in result["users"].items() if user not in limited]
    rates = [each["throughput_mbps"] for each in others if each["throughput_mbps"] is not None]
    if len(rates) > 1:
        about = f"Fairness is without {who}, whose rate is limited by what {they_ask} for."
        return jain(rates), f"{about} With them, it is {cell_text(of_all)}."
    if not others:
        who, they_ask = "all users", "they ask"
    about = f"Fairness is not judged: the rate of {who} is limited by what {they_ask} for."
    return None, f"{about} By rates alone, it is {cell_text(of_all)}."


def kinds_of_traffic(folder: Path) -> dict[str, list[str]]:
    """Return the kinds of traffic of each user of a run; {} if its scenario cannot be read."""
    try:
        traffic = yaml_text.read(folder / "scenario.yaml").get("traffic", [])
    except LabError:
        return {}
    found: dict[str, list[str]] = {}
    for each in traffic:
        found.setdefault(each["user"], []).append(each["kind"])
    return found
