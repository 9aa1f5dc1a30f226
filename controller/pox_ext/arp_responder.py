"""Answer the ARP requests of hosts, so that they need not reach the requested host.

The MAC address of the answer comes from the topology file or from earlier packets. If it is
unknown, an ARP request is sent out of every port to a host.
"""

from __future__ import annotations

from controller.plan import Plan
from controller.pox_ext import frames, nicira
from controller.pox_ext.frames import Arp
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.switches import Switches

MOST_WAITING = 256


class ArpResponder:
    """Answer ARP requests, and store each request until its answer is known.

    ARP packets are never flooded between switches.
    """

    def __init__(self, plan: Plan, hosts: Hosts, switches: Switches) -> None:
        self._plan, self._hosts, self._switches = plan, hosts, switches
        self._waiting: dict[str, list[tuple[str, str, Arp]]] = {}

    def handle(self, switch: str, port: str, packet: Arp) -> None:
        """Handle an ARP packet that entered `switch` at `port`."""
        if packet.operation != frames.ARP_REQUEST or packet.sender == packet.target:
            return
        place = self._hosts.place(packet.target)
        if place is not None and place.mac:
            self._reply(switch, port, packet, place.mac)
            return
        if packet.target not in self._waiting and len(self._waiting) >= MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._waiting.setdefault(packet.target, []).append((switch, port, packet))
        self._send_requests(packet, but=(switch, port))

    def learned(self, address: str) -> None:
        """Answer the stored requests for `address`, whose MAC address may have become known."""
        place = self._hosts.place(address)
        if place is not None and place.mac:
            for switch, port, request in self._waiting.pop(address, ()):
                self._reply(switch, port, request, place.mac)

    def resolve(self, address: str, sender: str) -> None:
        """Send an ARP request for `address`, with the known host address `sender` as its sender."""
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
            self._switches.send(switch, nicira.packet_out(reply, [nicira.output(number)]))

    def _send_requests(self, packet: Arp, but: tuple[str, str] = ("", "")) -> None:
        """Send the ARP request `packet` to the port where its target is known to be.

        If the place is unknown, send the request to every port with hosts, except to `but`, a pair
        of switch and port.
        """
        place = self._hosts.place(packet.target)
        request = frames.arp(
            frames.ARP_REQUEST, packet.sender_mac, packet.sender, "", packet.target
        )
        for switch in self._plan.switches if place is None else [place.switch]:
            for name, number in self._switches.ports(switch).items():
                is_target = (
                    name == place.port
                    if place
                    else self._hosts.is_edge(switch, name) and (switch, name) != but
                )
                if is_target:
                    self._switches.send(switch, nicira.packet_out(request, [nicira.output(number)]))
