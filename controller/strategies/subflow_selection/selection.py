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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from math import prod, sqrt
from typing import Literal

from controller.observation import Arc, Subflow, air
from controller.strategies.subflow_selection.forecast import (
    SEGMENT_BITS,
    SMALLEST_WINDOW,
    Estimate,
    Model,
    PathQuality,
    estimate,
    round_s,
)
from controller.units import mbps_from_bps

# Derive the quality of a subflow's path from its links (DTMC selection, section II-A).
#
# An arc e is one direction of a link. Over the arcs from the source to the user: the bandwidth b
# is the smallest bandwidth of an arc, the loss is l = 1 - prod(1 - l_e), the round trip is mu = 2
# sum delay_e, and its variance is sigma^2 = 2 sum jitter_e^2. The factors of 2 count each delay
# once for the packet and once for its acknowledgement.


ArcsByEnds = Mapping[tuple[str, str], Arc]
SMALLEST_RTT_S = 0.0001
LOAD_STEPS = (
    10  # the load of others is rounded to tenths, so that measurement noise changes nothing
)


def arcs_along(subflow: Subflow, arcs: ArcsByEnds) -> tuple[Arc, ...] | None:
    """Return the arcs of the subflow's path from source to destination, or None if one is unknown.

    `arcs` maps (tail, head) to the arc between these two nodes.
    """
    source, destination = subflow.ends
    found: list[Arc] = []
    for tail, head in pairwise((source, *subflow.path, destination)):
        steps = ([tail, head], [tail, air(tail), head], [tail, air(head), head])
        known = next((step for step in steps if all(pair in arcs for pair in pairwise(step))), None)
        if known is None:
            return None
        found += [arcs[pair] for pair in pairwise(known)]
    return tuple(found)


def quality(path: Sequence[Arc], bandwidth_bps: float, rtt_sd_of_mean: float) -> PathQuality:
    """Return the quality of a path with the bandwidth `bandwidth_bps`.

    Loss, mean round trip and standard deviation of the round trip follow from the arcs (directions
    of links) in `path`. If no arc has a known jitter, the standard deviation is `rtt_sd_of_mean`
    times the mean.
    """
    rtt_s = max(SMALLEST_RTT_S, 2 * sum(arc.delay_s for arc in path))
    measured_sd_s = sqrt(2 * sum(arc.jitter_s**2 for arc in path))
    loss = 1 - prod(1 - arc.loss for arc in path)
    return PathQuality(bandwidth_bps, loss, rtt_s, measured_sd_s or rtt_sd_of_mean * rtt_s)


def capacity_bps(path: Sequence[Arc]) -> float:
    """Return the capacity of the path in bit/s: the smallest capacity of its arcs."""
    return min(arc.capacity_bps for arc in path)


def available_bps(path: Sequence[Arc], own_bps: Mapping[str, int]) -> float:
    """Return the rate in bit/s that other connections leave free on a path.

    `own_bps` maps each link to the load by the connection itself, which counts as free. The free
    part of an arc (one direction of a link) is rounded to tenths of its capacity and is at least
    one tenth. The result is the smallest free part among the arcs of the path.
    """

    def available(arc: Arc) -> float:
        others = max(0, arc.used_bps - own_bps.get(arc.link, 0)) / arc.capacity_bps
        return arc.capacity_bps * max(1, LOAD_STEPS - round(others * LOAD_STEPS)) / LOAD_STEPS

    return min(map(available, path))


Accept = Literal["printed", "tentative", "gain"]
Starts = Literal["first", "all"]


@dataclass(frozen=True)
class Choice:
    """Hold the indices of the chosen paths in ascending order, and the forecast for this set."""

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

    `accept` and `starts` choose between readings of the paper, see the top of this file. With
    `accept` set to `printed`, the buffer is checked before a path is added. The set may then need
    more than `rl_max_bytes`.
    """
    order = ranked(paths)
    firsts = order if starts == "all" else order[:1]
    found = (_grow(first, order, paths, model, rl_max_bytes, accept) for first in firsts)
    return max(found, key=lambda choice: choice.estimate.throughput_bps)  # 3


def ranked(paths: Sequence[PathQuality]) -> list[int]:
    """Return the indices of the paths in descending order of their score.

    The score is bandwidth in Mb/s x (1 - loss) + 1 / round trip in s (DTMC selection, Algorithm 1).
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
    """Return the set that begins with path `first` and accepts more paths in the order `order`.

    `order` lists indices of `paths`. A path is accepted if it passes the test of the receive buffer
    that `accept` chooses.
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

    Only sets whose receive buffer is at most `rl_max_bytes` count.
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
    """Yield for every set of paths an upper bound of its throughput, and the indices of its paths.

    The bound is in bit/s. A set has at most `most_paths` paths.
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

    The windows are in segments. Entry [i][i] is the mean window of path i alone.
    """
    windows = [[estimate((path,), model).windows[0]] * len(paths) for path in paths]
    for n, m in combinations(range(len(paths)), 2):
        windows[n][m], windows[m][n] = estimate((paths[n], paths[m]), model).windows
    return windows


def _choice(positions: Sequence[int], paths: Sequence[PathQuality], model: Model) -> Choice:
    chosen = tuple(sorted(positions))
    return Choice(chosen, estimate(tuple(paths[n] for n in chosen), model))
