"""Send messages to the bridges on POX's OpenFlow 1.0 connections.

A barrier is a request that a bridge answers when it has carried out all earlier messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from controller.pox_ext import nicira
from controller.pox_ext.sent_messages import OPENFLOW10_ERRORS, SentMessages
from controller.topology import Topology

HIGHEST_PORT = 0xFF00
BARRIER_TIMEOUT_S = 2.0  # the longest wait for a reply


class Switches:
    """The port numbers of the connected bridges, and the barriers that have no reply yet."""

    def __init__(self, nexus: Any, network: Topology) -> None:
        self._nexus, self._plan = nexus, network
        self._ports: dict[str, dict[str, int]] = {}
        self._waiting: dict[int, tuple[str, Callable[[], None], float]] = {}
        self._sent = SentMessages(OPENFLOW10_ERRORS)

    def name(self, dpid: int) -> str | None:
        """Return None if the topology file contains no bridge with this datapath id."""
        return self._plan.names.get(dpid)

    def port(self, switch: str, name: str) -> int | None:
        """Return None if the switch is not connected or has no port with this name."""
        return self.ports(switch).get(name)

    def ports(self, switch: str) -> dict[str, int]:
        """Map port names to numbers, without reserved ports; empty if not connected."""
        if switch not in self._ports:
            connection = self._connection(switch)
            if connection is None:
                return {}
            ports = (port for port in connection.ports.values() if port.port_no < HIGHEST_PORT)
            self._ports[switch] = {str(port.name): port.port_no for port in ports}
        return self._ports[switch]

    def port_name(self, switch: str, number: int) -> str:
        """Return the name of a port, "" if the switch has no port with this number."""
        return next((name for name, known in self.ports(switch).items() if known == number), "")

    def connected(self, switch: str) -> bool:
        return self._connection(switch) is not None

    def send(self, switch: str, message: bytes, doing: str) -> None:
        """Send a message to a switch if it is connected; otherwise do nothing.

        `doing` says what the message does, for the warning if the switch refuses it.
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

    def answered(self, xid: int) -> None:
        """Call the callback of the barrier with this transaction id, if it still waits."""
        if xid in self._waiting:
            self._waiting.pop(xid)[1]()

    def expire(self, now_s: float) -> None:
        for xid in [xid for xid, (_, _, until_s) in self._waiting.items() if until_s <= now_s]:
            self.answered(xid)

    def changed(self, switch: str) -> None:
        """Forget the ports of a switch, so that the next use reads them from POX."""
        self._ports.pop(switch, None)

    def lost(self, switch: str) -> None:
        """Forget the ports of a disconnected switch, and call the callbacks of its barriers."""
        self.changed(switch)
        for xid in [xid for xid, (where, _, _) in self._waiting.items() if where == switch]:
            self.answered(xid)

    def _connection(self, switch: str) -> Any:
        return self._nexus.getConnection(self._plan.switches[switch].dpid)
