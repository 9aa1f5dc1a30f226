"""Install the flow entries of table 1 of every bridge, which forward packets.

All messages use POX's OpenFlow 1.0 connection to the bridge.

1) A SYN from a port that leads to a host always comes to the controller. Report it to the subflow
   tracker, write the entries of both directions, and send it to the next hop when the switches have
   them. The SYN/ACK does not wait: the switch copies the packets of its direction to the controller
   until it has seen the SYN/ACK. If the SYN/ACK went to the controller, the next packet, the fourth
   ACK of MP_JOIN, would be the first one that the kernel's switch sees of this direction. Open
   vSwitch sends such a packet on after those that follow it, and data before the fourth ACK makes
   Linux reset the subflow.
2) Any other packet without an entry is handled the same way, even in the middle of a connection, so
   that a restart of the controller interrupts no connection.
3) The controller answers ARP requests. It requests unknown addresses at the ports that lead to
   hosts. Nothing is ever flooded between switches.
4) Entries last as long as packets use them, even if this process ends. When a link changes, the
   flows over it move to other paths.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Any

from controller.paths import Flow, Path, digest
from controller.pox_ext import frames, nicira
from controller.pox_ext.frames import Arp, Frame, Ip
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.openflow13_messages import PATHS_TABLE
from controller.pox_ext.router import Hop, Route, Router
from controller.pox_ext.switches import Switches
from controller.topology import Topology

DROP_PRIORITY, MISS_PRIORITY, NO_GROUP_PRIORITY, ARP_PRIORITY, SYN_PRIORITY = 0, 10, 20, 200, 210
NO_ROUTE_S = 1
SETTLING_S = 0.5
IDLE_TIMEOUT = 0  # the reason in a FLOW_REMOVED message: no packet used the entry
MOST_INSTALLED = 256


class Forwarding:
    """Installs routes for new flows, and moves flows to other paths.

    POX calls the methods `_handle_...` for its OpenFlow events.
    """

    def __init__(
        self,
        nexus: Any,
        network: Topology,
        switches: Switches,
        hosts: Hosts,
        router: Router,
        on_syn: Callable[[Ip], None],
        on_switch: Callable[[str, str], None],
        on_idle: Callable[[int], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Register for the events of `nexus`, POX's OpenFlow object.

        `on_syn(packet)` is called for every SYN and SYN/ACK. `on_switch(switch, state)` is called
        when a switch becomes "connected", "ready" (its forwarding table is set up) or "lost".
        `on_idle(cookie)` is called when a switch has removed a flow entry because no packet used
        it. `warn(text)` is called for each message that a switch refuses, and for
        each unknown switch.
        """
        self._hosts, self._router, self._on_syn, self._on_switch, self._on_idle = (
            hosts,
            router,
            on_syn,
            on_switch,
            on_idle,
        )
        self._warn = warn
        self._installed: dict[Flow, float] = {}
        self.switches = switches
        self._entries = PathEntries(self.switches, hosts)
        self._arp = ArpResponder(network, hosts, self.switches)
        nexus.clear_flows_on_connect = False
        nexus.miss_send_len = 0xFFFF
        nexus.addListeners(self)

    # Switches

    def _handle_ConnectionUp(self, event: Any) -> None:
        switch = self.switches.name(event.dpid)
        if switch is None:
            self._warn(
                f"a switch with dpid {event.dpid} (hexadecimal {event.dpid:x}) has connected, and "
                "the topology file has no such dpid: it is not controlled"
            )
            return
        self.switches.changed(switch)
        self._on_switch(switch, "connected")
        event.connection.sock.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # otherwise an entry waits 40 ms for an ACK
        self.switches.send(switch, nicira.enable_table_ids(), "take table numbers in entries")
        for message in self._fixed_entries(switch):
            self.switches.send(switch, message, "write the fixed entries of table 1")
        for flow, route in list(self._router.routes.items()):
            self._entries.write(flow, route, only=switch)
        self.switches.after(switch, partial(self._ready, switch))

    def _ready(self, switch: str) -> None:
        if self.switches.connected(switch):
            self._on_switch(switch, "ready")

    def _handle_ErrorIn(self, event: Any) -> None:
        switch = self.switches.name(event.dpid)
        if switch is not None:
            error = event.ofp
            self._warn(self.switches.refusal(switch, event.xid, error.type, error.code))

    def _handle_BarrierIn(self, event: Any) -> None:
        self.switches.answered(event.xid)

    def _handle_ConnectionDown(self, event: Any) -> None:
        switch = self.switches.name(event.dpid)
        if switch is not None:
            self._on_switch(switch, "lost")
            self.switches.lost(switch)

    def _handle_PortStatus(self, event: Any) -> None:
        switch = self.switches.name(event.dpid)
        if switch is not None and (event.added or event.deleted):
            self.switches.changed(switch)
            for message in self._edge_entries(switch):
                self.switches.send(switch, message, "write the SYN entries of its ports")

    def _handle_FlowRemoved(self, event: Any) -> None:
        if event.ofp.reason == IDLE_TIMEOUT:
            self._on_idle(event.ofp.cookie)

    def _fixed_entries(self, switch: str) -> Iterator[bytes]:
        """Yield messages that write those flow entries of table 1 that are the same for all flows.

        These entries send ARP packets, SYN packets from hosts, and IP packets of unknown flows to
        the controller. They drop multicast packets, and all packets that are neither ARP nor IP.
        """
        controller = [nicira.output(nicira.PORT_CONTROLLER)]
        ip = nicira.eth_type(nicira.ETH_IP)
        yield nicira.flow_mod(PATHS_TABLE, DROP_PRIORITY, b"")
        yield nicira.flow_mod(PATHS_TABLE, MISS_PRIORITY, ip, controller)
        yield nicira.flow_mod(
            PATHS_TABLE, NO_GROUP_PRIORITY, ip + nicira.destination("224.0.0.0", 3)
        )
        yield nicira.flow_mod(
            PATHS_TABLE, ARP_PRIORITY, nicira.eth_type(nicira.ETH_ARP), controller
        )
        yield from self._edge_entries(switch)

    def _edge_entries(self, switch: str) -> Iterator[bytes]:
        """Yield messages that write the flow entries for SYN packets from hosts.

        There is one entry for each port that leads to a host. It sends these packets to the
        controller. It matches the absence of ACK: with a match of SYN, the SYN/ACK would differ
        from the packets after it.
        """
        for name, number in self.switches.ports(switch).items():
            if self._hosts.is_edge(switch, name):
                match = (
                    nicira.in_port(number)
                    + nicira.eth_type(nicira.ETH_IP)
                    + nicira.protocol(frames.TCP)
                    + nicira.no_ack()
                )
                yield nicira.flow_mod(
                    PATHS_TABLE, SYN_PRIORITY, match, [nicira.output(nicira.PORT_CONTROLLER)]
                )

    # Packets

    def _handle_PacketIn(self, event: Any) -> None:
        switch = self.switches.name(event.dpid)
        frame = frames.parse(event.data)
        if switch is None or frame is None or frame.payload is None:
            return
        port = self.switches.port_name(switch, event.port)
        if isinstance(frame.payload, Arp):
            self._learn(frame.payload.sender, frame.payload.sender_mac, switch, port)
            self._arp.handle(switch, port, frame.payload)
        else:
            self._learn(frame.payload.flow.source, frame.source_mac, switch, port)
            if event.ofp.reason == nicira.COPY:
                self._copied(frame.payload)
            else:
                self._ip(switch, event.port, frame, event.data)

    def _copied(self, packet: Ip) -> None:
        """Handle a copy of a packet that the switch has sent on itself."""
        if packet.is_syn:
            self._on_syn(packet)
        self._end_copying(packet.flow)

    def _learn(self, address: str, mac: str, switch: str, port: str) -> None:
        moved = self._hosts.learn(address, mac, switch, port)
        if moved:
            self.reroute(
                flow
                for flow in list(self._router.routes)
                if address in (flow.source, flow.destination)
            )
        self._arp.learned(address)

    def _ip(self, switch: str, in_port: int, frame: Frame, data: bytes) -> None:
        packet = frame.payload
        assert isinstance(packet, Ip)
        if packet.is_syn:
            self._on_syn(packet)  # 1
        opens = packet.is_syn and not packet.flags & frames.ACK
        route = self._router.routes.get(packet.flow) or self._router.route(packet.flow)
        hop = next((hop for hop in route or () if hop.switch == switch), None)
        if route is None:
            self._no_route(switch, packet.flow)
            return
        if opens:
            self._entries.copy(packet.flow.back())
        self._install(packet.flow, route)  # 2
        if packet.is_syn and not opens:
            self._end_copying(packet.flow)
        actions = self._entries.actions(hop, in_port) if hop else []
        if not actions:  # without a hop here, a wrong entry sent the packet off its path
            return
        out = nicira.packet_out(data, actions, in_port)
        send = partial(self.switches.send, switch, out, f"send a packet of {packet.flow} on")
        if opens:
            self.switches.after_all({each.switch for each in route}, send)
        else:
            send()

    def _end_copying(self, flow: Flow) -> None:
        """Write the entries of a flow without copies.

        If this process did not ask for the copies, an earlier one did.
        """
        route = self._router.routes.get(flow) or self._router.route(flow)
        if self._entries.end_copying(flow, route or ()):
            return
        if route:
            self._install(flow, route)

    def _no_route(self, switch: str, flow: Flow) -> None:
        """Handle a packet of a flow for which the router found no route.

        If the location of the destination is unknown, send an ARP request for its address.
        Otherwise no path leads to the destination. In this case `switch` drops the packets of the
        flow for `NO_ROUTE_S` seconds, so that the controller does not get every one of them.
        """
        if self._hosts.place(flow.destination) is None:
            self._arp.resolve(flow.destination, flow.source)
            return
        self._router.routes.pop(flow, None)
        self._entries.drop_for(switch, flow, NO_ROUTE_S)

    def _install(self, flow: Flow, route: Route) -> None:
        """Write the flow entries of `flow` along `route`, and those of the opposite direction.

        Do nothing if the entries of `flow` were written less than `SETTLING_S` ago.
        """
        now = time.monotonic()
        if now - self._installed.get(flow, 0.0) < SETTLING_S:
            return
        back = self._router.route(flow.back())
        for each, its_route in ((flow, route), (flow.back(), back)):
            if its_route is not None:
                self._installed[each] = now
                self._entries.write(each, its_route)
        while len(self._installed) > MOST_INSTALLED:
            del self._installed[next(iter(self._installed))]

    # Changes of paths

    def pin(self, flow: Flow, path: Path) -> int:
        """Route `flow` over the switches in `path`, and the opposite direction over the reverse.

        If `path` is empty, the router chooses the path itself. Return how many of the two
        directions moved.
        """
        self._router.pin(flow, path)
        return self.reroute([flow, flow.back()])

    def reroute(
        self, flows: Iterable[Flow] | None = None, done: Callable[[], None] = lambda: None
    ) -> int:
        """Choose new routes for `flows`; return how many flows move.

        If `flows` is None, do this for all flows that have a stored route. `done()` is called when
        all flow entries are written.
        """
        moved = self._router.changed(flows)
        self._entries.move(moved, time.monotonic(), done)
        return len(moved)

    def tick(self) -> None:
        """Delete stale flow entries, and give up on switches that have not replied in time."""
        self.switches.expire(time.monotonic())
        self._entries.delete_stale(time.monotonic(), self._router.switches)

    def set_link(self, link: str, up: bool) -> int | None:
        """Mark a link as up or down, and move the flows whose route changes.

        Return how many flows move, or None if the link does not join two switches.
        """
        ends = self._router.ends(link)
        if not ends:
            return None
        if not self._router.set_link(link, up):
            return 0
        return self.reroute(done=lambda: None if up else self._clear(ends))  # 4

    def _clear(self, ends: list[tuple[str, str]]) -> None:
        """Delete all flow entries that send packets out of the ports in `ends`.

        Each element of `ends` is a (switch, port) pair, one end of a link that is down. Flows that
        have another path were moved before. The deleted entries are those of flows without another
        path, and those that an earlier controller process wrote. The next packets of these flows
        come to this controller.
        """
        for switch, name in ends:
            number = self.switches.port(switch, name)
            if number is not None:
                self.switches.send(
                    switch,
                    nicira.flow_mod(PATHS_TABLE, 0, b"", command=nicira.DELETE, out_port=number),
                    f"delete the entries towards its port {name}",
                )


