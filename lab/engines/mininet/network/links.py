"""Shape a running network: wired links, LTE queues and WiFi cells, also while they change."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.kernel.netlink import Queue
from lab.engines.mininet.kernel.shaping import FQ
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import wifi_cell
from lab.engines.mininet.network.network import Network
from lab.radio.cell import Cell
from lab.scenario.changes import (
    LinkChange,
    SetLinkDelay,
    SetLinkLoss,
    SetLinkRate,
    SetLinkUp,
)
from lab.topologies import topology_file as description
from lab.topologies.data_directions import data_directions, with_loss
from lab.topologies.link_delay import link_delay_ns
from lab.topologies.topology import Interface, Link, Topology, Trunk, Wiring


class Links:
    """Hold the shapes of all links and the cells that run."""

    def __init__(
        self,
        topology: Topology,
        wiring: Wiring,
        network: Network,
        ledger: Ledger,
        flows: Iterable[tuple[str, str]],
    ) -> None:
        """Prepare the shapes; `flows` are pairs of a user and the direction of its data."""
        self.wiring, self.network, self.ledger = wiring, network, ledger
        self.data_directions = data_directions(topology, flows)
        self.cells_of = topology.cells
        self.links = {link.id: link for link in topology.links}
        self.cells: dict[str, wifi_cell.RunningCell] = {}

    def start(self) -> None:
        """Shape all links, load all cells."""
        lines = [line for trunk in self.wiring.trunks for line in self._trunk(trunk)]
        for cell in self.cells_of:
            if cell.kind == "wifi":
                self._start_cell(cell)
            else:
                for station in cell.stations:
                    lines += shaping.rate(
                        self.wiring.at(station.user, cell.ap).port,
                        station.rate_bps,
                        cell.queue_packets,
                    )
        shaped = [
            each
            for each in self.wiring.interfaces
            if each.link in self.links and has_shape(self.links[each.link], self.cells_of)
        ]
        self._shape([*lines, *(self._towards_host(each) for each in shaped)], "shape the links")
        for host in dict.fromkeys(each.node for each in shaped):
            self._shape(
                [self._from_host(each) for each in shaped if each.node == host],
                f"shape the links of {host}",
                host,
            )

    def change(self, change: LinkChange) -> None:
        """Change a link while packets are in flight."""
        link_id = change.link
        trunk = next((each for each in self.wiring.trunks if each.link == link_id), None)
        if isinstance(change, SetLinkUp):
            port = (
                trunk.a_port
                if trunk
                else next(each.port for each in self.wiring.interfaces if each.link == link_id)
            )
            state = "up" if change.up else "down"
            shell.run(["ip", "link", "set", port, state], f"take link {link_id} {state}")
            return
        self.links[link_id] = self._changed(self.links[link_id], change)
        if trunk:
            self._shape(self._trunk(trunk), f"change {link_id}")
        else:
            own = next(each for each in self.wiring.interfaces if each.link == link_id)
            self._shape([self._towards_host(own)], f"change {link_id}")
            self._shape([self._from_host(own)], f"change {link_id}", own.node)

    def _changed(self, link: Link, change: LinkChange) -> Link:
        """Return the link after a change; loss acts in the directions of data."""
        match change:
            case SetLinkRate(_, rate_bps):
                return replace(link, rate_bps=rate_bps)
            case SetLinkDelay(_, delay_ns):
                return replace(link, delay_ns=delay_ns)
            case SetLinkLoss(_, loss_ppm):
                return with_loss(link, self.data_directions[link.id], loss_ppm)
        return link

    def shape(self, link_id: str) -> dict[str, Any]:
        """Return the state of a link for the controller: rate, delay and loss as they are now."""
        trunk = next((each for each in self.wiring.trunks if each.link == link_id), None)
        near = (
            trunk.a
            if trunk
            else next(each.switch for each in self.wiring.interfaces if each.link == link_id)
        )
        state = description.shape(self.links[link_id], self.cells_of, near)
        return {
            key: state[key]
            for key in ("rate_mbps", "delay_ms", "loss", "loss_back")
            if state[key] is not None
        }

    def set_station_rate(self, ap: str, user: str, rate_bps: int) -> None:
        """Set the rate of a WiFi station; the AP agent sets those of LTE."""
        if ap in self.cells:
            self.cells[ap].set_rate(self.wiring.at(user, ap).address, rate_bps)

    def lag_ms(self, queues: Mapping[tuple[int, int], Queue], radios: Mapping[str, int]) -> float:
        """Return by how much packets of the worst cell wait longer than its clock says, in ms."""
        worst = 0.0
        for ap, air in self.cells.items():
            clock, waiting = air.read(), queues[radios[ap], FQ].backlog_packets
            airtime_ns = clock.busy_ns / max(1, clock.sent)
            due_ns = max(0, clock.next_free_ns - time.monotonic_ns())
            worst = max(worst, (waiting * airtime_ns - due_ns) / 1e6)
        return worst

    def _trunk(self, trunk: Trunk) -> list[str]:
        """Return the shape of both directions; the delay of an access point's cell is included."""
        link = self.links[trunk.link]
        delay_ns, jitter_ns = link_delay_ns(link, self.cells_of)
        if not has_shape(link, self.cells_of):
            return []
        queue = link.queue_packets if link.rate_bps else shaping.UNLIMITED_PACKETS
        ends = ((trunk.a_port, link.loss_ppm), (trunk.b_port, link.loss_back_ppm))
        return [
            shaping.link(port, link.rate_bps, delay_ns, jitter_ns, loss, queue)
            for port, loss in ends
        ]

    def _towards_host(self, each: Interface) -> str:
        link = self.links[each.link]
        return self._end(
            each.port, link, link.loss_back_ppm if link.a == each.node else link.loss_ppm
        )

    def _from_host(self, each: Interface) -> str:
        link = self.links[each.link]
        return self._end(
            each.name, link, link.loss_ppm if link.a == each.node else link.loss_back_ppm
        )

    def _end(self, device: str, link: Link, loss_ppm: int) -> str:
        delay_ns, jitter_ns = link_delay_ns(link, self.cells_of)
        return shaping.link(
            device, link.rate_bps, delay_ns, jitter_ns, loss_ppm, link.queue_packets
        )

    def _shape(self, lines: list[str], doing: str, host: str | None = None) -> None:
        """Run `tc` once with all lines, on the machine or inside a host."""
        argv = ["tc", "-batch", "-"]
        if host is None:
            shell.run(argv, doing, stdin=shaping.batch(lines))
        else:
            self.network.run(host, argv, doing, stdin=shaping.batch(lines))

    def _start_cell(self, cell: Cell) -> None:
        """Load the cell's program and attach it to the radios of the AP and the stations."""
        air = self.cells[cell.ap] = wifi_cell.RunningCell(cell, self.ledger)
        lines = shaping.air(f"{cell.ap}-wlan1", "downlink", str(air.pins))
        shell.run(
            ["tc", "-batch", "-"], f"attach the cell to {cell.ap}", stdin=shaping.batch(lines)
        )
        for station in cell.stations:
            interface = self.wiring.at(station.user, cell.ap)
            air.set_rate(interface.address, station.rate_bps)
            lines = shaping.air(interface.name, "uplink", str(air.pins))
            self.network.run(
                station.user,
                ["tc", "-batch", "-"],
                f"attach the cell to {station.user}",
                stdin=shaping.batch(lines),
            )


def has_shape(link: Link, cells: Iterable[Cell]) -> bool:
    """Return whether a link has a netem of its own: it has a rate, a delay, jitter or a loss."""
    return bool(
        link.rate_bps or link.loss_ppm or link.loss_back_ppm or any(link_delay_ns(link, cells))
    )
