"""Write path entries (the entries of table 1 that forward a flow), move flows, delete old entries.

A flow moves to another path hop by hop, from the last switch of the path to the first. Each step
waits until the bridges have carried out the step before. A packet therefore finds a complete path,
old or new, wherever it is, and none is lost. Entries at switches that only the old path passes are
deleted `LINGER_S` later, when no packet is in flight there. Existing entries are modified, so that
their counters continue.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial

from controller.paths import Flow, digest
from controller.pox_ext import frames, nicira
from controller.pox_ext.hosts import Hosts
from controller.pox_ext.openflow13_messages import PATHS_TABLE
from controller.pox_ext.router import Hop, Route
from controller.pox_ext.switches import Switches

PAIR_PRIORITY, TCP_PRIORITY = 100, 110
IDLE_S = 600
LINGER_S = 3.0  # every packet has left the old path by then
Move = tuple[Flow, Route, Route]  # flow, old route, new route


class PathEntries:
    """Write, move and delete the path entries of flows on the bridges."""

    def __init__(self, switches: Switches, hosts: Hosts) -> None:
        self._switches, self._hosts = switches, hosts
        self._stale: list[tuple[float, str, Flow]] = []

    def write(self, flow: Flow, route: Route, only: str | None = None) -> None:
        """Write the entries of `flow` along `route`, from the last switch to the first.

        In this order no packet reaches a switch before its entry. If `only` names a switch, write
        only the entry at this switch.
        """
        for hop in reversed(route):
            if only in (None, hop.switch):
                self._write_at(flow, hop)

    def move(
        self, moves: Iterable[Move], now_s: float, done: Callable[[], None] = lambda: None
    ) -> None:
        """Move several flows to new routes together; call `done` when all entries are written.

        Schedule the deletion of the entries at switches that only the old routes pass.
        """
        moving = list(moves)
        for flow, old, new in moving:
            gone = {hop.switch for hop in old} - {hop.switch for hop in new}
            self._stale += [(now_s + LINGER_S, switch, flow) for switch in sorted(gone)]
        self._step(moving, 1, done)

    def delete_stale(self, now_s: float, switches_of: Callable[[Flow], Container[str]]) -> None:
        """Delete the entries of old routes that are due at `now_s`.

        An entry is kept if the present route of its flow passes the entry's switch once more.
        `switches_of(flow)` returns the switches of the present route.
        """
        due = [each for each in self._stale if each[0] <= now_s]
        self._stale = [each for each in self._stale if each[0] > now_s]
        for _, switch, flow in due:
            if switch not in switches_of(flow):
                gone = nicira.flow_mod(
                    PATHS_TABLE,
                    priority(flow),
                    nicira.match_flow(flow),
                    command=nicira.DELETE_STRICT,
                )
                self._switches.send(switch, gone, f"delete the old entry of {flow}")

    def drop_for(self, switch: str, flow: Flow, seconds: int) -> None:
        """Write an entry that drops the packets of `flow` at `switch` for this many seconds."""
        self._switches.send(
            switch,
            nicira.flow_mod(PATHS_TABLE, priority(flow), nicira.match_flow(flow), hard_s=seconds),
            f"drop {flow}, which has no path",
        )

    def actions(self, hop: Hop, ingress_port: int | None = None) -> list[bytes]:
        """Return the actions that send a packet out of the port of `hop`.

        Return an empty list if the switch has no such port. `ingress_port` is the port by which the
        packet entered.
        """
        number = self._switches.port(hop.switch, hop.port)
        if number is None:
            return []
        rewrite = [nicira.set_destination_mac(hop.mac)] if hop.mac else []
        return [*rewrite, nicira.output(number, ingress_port)]

    def _step(self, moves: list[Move], from_the_end: int, done: Callable[[], None]) -> None:
        """Write one hop of every new route; when the bridges confirm, write the hop before it.

        `from_the_end` selects the hop: 1 is the last switch of each route, 2 the switch before the
        last. After the first hop of the longest route, call `done`.
        """
        writing = [(flow, new[-from_the_end]) for flow, _, new in moves if len(new) >= from_the_end]
        if not writing:
            done()
            return
        for flow, hop in writing:
            self._write_at(flow, hop)
        waiting = sorted({hop.switch for _, hop in writing})
        left = set(waiting)

        def passed(switch: str) -> None:
            left.discard(switch)
            if not left:
                self._step(moves, from_the_end + 1, done)

        for switch in waiting:
            self._switches.after(switch, partial(passed, switch))

    def _write_at(self, flow: Flow, hop: Hop) -> None:
        actions = self.actions(hop, self._entry_port(flow, hop))
        if actions:
            entry = nicira.flow_mod(
                PATHS_TABLE,
                priority(flow),
                nicira.match_flow(flow),
                actions,
                command=nicira.MODIFY_STRICT,
                cookie=digest(flow),
                idle_s=IDLE_S,
                flags=nicira.SEND_FLOW_REMOVED,
            )
            self._switches.send(hop.switch, entry, f"write the entry of {flow}")

    def _entry_port(self, flow: Flow, hop: Hop) -> int | None:
        """Return the port of `hop` if the flow also enters the switch by this port, else None.

        This happens between two stations of one access point.
        """
        place = self._hosts.place(flow.source)
        same = place is not None and (place.switch, place.port) == (hop.switch, hop.port)
        return self._switches.port(hop.switch, hop.port) if same else None


def priority(flow: Flow) -> int:
    """Return the priority of a flow's entry.

    The entry of a TCP flow has a higher priority than an entry that matches only two addresses.
    """
    return TCP_PRIORITY if flow.protocol == frames.TCP else PAIR_PRIORITY
