"""Compute the delay of a wired link, including the delay of a radio cell at one of its ends."""

from __future__ import annotations

from collections.abc import Iterable

from lab.radio.cell import Cell
from lab.topologies.topology import Link


def link_delay_ns(link: Link, cells: Iterable[Cell]) -> tuple[int, int]:
    """Return two values in ns: the one-way delay and the jitter of a wired link.

    A cell's delay lies between its access point and the core. It is added to each wired link of
    that access point. The link between an access point and a relay, a switch that is a station of
    the cell, stands for the radio channel and has no delay. Both engines and topology.json use
    these values.
    """
    here = [cell for cell in cells if cell.ap in (link.a, link.b)]
    if any(station.user in (link.a, link.b) for cell in here for station in cell.stations):
        return 0, 0
    return (
        link.delay_ns + sum(cell.delay_ns for cell in here),
        link.jitter_ns + sum(cell.jitter_ns for cell in here),
    )
