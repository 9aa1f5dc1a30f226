"""Describe in words in which unit the rates of a run are.

The user interface shows rates in the units of the scenario file. On the wire, a rate is multiplied
by `rate_scale`. Results of schema 1, of an older version, hold wire rates and cannot be compared
with newer ones.
"""

from __future__ import annotations

WIRE_LABEL = "wire rates"
WIRE_NOTE = (
    "An older version recorded this run: its rates are wire rates, not those of the scenario. "
    "It cannot be compared with newer runs. Repeat the run to compare it."
)


def note(scale: float | None, wire_rates: bool = False) -> str:
    """Return a note for the user about the rates of a run, or an empty text if `scale` is 1."""
    if wire_rates:
        return WIRE_NOTE
    if scale in (None, 1):
        return ""
    return (
        f"Rates on the wire are scaled by {scale:g}; rates shown are those of the scenario. "
        f"Delays are not scaled, so queueing delay is {1 / scale:.3g} times as long."
    )


def label(scale: float | None, wire_rates: bool = False) -> str:
    """Return a label such as `rate scale 0.25` or `wire rates`, or nothing if `scale` is 1."""
    if wire_rates:
        return WIRE_LABEL
    return "" if scale in (None, 1) else f"rate scale {scale:g}"
