"""Send messages to the bridges on POX's OpenFlow 1.0 connection, and confirm them by barriers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from controller.plan import Plan
from controller.pox_ext import nicira

HIGHEST_PORT = 0xFF00
BARRIER_TIMEOUT_S = 2.0  # a silent bridge is not waited for longer


class Switches:
    """Hold bridges by their names in the plan; a disconnected one has no ports."""

    def __init__(self, nexus: Any, plan: Plan) -> None:
        self._nexus, self._plan = nexus, plan
        self._ports: dict[str, dict[str, int]] = {}
        self._waiting: dict[int, tuple[str, Callable[[], None], float]] = {}
        self._xid = 0

    def name(self, dpid: int) -> str | None:
        """Return the name of a bridge in the plan, None if it is not there."""
        return self._plan.names.get(dpid)

    def port(self, switch: str, name: str) -> int | None:
        """Return the number of a port, None if the switch is disconnected or lacks it."""
        return self.ports(switch).get(name)

    def ports(self, switch: str) -> dict[str, int]:
        """Return the port numbers of a switch by name, except local ports."""
        if switch not in self._ports:
            connection = self._connection(switch)
            if connection is None:
                return {}
            ports = (port for port in connection.ports.values() if port.port_no < HIGHEST_PORT)
            self._ports[switch] = {str(port.name): port.port_no for port in ports}
        return self._ports[switch]

    def port_name(self, switch: str, number: int) -> str:
        """Return the name of a port, empty if there is none."""
        return next((name for name, known in self.ports(switch).items() if known == number), "")

    def connected(self, switch: str) -> bool:
        return self._connection(switch) is not None

    def send(self, switch: str, message: bytes) -> None:
        connection = self._connection(switch)
        if connection is not None:
            connection.send(message)

    def after(self, switch: str, done: Callable[[], None]) -> None:
        """Call back when everything sent so far has been carried out.

        Call back as well if the switch disconnects, or does not reply for `BARRIER_TIMEOUT_S`.
        """
        if self._connection(switch) is None:
            done()
            return
        self._xid = self._xid % 0x7FFFFFFF + 1
        self._waiting[self._xid] = (switch, done, time.monotonic() + BARRIER_TIMEOUT_S)
        self.send(switch, nicira.barrier(self._xid))

    def answered(self, xid: int) -> None:
        """Handle a barrier reply."""
        if xid in self._waiting:
            self._waiting.pop(xid)[1]()

    def expire(self, now_s: float) -> None:
        """Call back for switches that have not replied in time."""
        for xid in [xid for xid, (_, _, until_s) in self._waiting.items() if until_s <= now_s]:
            self.answered(xid)

    def changed(self, switch: str) -> None:
        """Forget the ports of a switch, because they have changed."""
        self._ports.pop(switch, None)

    def lost(self, switch: str) -> None:
        """Note that a switch is disconnected, and call back for everything it had to do."""
        self.changed(switch)
        for xid in [xid for xid, (where, _, _) in self._waiting.items() if where == switch]:
            self.answered(xid)

    def _connection(self, switch: str) -> Any:
        return self._nexus.getConnection(self._plan.switches[switch].dpid)
