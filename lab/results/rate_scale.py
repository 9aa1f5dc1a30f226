"""Say in words which unit the rates of a run have.

The user interface shows rates in the units of the scenario file. On the wire, each rate is
multiplied by `rate_scale`. Results of schema 1, from an older version of the lab, hold wire rates;
they cannot be compared with newer results.
"""

from __future__ import annotations

WIRE_LABEL = "wire rates"
WIRE_NOTE = (
    "An older version recorded this run: its rates are wire rates, not those of the scenario. "
    "It cannot be compared with newer runs. Repeat the run to compare it."
)


def note(scale: float | None, wire_rates: bool = False) -> str:
    """Return a sentence for the user that explains the rates of a run with this rate scale. It is
    empty if `scale` is 1 or None. `wire_rates` says that the result has schema 1."""
    if wire_rates:
        return WIRE_NOTE
    if scale in (None, 1):
        return ""
    return (
        f"Rates on the wire are scaled by {scale:g}; rates shown are those of the scenario. "
        f"Delays are not scaled, so queueing delay is {1 / scale:.3g} times as long."
    )


def label(scale: float | None, wire_rates: bool = False) -> str:
    """Return a short label such as `rate scale 0.25`. It is empty if `scale` is 1 or None. If
    `wire_rates` is True (a result of schema 1), the label is `wire rates`."""
    if wire_rates:
        return WIRE_LABEL
    return "" if scale in (None, 1) else f"rate scale {scale:g}"
