"""Paths, in table 1 of every bridge, over POX's own OpenFlow 1.0 connection.

1) a SYN or SYN/ACK comes from the port of a host: both directions get their entries, the tracker sees the packet, it goes on
2) any other packet without an entry does the same, even in the middle of a connection, so nothing is lost by a restart
3) ARP is answered here; whom nobody knows is asked for at the ports of hosts; nothing is ever flooded between switches
4) entries last as long as they are used and do not depend on this process; a link that changes moves the flows over it
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
IDLE_TIMEOUT = 0  # the reason for which an entry was removed
MOST_INSTALLED = 256


class Forwarding:
    """Listens to POX's OpenFlow events; `on_syn(packet)` is told of every SYN and SYN/ACK, `idle(cookie)` of entries nobody used."""

    def __init__(
        self,
        nexus: Any,
        plan: Plan,
        hosts: Hosts,
        router: Router,
        on_syn: Callable[[Ip], None],
        on_switch: Callable[[str, str], None],
        on_idle: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`changed(switch, what)` is told when a switch is connected or lost, and when its table 1 is written (`ready`)."""
        self._hosts, self._router, self._on_syn, self._on_switch, self._on_idle = (
            hosts,
            router,
            on_syn,
            on_switch,
            on_idle,
        )
        self._log = logging.getLogger("pox_ext.forwarding")
        self._installed: dict[Flow, float] = {}
        self.switches = Switches(nexus, plan)
        self._entries = PathEntries(self.switches, hosts)
        self._arp = ArpResponder(plan, hosts, self.switches)
        nexus.clear_flows_on_connect = False
        nexus.miss_send_len = 0xFFFF
        nexus.addListeners(self)

    # --- switches

    def _handle_ConnectionUp(self, event: Any) -> None:
        switch = self.switches.name(event.dpid)
        if switch is None:
            self._log.warning("bridge %s is none of the topology file's: left alone", event.dpid)
            return
        self.switches.changed(switch)
        self._on_switch(switch, "connected")
        event.connection.sock.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # or an entry waits 40 ms for an ACK
        event.connection.send(nicira.enable_table_ids())
        for message in self._fixed_entries(switch):
            event.connection.send(message)
        for flow, route in list(self._router.routes.items()):
            self._entries.write(flow, route, only=switch)
        self.switches.after(switch, partial(self._ready, switch))

    def _ready(self, switch: str) -> None:
        if self.switches.connected(switch):
            self._on_switch(switch, "ready")

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
                event.connection.send(message)

    def _handle_FlowRemoved(self, event: Any) -> None:
        if event.ofp.reason == IDLE_TIMEOUT:
            self._on_idle(event.ofp.cookie)

    def _fixed_entries(self, switch: str) -> Iterator[bytes]:
        """What table 1 holds beside paths: ARP, SYN and whatever has no path go to the controller, all else is dropped."""
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
        """SYN and SYN/ACK are seen once, where they enter."""
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
        if hop is None:  # it has strayed: somewhere on its way an entry is not what it should be
            self._install(packet.flow, route)
            return
        self._install(packet.flow, route)  # 2
        actions = self._entries.actions(hop, in_port)
        if actions:
            self.switches.send(switch, nicira.packet_out(data, actions, in_port))

    def _no_route(self, switch: str, flow: Flow) -> None:
        """Ask where an unknown address is; what has no way is dropped for a second instead of coming here packet by packet."""
        if self._hosts.place(flow.destination) is None:
            self._arp.resolve(flow.destination, flow.source)
            return
        self._router.routes.pop(flow, None)
        self._entries.drop_for(switch, flow, NO_ROUTE_S)

    def _install(self, flow: Flow, route: Route) -> None:
        """Both directions, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._installed.get(flow, 0.0) < SETTLING_S:
            return
        back = self._router.route(flow.back())
        for each, way in ((flow, route), (flow.back(), back)):
            if way is not None:
                self._installed[each] = now
                self._entries.write(each, way)
        while len(self._installed) > MOST_INSTALLED:
            del self._installed[next(iter(self._installed))]

    # --- other ways

    def pin(self, flow: Flow, path: Path) -> int:
        """A flow and its opposite direction take this path (an empty one: any); how many directions moved."""
        self._router.pin(flow, path)
        return self.reroute([flow, flow.back()])

    def reroute(
        self, flows: Iterable[Flow] | None = None, done: Callable[[], None] = lambda: None
    ) -> int:
        """Move the flows whose way has changed; how many. `done` is called when all are moved."""
        moved = self._router.changed(flows)
        self._entries.move(moved, time.monotonic(), done)
        return len(moved)

    def tick(self) -> None:
        """Finish moves that a switch holds up, and delete what flows that moved have left behind."""
        self.switches.expire(time.monotonic())
        self._entries.delete_stale(time.monotonic(), self._router.switches)

    def set_link(self, link: str, up: bool) -> int | None:
        """A link went down or came back; how many flows moved, None when it is no link between switches."""
        ends = self._router.ends(link)
        if not ends:
            return None
        if not self._router.set_link(link, up):
            return 0
        return self.reroute(done=lambda: None if up else self._clear(ends))  # 4

    def _clear(self, ends: list[tuple[str, str]]) -> None:
        """Delete what an earlier controller left at a link that is down: its flows come here by their next packet."""
        for switch, name in ends:
            number = self.switches.port(switch, name)
            if number is not None:
                self.switches.send(
                    switch,
                    nicira.flow_mod(PATHS_TABLE, 0, b"", command=nicira.DELETE, out_port=number),
                )
