"""Networks as strategies observe them, made from topologies and from lists of links."""

from __future__ import annotations

from collections.abc import Iterable

from controller.observation import Arc
from controller.plan import Plan
from lab.topologies.topology import Topology, as_json, wire

Links = dict[tuple[str, str], float]  # ends, and what goes in that direction


def arcs_of(topology: Topology) -> tuple[Arc, ...]:
    """Return the plan of a topology."""
    return Plan.model_validate(as_json(topology, wire(topology))).arcs()


def one_way(links: Links) -> tuple[Arc, ...]:
    """An arc for each of these."""
    return tuple(
        Arc(f"{tail}-{head}", tail, head, capacity) for (tail, head), capacity in links.items()
    )  # type: ignore[arg-type]


def both_ways(links: Links) -> tuple[Arc, ...]:
    """Two arcs for each of these."""
    return one_way(links) + one_way(
        {(head, tail): capacity for (tail, head), capacity in links.items()}
    )


def without(arcs: Iterable[Arc], *links: str) -> tuple[Arc, ...]:
    """Return the arcs without these links."""
    return tuple(arc for arc in arcs if arc.link not in links)
