"""Make the queues of an LTE cell: two for each station, one per direction.

Each queue has a rate, which the AP agent changes ten times a second. The downlink queue is on the
station's switch port. The uplink queue is behind this port: TCP would never fill a queue on the
sending host (see `kernel/shaping`).
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.radio.cell import Cell
from lab.topologies.topology import Wiring


def uplink_device(port: str) -> str:
    """Return the name of the interface with the uplink queue of the station at this switch port."""
    return f"{port}u"


def make(cell: Cell, wiring: Wiring, ledger: Ledger) -> list[str]:
    """Make the interfaces of the uplink queues, and record them in the ledger.

    Return the `tc` lines that make the queues of both directions, with the rates that the stations
    have when they are alone.
    """
    devices = [uplink_device(wiring.at(each.user, cell.ap).port) for each in cell.stations]
    for device in devices:
        ledger.record("interface", name=device)
    lines = [f"link add {device} up type ifb" for device in devices]
    argv = ["ip", "-batch", "-"]
    shell.run(argv, f"make the uplink queues of {cell.ap}", stdin=shaping.batch(lines))
    return list(_lines(cell, wiring))


def _lines(cell: Cell, wiring: Wiring) -> Iterator[str]:
    for station in cell.stations:
        port = wiring.at(station.user, cell.ap).port
        bearer = (station.rate_bps, cell.queue_packets, station.delay_ns)
        yield from shaping.rate(port, *bearer)
        yield from shaping.uplink(port, uplink_device(port), *bearer)
