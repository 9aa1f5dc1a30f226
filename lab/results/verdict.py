"""Say in words whether a run's connections were Multipath TCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def describe(mptcp: Mapping[str, Any]) -> str:
    """Return the verdict for people, from the `mptcp` of a result.json.

    Such as "Multipath TCP verified: 2 extra subflows, no fallback".
    """
    joins, fallbacks = mptcp.get("joins") or 0, mptcp.get("fallbacks") or 0
    extra = counted(joins, "extra subflow") if joins else "no extra subflow"
    fell_back = counted(fallbacks, "fallback") + " to plain TCP" if fallbacks else "no fallback"
    verified = "verified" if mptcp.get("verified") else "NOT verified"
    why = f" ({mptcp['why']})" if mptcp.get("why") and not mptcp.get("verified") else ""
    return f"Multipath TCP {verified}: {extra}, {fell_back}{why}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural if it is not 1."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
