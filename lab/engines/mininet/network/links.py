"""Limit the rate of links and add delay and loss: wired links, LTE queues and WiFi cells.

All of these can be changed during a run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.kernel.netlink import Queue, Scheduler
from lab.engines.mininet.kernel.shaping import FQ, Shape
from lab.engines.mininet.machine import shell
from lab.engines.mininet.machine.ledger import Ledger
from lab.engines.mininet.network import packet_programs
from lab.engines.mininet.network.network import Network
from lab.engines.mininet.network.wifi import associate
from lab.radio.cell import Cell, Station
from lab.scenario.targets import (
    LinkChange,
    SetLinkDelay,
    SetLinkLoss,
    SetLinkQueue,
    SetLinkRate,
    SetLinkUp,
    with_queue,
)
from lab.topologies.queues import FIFO
from lab.topologies.topology import (
    Direction,
    Directions,
    Interface,
    Link,
    OneWay,
    Topology,
    Trunk,
    Wiring,
    data_directions,
    link_delay_ns,
    link_shape,
    with_loss,
)

SIDES: tuple[Direction, Direction] = ("ab", "ba")


class Links:
    """Shape the links of a network (rate, delay and loss), also during a run.

    `links` maps the ID of a link to its current rate, delay and loss. `cells` maps the name of an
    access point to its running WiFi cell.
    """

    def __init__(
        self,
        topology: Topology,
        wiring: Wiring,
        network: Network,
        ledger: Ledger,
        flows: Iterable[tuple[str, str]],
    ) -> None:
        """Prepare the links; `start` changes the network.

        `flows` lists pairs: a user, and the direction of its data, "up" or "down". A loss that is
        set during the run acts on a link only in the directions in which these flows send data.
        `ledger` is the list of what the clean-up has to remove.
        """
        self.topology, self.wiring = topology, wiring
        self.network, self.ledger = network, ledger
        self.data_directions = data_directions(topology, flows)
        self.cells_of = topology.cells
        self.links = {link.id: link for link in topology.links}
        self.fastest_bps = {
            (link.id, side): link.way(side).rate_bps or 0
            for link in topology.links
            for side in SIDES
        }
        self.cells: dict[str, packet_programs.RunningCell] = {}

    def start(self) -> None:
        shaped = {link.id for link in self.links.values() if has_shape(link, self.cells_of)}
        trunks = [each for each in self.wiring.trunks if each.link in shaped]
        ends = [end for trunk in trunks for end in self._trunk(trunk)]
        lines = [line for end in ends for line in shaping.link(*end)]
        self._start_cells()
        for cell in self.cells_of:
            if cell.kind == "lte":
                lines += make_lte_queues(cell, self.topology, self.wiring, self.ledger)
        access = [each for each in self.wiring.interfaces if each.link in shaped]
        lines += [shaping.host_link(*self._towards_host(each)) for each in access]
        self._shape(lines, "shape the links")
        for host in dict.fromkeys(each.node for each in access):
            own = [self._from_host(each) for each in access if each.node == host]
            lines = [shaping.host_link(*each) for each in own]
            self._shape(lines, f"shape the links of {host}", host)

    def change(self, change: LinkChange) -> None:
        link_id = change.link
        trunk = next((each for each in self.wiring.trunks if each.link == link_id), None)
        if isinstance(change, SetLinkUp):
            self._take(link_id, trunk, "up" if change.up else "down")
            return
        before = self.links[link_id]
        link = self.links[link_id] = self._changed(before, change)
        if isinstance(change, SetLinkQueue):
            assert trunk, "only links between switches have a queue"
            self._change_queue(trunk, before, change.sides)
            return
        for side in SIDES:
            rate_bps = link.way(side).rate_bps or 0
            self.fastest_bps[link_id, side] = max(self.fastest_bps[link_id, side], rate_bps)
        if trunk:
            for end in self._trunk(trunk):
                self._change(*end)
        else:
            own = next(each for each in self.wiring.interfaces if each.link == link_id)
            doing = f"change {link_id}"
            self._shape([shaping.host_link(*self._towards_host(own))], doing)
            self._shape([shaping.host_link(*self._from_host(own))], doing, own.node)

    def _take(self, link_id: str, trunk: Trunk | None, state: str) -> None:
        """Set a link "up" or "down", as `state` says, by setting the interface at one of its ends.

        `trunk` is the link if it connects two switches, or None if the link leads to a host. The
        radio link of a relay (a switch with a radio) is set at the relay. After such a link has
        come up, the relay associates with its access point again.
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
        """Return a copy of `link` with a new rate, delay or loss.

        A loss is set only in the directions in which flows send data over the link.
        """
        match change:
            case SetLinkRate(_, rate_bps, sides):
                return link.changed(sides, rate_bps=rate_bps)
            case SetLinkDelay(_, delay_ns, sides):
                return link.changed(sides, delay_ns=delay_ns)
            case SetLinkLoss(_, loss_ppm, sides):
                return with_loss(link, sides or self.data_directions[link.id], loss_ppm)
            case SetLinkQueue():
                return with_queue(link, change)
        return link

    def _change_queue(self, trunk: Trunk, before: Link, sides: Directions) -> None:
        """Give these directions of a link the queues that it has now. `before` is the link with the
        queues that it had."""
        lines: list[str] = []
        for (device, shape), side in zip(self._trunk(trunk), SIDES, strict=True):
            is_another = shape.discipline.kind != before.way(side).discipline.kind
            if side in sides:
                lines += shaping.changed_queue(device, shape, is_another)
        self._shape(lines, f"change the queue of {trunk.link}")

    def shape(self, link_id: str) -> dict[str, Any]:
        """Return what the POX controller learns about a link (`LinkState`).

        `loss` and `loss_back` are fractions, for the two directions of the link. On a link to a
        host, `loss` is for packets from the switch to the host. On a link between two switches,
        `loss` is for packets from end `a` to end `b`. So are rates and delays. A value that does
        not apply to the link is left out.
        """
        trunk = next((each for each in self.wiring.trunks if each.link == link_id), None)
        near = (
            trunk.a
            if trunk
            else next(each.switch for each in self.wiring.interfaces if each.link == link_id)
        )
        state = link_shape(self.links[link_id], self.cells_of, near)
        return {
            key: value for key, value in state.items() if key != "jitter_ms" and value is not None
        }

    def set_station(self, ap: str, address: str, station: Station) -> None:
        """Set the rate of a WiFi station in the cell of the access point `ap`.

        A new station is added to the cell. `address` is the IPv4 address of the station. The rate
        decides how long its packets occupy the channel. This does nothing in an LTE cell, because
        there the program ap_agent.py sets the rates.
        """
        if ap in self.cells:
            self.cells[ap].set_station(address, station)

    def remove_station(self, ap: str, address: str) -> None:
        """Remove a station by its IPv4 address from the WiFi cell of the access point `ap`.

        Its packets no longer occupy the channel of this cell.
        """
        self.cells[ap].remove_station(address)

    def first_packet_s(self, ap: str, address: str) -> float | None:
        """Return the time of a station's first packet in the WiFi cell of the access point `ap`.

        The packet can be to or from the station. `address` is the IPv4 address of the station. The
        time is in seconds of the monotonic clock. It is None if there was no packet since the
        station joined the cell.
        """
        found_ns = self.cells[ap].first_packet_ns(address)
        return None if found_ns is None else found_ns / 1e9

    def lag_ms(self, queues: Mapping[tuple[int, int], Queue], radios: Mapping[str, int]) -> float:
        """Return how far WiFi cells are behind their virtual clocks [ms]: the largest lag of all.

        A cell's virtual clock is the time at which its channel becomes free. The packets in the
        access point's queue should be sent by then. The lag is the airtime of these packets minus
        the time until the channel becomes free, or 0 if this is negative. A large lag means that
        the machine is too slow.

        `queues` has the counters of qdiscs. `radios` has the interface number of each access
        point's radio.
        """
        worst = 0.0
        for ap, air in self.cells.items():
            clock, waiting = air.read(), queues[radios[ap], FQ].backlog_packets
            airtime_ns = clock.busy_ns / max(1, clock.sent)
            due_ns = max(0, clock.next_free_ns - time.monotonic_ns())
            worst = max(worst, (waiting * airtime_ns - due_ns) / 1e6)
        return worst

    def transmission_ns(self) -> dict[str, int]:
        """Return by how much each link between two switches delays a frame and its answer, because
        of its rate and whatever their size (`Shape.netem_ns`)."""
        between = [self.links[trunk.link] for trunk in self.wiring.trunks]
        return {
            link.id: sum(self._direction(link, side).transmission_ns for side in SIDES)
            for link in between
        }

    def _trunk(self, trunk: Trunk) -> list[tuple[str, Shape]]:
        """Return the sending port and the shape of each direction of a link between two switches.

        Access points count as switches. The delay of an access point's cell is added to the delay
        of the link.
        """
        link = self.links[trunk.link]
        ports = (trunk.a_port, trunk.b_port)
        return [
            (port, self._direction(link, side)) for port, side in zip(ports, SIDES, strict=True)
        ]

    def _towards_host(self, each: Interface) -> tuple[str, Shape]:
        link = self.links[each.link]
        return each.port, self._direction(link, "ba" if link.a == each.node else "ab")

    def _from_host(self, each: Interface) -> tuple[str, Shape]:
        link = self.links[each.link]
        return each.name, self._direction(link, "ab" if link.a == each.node else "ba")

    def _direction(self, link: Link, side: Direction) -> Shape:
        way = link.way(side)
        queue = way.queue_packets if way.rate_bps else shaping.UNLIMITED_PACKETS
        carries_data = side in self.data_directions[link.id]
        frame_bytes = shaping.MTU_BYTES if carries_data else shaping.ACK_BYTES
        delays = link_delay_ns(way, self.cells_of)
        fastest_bps = self.fastest_bps[link.id, side]
        discipline = way.discipline if way.rate_bps else FIFO
        return Shape(
            way.rate_bps,
            *delays,
            way.loss_ppm,
            queue,
            frame_bytes,
            fastest_bps,
            discipline,
            way.bursts,
            way.reorder_ppm,
            way.duplicate_ppm,
        )

    def _shape(self, lines: list[str], doing: str, host: str | None = None) -> None:
        """Run `tc -batch` with `lines` inside `host`, or outside all hosts if `host` is None.

        `doing` says in error messages for what purpose.
        """
        argv = ["tc", "-batch", "-"]
        if host is None:
            shell.run(argv, doing, stdin=shaping.batch(lines))
        else:
            self.network.run(host, argv, doing, stdin=shaping.batch(lines))

    def _change(self, device: str, shape: Shape) -> None:
        """Give a port of a switch a new shape at once: to start `tc` can take half a second."""
        lines = shaping.batch(shaping.changed_link(device, shape))
        shell.journal_command(["tc", "-batch", "-"], lines)
        set_shape(device, shape)

    def _start_cells(self) -> None:
        """Load the eBPF programs of all WiFi cells, and attach them to access points and stations.

        A cell that wmediumd models has no program. Cells on one channel share a program. A station
        that can move gets the programs of all cells that it can enter; each program acts only on
        packets of the stations in its own cell.
        """
        wifi = [cell for cell in self.cells_of if cell.kind == "wifi" and cell.air != "wmediumd"]
        for cell in sorted(wifi, key=lambda cell: bool(cell.medium)):
            air = self.cells[cell.ap] = (
                self.cells[cell.medium].sharing(cell)
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


def set_shape(device: str, shape: Shape) -> None:
    """Set what `shaping.changed_link` says, by netlink."""
    with closing(Scheduler()) as scheduler:
        interface = scheduler.index(device)
        burst = shaping.burst_bytes(shape.line_bps, shaping.LINK_BUCKET_MS)
        scheduler.set_rates({interface: (shape.line_bps, burst)})
        scheduler.set_netem(interface, shaping.UNLIMITED_PACKETS, shape)


def has_shape(link: Link, cells: Iterable[Cell]) -> bool:
    """Return True if a wired link needs qdiscs of its own.

    A link needs one if it has a rate, a delay, jitter, a loss or duplicates. Wired links of an
    access point or of a relay (a switch with a radio) always need one. One reason is that
    telemetry.py reads the counters of an access point's links.
    """
    ends = {link.a, link.b}
    ways = [link.way(side) for side in SIDES]
    shape = any(
        way.rate_bps or way.loss_ppm or way.duplicate_ppm or any(link_delay_ns(way, cells))
        for way in ways
    )
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
    """Return the name of the ifb interface with the uplink queue of one LTE station.

    `port` is the switch port of the station.
    """
    return f"{port}u"


def make_lte_queues(cell: Cell, topology: Topology, wiring: Wiring, ledger: Ledger) -> list[str]:
    """Make the ifb interfaces of an LTE cell, and return the `tc` lines that make all its queues.

    Each queue starts with the rate that its station has when it is alone in the cell. `ledger`
    records the interfaces, so that the clean-up removes them.
    """
    devices = [uplink_device(wiring.at(each.user, cell.ap).port) for each in cell.stations]
    for device in devices:
        ledger.record("interface", name=device)
    lines = [f"link add {device} up type ifb" for device in devices]
    argv = ["ip", "-batch", "-"]
    shell.run(argv, f"make the uplink queues of {cell.ap}", stdin=shaping.batch(lines))
    return list(_lte_lines(cell, topology, wiring))


def _lte_lines(cell: Cell, topology: Topology, wiring: Wiring) -> Iterator[str]:
    prepared = {each.port for each in wiring.interfaces}  # by packet_programs.replace_packets
    for station in cell.stations:
        port = wiring.at(station.user, cell.ap).port
        if port not in prepared:
            yield from shaping.arriving(port)
        yield from shaping.rate(port, _bearer(topology.bearer(cell, station, "down")))
        up = _bearer(topology.bearer(cell, station, "up"))
        yield from shaping.uplink(port, uplink_device(port), up)


def _bearer(way: OneWay) -> Shape:
    return Shape(
        way.rate_bps,
        way.delay_ns or 0,
        loss_ppm=way.loss_ppm or 0,
        queue_packets=way.queue_packets or 1,
        discipline=way.discipline or FIFO,
        bursts=way.bursts,
    )
