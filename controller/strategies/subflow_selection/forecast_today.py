"""Forecast the goodput of a set of paths for the TCP of today, as an alternative to `forecast`.

b, l and mu are bandwidth, loss and round trip of a path, S is the size of a frame. Terms that the
paper's forecast does not have:
1) Fast recovery (RFC 6675): the losses of one round trip halve the window once, and no segment
   waits for a timeout. A subflow then carries S/mu sqrt(3 (1 - l) / (2 l)) (Mathis et al., CCR
   27(3), 1997).
2) A queue that fills: a window above the bandwidth-delay product adds delay and no rate, so a
   subflow carries at most b. Each subflow sends at its own pace: rates are added, and no subflow
   waits for the slowest one. The chain limits the sum of the windows per slowest round instead.
3) A large receive buffer B: data of a lost segment waits for one more round trip. So the sum is at
   most 8 B / (2 max mu), and 8 B / max mu if no path loses packets.
4) Coupled congestion control (BALIA): the windows at which growth and loss are in balance, with
   the law of the module `balia`. As they vary less than those of a subflow alone, the factor that
   leads from the balance to the mean is the same as in 1.
Nobody reports the congestion control in use. Of both forecasts for the set that is in use, the one
that is closer to the measured goodput decides (`is_coupled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import inf, sqrt

from controller.strategies.subflow_selection.balia import LARGEST_DECREASE, SMALLEST_WINDOW
from controller.strategies.subflow_selection.forecast import LARGEST_LOSS, Estimate, PathQuality

FRAME_BITS = 1514 * 8
BALANCE_TO_MEAN = sqrt(3) / 2  # sqrt(3/2) of the sawtooth, sqrt(2) of the balance of its law
ROUNDS = 400
CLOSE_ENOUGH = 1e-4
MOST_PATHS = 6  # of more paths, not all sets are searched


@lru_cache(maxsize=8192)
def estimate_today(paths: tuple[PathQuality, ...], buffer_bytes: int, coupled: bool) -> Estimate:
    """Return the forecast for a connection that uses all these paths together.

    `buffer_bytes` is the size of its receive buffer, and `coupled` says whether its congestion
    control couples the windows of the subflows. `throughput_bps` counts Ethernet frames.
    """
    windows = _coupled_windows(paths) if coupled else tuple(map(_window_alone, paths))
    wanted_bps = sum(
        window * FRAME_BITS / path.rtt_s for window, path in zip(windows, paths, strict=True)
    )
    longest_s = max(path.rtt_s * (2 if path.loss else 1) for path in paths)
    throughput_bps = min(wanted_bps, 8 * buffer_bytes / longest_s)  # 3
    return Estimate(throughput_bps, throughput_bps * longest_s / 8, windows)


def is_coupled(paths: tuple[PathQuality, ...], buffer_bytes: int, measured_bps: float) -> bool:
    """Return whether the forecast with coupled windows is closer to the measured goodput."""
    coupled, alone = (
        abs(estimate_today(paths, buffer_bytes, each).throughput_bps - measured_bps)
        for each in (True, False)
    )
    return coupled < alone


def searched(
    paths: tuple[PathQuality, ...], buffer_bytes: int, coupled: bool
) -> list[tuple[float, tuple[int, ...]]]:
    """Return (forecast in bit/s, indices of paths) of many sets, the largest forecast first.

    Of equal forecasts, the larger set comes first. Up to six paths, these are all sets. Of more
    paths, one path after the other is left out, always that which is missed least.
    """

    def forecast(numbers: tuple[int, ...]) -> float:
        chosen = tuple(paths[n] for n in numbers)
        return estimate_today(chosen, buffer_bytes, coupled).throughput_bps

    everything = tuple(range(len(paths)))
    compared = [everything]
    if len(paths) <= MOST_PATHS:
        compared = [each for size in everything for each in combinations(everything, size + 1)]
    while len(compared[-1]) > 1 and len(paths) > MOST_PATHS:
        compared.append(max(combinations(compared[-1], len(compared[-1]) - 1), key=forecast))
    return sorted(((forecast(each), each) for each in compared), key=_order)


def _order(found: tuple[float, tuple[int, ...]]) -> tuple[float, int, tuple[int, ...]]:
    return -found[0], -len(found[1]), found[1]


def _full(path: PathQuality) -> float:
    """Return the bandwidth-delay product of a path in frames (2)."""
    return path.bandwidth_bps * path.rtt_s / FRAME_BITS


def _window_alone(path: PathQuality) -> float:
    loss = min(path.loss, LARGEST_LOSS)
    balance = sqrt(3 * (1 - loss) / (2 * loss)) if loss else inf
    return min(balance, _full(path))  # 1


def _coupled_windows(paths: Sequence[PathQuality]) -> tuple[float, ...]:
    """Return the windows in frames at which growth and loss of BALIA are in balance (4).

    For the paths that are not full: growth (1 - l) Y (1 + a)(4 + a) / (10 mu sum(Y)^2) equals
    decrease l w/2 min(a, 1.5), with Y = w / mu and a = max Y / Y. Each round moves the windows a
    part of the way.
    """
    rtts_s, full = [path.rtt_s for path in paths], [_full(path) for path in paths]
    losses = [min(path.loss, LARGEST_LOSS) for path in paths]
    windows = [min(4.0, limit) for limit in full]
    for _ in range(ROUNDS):
        rates = [window / rtt_s for window, rtt_s in zip(windows, rtts_s, strict=True)]
        total, best = sum(rates), max(rates)
        largest_change = 0.0
        for n, rate in enumerate(rates):
            a = best / rate
            growth = (1 - losses[n]) * (1 + a) * (4 + a) / (10 * (rtts_s[n] * total) ** 2)
            decrease = losses[n] / 2 * min(a, LARGEST_DECREASE)
            factor = (growth / decrease) ** 0.25 if decrease else 2.0
            new = min(max(windows[n] * factor, SMALLEST_WINDOW), full[n])
            largest_change = max(largest_change, abs(new / windows[n] - 1))
            windows[n] = new
        if largest_change < CLOSE_ENOUGH:
            break
    return tuple(
        window if window >= limit else max(window * BALANCE_TO_MEAN, min(SMALLEST_WINDOW, limit))
        for window, limit in zip(windows, full, strict=True)
    )
