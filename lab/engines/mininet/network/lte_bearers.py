"""Make the queues of an LTE cell: two for each station, one per direction.

Each queue has a rate, which the AP agent (programs/ap_agent.py) changes ten times a second. The
downlink queue is on the switch port that leads to the station. The uplink queue is on an ifb
interface, to which all packets that arrive at this port are redirected. On the station itself TCP
would never fill a queue (see kernel/shaping.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.radio.cell import Cell
from lab.topologies.topology import Wiring


def uplink_device(port: str) -> str:
    """Return the name of the ifb interface that has the uplink queue of one station.

    `port` is the switch port that leads to the station.
    """
    return f"{port}u"


def make(cell: Cell, wiring: Wiring, ledger: Ledger) -> list[str]:
    """Make the ifb interfaces of a cell, and return the `tc` lines that make the queues on them.

    The lines make the queues of both directions. Each queue starts with the rate that its station
    has when it is alone in the cell. `ledger` records the interfaces for the clean-up.
    """
    devices = [uplink_device(wiring.at(each.user, cell.ap).port) for each in cell.stations]
    for device in devices:
        ledger.record("interface", name=device)
    lines = [f"link add {device} up type ifb" for device in devices]
    argv = ["ip", "-batch", "-"]
    shell.run(argv, f"make the uplink queues of {cell.ap}", stdin=shaping.batch(lines))
    return list(_lines(cell, wiring))


def _lines(cell: Cell, wiring: Wiring) -> Iterator[str]:
    prepared = {each.port for each in wiring.interfaces}  # by host_port.replace_packets
    for station in cell.stations:
        port = wiring.at(station.user, cell.ap).port
        if port not in prepared:
            yield from shaping.arriving(port)
        bearer = (station.rate_bps, cell.queue_packets, station.delay_ns)
        yield from shaping.rate(port, *bearer)
        yield from shaping.uplink(port, uplink_device(port), *bearer)
