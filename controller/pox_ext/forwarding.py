"""Install the flow entries of table 1 of every bridge, which forward packets.

All messages use POX's OpenFlow 1.0 connection to the bridge.

1) A SYN or SYN/ACK from a port that leads to a host always comes to the controller. Write the
   entries of both directions, report the packet to the subflow tracker, and send it to the next
   hop.
2) Any other packet without an entry is handled the same way, even in the middle of a connection, so
   that a restart of the controller interrupts no connection.
3) The controller answers ARP requests. It requests unknown addresses at the ports that lead to
   hosts. Nothing is ever flooded between switches.
4) Entries last as long as packets use them, even if this process ends. When a link changes, the
   flows over it move to other paths.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from controller.paths import Flow, Path
from controller.plan import Plan
from controller.pox_ext import frames, nicira
from controller.pox_ext.arp_responder import ArpResponder
from controller.pox_ext.frames import Arp, Frame, Ip
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.openflow13_messages import PATHS_TABLE
from controller.pox_ext.path_entries import PathEntries
from controller.pox_ext.router import Route, Router
from controller.pox_ext.switches import Switches

DROP_PRIORITY, MISS_PRIORITY, NO_GROUP_PRIORITY, ARP_PRIORITY, SYN_PRIORITY = 0, 10, 20, 200, 210
NO_ROUTE_S = 1
SETTLING_S = 0.5
IDLE_TIMEOUT = 0  # the reason in a FLOW_REMOVED message: no packet used the entry
MOST_INSTALLED = 256


class Forwarding:
    """Handle POX's OpenFlow events: install routes for new flows, and move flows to other paths."""

    def __init__(
        self,
        nexus: Any,
        plan: Plan,
        switches: Switches,
        hosts: Hosts,
        router: Router,
        on_syn: Callable[[Ip], None],
        on_switch: Callable[[str, str], None],
        on_idle: Callable[[int], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Register for the events of `nexus`, POX's OpenFlow object, and store the callbacks.

        `on_syn(packet)` is called for every SYN and SYN/ACK. `on_switch(switch, state)` is called
        when a switch changes its state: `connected`, `ready` (table 1 is written) or `lost`.
        `on_idle(cookie)` is called with the cookie of each entry that was removed because no packet
        used it. `warn(text)` gets a warning for each message that a switch refuses.
        """
        self._hosts, self._router, self._on_syn, self._on_switch, self._on_idle = (
            hosts,
            router,
            on_syn,
            on_switch,
            on_idle,
        )
        self._warn = warn
        self._log = logging.getLogger("pox_ext.forwarding")
        self._installed: dict[Flow, float] = {}
        self.switches = switches
        self._entries = PathEntries(self.switches, hosts)
        self._arp = ArpResponder(plan, hosts, self.switches)
        nexus.clear_flows_on_connect = False
        nexus.miss_send_len = 0xFFFF
        nexus.addListeners(self)

    # --- switches

    def _handle_ConnectionUp(self, event: Any) -> None:
        switch = self.switches.name(event.dpid)
        if switch is None:
            self._log.warning("bridge %s is not in the topology file: ignored", event.dpid)
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
        """Yield the messages that write those entries of table 1 that do not depend on flows.

        The entries send ARP packets, SYN packets from hosts, and IP packets without a path entry to
        the controller. They drop multicast and everything else.
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
        """Yield one message for every port that leads to a host.

        The message writes an entry that sends each SYN and SYN/ACK from this port to the
        controller.
        """
        for name, number in self.switches.ports(switch).items():
            if self._hosts.is_edge(switch, name):
                match = (
                    nicira.in_port(number)
                    + nicira.eth_type(nicira.ETH_IP)
                    + nicira.protocol(frames.TCP)
                    + nicira.syn()
                )
                yield nicira.flow_mod(
                    PATHS_TABLE, SYN_PRIORITY, match, [nicira.output(nicira.PORT_CONTROLLER)]
                )

    # --- packets

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
            self._ip(switch, event.port, frame, event.data)

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
        route = self._router.routes.get(packet.flow) or self._router.route(packet.flow)
        hop = next((hop for hop in route or () if hop.switch == switch), None)
        if route is None:
            self._no_route(switch, packet.flow)
            return
        if hop is None:  # a wrong entry sent the packet off its path
            self._install(packet.flow, route)
            return
        self._install(packet.flow, route)  # 2
        actions = self._entries.actions(hop, in_port)
        if actions:
            out = nicira.packet_out(data, actions, in_port)
            self.switches.send(switch, out, f"send a packet of {packet.flow} on")

    def _no_route(self, switch: str, flow: Flow) -> None:
        """Handle a packet of a flow for which the router found no route.

        If the place of the destination address is unknown, send an ARP request for it. Otherwise no
        path leads to it: drop the flow at `switch` for `NO_ROUTE_S`, so that not each of its
        packets comes to the controller.
        """
        if self._hosts.place(flow.destination) is None:
            self._arp.resolve(flow.destination, flow.source)
            return
        self._router.routes.pop(flow, None)
        self._entries.drop_for(switch, flow, NO_ROUTE_S)

    def _install(self, flow: Flow, route: Route) -> None:
        """Write the entries of `flow` along `route`, and the entries of the opposite direction.

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

    # --- other paths

    def pin(self, flow: Flow, path: Path) -> int:
        """Route `flow` over the switches in `path`, and its opposite direction over the reverse.

        With an empty `path`, the router chooses the path itself. Return how many of the two
        directions moved.
        """
        self._router.pin(flow, path)
        return self.reroute([flow, flow.back()])

    def reroute(
        self, flows: Iterable[Flow] | None = None, done: Callable[[], None] = lambda: None
    ) -> int:
        """Choose the routes of `flows` anew, and move the flows whose route has changed.

        With None, do this for all flows that have a stored route. Return the number of flows that
        move. `done()` is called when all entries are written.
        """
        moved = self._router.changed(flows)
        self._entries.move(moved, time.monotonic(), done)
        return len(moved)

    def tick(self) -> None:
        """Delete the entries of old paths that are due.

        Also stop waiting for bridges that have not confirmed a message within `BARRIER_TIMEOUT_S`.
        """
        self.switches.expire(time.monotonic())
        self._entries.delete_stale(time.monotonic(), self._router.switches)

    def set_link(self, link: str, up: bool) -> int | None:
        """Mark a link as up or down, and move the flows whose route changes because of it.

        Return how many flows move, or None if the link does not join two switches.
        """
        ends = self._router.ends(link)
        if not ends:
            return None
        if not self._router.set_link(link, up):
            return 0
        return self.reroute(done=lambda: None if up else self._clear(ends))  # 4

    def _clear(self, ends: list[tuple[str, str]]) -> None:
        """Delete all path entries that send packets out of the ports `ends`.

        `ends` holds the two ends of a link that is down, as (switch, port). Entries that are left
        there were written by an earlier controller process. The next packets of their flows come to
        this controller.
        """
        for switch, name in ends:
            number = self.switches.port(switch, name)
            if number is not None:
                self.switches.send(
                    switch,
                    nicira.flow_mod(PATHS_TABLE, 0, b"", command=nicira.DELETE, out_port=number),
                    f"delete the entries towards its port {name}",
                )
