"""Answer ARP requests in the controller.

MAC addresses come from the topology file or from earlier packets. If the requested one is unknown,
send the ARP request out of every port that leads to a host.
"""

from __future__ import annotations

from controller.plan import Plan
from controller.pox_ext import frames, nicira
from controller.pox_ext.frames import Arp
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.switches import Switches

MOST_WAITING = 256


class ArpResponder:
    """Answer ARP requests; store a request until the requested MAC address is known.

    ARP packets are never flooded between switches.
    """

    def __init__(self, plan: Plan, hosts: Hosts, switches: Switches) -> None:
        self._plan, self._hosts, self._switches = plan, hosts, switches
        self._waiting: dict[str, list[tuple[str, str, Arp]]] = {}

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
        self._waiting.setdefault(packet.target, []).append((switch, port, packet))
        self._send_requests(packet, but=(switch, port))

    def learned(self, address: str) -> None:
        """Answer the stored requests for `address` if its MAC address is known by now."""
        place = self._hosts.place(address)
        if place is not None and place.mac:
            for switch, port, request in self._waiting.pop(address, ()):
                self._reply(switch, port, request, place.mac)

    def resolve(self, address: str, sender: str) -> None:
        """Send an ARP request for `address` in the name of the host address `sender`.

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
        """Send the ARP request `packet` to the switch and port where its target is known to be.

        If they are unknown, send the request out of every port that leads to a host, except out of
        the port `but`, a pair (switch, port).
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
                    out = nicira.packet_out(request, [nicira.output(number)])
                    self._switches.send(switch, out, "send an ARP request")
