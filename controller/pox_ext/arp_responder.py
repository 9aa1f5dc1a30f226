"""ARP, answered by the controller: from the plan, from what was learned, else by asking at the ports of hosts."""

from __future__ import annotations

from controller.plan import Plan
from controller.pox_ext import frames, nicira
from controller.pox_ext.frames import Arp
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.switches import Switches

MOST_WAITING = 256


class ArpResponder:
    """Who asked for whom, until the answer is known; nothing is ever flooded between switches."""

    def __init__(self, plan: Plan, hosts: Hosts, switches: Switches) -> None:
        self._plan, self._hosts, self._switches = plan, hosts, switches
        self._waiting: dict[str, list[tuple[str, str, Arp]]] = {}

    def handle(self, switch: str, port: str, packet: Arp) -> None:
        """A packet that came in by this port."""
        if packet.operation != frames.ARP_REQUEST or packet.sender == packet.target:
            return
        place = self._hosts.place(packet.target)
        if place is not None and place.mac:
            self._reply(switch, port, packet, place.mac)
            return
        if packet.target not in self._waiting and len(self._waiting) >= MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._waiting.setdefault(packet.target, []).append((switch, port, packet))
        self._broadcast_request(packet, but=(switch, port))

    def learned(self, address: str) -> None:
        """An address was seen: tell who has asked for it."""
        place = self._hosts.place(address)
        if place is not None and place.mac:
            for switch, port, request in self._waiting.pop(address, ()):
                self._reply(switch, port, request, place.mac)

    def resolve(self, address: str, request: str) -> None:
        """Ask where an address is, in the name of one that is known."""
        place = self._hosts.place(request)
        if place is not None and place.mac:
            self._broadcast_request(
                Arp(frames.ARP_REQUEST, place.mac, request, frames.BROADCAST, address)
            )

    def _reply(self, switch: str, port: str, request: Arp, mac: str) -> None:
        number = self._switches.port(switch, port)
        if number is not None:
            reply = frames.arp(
                frames.ARP_REPLY, mac, request.target, request.sender_mac, request.sender
            )
            self._switches.send(switch, nicira.packet_out(reply, [nicira.output(number)]))

    def _broadcast_request(self, asked: Arp, but: tuple[str, str] = ("", "")) -> None:
        """Ask at the port where the address should be, else at every port of a host."""
        place = self._hosts.place(asked.target)
        request = frames.arp(frames.ARP_REQUEST, asked.sender_mac, asked.sender, "", asked.target)
        for switch in self._plan.switches if place is None else [place.switch]:
            for name, number in self._switches.ports(switch).items():
                wanted = (
                    name == place.port
                    if place
                    else self._hosts.is_edge(switch, name) and (switch, name) != but
                )
                if wanted:
                    self._switches.send(switch, nicira.packet_out(request, [nicira.output(number)]))
