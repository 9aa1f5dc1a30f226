"""A network as the plain data of topology.json, the file that the controller reads. Both engines
write the same file."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from controller import units
from lab.radio.cell import Cell
from lab.topologies.topology import (
    Interface,
    Link,
    Topology,
    Trunk,
    Wiring,
    link_delay_ns,
    radio_port,
)

MILLION = 1_000_000


def describe(
    topology: Topology,
    wiring: Wiring,
    receive_buffer_kb: int = 4000,
    rate_scale: float = 1.0,
    flows: Iterable[tuple[str, str]] = (),
) -> dict[str, Any]:
    """The network as plain data, which `controller.topology.Topology` validates.

    `receive_buffer_kb` is the receive buffer of every connection. All rates are wire rates: rates
    of the scenario file multiplied by `rate_scale`. `flows` are pairs of a user and the direction
    of its data, "down" or "up".
    """
    data: dict[str, set[str]] = {}
    for user, direction in flows:
        data.setdefault(user, set()).add(direction)
    ports: dict[str, dict[str, str]] = {switch: {} for switch in wiring.dpid}
    for trunk in wiring.trunks:
        ports[trunk.a][trunk.b], ports[trunk.b][trunk.a] = trunk.a_port, trunk.b_port
    hosts = topology.ids("user", "server")
    return {
        "switches": {
            switch: {"dpid": dpid, "ports": ports[switch]} for switch, dpid in wiring.dpid.items()
        },
        "hosts": {host: [_interface(topology, each) for each in wiring.of(host)] for host in hosts},
        "trunks": [_trunk(topology, each) for each in wiring.trunks],
        "aps": {cell.ap: _ap(cell, topology.users) for cell in topology.cells},
        "multipath": list(topology.multipath),
        "data": {user: sorted(directions) for user, directions in data.items()},
        "receive_buffer_kb": receive_buffer_kb,
        "rate_scale": rate_scale,
    }


def _interface(topology: Topology, interface: Interface) -> dict[str, Any]:
    """Return the fields of an interface and, if it is wired, of its link. The rates of a radio
    interface are in the entry of its access point."""
    named = {
        key: getattr(interface, key) for key in ("name", "address", "mac", "switch", "port", "link")
    }
    named["further"] = list(interface.further)
    link = next((each for each in topology.links if each.id == interface.link), None)
    return named | shape(link, topology.cells, interface.switch) if link else named


def _trunk(topology: Topology, trunk: Trunk) -> dict[str, Any]:
    link = next(each for each in topology.links if each.id == trunk.link)
    ends = {
        "link": trunk.link,
        "a": trunk.a,
        "a_port": trunk.a_port,
        "b": trunk.b,
        "b_port": trunk.b_port,
    }
    return ends | shape(link, topology.cells, trunk.a)


def shape(link: Link, cells: Iterable[Cell], near: str) -> dict[str, Any]:
    """Return rate, delay, jitter and losses of a link as plain data.

    `near` is the node at one end of the link. `loss` in the result is for packets that leave this
    node, `loss_back` for packets towards it.
    """
    delay_ns, jitter_ns = link_delay_ns(link, cells)
    losses = (
        (link.loss_ppm, link.loss_back_ppm)
        if near == link.a
        else (link.loss_back_ppm, link.loss_ppm)
    )
    return {
        "rate_mbps": units.mbps_from_bps(link.rate_bps) if link.rate_bps else None,
        "delay_ms": units.ms_from_ns(delay_ns),
        "jitter_ms": units.ms_from_ns(jitter_ns),
        "loss": losses[0] / MILLION,
        "loss_back": losses[1] / MILLION,
    }


def _ap(cell: Cell, users: Container[str]) -> dict[str, Any]:
    stations = {
        each.user: {"rate_mbps": units.mbps_from_bps(each.rate_bps), "weight": each.weight}
        for each in cell.stations
        if each.user in users
    }
    return {
        "kind": cell.kind,
        "capacity_mbps": units.mbps_from_bps(cell.capacity_bps),
        "stations": stations,
        **({"port": radio_port(cell.ap)} if cell.kind == "wifi" else {}),
        **({"is_measured": False} if cell.air == "wmediumd" else {}),
    }
