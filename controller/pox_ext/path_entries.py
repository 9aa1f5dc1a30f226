"""The entries of paths in table 1: written, moved without a gap, and taken away again.

A flow moves to another path hop by hop from the last switch to the first, each step waiting until the bridges have carried out
the one before: wherever a packet is, it finds a complete way, old or new. What the old way alone held is deleted a while later,
when nothing is under way there any more. PathEntries are modified where they exist, so that their counters go on.
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
LINGER_S = 3.0  # longer than any packet is under way
Move = tuple[Flow, Route, Route]  # what, from where, to where


class PathEntries:
    """Writes the entries of flows into the bridges."""

    def __init__(self, switches: Switches, hosts: Hosts) -> None:
        self._switches, self._hosts = switches, hosts
        self._stale: list[tuple[float, str, Flow]] = []

    def write(self, flow: Flow, route: Route, only: str | None = None) -> None:
        """Write the entries from the last switch to the first, so that a packet does not overtake them."""
        for hop in reversed(route):
            if only in (None, hop.switch):
                self._write_at(flow, hop)

    def move(
        self, moves: Iterable[Move], now_s: float, done: Callable[[], None] = lambda: None
    ) -> None:
        """Move flows to other ways, all together; `done` is called when all are moved."""
        moving = list(moves)
        for flow, old, new in moving:
            gone = {hop.switch for hop in old} - {hop.switch for hop in new}
            self._stale += [(now_s + LINGER_S, switch, flow) for switch in sorted(gone)]
        self._step(moving, 1, done)

    def delete_stale(self, now_s: float, switches_of: Callable[[Flow], Container[str]]) -> None:
        """Delete what has lingered long enough; `switches_of(flow)` are the switches that a flow passes by now."""
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
                self._switches.send(switch, gone)

    def drop_for(self, switch: str, flow: Flow, seconds: int) -> None:
        """Drop a flow that has no way."""
        self._switches.send(
            switch,
            nicira.flow_mod(PATHS_TABLE, priority(flow), nicira.match_flow(flow), hard_s=seconds),
        )

    def actions(self, hop: Hop, ingress_port: int | None = None) -> list[bytes]:
        """How a packet leaves a switch; nothing when it cannot."""
        number = self._switches.port(hop.switch, hop.port)
        if number is None:
            return []
        rewrite = [nicira.set_destination_mac(hop.mac)] if hop.mac else []
        return [*rewrite, nicira.output(number, ingress_port)]

    def _step(self, moves: list[Move], from_the_end: int, done: Callable[[], None]) -> None:
        """Write the hop that is so far from the end, of every flow whose new way is that long; then the next."""
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
            self._switches.send(hop.switch, entry)

    def _entry_port(self, flow: Flow, hop: Hop) -> int | None:
        """The port by which a flow enters, when it leaves by the same one: two stations of one access point."""
        place = self._hosts.place(flow.source)
        same = place is not None and (place.switch, place.port) == (hop.switch, hop.port)
        return self._switches.port(hop.switch, hop.port) if same else None


def priority(flow: Flow) -> int:
    """TCP goes before pairs of addresses."""
    return TCP_PRIORITY if flow.protocol == frames.TCP else PAIR_PRIORITY