PAIR_PRIORITY, TCP_PRIORITY = 100, 110
IDLE_S = 600
LINGER_S = 3.0  # every packet has left the old path by then
Move = tuple[Flow, Route, Route]  # flow, old route, new route


class PathEntries:
    """Writes and deletes the flow entries that forward flows (in table 1 of the switches).

    A flow moves to another path switch by switch, from the last switch of the path to the first. An
    entry is written only when the switches have confirmed the previous entry. A packet therefore
    always finds a complete path, old or new, and none is lost. Entries at switches that only the
    old path passes are deleted `LINGER_S` later, when no packet is left on the old path. Existing
    entries are modified, so that their counters continue.
    """

    def __init__(self, switches: Switches, hosts: Hosts) -> None:
        self._switches, self._hosts = switches, hosts
        self._stale: list[tuple[float, str, Flow]] = []
        self._copying: dict[Flow, None] = {}

    def copy(self, flow: Flow) -> None:
        """Let the first switch of `flow` copy packets to the controller; `write` does it."""
        self._copying[flow] = None
        while len(self._copying) > MOST_INSTALLED:
            del self._copying[next(iter(self._copying))]

    def end_copying(self, flow: Flow, route: Route) -> bool:
        """Copy no more packets of `flow`, which takes `route`. Return whether it was copied."""
        if flow not in self._copying:
            return False
        del self._copying[flow]
        for hop in route[:1]:
            self._write_at(flow, hop)
        return True

    def write(self, flow: Flow, route: Route, only: str | None = None) -> None:
        """Write the flow entries of `flow` along `route`, from the last switch to the first.

        In this order no packet reaches a switch that has no entry yet. If `only` names a switch,
        write only the entry at this switch.
        """
        for hop in reversed(route):
            if only in (None, hop.switch):
                self._write_at(flow, hop)

    def move(
        self, moves: Iterable[Move], now_s: float, done: Callable[[], None] = lambda: None
    ) -> None:
        """Move several flows to new routes together; call `done` when all flow entries are written.

        Entries at switches that only an old route passes are deleted later (`delete_stale`).
        """
        moving = list(moves)
        for flow, old, new in moving:
            gone = {hop.switch for hop in old} - {hop.switch for hop in new}
            self._stale += [(now_s + LINGER_S, switch, flow) for switch in sorted(gone)]
        self._step(moving, 1, done)

    def delete_stale(self, now_s: float, switches_of: Callable[[Flow], Container[str]]) -> None:
        """Delete those flow entries of old routes that were to be kept until `now_s` or earlier.

        `switches_of(flow)` returns the switches of the flow's present route. The entries at these
        switches are not deleted.
        """
        due = [each for each in self._stale if each[0] <= now_s]
        self._stale = [each for each in self._stale if each[0] > now_s]
        for _, switch, flow in due:
            if switch not in switches_of(flow):
                gone = nicira.flow_mod(
                    PATHS_TABLE,
                    priority(flow),
                    nicira.match_flow(flow),
                    command=nicira.DELETE_STRICT,
                )
                self._switches.send(switch, gone, f"delete the old entry of {flow}")

    def drop_for(self, switch: str, flow: Flow, seconds: int) -> None:
        self._switches.send(
            switch,
            nicira.flow_mod(PATHS_TABLE, priority(flow), nicira.match_flow(flow), hard_s=seconds),
            f"drop {flow}, which has no path",
        )

    def actions(self, hop: Hop, ingress_port: int | None = None) -> list[bytes]:
        """Return the OpenFlow actions that send a packet out of the port of `hop`.

        The list is empty if the switch has no such port. `ingress_port` is the port by which the
        packet entered.
        """
        number = self._switches.port(hop.switch, hop.port)
        if number is None:
            return []
        rewrite = [nicira.set_destination_mac(hop.mac)] if hop.mac else []
        return [*rewrite, nicira.output(number, ingress_port)]

    def _step(self, moves: list[Move], from_the_end: int, done: Callable[[], None]) -> None:
        """Write one hop of every new route, wait for the switches, and continue with the next hop.

        The hops are written in the order from the last switch to the first. `from_the_end` is 1 for
        the last switch of each route, 2 for the switch before it. When no hop is left, call `done`.
        """
        writing = [(flow, new[-from_the_end]) for flow, _, new in moves if len(new) >= from_the_end]
        if not writing:
            done()
            return
        for flow, hop in writing:
            self._write_at(flow, hop)
        next_step = partial(self._step, moves, from_the_end + 1, done)
        self._switches.after_all({hop.switch for _, hop in writing}, next_step)

    def _write_at(self, flow: Flow, hop: Hop) -> None:
        actions = self.actions(hop, self._entry_port(flow, hop))
        if actions and flow in self._copying and self._is_first(flow, hop):
            actions = [nicira.copy_to_controller(), *actions]
        if actions:
            entry = nicira.flow_mod(
                PATHS_TABLE,
                priority(flow),
                nicira.match_flow(flow),
                actions,
                command=nicira.MODIFY_STRICT,
                cookie=digest(flow),
                idle_s=IDLE_S,
                flags=nicira.SEND_FLOW_REMOVED,
            )
            self._switches.send(hop.switch, entry, f"write the entry of {flow}")

    def _entry_port(self, flow: Flow, hop: Hop) -> int | None:
        """Return the port of `hop` if the flow also enters the switch by this port, else None.

        A flow between two stations of one access point enters and leaves by the same port.
        """
        place = self._hosts.place(flow.source)
        same = place is not None and (place.switch, place.port) == (hop.switch, hop.port)
        return self._switches.port(hop.switch, hop.port) if same else None

    def _is_first(self, flow: Flow, hop: Hop) -> bool:
        place = self._hosts.place(flow.source)
        return place is not None and place.switch == hop.switch


