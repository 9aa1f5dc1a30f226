"""The bridges on POX's own OpenFlow 1.0 connection: their ports, and messages to them with a word when they are carried out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from controller.plan import Plan
from controller.pox_ext import nicira

HIGHEST_PORT = 0xFF00
BARRIER_TIMEOUT_S = 2.0  # after which an answer is not waited for any more


class Switches:
    """Bridges by the names of the plan; one that is not connected has no ports and takes no messages."""

    def __init__(self, nexus: Any, plan: Plan) -> None:
        self._nexus, self._plan = nexus, plan
        self._ports: dict[str, dict[str, int]] = {}
        self._waiting: dict[int, tuple[str, Callable[[], None], float]] = {}
        self._xid = 0

    def name(self, dpid: int) -> str | None:
        """What the plan calls a bridge."""
        return self._plan.names.get(dpid)

    def port(self, switch: str, name: str) -> int | None:
        """The number of a port, if the switch is connected and has it."""
        return self.ports(switch).get(name)

    def ports(self, switch: str) -> dict[str, int]:
        """The ports of a switch by name, local ones left out."""
        if switch not in self._ports:
            connection = self._connection(switch)
            if connection is None:
                return {}
            ports = (port for port in connection.ports.values() if port.port_no < HIGHEST_PORT)
            self._ports[switch] = {str(port.name): port.port_no for port in ports}
        return self._ports[switch]

    def port_name(self, switch: str, number: int) -> str:
        """The name of a port, empty when there is none."""
        return next((name for name, known in self.ports(switch).items() if known == number), "")

    def connected(self, switch: str) -> bool:
        return self._connection(switch) is not None

    def send(self, switch: str, message: bytes) -> None:
        connection = self._connection(switch)
        if connection is not None:
            connection.send(message)

    def after(self, switch: str, done: Callable[[], None]) -> None:
        """Call back when everything sent so far has been carried out, when the switch is gone, or is silent for long."""
        if self._connection(switch) is None:
            done()
            return
        self._xid = self._xid % 0x7FFFFFFF + 1
        self._waiting[self._xid] = (switch, done, time.monotonic() + BARRIER_TIMEOUT_S)
        self.send(switch, nicira.barrier(self._xid))

    def answered(self, xid: int) -> None:
        """A barrier has been passed."""
        if xid in self._waiting:
            self._waiting.pop(xid)[1]()

    def expire(self, now_s: float) -> None:
        """Wait no longer for those that are silent: what waits for them must not wait for ever."""
        for xid in [xid for xid, (_, _, until_s) in self._waiting.items() if until_s <= now_s]:
            self.answered(xid)

    def changed(self, switch: str) -> None:
        """The ports of a switch are others than before."""
        self._ports.pop(switch, None)

    def lost(self, switch: str) -> None:
        """A switch is gone, and with it what it was asked to do."""
        self.changed(switch)
        for xid in [xid for xid, (where, _, _) in self._waiting.items() if where == switch]:
            self.answered(xid)

    def _connection(self, switch: str) -> Any:
        return self._nexus.getConnection(self._plan.switches[switch].dpid)
