"""A running network: the tables, time, and everything that can be asked of it or changed in it from outside."""

from __future__ import annotations

from collections.abc import Iterable

from lab import units
from lab.engines.sim import heap, hops, loop, mptcp
from lab.engines.sim import layout as at
from lab.engines.sim.jit import longer
from lab.engines.sim.laws import LAWS
from lab.engines.sim.tables import DOWN, FRAME_BYTES, UP, Tables
from lab.errors import LabError
from lab.flows import Flow
from lab.radio import wifi
from lab.scenario_schema import Multipath
from lab.topology import Interface, Topology

METER_BURST_PACKETS, METER_BURST_NS = 10, 20_000_000  # a policer that holds less starves a TCP flow


class Network:
    """Time goes on in `run`; between two calls anything may be read or changed."""

    def __init__(self, topology: Topology, multipath: Multipath, flows: Iterable[Flow], seed: int) -> None:
        self.tables = Tables(topology, multipath, seed)
        flows = list(flows)
        for flow in flows:
            self.tables.add_connection(flow)
        self._data_goes_up = bool(flows) and all(flow.direction == "up" for flow in flows)
        self.w = self.tables.world()
        self.now_ns = 0

    def run(self, until_ns: int) -> None:
        """Let everything happen that is due before `until_ns`."""
        while not loop.run(self.w, until_ns):
            self._grow()
        self.now_ns = until_ns

    def _grow(self) -> None:
        """Twice as much room for packets and events."""
        w = self.w
        have = len(w.free)
        free = longer(w.free, 2 * have)
        count = int(w.g[at.FREE_COUNT])
        for n in range(have):
            free[count + n] = (have + n) * at.PACKET_FIELDS
        w.g[at.FREE_COUNT] = count + have
        room = 2 * len(w.heap_at)
        self.w = w._replace(
            free=free,
            packet=longer(w.packet, 2 * len(w.packet)),
            heap_at=longer(w.heap_at, room),
            heap_order=longer(w.heap_order, room),
            heap_what=longer(w.heap_what, room),
        )

    # --- connections

    def start(self, flow: Flow, cc: str) -> None:
        """Open a connection; a further subflow joins one round trip of its own after the first is established."""
        c, w = self.tables.connections[flow.id], self.w
        w.conn[c + at.CONN_STATE], w.conn[c + at.STARTED_NS] = at.RUNNING, self.now_ns
        established_ns = 0
        for f, _ in self.tables.subflows[flow.id]:
            w.sub[f + at.STATE], w.sub[f + at.LAW] = at.JOINING, LAWS[cc]
            rtt_ns = int(w.sub[f + at.BASE_RTT_NS])
            at_ns = established_ns + rtt_ns if established_ns else self.now_ns + rtt_ns
            established_ns = established_ns or at_ns
            heap.push(w, at_ns, f * at.EVENT_KINDS + at.JOINED)
        self.demand(flow, int(w.conn[c + at.DEMAND_BPS]))

    def stop(self, flow: Flow) -> None:
        """Close a connection at once."""
        w = self.w
        w.conn[self.tables.connections[flow.id] + at.CONN_STATE] = at.CLOSED
        for f, _ in self.tables.subflows[flow.id]:
            w.sub[f + at.STATE] = at.CLOSED

    def demand(self, flow: Flow, rate_bps: int | None) -> None:
        """What the application hands over from now on [bit/s]; None: as much as goes."""
        c, w = self.tables.connections[flow.id], self.w
        w.conn[c + at.DEMAND_BPS] = at.UNLIMITED if rate_bps is None else rate_bps
        if w.conn[c + at.CONN_STATE] != at.RUNNING:
            return
        if w.conn[c + at.DEMAND_BPS] == at.UNLIMITED:
            w.conn[c + at.HANDED], w.conn[c + at.APP_EVENT_NS] = at.FOREVER, 0
            heap.push(w, self.now_ns, c * at.EVENT_KINDS + at.PUSH)
            return
        w.conn[c + at.HANDED] = min(int(w.conn[c + at.HANDED]), int(w.conn[c + at.NEXT_DSN]) + mptcp.UNSENT_SEGMENTS)
        due_ns = self.now_ns + 1  # a stale event of this very moment must not be taken for this one
        w.conn[c + at.APP_EVENT_NS] = due_ns
        heap.push(w, due_ns, c * at.EVENT_KINDS + at.APP_DUE)

    # --- links and cells

    def set_link(self, link: str, key: str, value: float) -> None:
        """Change `rate_mbps`, `delay_ms` or `up` of both directions, or `loss` of the data direction."""
        both = [place for (name, _), place in self.tables.links.items() if name == link]
        data = both[1:] if self._data_goes_up else both[:1]
        for hop in data if key == "loss" else both:
            if key == "up":
                self.w.hop[hop + at.UP] = int(bool(value))
            elif key == "loss":
                self.w.hop[hop + at.LOSS_PPM] = units.ppm(value)
            elif key == "rate_mbps":
                self.w.hop[hop + at.RATE_BPS] = units.bps(value)
            elif key == "delay_ms":
                self.w.hop[hop + at.DELAY_NS] = units.ns(value)
            else:
                raise LabError(f"change {key} of link {link}: the simulator cannot change it while it runs")

    def set_station(self, ap: str, user: str, rate_bps: int) -> None:
        """A station's rate when alone: the price of its packets on a WiFi cell. A bearer follows at the next look."""
        for direction in (DOWN, UP):
            self.w.hop[self.tables.stations[ap, user, direction] + at.PRICE_PS] = wifi.price_ps(rate_bps)

    def grant(self, ap: str, user: str, direction: str, rate_bps: int) -> None:
        """The rate of a bearer from the next packet on."""
        self.w.hop[self.tables.stations[ap, user, direction] + at.RATE_BPS] = rate_bps

    def set_meter(self, ap: str, users: Iterable[str], rate_bps: int | None) -> None:
        """TCP to these users at this access point shares one token bucket; None: nothing is metered."""
        metered = set(users)
        for (where, user, direction), hop in self.tables.stations.items():
            if where == ap and direction == DOWN:
                self.w.hop[hop + at.METERED] = int(rate_bps is not None and user in metered)
        if rate_bps is not None:
            c, cell = self.tables.cells[ap], self.w.cell
            cell[c + at.METER_BPS] = rate_bps
            cell[c + at.METER_BURST_NS] = max(METER_BURST_PACKETS * FRAME_BYTES * 8 * at.NS_PER_S // rate_bps, METER_BURST_NS)

    # --- what can be read

    def hop(self, place: int, field: int) -> int:
        """A counter of a hop."""
        return int(self.w.hop[place + field])

    def station(self, ap: str, user: str, direction: str, field: int) -> int:
        """A counter of a station's hop."""
        return self.hop(self.tables.stations[ap, user, direction], field)

    def backlog(self, ap: str) -> int:
        """Packets that wait for the air of a WiFi cell on the way down."""
        return int(self.w.cell[self.tables.cells[ap] + at.BACKLOG])

    def queued(self, place: int) -> int:
        """Packets in the queue of a link's direction, the one being sent included."""
        return int(hops.waiting(self.w, place, self.now_ns))

    def subflows(self, flow: Flow) -> list[tuple[int, Interface]]:
        """The rows of a connection's subflows, with the interfaces of their user."""
        return self.tables.subflows[flow.id]
