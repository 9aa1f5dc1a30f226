"""Which paths to use: largest throughput whose need of buffer stays within RL_max (DTMC selection, section IV, eq (19)).

Greedy (Algorithm 1, completed):
1) order the paths by T = b [Mb/s] (1 - l) + 1/mu [1/s], ties to the shorter round trip; begin with the first
2) for each of the rest: accept it if the need of buffer stays within the limit, by one of three readings:
   printed: of the set before it is added   tentative: of the set with it   gain: tentative, and the throughput grows
3) `all`: begin once with every path, and keep the best

Exhaustive: sets in the order of an upper bound of their throughput, until no bound is above the best found.
4) beside one other path a window is never smaller than beside several, and a round takes at least that of the smallest window:
   Avg_Th <= sum min E[w beside one] S / max G(2); and the limit of the buffer allows no more than Avg_Th <= 8 RL_max / (max mu - min mu)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

from controller.strategies.subflow_selection.balia import SMALLEST_WINDOW
from controller.strategies.subflow_selection.forecast import (
    SEGMENT_BITS,
    Estimate,
    Model,
    PathQuality,
    estimate,
    round_s,
)
from controller.units import mbps_from_bps

Accept = Literal["printed", "tentative", "gain"]
Starts = Literal["first", "all"]


@dataclass(frozen=True)
class Choice:
    """The places of the chosen paths, in ascending order, and the forecast for them."""

    chosen: tuple[int, ...]
    estimate: Estimate


def greedy(
    paths: Sequence[PathQuality],
    model: Model,
    rl_max_bytes: float,
    accept: Accept = "gain",
    starts: Starts = "first",
) -> Choice:
    """The choice of Algorithm 1; `printed` may exceed the limit by its last path."""
    order = ranked(paths)
    firsts = order if starts == "all" else order[:1]
    found = (_grown(first, order, paths, model, rl_max_bytes, accept) for first in firsts)
    return max(found, key=lambda choice: choice.estimate.throughput_bps)  # 3


def ranked(paths: Sequence[PathQuality]) -> list[int]:
    """The places of the paths, the most promising first."""

    def key(n: int) -> tuple[float, float, int]:
        path = paths[n]
        return (
            -(mbps_from_bps(path.bandwidth_bps) * (1 - path.loss) + 1 / path.rtt_s),
            path.rtt_s,
            n,
        )  # 1

    return sorted(range(len(paths)), key=key)


def _grown(
    first: int,
    order: Sequence[int],
    paths: Sequence[PathQuality],
    model: Model,
    rl_max_bytes: float,
    accept: Accept,
) -> Choice:
    best = _choice((first,), paths, model)
    for each in order:
        if each == first:
            continue
        wider = _choice((*best.chosen, each), paths, model)
        tested = best if accept == "printed" else wider  # 2
        fits = tested.estimate.buffer_bytes <= rl_max_bytes
        grows = wider.estimate.throughput_bps > best.estimate.throughput_bps
        if fits and (grows or accept != "gain"):
            best = wider
    return best


@lru_cache(maxsize=64)
def exhaustive(
    paths: tuple[PathQuality, ...], model: Model, rl_max_bytes: float, most_paths: int
) -> Choice:
    """The best of all sets of at most so many paths."""
    bounds = sorted(_bounds(paths, model, rl_max_bytes, most_paths), reverse=True)
    best: Choice | None = None
    for bound_bps, places in bounds:
        if best is not None and bound_bps <= best.estimate.throughput_bps:
            break
        choice = _choice(places, paths, model)
        fits = choice.estimate.buffer_bytes <= rl_max_bytes
        if fits and (best is None or choice.estimate.throughput_bps > best.estimate.throughput_bps):
            best = choice
    assert best is not None, "one path alone needs no buffer"
    return best


def _bounds(
    paths: Sequence[PathQuality], model: Model, rl_max_bytes: float, most_paths: int
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every set with what its throughput cannot exceed, in bit/s."""
    shortest_s = [round_s(path, SMALLEST_WINDOW, model) for path in paths]
    windows = _largest_windows(paths, model)
    for size in range(1, min(most_paths, len(paths)) + 1):
        for places in combinations(range(len(paths)), size):
            held = sum(min(windows[n][m] for m in places if m != n or size == 1) for n in places)
            bound_bps = held * SEGMENT_BITS / max(shortest_s[n] for n in places)  # 4
            rtts_s = [paths[n].rtt_s for n in places]
            spread_s = max(rtts_s) - min(rtts_s)
            yield min(bound_bps, 8 * rl_max_bytes / spread_s) if spread_s else bound_bps, places


def _largest_windows(paths: Sequence[PathQuality], model: Model) -> list[list[float]]:
    """The window of each path beside each other one; beside itself, alone."""
    windows = [[estimate((path,), model).windows[0]] * len(paths) for path in paths]
    for n, m in combinations(range(len(paths)), 2):
        windows[n][m], windows[m][n] = estimate((paths[n], paths[m]), model).windows
    return windows


def _choice(places: Sequence[int], paths: Sequence[PathQuality], model: Model) -> Choice:
    chosen = tuple(sorted(places))
    return Choice(chosen, estimate(tuple(paths[n] for n in chosen), model))
