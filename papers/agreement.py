"""How well the simulator agrees with the emulation on one measured number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import stdev

from lab.results.statistics import Judgement, difference, mean
from lab.results.statistics import judged as judgement

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
    values vary so much that a difference means nothing. It ends with "open" and the number of runs
    to add if the runs do not decide it (`lab.results.statistics`).
    """
    seeds = sorted(emulated.keys() & simulated.keys())
    if not seeds:
        return "-", NOT_JUDGED
    sides = [[side[each] for each in seeds] for side in (emulated, simulated)]
    reference, other = map(mean, sides)
    if max(abs(reference), abs(other)) < ZERO:
        return "-", WITHIN_NEAR
    relative = other / reference - 1 if reference else float("inf")
    change = f"{100 * relative:+.0f} %" if reference else "-"
    if _varies(list(simulated.values())):
        return change, NOT_STEADY
    near, far = (within(sides[0], sides[1], limit) for limit in (NEAR, FAR))
    if abs(relative) <= NEAR:
        return change, _unless_open(WITHIN_NEAR, near)
    if abs(relative) <= FAR:
        return change, _unless_open(WITHIN_FAR, far)
    return change, _unless_open(BEYOND, far)


def within(reference: Sequence[float], other: Sequence[float], limit: float) -> Judgement:
    """Judge whether the mean of `other` is within a fraction `limit` of the mean of `reference`.
    The n-th values of both are of the same seed."""
    at_least = difference(other, reference, 1 - limit)
    at_most = difference(reference, other, 1 / (1 + limit))
    return judgement((at_least, at_most))


def _unless_open(name: str, found: Judgement) -> str:
    return f"{name}, {found.text}" if found.said == "open" else name


def _varies(values: Sequence[float]) -> bool:
    """Return True if the coefficient of variation is `STEADY` or larger. A single value does not
    vary."""
    return len(values) > 1 and stdev(values) >= STEADY * abs(mean(values))


def shown(values: Sequence[float]) -> str:
    """Return the mean as text. If there are several values, add the smallest and the largest."""
    if not values:
        return "-"
    spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
    return f"{mean(values):.2f}{spread}"
