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
from collections.abc import Callable, Iterator
from typing import Any

from controller import paths
from controller.paths import Flow
from controller.plan import Plan
from controller.pox_ext import frames, nicira
from controller.pox_ext.frames import Arp, Frame, Ip
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.openflow13 import PATHS_TABLE
from controller.pox_ext.router import Hop, Route, Router

DROP_PRIORITY, MISS_PRIORITY, NO_GROUP_PRIORITY, PAIR_PRIORITY, TCP_PRIORITY, ARP_PRIORITY, SYN_PRIORITY = (
    0,
    10,
    20,
    100,
    110,
    200,
    210,
)
IDLE_S = 600
NO_ROUTE_S = 1
SETTLING_S = 0.5
HIGHEST_PORT = 0xFF00
MOST_ASKED = 256


class Forwarding:
    """Listens to POX's OpenFlow events; `saw(packet)` is told of every SYN and SYN/ACK."""

    def __init__(
        self,
        nexus: Any,
        plan: Plan,
        hosts: Hosts,
        router: Router,
        saw: Callable[[Ip], None],
        changed: Callable[[str, str], None],
    ) -> None:
        """`changed(switch, what)` is told when a switch is connected or lost, and when its table 1 is written (`ready`)."""
        self._nexus, self._plan, self._hosts, self._router = nexus, plan, hosts, router
        self._saw, self._changed = saw, changed
        self._log = logging.getLogger("pox_ext.forwarding")
        self._installed: dict[Flow, float] = {}
        self._asked: dict[str, list[tuple[str, str, Arp]]] = {}
        self._barriers: dict[int, str] = {}
        self._ports: dict[str, dict[str, int]] = {}
        nexus.clear_flows_on_connect = False
        nexus.miss_send_len = 0xFFFF
        nexus.addListeners(self)

    # --- switches

    def port(self, switch: str, name: str) -> int | None:
        """The number of a port, if the switch is connected and has it."""
        return self.ports(switch).get(name)

    def ports(self, switch: str) -> dict[str, int]:
        """The ports of a switch by name, local ones left out."""
        if switch not in self._ports:
            connection = self._connection(switch)
            if connection is None:
                return {}
            self._ports[switch] = {
                str(port.name): port.port_no for port in connection.ports.values() if port.port_no < HIGHEST_PORT
            }
        return self._ports[switch]

    def _connection(self, switch: str) -> Any:
        return self._nexus.getConnection(self._plan.switches[switch].dpid)

    def _send(self, switch: str, message: bytes) -> None:
        connection = self._connection(switch)
        if connection is not None:
            connection.send(message)

    def _handle_ConnectionUp(self, event: Any) -> None:
        import pox.openflow.libopenflow_01 as of10

        switch = self._plan.names.get(event.dpid)
        if switch is None:
            self._log.warning("bridge %s is none of the topology file's: left alone", event.dpid)
            return
        self._ports.pop(switch, None)
        self._changed(switch, "connected")
        event.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or an entry waits 40 ms for an ACK
        event.connection.send(nicira.enable_table_ids())
        for message in self._fixed_entries(switch):
            event.connection.send(message)
        for flow, route in list(self._router.routes.items()):
            self._install_at(flow, route, only=switch)
        barrier = of10.ofp_barrier_request()
        self._barriers[barrier.xid] = switch
        event.connection.send(barrier)

    def _handle_BarrierIn(self, event: Any) -> None:
        switch = self._barriers.pop(event.xid, None)
        if switch is not None:
            self._changed(switch, "ready")

    def _handle_ConnectionDown(self, event: Any) -> None:
        switch = self._plan.names.get(event.dpid)
        if switch is not None:
            self._ports.pop(switch, None)
            self._changed(switch, "lost")

    def _handle_PortStatus(self, event: Any) -> None:
        switch = self._plan.names.get(event.dpid)
        if switch is not None and (event.added or event.deleted):
            self._ports.pop(switch, None)
            for message in self._edge_entries(switch):
                event.connection.send(message)

    def _fixed_entries(self, switch: str) -> Iterator[bytes]:
        """What table 1 holds beside paths: ARP, SYN and whatever has no path go to the controller, all else is dropped."""
        controller = [nicira.output(nicira.PORT_CONTROLLER)]
        ip = nicira.eth_type(nicira.ETH_IP)
        yield nicira.flow_mod(PATHS_TABLE, DROP_PRIORITY, b"")
        yield nicira.flow_mod(PATHS_TABLE, MISS_PRIORITY, ip, controller)
        yield nicira.flow_mod(PATHS_TABLE, NO_GROUP_PRIORITY, ip + nicira.destination("224.0.0.0", 3))
        yield nicira.flow_mod(PATHS_TABLE, ARP_PRIORITY, nicira.eth_type(nicira.ETH_ARP), controller)
        yield from self._edge_entries(switch)

    def _edge_entries(self, switch: str) -> Iterator[bytes]:
        """SYN and SYN/ACK are seen once, where they enter."""
        for name, number in self.ports(switch).items():
            if self._hosts.is_edge(switch, name):
                match = nicira.in_port(number) + nicira.eth_type(nicira.ETH_IP) + nicira.protocol(frames.TCP) + nicira.syn()
                yield nicira.flow_mod(PATHS_TABLE, SYN_PRIORITY, match, [nicira.output(nicira.PORT_CONTROLLER)])

    # --- packets

    def _handle_PacketIn(self, event: Any) -> None:
        switch = self._plan.names.get(event.dpid)
        frame = frames.parse(event.data)
        if switch is None or frame is None or frame.payload is None:
            return
        port = next((name for name, number in self.ports(switch).items() if number == event.port), "")
        if isinstance(frame.payload, Arp):
            self._learn(frame.payload.sender, frame.payload.sender_mac, switch, port)
            self._arp(switch, port, frame.payload)
        else:
            self._learn(frame.payload.flow.source, frame.source_mac, switch, port)
            self._ip(switch, event.port, frame, event.data)

    def _learn(self, address: str, mac: str, switch: str, port: str) -> None:
        moved = self._hosts.learn(address, mac, switch, port)
        if moved:
            self.reroute(flow for flow in list(self._router.routes) if address in (flow.source, flow.destination))
        place = self._hosts.place(address)
        if place is not None and place.mac:
            for asker_switch, asker_port, asker in self._asked.pop(address, ()):
                self._reply(asker_switch, asker_port, asker, place.mac)

    def _ip(self, switch: str, in_port: int, frame: Frame, data: bytes) -> None:
        packet = frame.payload
        assert isinstance(packet, Ip)
        if packet.opens:
            self._saw(packet)  # 1
        route = self._router.routes.get(packet.flow) or self._router.route(packet.flow)
        hop = next((hop for hop in route or () if hop.switch == switch), None)
        if route is None or hop is None:
            self._no_route(switch, packet.flow)
            return
        self._install(packet.flow, route)  # 2
        actions = self._actions(hop, in_port)
        if actions:
            self._send(switch, nicira.packet_out(data, actions, in_port))

    def _no_route(self, switch: str, flow: Flow) -> None:
        """Ask where an unknown address is; what has no way is dropped for a second instead of coming here packet by packet."""
        if self._hosts.place(flow.destination) is None:
            place = self._hosts.place(flow.source)
            if place is not None and place.mac:
                self._ask_everywhere(frames.Arp(frames.ARP_REQUEST, place.mac, flow.source, frames.BROADCAST, flow.destination))
            return
        self._router.routes.pop(flow, None)
        priority = TCP_PRIORITY if flow.protocol == frames.TCP else PAIR_PRIORITY
        self._send(switch, nicira.flow_mod(PATHS_TABLE, priority, nicira.of_flow(flow), hard_s=NO_ROUTE_S))

    # --- ARP

    def _arp(self, switch: str, port: str, packet: Arp) -> None:
        if packet.operation != frames.ARP_REQUEST or packet.sender == packet.target:
            return
        place = self._hosts.place(packet.target)
        if place is not None and place.mac:
            self._reply(switch, port, packet, place.mac)
            return
        if packet.target not in self._asked and len(self._asked) >= MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        self._asked.setdefault(packet.target, []).append((switch, port, packet))
        self._ask_everywhere(packet, but=(switch, port))

    def _reply(self, switch: str, port: str, asker: Arp, mac: str) -> None:
        number = self.port(switch, port)
        if number is not None:
            reply = frames.arp(frames.ARP_REPLY, mac, asker.target, asker.sender_mac, asker.sender)
            self._send(switch, nicira.packet_out(reply, [nicira.output(number)]))

    def _ask_everywhere(self, asked: Arp, but: tuple[str, str] = ("", "")) -> None:
        """Ask at the port where the address should be, else at every port of a host."""
        place = self._hosts.place(asked.target)
        request = frames.arp(frames.ARP_REQUEST, asked.sender_mac, asked.sender, "", asked.target)
        for switch in self._plan.switches if place is None else [place.switch]:
            for name, number in self.ports(switch).items():
                wanted = name == place.port if place else self._hosts.is_edge(switch, name) and (switch, name) != but
                if wanted:
                    self._send(switch, nicira.packet_out(request, [nicira.output(number)]))

    # --- entries

    def reroute(self, flows: Any = None) -> int:
        """Move the flows whose way has changed; how many."""
        moved = self._router.changed(flows)
        for flow, route in moved:
            self._install_at(flow, route)
        return len(moved)

    def set_link(self, link: str, up: bool) -> int | None:
        """A link went down or came back; how many flows moved, None when it is no link between switches."""
        ends = self._router.ends(link)
        if not ends:
            return None
        if not self._router.set_link(link, up):
            return 0
        moved = self.reroute()  # 4
        for switch, name in ends if not up else ():
            number = self.port(switch, name)
            if number is not None:  # what an earlier controller left there comes here by its next packet
                self._send(switch, nicira.flow_mod(PATHS_TABLE, 0, b"", command=nicira.DELETE, out_port=number))
        return moved

    def _install(self, flow: Flow, route: Route) -> None:
        """Both directions, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._installed.get(flow, 0.0) < SETTLING_S:
            return
        back = self._router.route(flow.back())
        for each, way in ((flow, route), (flow.back(), back)):
            if way is not None:
                self._installed[each] = now
                self._install_at(each, way)
        while len(self._installed) > MOST_ASKED:
            del self._installed[next(iter(self._installed))]

    def _install_at(self, flow: Flow, route: Route, only: str | None = None) -> None:
        """Write the entries from the last switch to the first, so that a packet does not overtake them."""
        priority = TCP_PRIORITY if flow.protocol == frames.TCP else PAIR_PRIORITY
        match, cookie = nicira.of_flow(flow), paths.digest(flow)
        for hop in reversed(route):
            actions = self._actions(hop, self._entry_port(flow, hop))
            if actions and only in (None, hop.switch):
                self._send(hop.switch, nicira.flow_mod(PATHS_TABLE, priority, match, actions, cookie=cookie, idle_s=IDLE_S))

    def _entry_port(self, flow: Flow, hop: Hop) -> int | None:
        """The port by which a flow enters, when it leaves by the same one: two stations of one access point."""
        place = self._hosts.place(flow.source)
        same = place is not None and (place.switch, place.port) == (hop.switch, hop.port)
        return self.port(hop.switch, hop.port) if same else None

    def _actions(self, hop: Hop, entered_by: int | None = None) -> list[bytes]:
        number = self.port(hop.switch, hop.port)
        if number is None:
            return []
        rewrite = [nicira.set_destination_mac(hop.mac)] if hop.mac else []
        return [*rewrite, nicira.output(number, entered_by)]
