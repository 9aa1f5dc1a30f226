"""Read and change the access points of a running network: stations, collisions, handovers and
meters. A meter limits the rate of data."""

from __future__ import annotations

from collections.abc import Iterable

from controller import units
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.engines.sim.tables import FRAME_BYTES, airtime, bearer
from lab.radio import dcf
from lab.radio.cell import Station

# A policer with a smaller bucket starves a TCP flow; the bucket holds the larger of the two.
METER_BURST_PACKETS, METER_BURST_NS = 10, 20_000_000


class Wireless:
    """The access points of one network. All their state is in the records of the network."""

    def __init__(self, network: Network) -> None:
        self.network = network

    # --- counters

    def has_dcf(self, ap: str) -> bool:
        return ap in self.network.tables.contenders

    def backlog(self, ap: str) -> int:
        """Return how many downlink packets wait at a WiFi access point or are in transmission."""
        tables = self.network.tables
        if self.has_dcf(ap):
            return self._frames(tables.contenders[ap])
        return tables.cells[ap].backlog

    def is_sending(self, ap: str, user: str) -> bool:
        """Return True if a frame of the user's WiFi station waits or is in transmission."""
        hop = self.network.tables.stations[ap, user, UP]
        if hop.kind == at.DCF_UP:
            return self.uplink_backlog(ap, [user]) > 0
        return hop.busy_until_ns > self.network.now_ns

    def uplink_backlog(self, ap: str, users: Iterable[str]) -> int:
        """Return how many frames of the users' stations wait or are in transmission, with DCF."""
        stations = self.network.tables.stations
        return sum(self._frames(stations[ap, user, UP].contender) for user in users)

    def _frames(self, n: at.Contender) -> int:
        """Return how many frames of a node wait or are in transmission."""
        return n.count + (n.frames if self.network.now_ns < n.sent_until_ns else 0)

    def uplink_wait_ns(self, ap: str) -> int:
        """Return how long a new frame of a station would wait for the channel of a WiFi access
        point, in ns."""
        air = self.network.tables.airs[ap]
        return max(0, air.uplink_busy_until_ns - self.network.now_ns)

    # --- stations

    def set_station(self, ap: str, station: Station) -> None:
        """Apply a station's rate and, in LTE, its weight to its downlink and uplink. In a WiFi
        cell, the rate determines the airtime of a frame."""
        for direction in (DOWN, UP):
            hop = self.network.tables.stations[ap, station.user, direction]
            way = station.way(direction)
            if hop.kind == at.BEARER:
                fields = bearer(way)
            elif self.has_dcf(ap):
                fields = dcf.frames(self.network.tables.topology.cell(ap), way)
            else:
                fields = airtime(way)
            for field, value in fields.items():
                setattr(hop, field, value)

    def set_collisions(
        self, ap: str, transmissions: float, users: Iterable[str], loss: float
    ) -> None:
        """Set the effect of collisions at a WiFi access point. `transmissions` is how often a frame
        is sent on average. `loss` is the fraction of frames that is lost between the access point
        and the stations of `users`."""
        tables = self.network.tables
        tables.airs[ap].transmissions_ppm = units.ppm_from_fraction(transmissions)
        for user in users:
            for direction in (DOWN, UP):
                tables.stations[ap, user, direction].loss_ppm = units.ppm_from_fraction(loss)

    # --- handovers

    def hand_over(self, user: str, old: str, new: str) -> None:
        """Move a user from WiFi access point `old` to `new`. The user keeps its address.

        Packets that wait at the old access point, and packets that still arrive there, are lost. An
        interface that is off stays off.
        """
        before = self.network.tables.wiring
        after = self.network.tables.wiring = before.handed_over(user, old, new)
        interface, moved = before.at(user, old), after.at(user, new)
        for direction in (DOWN, UP):
            self._switch_hop(user, direction, old, new)
        for subflow in self.network.subflows():
            if subflow.ends.user == interface:
                self.network.move(subflow, moved)
        self.network.replace_interface(interface, moved)

    def _switch_hop(self, user: str, direction: str, old: str, new: str) -> None:
        """Switch one direction of the user's radio channel off at access point `old` and on at
        `new`.

        If a meter limits this direction at `old`, the meter with the same number at `new` limits it
        from now on. If no rate is set for the meter at `new`, the direction is no longer limited.
        """
        stations = self.network.tables.stations
        before, after = (stations[ap, user, direction] for ap in (old, new))
        before.is_up, after.is_up = 0, before.is_up
        number = before.metered
        is_set = number > 0 and self._meter(new, number).rate_bps > 0
        after.metered, before.metered = number if is_set else 0, 0

    # --- meters

    def set_meter(
        self, ap: str, users: Iterable[str], rate_bps: int | None, number: int = at.TIER_2_METER
    ) -> None:
        """Limit the data of all `users` at an access point together to `rate_bps`; None removes the
        limit. `number` is 1 or 2, for one of the two meters of the access point's switch. `users`
        replaces the earlier users of the meter."""
        metered = set(users) if rate_bps is not None else set()
        for (where, user, direction), hop in self.network.tables.stations.items():
            if where != ap:
                continue
            if user in metered and self.network.has_data(user, direction):
                hop.metered = number
            elif hop.metered == number:
                hop.metered = 0
        meter = self._meter(ap, number)
        meter.rate_bps = rate_bps or 0
        if rate_bps is not None:
            packets_ns = METER_BURST_PACKETS * FRAME_BYTES * 8 * at.NS_PER_S // rate_bps
            meter.burst_ns = max(packets_ns, METER_BURST_NS)

    def _meter(self, ap: str, number: int) -> at.Meter:
        return self.network.tables.cells[ap].meters[number - 1]
