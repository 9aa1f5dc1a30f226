"""Search for the set of paths with the largest expected throughput.

The receive buffer of the set must be at most RL_max (DTMC selection, section IV, eq (19)). b, l and
mu are bandwidth, loss and mean round trip of a path.

Greedy search (Algorithm 1, completed):
1) Sort the paths by the score T = b [Mb/s] (1 - l) + 1/mu [1/s], the largest first; of equal
   scores, the shorter round trip first. Begin with the first path. (b is the wire rate. T is a sum
   of unlike units, as the paper prints it.)
2) Try each further path in this order, and accept it if the receive buffer is within the limit. The
   paper can be read in three ways, so `accept` has three values. `printed`: test the buffer of the
   set without the path. `tentative`: test the buffer of the set with the path. `gain`: as
   `tentative`, and the path must increase the throughput.
3) With `starts: all`, repeat the search with every path as the first one, and keep the best set.

Exhaustive search: try the sets in descending order of an upper bound of their throughput, until no
bound is above the best throughput found.
4) The bound of a set is the smaller of two:
   - With one other path in the set, a path's mean window E[w] is at least as large as with several.
     A round lasts at least G(2), the time of a round with a window of 2 segments of S bits. So
     Avg_Th <= sum over paths of (smallest pairwise E[w]) S / max G(2).
   - The buffer limit: Avg_Th <= 8 RL_max / (max mu - min mu), RL_max in bytes, mu in s.
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
    """The chosen set of paths: their indices in ascending order, and the forecast for the set."""

    chosen: tuple[int, ...]
    estimate: Estimate


def greedy(
    paths: Sequence[PathQuality],
    model: Model,
    rl_max_bytes: float,
    accept: Accept = "gain",
    starts: Starts = "first",
) -> Choice:
    """Return the set of paths that the greedy search finds (DTMC selection, Algorithm 1).

    The set should need a receive buffer of at most `rl_max_bytes`. `accept` and `starts` choose
    between readings of the paper (see the module's docstring). With `accept` "printed", the buffer
    is checked before a path is added, so the set may need more.
    """
    order = ranked(paths)
    firsts = order if starts == "all" else order[:1]
    found = (_grow(first, order, paths, model, rl_max_bytes, accept) for first in firsts)
    return max(found, key=lambda choice: choice.estimate.throughput_bps)  # 3


def ranked(paths: Sequence[PathQuality]) -> list[int]:
    """Return the indices of the paths in descending order of their score.

    The score is bandwidth in Mb/s x (1 - loss) + 1 / RTT in s (DTMC selection, Algorithm 1).
    """

    def key(n: int) -> tuple[float, float, int]:
        path = paths[n]
        return (
            -(mbps_from_bps(path.bandwidth_bps) * (1 - path.loss) + 1 / path.rtt_s),
            path.rtt_s,
            n,
        )  # 1

    return sorted(range(len(paths)), key=key)


def _grow(
    first: int,
    order: Sequence[int],
    paths: Sequence[PathQuality],
    model: Model,
    rl_max_bytes: float,
    accept: Accept,
) -> Choice:
    """Return a set that begins with the path `first` and grows by one path after another.

    Paths are tried in the order of the indices in `order`. `accept` chooses the test that a path
    must pass (see the module's docstring).
    """
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
    """Return the set of at most `most_paths` paths with the largest forecast throughput.

    Only sets that need a receive buffer of at most `rl_max_bytes` count.
    """
    bounds = sorted(_bounds(paths, model, rl_max_bytes, most_paths), reverse=True)
    best: Choice | None = None
    for bound_bps, positions in bounds:
        if best is not None and bound_bps <= best.estimate.throughput_bps:
            break
        choice = _choice(positions, paths, model)
        fits = choice.estimate.buffer_bytes <= rl_max_bytes
        if fits and (best is None or choice.estimate.throughput_bps > best.estimate.throughput_bps):
            best = choice
    assert best is not None, "one path alone needs no buffer"
    return best


def _bounds(
    paths: Sequence[PathQuality], model: Model, rl_max_bytes: float, most_paths: int
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield an upper bound of the throughput in bit/s, with path indices, for each set of paths.

    Only sets of at most `most_paths` paths are included.
    """
    shortest_s = [round_s(path, SMALLEST_WINDOW, model) for path in paths]
    windows = _largest_windows(paths, model)
    for size in range(1, min(most_paths, len(paths)) + 1):
        for positions in combinations(range(len(paths)), size):
            held = sum(
                min(windows[n][m] for m in positions if m != n or size == 1) for n in positions
            )
            bound_bps = held * SEGMENT_BITS / max(shortest_s[n] for n in positions)  # 4
            rtts_s = [paths[n].rtt_s for n in positions]
            spread_s = max(rtts_s) - min(rtts_s)
            yield min(bound_bps, 8 * rl_max_bytes / spread_s) if spread_s else bound_bps, positions


def _largest_windows(paths: Sequence[PathQuality], model: Model) -> list[list[float]]:
    """Return a matrix: entry [i][j] is the mean window of path i if only i and j are used.

    The windows are in segments. Entry [i][i] is the mean window of path i if it is used alone.
    """
    windows = [[estimate((path,), model).windows[0]] * len(paths) for path in paths]
    for n, m in combinations(range(len(paths)), 2):
        windows[n][m], windows[m][n] = estimate((paths[n], paths[m]), model).windows
    return windows


def _choice(positions: Sequence[int], paths: Sequence[PathQuality], model: Model) -> Choice:
    chosen = tuple(sorted(positions))
    return Choice(chosen, estimate(tuple(paths[n] for n in chosen), model))
