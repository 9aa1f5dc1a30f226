"""What is known of a subflow's path, as the model wants it (DTMC selection, section II-A).

Along the arcs from the source to the user: b = the smallest bandwidth, l = 1 - prod(1 - l_e), mu = 2 sum delay_e and
sigma^2 = 2 sum jitter_e^2, because every delay is met on the way and on the way back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod, sqrt

from controller.observation import Arc, Subflow, air
from controller.strategies.subflow_selection.forecast import PathQuality

ArcsByEnds = Mapping[tuple[str, str], Arc]
SHORTEST_RTT_S = 0.0001
STEPS = 10  # in which the load of others is counted, so that noise of measurement changes nothing


def along(subflow: Subflow, arcs: ArcsByEnds) -> tuple[Arc, ...] | None:
    """The arcs from a subflow's source to its destination; None when one of them is not known."""
    source, destination = subflow.ends
    found: list[Arc] = []
    for tail, head in pairwise((source, *subflow.path, destination)):
        ways = ([tail, head], [tail, air(tail), head], [tail, air(head), head])
        known = next((way for way in ways if all(pair in arcs for pair in pairwise(way))), None)
        if known is None:
            return None
        found += [arcs[pair] for pair in pairwise(known)]
    return tuple(found)


def quality(way: Sequence[Arc], bandwidth_bps: float, rtt_sd_of_mean: float) -> PathQuality:
    """Q_i of a path; where no jitter is known, sigma is this share of mu."""
    rtt_s = max(SHORTEST_RTT_S, 2 * sum(arc.delay_s for arc in way))
    measured_sd_s = sqrt(2 * sum(arc.jitter_s**2 for arc in way))
    loss = 1 - prod(1 - arc.loss for arc in way)
    return PathQuality(bandwidth_bps, loss, rtt_s, measured_sd_s or rtt_sd_of_mean * rtt_s)


def capacity_bps(way: Sequence[Arc]) -> float:
    """The smallest capacity."""
    return min(arc.capacity_bps for arc in way)


def available_bps(way: Sequence[Arc], own_bps: Mapping[str, int]) -> float:
    """The smallest capacity without what others use, in tenths of the capacity and at least one; `own_bps` by arc's link."""

    def available(arc: Arc) -> float:
        others = max(0, arc.used_bps - own_bps.get(arc.link, 0)) / arc.capacity_bps
        return arc.capacity_bps * max(1, STEPS - round(others * STEPS)) / STEPS

    return min(map(available, way))
