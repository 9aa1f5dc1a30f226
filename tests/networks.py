"""Arcs as strategies observe them, made from topologies and from lists of links."""

from __future__ import annotations

from collections.abc import Iterable

from controller.observation import Arc
from controller.topology import Topology as ControllerTopology
from lab.topologies.topology import Topology, as_json, wire

Links = dict[tuple[str, str], float]  # (tail, head): capacity [bit/s] in this direction


def arcs_of(topology: Topology) -> tuple[Arc, ...]:
    """Return the network of a topology."""
    return ControllerTopology.model_validate(as_json(topology, wire(topology))).arcs()


def one_way(links: Links) -> tuple[Arc, ...]:
    return tuple(
        Arc(f"{tail}-{head}", tail, head, capacity) for (tail, head), capacity in links.items()
    )  # type: ignore[arg-type]


def both_ways(links: Links) -> tuple[Arc, ...]:
    return one_way(links) + one_way(
        {(head, tail): capacity for (tail, head), capacity in links.items()}
    )


def without(arcs: Iterable[Arc], *links: str) -> tuple[Arc, ...]:
    return tuple(arc for arc in arcs if arc.link not in links)
