"""Say in words in which unit the rates of a run are.

Rates that people see are in the units of the scenario file; on the wire a rate is multiplied by
`rate_scale`. Runs of schema 1 recorded the rates on the wire: no newer run is comparable with them.
"""

from __future__ import annotations

WIRE_LABEL = "wire rates"
WIRE_NOTE = (
    "An older version recorded this run: its rates are wire rates, not those of the scenario. "
    "It cannot be compared with newer runs. Repeat the run to compare it."
)


def note(scale: float | None, wire_rates: bool = False) -> str:
    """Return what people must know about the rates of a run; empty if `scale` is 1."""
    if wire_rates:
        return WIRE_NOTE
    if scale in (None, 1):
        return ""
    return (
        f"Rates on the wire are scaled by {scale:g}; rates shown are those of the scenario. "
        f"Delays are not scaled, so queueing delay is {1 / scale:.3g} times as long."
    )


def label(scale: float | None, wire_rates: bool = False) -> str:
    """Return `wire rates`, `rate scale 0.25`, or nothing if `scale` is 1."""
    if wire_rates:
        return WIRE_LABEL
    return "" if scale in (None, 1) else f"rate scale {scale:g}"