def priority(flow: Flow) -> int:
    """Return the OpenFlow priority of the entry for a flow.

    The entry for a TCP flow has a higher priority than an entry that matches only two addresses.
    """
    return TCP_PRIORITY if flow.protocol == frames.TCP else PAIR_PRIORITY


MOST_WAITING = 256


class ArpResponder:
    """Answers the ARP requests of hosts.

    MAC addresses come from the topology file or from earlier packets. If a requested MAC address is
    unknown, the request is stored, and sent out of every port that leads to a host. ARP packets are
    never flooded between switches.
    """

    def __init__(self, network: Topology, hosts: Hosts, switches: Switches) -> None:
        self._network, self._hosts, self._switches = network, hosts, switches
        self._waiting: dict[str, dict[tuple[str, str, str], Arp]] = {}  # by target, then by asker

    def handle(self, switch: str, port: str, packet: Arp) -> None:
        """Answer the ARP request `packet`, which entered `switch` at `port`.

        If the requested MAC address is unknown, store the request and send it to the hosts. Ignore
        ARP replies and gratuitous ARP.
        """
        if packet.operation != frames.ARP_REQUEST or packet.sender == packet.target:
            return
        place = self._hosts.place(packet.target)
        if place is not None and place.mac:
            self._reply(switch, port, packet, place.mac)
            return
        if packet.target not in self._waiting and len(self._waiting) >= MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._waiting.setdefault(packet.target, {})[switch, port, packet.sender] = packet
        self._send_requests(packet, but=(switch, port))

    def learned(self, address: str) -> None:
        """Answer the stored ARP requests for `address`, if its MAC address is known now."""
        place = self._hosts.place(address)
        if place is not None and place.mac:
            for (switch, port, _), request in self._waiting.pop(address, {}).items():
                self._reply(switch, port, request, place.mac)

    def resolve(self, address: str, sender: str) -> None:
        """Send an ARP request for `address` on behalf of the host address `sender`.

        If the MAC address of `sender` is unknown, send nothing.
        """
        place = self._hosts.place(sender)
        if place is not None and place.mac:
            self._send_requests(
                Arp(frames.ARP_REQUEST, place.mac, sender, frames.BROADCAST, address)
            )

    def _reply(self, switch: str, port: str, request: Arp, mac: str) -> None:
        number = self._switches.port(switch, port)
        if number is not None:
            reply = frames.arp(
                frames.ARP_REPLY, mac, request.target, request.sender_mac, request.sender
            )
            out = nicira.packet_out(reply, [nicira.output(number)])
            self._switches.send(switch, out, "send an ARP reply")

    def _send_requests(self, packet: Arp, but: tuple[str, str] = ("", "")) -> None:
        """Send the ARP request `packet` out of the port that leads to the requested address.

        If this port is unknown, send the request out of every port that leads to a host, except the
        (switch, port) pair `but`.
        """
        place = self._hosts.place(packet.target)
        request = frames.arp(
            frames.ARP_REQUEST, packet.sender_mac, packet.sender, "", packet.target
        )
        for switch in self._network.switches if place is None else [place.switch]:
            for name, number in self._switches.ports(switch).items():
                is_target = (
                    name == place.port
                    if place
                    else self._hosts.is_edge(switch, name) and (switch, name) != but
                )
                if is_target:
                    out = nicira.packet_out(request, [nicira.output(number)])
                    self._switches.send(switch, out, "send an ARP request")
