"""Compute the delay of a wired link, including the delay of a radio cell at one of its ends."""

from __future__ import annotations

from collections.abc import Iterable

from lab.radio.cell import Cell
from lab.topologies.topology import Link


def link_delay_ns(link: Link, cells: Iterable[Cell]) -> tuple[int, int]:
    """Return two values in ns: the one-way delay and the jitter of a wired link.

    The delay of a cell lies between its access point and the core. It is therefore added to each
    wired link of the access point, except a link to a relay. A relay is a switch that is a station
    of the cell: its link stands for the radio channel, and both values are 0. Both engines and
    topology.json use these values.
    """
    here = [cell for cell in cells if cell.ap in (link.a, link.b)]
    if any(station.user in (link.a, link.b) for cell in here for station in cell.stations):
        return 0, 0
    return (
        link.delay_ns + sum(cell.delay_ns for cell in here),
        link.jitter_ns + sum(cell.jitter_ns for cell in here),
    )
