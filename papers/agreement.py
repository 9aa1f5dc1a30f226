"""How well the simulator agrees with the emulation on one measured number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import stdev

from lab.results.statistics import mean

NEAR, FAR = 0.05 + 1e-9, 0.10 + 1e-9
ZERO = 0.005  # means below this are equal in a table with two decimals
STEADY = 0.20  # coefficient of variation over the simulator's seeds; at or above, a row varies
WITHIN_NEAR, WITHIN_FAR, BEYOND = "within 5 %", "within 10 %", "beyond"
NOT_STEADY, NOT_JUDGED = "not steady", "not judged"


def judged(emulated: Mapping[int, float], simulated: Mapping[int, float]) -> tuple[str, str]:
    """Return two texts: the difference of the simulator from the emulation in percent, and its
    class, such as "within 5 %".

    `emulated` and `simulated` map seeds to measured values. The difference compares the two means
    over the seeds that both engines have. The difference is "-" if it cannot be computed. The class
    is "beyond" if only the emulation's mean is 0. The class is "not steady" if the simulator's
    values vary so much that a difference means nothing.
    """
    seeds = emulated.keys() & simulated.keys()
    if not seeds:
        return "-", NOT_JUDGED
    reference, other = (mean([side[each] for each in seeds]) for side in (emulated, simulated))
    if max(abs(reference), abs(other)) < ZERO:
        return "-", WITHIN_NEAR
    difference = other / reference - 1 if reference else float("inf")
    change = f"{100 * difference:+.0f} %" if reference else "-"
    if _varies(list(simulated.values())):
        return change, NOT_STEADY
    if abs(difference) <= FAR:
        return change, WITHIN_NEAR if abs(difference) <= NEAR else WITHIN_FAR
    overlap = _overlap(emulated.values(), simulated.values())
    return change, f"{BEYOND}, ranges overlap" if overlap else BEYOND


def _varies(values: Sequence[float]) -> bool:
    """Return True if the coefficient of variation is `STEADY` or larger. A single value does not
    vary."""
    return len(values) > 1 and stdev(values) >= STEADY * abs(mean(values))


def _overlap(first: Iterable[float], second: Iterable[float]) -> bool:
    a, b = sorted(first), sorted(second)
    return a[0] <= b[-1] and b[0] <= a[-1]


def shown(values: Sequence[float]) -> str:
    """Return the mean as text. If there are several values, add the smallest and the largest."""
    if not values:
        return "-"
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"
