"""Derive the quality of a subflow's path from its links (DTMC selection, section II-A).

An arc e is one direction of a link. Over the arcs from the source to the user: the bandwidth b is
the smallest bandwidth of an arc, the loss is l = 1 - prod(1 - l_e), the round trip is mu = 2 sum
delay_e, and its variance is sigma^2 = 2 sum jitter_e^2. The factors of 2 count each delay once for
the packet and once for its acknowledgement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod, sqrt

from controller.observation import Arc, Subflow, air
from controller.strategies.subflow_selection.forecast import PathQuality

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
