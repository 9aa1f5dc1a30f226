"""The window changes of BALIA, and their inverses: eqs (1) to (6) and (10) of DTMC selection.

BALIA is a congestion control for MPTCP. The equations of the paper are corrected here. The module
`forecast` uses the window changes. The inverse functions only serve to check the paper's equations.
For one subflow, w is its congestion window in segments, r its RTT in seconds, and Y = w / r in
segments per second. Two numbers stand for the other subflows of the connection: `others`, the sum
of their Y (C in the paper), and `best`, the largest of their Y. With alpha = max(1, best / Y), the
new window after one segment is:

    delivered:  w + Y / (r (others + Y)^2) (1 + alpha)/2 (4 + alpha)/5       (1a)
    lost:       w - w/2 min(alpha, 1.5)                                      (1b)

The paper prints only the increment of (1a) and the decrement of (1b).

BALIA: Walid, Peng, Hwang and Low, draft-walid-mptcp-congestion-control-04, section 3. Paper: DTMC
selection, section III.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import erfc, exp, pi, prod, sqrt

SMALLEST_WINDOW = 2.0
LARGEST_DECREASE = 1.5  # halves of the window
INTEGRATED_SDS = 8  # the integral ends at this many standard deviations from the mean
INTEGRAL_STEPS = 2000
ROUNDING = 1e-9  # both branches of the increase meet at alpha = 1, and rounding must not miss both


def increase(window: float, rtt_s: float, others: float, best: float) -> float:
    """Return by how many segments a delivered segment increases the congestion window, at most 1.

    This is BALIA (DTMC selection, eq (1a)). `others` is the sum of window / RTT over the other
    subflows of the connection, and `best` the largest term of this sum. Both are in segments per
    second.
    """
    rate = window / rtt_s
    alpha = best / rate if best > rate else 1.0
    added = rate * (1 + alpha) * (4 + alpha) / (10 * rtt_s * (others + rate) ** 2)
    return added if added < 1 else 1.0


def after_loss(window: float, rtt_s: float, best: float) -> float:
    """Return the congestion window in segments after the loss of a segment, at least 2.

    This is BALIA (DTMC selection, eq (1b)). `best` is the largest window / RTT among the other
    subflows, in segments per second.
    """
    alpha = best * rtt_s / window
    halves = LARGEST_DECREASE if alpha > LARGEST_DECREASE else alpha if alpha > 1 else 1.0
    left = window - window / 2 * halves
    return left if left > SMALLEST_WINDOW else SMALLEST_WINDOW


def rtt_of_increase(window: float, added: float, others: float, best: float) -> float | None:
    """Return the RTT in s at which a delivered segment adds `added` segments to the window.

    This is the inverse of `increase` (DTMC selection, eqs (3) and (5)). Return None if there is no
    such RTT. With D = `added`, w = `window`, C = `others` and k = `best` / w, the RTT r is
    (sqrt(w/D) - w) / C if this subflow has the largest window / RTT. Otherwise r is that root of
    the following equation for which k r >= 1: (10 D C^2 - w k^2) r^2 + (20 D C w - 5 w k) r + (10 D
    w^2 - 4 w) = 0.
    """
    k = best / window
    as_largest = (sqrt(window / added) - window) / others
    if as_largest > 0 and k * as_largest <= 1 + ROUNDING:
        return as_largest
    square, linear = (
        10 * added * others**2 - window * k**2,
        20 * added * others * window - 5 * window * k,
    )
    roots = _roots(square, linear, 10 * added * window**2 - 4 * window)
    return next((root for root in roots if root > 0 and k * root >= 1), None)


def rtt_of_loss(window: float, left: float, best: float) -> float:
    """Return the RTT in s at which a loss reduces the congestion window to `left` segments.

    This is the inverse of `after_loss` (DTMC selection, eq (6a)). `window` is the window before the
    loss. `left` must be from window/4 to window/2. `best` is the largest window / RTT among the
    other subflows, in segments per second.
    """
    return 2 * (window - left) / best


def probability_of_largest(
    subflow: int, windows: Sequence[float], rtts_s: Sequence[tuple[float, float]]
) -> float:
    """Return the probability that the subflow with index `subflow` has the largest window / RTT.

    `windows` are in segments. `rtts_s` has the mean and the standard deviation (> 0) of each
    subflow's RTT in s. RTTs are independent and normally distributed, cut off at 0. This is Z of
    DTMC selection, eq (10), corrected: the largest rate belongs to the smallest RTT / window.
    """
    mean, sd = rtts_s[subflow]
    low, high = max(0.0, mean - INTEGRATED_SDS * sd), mean + INTEGRATED_SDS * sd
    step = (high - low) / INTEGRAL_STEPS
    others = [
        (windows[k] / windows[subflow], rtts_s[k]) for k in range(len(windows)) if k != subflow
    ]
    total = 0.0
    for n in range(INTEGRAL_STEPS):
        r = low + (n + 0.5) * step
        density = exp(-(((r - mean) / sd) ** 2) / 2) / (sd * sqrt(2 * pi) * _beyond(0, mean, sd))
        total += density * prod(
            _beyond(r * ratio, *each) / _beyond(0, *each) for ratio, each in others
        )
    return total * step


def _beyond(value: float, mean: float, sd: float) -> float:
    return erfc((value - mean) / (sd * sqrt(2))) / 2


def _roots(square: float, linear: float, constant: float) -> Iterable[float]:
    """Return the real roots of square x^2 + linear x + constant = 0. `square` may be 0."""
    if square == 0:
        return [-constant / linear] if linear else []
    inside = linear**2 - 4 * square * constant
    return (
        []
        if inside < 0
        else sorted((-linear + sign * sqrt(inside)) / (2 * square) for sign in (1, -1))
    )
