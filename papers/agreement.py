"""Judge how well the simulator agrees with the emulation on one number."""

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
    """Return the difference between two means in percent, as text, and a class of its size.

    Both arguments hold values by seed. The means are those of the seeds that both engines have, and
    the difference is that of the simulator from the emulation; it is "-" if it cannot be computed.
    A class is such as "within 5 %". It is "beyond" if the mean of the emulation is 0 and the mean
    of the simulator is not. It is "not steady" if all values of the simulator vary too much.
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
    """Return whether the coefficient of variation of two or more values is `STEADY` or larger."""
    return len(values) > 1 and stdev(values) >= STEADY * abs(mean(values))


def _overlap(first: Iterable[float], second: Iterable[float]) -> bool:
    a, b = sorted(first), sorted(second)
    return a[0] <= b[-1] and b[0] <= a[-1]


def shown(values: Sequence[float]) -> str:
    """Return the mean of the values, with the least and the largest if there are several."""
    if not values:
        return "-"
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"
