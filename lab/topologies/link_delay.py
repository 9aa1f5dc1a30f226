"""Compute the delay of a wired link, including that of an access point at its end."""

from __future__ import annotations

from collections.abc import Iterable

from lab.radio.cell import Cell
from lab.topologies.topology import Link


def link_delay_ns(link: Link, cells: Iterable[Cell]) -> tuple[int, int]:
    """Return the delay and the jitter of a link, one way, in ns.

    The delay of a cell lies between its access point and the core, so every wired link of the
    access point has it. A link to a relay is the air itself and has no delay. Both engines and the
    controller's topology file use this sum.
    """
    here = [cell for cell in cells if cell.ap in (link.a, link.b)]
    if any(station.user in (link.a, link.b) for cell in here for station in cell.stations):
        return 0, 0
    return (
        link.delay_ns + sum(cell.delay_ns for cell in here),
        link.jitter_ns + sum(cell.jitter_ns for cell in here),
    )
