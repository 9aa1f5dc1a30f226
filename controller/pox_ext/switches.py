"""Send messages to the switches on POX's OpenFlow 1.0 connections.

A barrier is a request that a switch answers when it has carried out all earlier messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from controller.pox_ext import nicira
from controller.pox_ext.sent_messages import OPENFLOW10_ERRORS, SentMessages
from controller.topology import Topology

HIGHEST_PORT = 0xFF00
BARRIER_TIMEOUT_S = 2.0  # the longest wait for a reply


class Switches:
    """Sends messages to the switches, and has their port numbers.

    It can also wait until a switch has carried out all earlier messages (a barrier in OpenFlow).
    """

    def __init__(self, nexus: Any, network: Topology) -> None:
        self._nexus, self._network = nexus, network
        self._ports: dict[str, dict[str, int]] = {}
        self._waiting: dict[int, tuple[str, Callable[[], None], float]] = {}
        self._sent = SentMessages(OPENFLOW10_ERRORS)

    def name(self, dpid: int) -> str | None:
        """Return the name of a switch; None if the topology file has no such datapath id."""
        return self._network.names.get(dpid)

    def port(self, switch: str, name: str) -> int | None:
        """Return the number of a port; None if the switch is not connected or has no such port."""
        return self.ports(switch).get(name)

    def ports(self, switch: str) -> dict[str, int]:
        """Map the names of a switch's ports to their numbers, without reserved ports.

        The result is empty if the switch is not connected.
        """
        if switch not in self._ports:
            connection = self._connection(switch)
            if connection is None:
                return {}
            ports = (port for port in connection.ports.values() if port.port_no < HIGHEST_PORT)
            self._ports[switch] = {str(port.name): port.port_no for port in ports}
        return self._ports[switch]

    def port_name(self, switch: str, number: int) -> str:
        """Return the name of a port, or "" if the switch has no port with this number."""
        return next((name for name, known in self.ports(switch).items() if known == number), "")

    def connected(self, switch: str) -> bool:
        return self._connection(switch) is not None

    def send(self, switch: str, message: bytes, doing: str) -> None:
        """Send a message to a switch if it is connected; otherwise do nothing.

        `doing` says what the message does. A warning shows this text if the switch refuses the
        message.
        """
        connection = self._connection(switch)
        if connection is not None:
            connection.send(self._sent.numbered(message, doing))

    def refusal(self, switch: str, xid: int, error: int, code: int) -> str:
        return self._sent.refusal(switch, xid, error, code)

    def after(self, switch: str, done: Callable[[], None]) -> None:
        """Call `done` when the switch has carried out all messages sent before.

        Also call `done` if the switch is not connected, disconnects, or does not reply within
        `BARRIER_TIMEOUT_S`.
        """
        if self._connection(switch) is None:
            done()
            return
        xid = self._sent.number("confirm that it has carried out earlier messages")
        self._waiting[xid] = (switch, done, time.monotonic() + BARRIER_TIMEOUT_S)
        self._connection(switch).send(nicira.barrier(xid))

    def after_all(self, switches: Iterable[str], done: Callable[[], None]) -> None:
        """Call `done` when each of these switches has carried out all messages sent before."""
        left = set(switches)

        def passed(switch: str) -> None:
            left.discard(switch)
            if not left:
                done()

        for switch in sorted(left):
            self.after(switch, partial(passed, switch))

    def answered(self, xid: int) -> None:
        """Call the callback that waits for the barrier reply with this transaction id."""
        if xid in self._waiting:
            self._waiting.pop(xid)[1]()

    def expire(self, now_s: float) -> None:
        for xid in [xid for xid, (_, _, until_s) in self._waiting.items() if until_s <= now_s]:
            self.answered(xid)

    def changed(self, switch: str) -> None:
        """Forget the ports of a switch, so that they are read from POX again at the next use."""
        self._ports.pop(switch, None)

    def lost(self, switch: str) -> None:
        """Forget the ports of a disconnected switch.

        Call all callbacks that still wait for a reply of the switch.
        """
        self.changed(switch)
        for xid in [xid for xid, (where, _, _) in self._waiting.items() if where == switch]:
            self.answered(xid)

    def _connection(self, switch: str) -> Any:
        return self._nexus.getConnection(self._network.switches[switch].dpid)
