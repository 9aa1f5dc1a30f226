"""Shape a running network: wired links, LTE queues and WiFi cells.

Shaping is to limit the rate and to add delay and loss; it can change during a run.
"""

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
from lab.engines.mininet.network import association, lte_bearers, wifi_cell
from lab.engines.mininet.network.network import Network
from lab.radio.cell import Cell, Station
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
    """Shape the links of a network, change them, and hold their state and the WiFi cells."""

    def __init__(
        self,
        topology: Topology,
        wiring: Wiring,
        network: Network,
        ledger: Ledger,
        flows: Iterable[tuple[str, str]],
    ) -> None:
        """Prepare the shaping of a network; `start` applies it.

        `flows` are pairs of a user and the direction of its data. They decide in which directions
        of a link a changed loss acts.
        """
        self.wiring, self.network, self.ledger = wiring, network, ledger
        self.data_directions = data_directions(topology, flows)
        self.cells_of = topology.cells
        self.links = {link.id: link for link in topology.links}
        self.cells: dict[str, wifi_cell.RunningCell] = {}

    def start(self) -> None:
        """Shape all wired links and LTE queues, and start all WiFi cells."""
        lines = [line for trunk in self.wiring.trunks for line in self._trunk(trunk)]
        self._start_cells()
        for cell in self.cells_of:
            if cell.kind == "lte":
                lines += lte_bearers.make(cell, self.wiring, self.ledger)
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
        """Change rate, delay or loss of a link, or take it up or down, while the network runs."""
        link_id = change.link
        trunk = next((each for each in self.wiring.trunks if each.link == link_id), None)
        if isinstance(change, SetLinkUp):
            self._take(link_id, trunk, "up" if change.up else "down")
            return
        self.links[link_id] = self._changed(self.links[link_id], change)
        if trunk:
            self._shape(self._trunk(trunk), f"change {link_id}")
        else:
            own = next(each for each in self.wiring.interfaces if each.link == link_id)
            self._shape([self._towards_host(own)], f"change {link_id}")
            self._shape([self._from_host(own)], f"change {link_id}", own.node)

    def _take(self, link_id: str, trunk: Trunk | None, state: str) -> None:
        """Take a link up or down at one of its ports; a relay's radio associates when it is up."""
        radio = next(
            (
                each
                for each in self.wiring.relays
                if trunk and trunk.radio and {each.node, each.switch} == {trunk.a, trunk.b}
            ),
            None,
        )
        if radio:
            port = radio.name
        elif trunk:
            port = trunk.a_port
        else:
            port = next(each.port for each in self.wiring.interfaces if each.link == link_id)
        shell.run(["ip", "link", "set", port, state], f"take link {link_id} {state}")
        if radio and state == "up":
            association.associate([radio], self.network.target, self.network.run)

    def _changed(self, link: Link, change: LinkChange) -> Link:
        """Return a copy of `link` with the change applied.

        A changed loss acts only in the directions in which the link carries data.
        """
        match change:
            case SetLinkRate(_, rate_bps):
                return replace(link, rate_bps=rate_bps)
            case SetLinkDelay(_, delay_ns):
                return replace(link, delay_ns=delay_ns)
            case SetLinkLoss(_, loss_ppm):
                return with_loss(link, self.data_directions[link.id], loss_ppm)
        return link

    def shape(self, link_id: str) -> dict[str, Any]:
        """Return the current rate_mbps, delay_ms, loss and loss_back of a link, for the controller.

        Fields that do not apply to the link are left out.
        """
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

    def set_station(self, ap: str, address: str, station: Station) -> None:
        """Set the airtime of the packets of a WiFi station, or add it to the cell of `ap`.

        Do nothing for an LTE cell: there the AP agent sets the rate.
        """
        if ap in self.cells:
            self.cells[ap].set_station(address, station)

    def remove_station(self, ap: str, address: str) -> None:
        """Remove a station from a WiFi cell: its packets no longer occupy the channel."""
        self.cells[ap].remove_station(address)

    def first_packet_s(self, ap: str, address: str) -> float | None:
        """Return when the first packet of a WiFi station crossed the cell [s, monotonic clock].

        It is None if there was none since the station came.
        """
        found_ns = self.cells[ap].first_packet_ns(address)
        return None if found_ns is None else found_ns / 1e9

    def lag_ms(self, queues: Mapping[tuple[int, int], Queue], radios: Mapping[str, int]) -> float:
        """Return the largest lag of a WiFi cell behind its virtual clock [ms], at least 0.

        The lag of a cell is the time that the packets in the queue of its access point need, minus
        the time until which the clock has planned transmissions. `queues` has the counters of each
        qdisc by interface number and major number, `radios` the interface number of each access
        point's radio.
        """
        worst = 0.0
        for ap, air in self.cells.items():
            clock, waiting = air.read(), queues[radios[ap], FQ].backlog_packets
            airtime_ns = clock.busy_ns / max(1, clock.sent)
            due_ns = max(0, clock.next_free_ns - time.monotonic_ns())
            worst = max(worst, (waiting * airtime_ns - due_ns) / 1e6)
        return worst

    def _trunk(self, trunk: Trunk) -> list[str]:
        """Return the `tc` lines that shape both directions of a link between two switches.

        If one end is an access point, the delay of its cell is added to the link's delay. The list
        is empty if the link needs no shaping.
        """
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
        """Run `tc -batch` with all lines, inside `host`; without a host, outside all hosts."""
        argv = ["tc", "-batch", "-"]
        if host is None:
            shell.run(argv, doing, stdin=shaping.batch(lines))
        else:
            self.network.run(host, argv, doing, stdin=shaping.batch(lines))

    def _start_cells(self) -> None:
        """Load the programs of all WiFi cells; attach them to access points and stations.

        A station that may move gets the programs of all cells to which it may move; only the
        program of the cell that holds its address acts. Cells on one channel have one program.
        """
        wifi = [cell for cell in self.cells_of if cell.kind == "wifi"]
        for cell in sorted(wifi, key=lambda cell: bool(cell.medium)):
            air = self.cells[cell.ap] = (
                self.cells[cell.medium] if cell.medium else wifi_cell.RunningCell(cell, self.ledger)
            )
            for station in cell.stations:
                air.set_station(self.wiring.at(station.user, cell.ap).address, station)
            lines = shaping.air(f"{cell.ap}-wlan1", "downlink", [str(air.pins)])
            self._shape(lines, f"attach the cell to {cell.ap}")
        for cell in wifi:
            reachable = [each for each in wifi if each.radio] if cell.radio else [cell]
            pins = [str(self.cells[each.ap].pins) for each in reachable]
            for station in cell.stations:
                lines = shaping.air(self.wiring.at(station.user, cell.ap).name, "uplink", pins)
                self._shape(lines, f"attach the cell to {station.user}", station.user)


def has_shape(link: Link, cells: Iterable[Cell]) -> bool:
    """Return whether a link needs a netem qdisc: it has a rate, a delay, jitter or a loss.

    The delay of an access point's cell counts as a delay of the access point's link.
    """
    return bool(
        link.rate_bps or link.loss_ppm or link.loss_back_ppm or any(link_delay_ns(link, cells))
    )
