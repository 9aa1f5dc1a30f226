"""Shape the links of a running network: wired links, LTE queues and WiFi cells.

To shape a link means to limit its rate and to add delay and loss. All of these can change during a
run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.kernel.netlink import Queue
from lab.engines.mininet.kernel.shaping import FQ
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import packet_programs
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.network.wifi import associate
from lab.radio.cell import Cell, Station
from lab.scenario.targets import LinkChange, SetLinkDelay, SetLinkLoss, SetLinkRate, SetLinkUp
from lab.topologies.topology import (
    Interface,
    Link,
    Topology,
    Trunk,
    Wiring,
    data_directions,
    link_delay_ns,
    link_shape,
    with_loss,
)


class Links:
    """Shape the links of a network, change them during a run, and control the WiFi cells.

    `links` has the current rate, delay and loss of each link. `cells` has each running WiFi cell by
    its access point.
    """

    def __init__(
        self,
        topology: Topology,
        wiring: Wiring,
        network: Network,
        ledger: Ledger,
        flows: Iterable[tuple[str, str]],
    ) -> None:
        """Prepare the shaping; `start` applies it to the network.

        `flows` lists pairs: a user, and the direction of its data, "up" or "down". A changed loss
        acts on a link only in the directions in which these flows send data over it. `ledger`
        records what `start` makes, for the clean-up.
        """
        self.wiring, self.network, self.ledger = wiring, network, ledger
        self.data_directions = data_directions(topology, flows)
        self.cells_of = topology.cells
        self.links = {link.id: link for link in topology.links}
        self.cells: dict[str, packet_programs.RunningCell] = {}

    def start(self) -> None:
        """Shape all wired links, make the queues of all LTE cells, and start all WiFi cells."""
        lines = [line for trunk in self.wiring.trunks for line in self._trunk(trunk)]
        self._start_cells()
        for cell in self.cells_of:
            if cell.kind == "lte":
                lines += make_lte_queues(cell, self.wiring, self.ledger)
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
        """Set a link up or down (`state`) by setting the interface at one end up or down.

        `trunk` is the link if it connects two switches, None for a link to a host. The radio link
        of a relay (a switch with a radio) is set up or down at the relay. When it is set up, the
        relay associates with its access point again.
        """
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
            associate([radio], self.network.target, self.network.run)

    def _changed(self, link: Link, change: LinkChange) -> Link:
        """Return a copy of `link` with its rate, delay or loss changed as `change` says.

        The loss changes only in the directions in which flows send data over the link.
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
        """Return the rate_mbps, delay_ms, loss and loss_back that a link has now, for POX.

        `loss` is the fraction lost of the packets that the link's switch sends to the host; if the
        link connects two switches, of the packets that its switch `a` sends. `loss_back` is for the
        opposite direction. A value that does not apply to the link is left out.
        """
        trunk = next((each for each in self.wiring.trunks if each.link == link_id), None)
        near = (
            trunk.a
            if trunk
            else next(each.switch for each in self.wiring.interfaces if each.link == link_id)
        )
        state = link_shape(self.links[link_id], self.cells_of, near)
        return {
            key: state[key]
            for key in ("rate_mbps", "delay_ms", "loss", "loss_back")
            if state[key] is not None
        }

    def set_station(self, ap: str, address: str, station: Station) -> None:
        """Set the rate of a WiFi station in the cell of `ap`; add the station if it is new there.

        `address` is the station's IPv4 address. The rate decides the airtime of the station's
        packets. Do nothing if `ap` has an LTE cell: there the AP agent sets the rates.
        """
        if ap in self.cells:
            self.cells[ap].set_station(address, station)

    def remove_station(self, ap: str, address: str) -> None:
        """Remove the station with this IPv4 address from the WiFi cell of `ap`.

        Its packets then no longer occupy the channel of this cell.
        """
        self.cells[ap].remove_station(address)

    def first_packet_s(self, ap: str, address: str) -> float | None:
        """Return when the first packet to or from a station crossed the WiFi cell of `ap`.

        `address` is the station's IPv4 address. The time is in seconds of the monotonic clock. It
        is None if no packet has crossed the cell since the station came into it.
        """
        found_ns = self.cells[ap].first_packet_ns(address)
        return None if found_ns is None else found_ns / 1e9

    def lag_ms(self, queues: Mapping[tuple[int, int], Queue], radios: Mapping[str, int]) -> float:
        """Return the largest lag of a WiFi cell behind its virtual clock [ms], at least 0.

        The virtual clock of a cell is the time until which the accepted packets occupy the channel.
        The lag is the airtime that the packets in the access point's queue still need, minus the
        time left on the clock. `queues` has the counters of each qdisc by interface number and
        major number. `radios` has the interface number of each access point's radio.
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

        An access point counts as a switch; the delay of its cell is added to the delay of the link.
        The list is empty if the link needs no shaping.
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
        """Run `tc -batch` with `lines` inside `host`; for None, outside all hosts.

        `doing` says the purpose, for error messages.
        """
        argv = ["tc", "-batch", "-"]
        if host is None:
            shell.run(argv, doing, stdin=shaping.batch(lines))
        else:
            self.network.run(host, argv, doing, stdin=shaping.batch(lines))

    def _start_cells(self) -> None:
        """Load the eBPF programs of all WiFi cells, and attach them to access points and stations.

        A cell whose medium is wmediumd has no program. Cells that share a channel use one program.
        A station that can move gets the programs of all cells to which it can move; each acts only
        on packets of the stations of its own cell.
        """
        wifi = [cell for cell in self.cells_of if cell.kind == "wifi" and cell.air == "cell"]
        for cell in sorted(wifi, key=lambda cell: bool(cell.medium)):
            air = self.cells[cell.ap] = (
                self.cells[cell.medium]
                if cell.medium
                else packet_programs.RunningCell(cell, self.ledger)
            )
            for station in cell.stations:
                air.set_station(self.wiring.at(station.user, cell.ap).address, station)
            air.record()
            lines = shaping.air(f"{cell.ap}-wlan1", "downlink", [str(air.pins)])
            self._shape(lines, f"attach the cell to {cell.ap}")
        for cell in wifi:
            reachable = [each for each in wifi if each.radio] if cell.radio else [cell]
            pins = [str(self.cells[each.ap].pins) for each in reachable]
            for station in cell.stations:
                lines = shaping.air(self.wiring.at(station.user, cell.ap).name, "uplink", pins)
                self._shape(lines, f"attach the cell to {station.user}", station.user)


def has_shape(link: Link, cells: Iterable[Cell]) -> bool:
    """Return whether a wired link needs a netem qdisc: it has a rate, a delay, jitter or a loss.

    The delay of a cell counts as delay of the wired links of its access point. These links always
    need a netem qdisc, because telemetry.py reads its counters. The wired links of a relay (a
    switch that is a WiFi station) always get one too.
    """
    ends = {link.a, link.b}
    shape = link.rate_bps or link.loss_ppm or link.loss_back_ppm or any(link_delay_ns(link, cells))
    members = [
        (cell.ap in ends, any(each.user in ends for each in cell.stations)) for cell in cells
    ]
    is_radio = (True, True) in members
    return bool(shape) or (any(map(any, members)) and not is_radio)


# Queues of an LTE cell: two for each station. The AP agent (programs/ap_agent.py) changes their
# rates ten times a second. The downlink queue is on the switch port that leads to the station. The
# uplink queue is on an ifb interface, to which all packets that arrive at this port are redirected.
# On the station itself TCP would never fill a queue (see kernel/shaping.py).


def uplink_device(port: str) -> str:
    """Return the name of the ifb interface with the uplink queue of one station.

    `port` is the switch port that leads to the station.
    """
    return f"{port}u"


def make_lte_queues(cell: Cell, wiring: Wiring, ledger: Ledger) -> list[str]:
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
    return list(_lte_lines(cell, wiring))


def _lte_lines(cell: Cell, wiring: Wiring) -> Iterator[str]:
    prepared = {each.port for each in wiring.interfaces}  # by packet_programs.replace_packets
    for station in cell.stations:
        port = wiring.at(station.user, cell.ap).port
        if port not in prepared:
            yield from shaping.arriving(port)
        bearer = (station.rate_bps, cell.queue_packets, station.delay_ns)
        yield from shaping.rate(port, *bearer)
        yield from shaping.uplink(port, uplink_device(port), *bearer)
