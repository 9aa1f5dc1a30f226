"""Say in words whether the connections of a run really used Multipath TCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def describe(mptcp: Mapping[str, Any]) -> str:
    """Return a sentence for the user about the object `mptcp` of a result.json.

    An example is "Multipath TCP verified: 2 extra subflows, no fallback to plain TCP".
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
