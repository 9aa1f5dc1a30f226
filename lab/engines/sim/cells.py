"""The stations of each simulated access point, and two measurements: MAC occupancy and WiFi
collisions.

MAC occupancy says how full the MAC buffer of an access point is, from 0 to 1. Collisions depend on
the number of contenders: the access points and stations of a channel that have a frame to send.
Both are measured ten times a second, as in the emulation. The number of contenders is averaged over
about a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from controller.tiers import tier1_mean
from lab.engines.sim.routes import DOWN, UP
from lab.engines.sim.wireless import Wireless
from lab.radio import contention
from lab.radio.cell import Cell, Station, Towards
from lab.radio.occupancy import bearer_occupancy, waiting_uploads, wifi_occupancy


class Cells:
    """The present stations of each access point, and the mean number of contenders for each WiFi
    channel.

    `stations` is keyed by (access point, user). A contender is an access point or station that has
    a frame to send. `contenders` is keyed by access point. If several access points share a
    channel, only one of them has an entry, which counts the contenders of all.
    """

    def __init__(self, wireless: Wireless, cells: Iterable[Cell]) -> None:
        self.wireless, self.cells = wireless, list(cells)
        self.stations: dict[tuple[str, str], Station] = {
            (cell.ap, station.user): station for cell in self.cells for station in cell.stations
        }
        self.contenders: dict[str, float] = {
            cell.ap: 1.0
            for cell in self.cells
            if cell.collisions and not cell.medium and cell.air == "cell"
        }

    def stations_at(self, ap: str) -> list[Station]:
        return [station for (where, _), station in self.stations.items() if where == ap]

    def measure(self, tiers: Mapping[tuple[str, str], int]) -> dict[str, float]:
        """Return the present MAC occupancy of each access point: how full its MAC buffer is, from 0
        to 1. Also update how often WiFi frames collide.

        `tiers` maps (user, access point) to 1 for the user's primary access point and to 2 for
        others. Only LTE cells use it.
        """
        occupancies = {
            cell.ap: self._wifi(cell.ap) if cell.kind == "wifi" else self._lte(cell, tiers)
            for cell in self.cells
        }
        for air in self.contenders:
            self._update_collisions(air)
        return occupancies

    # --- WiFi

    def _wifi(self, ap: str) -> float:
        """Return the MAC occupancy of a WiFi access point (0 to 1). It is computed from the longer
        of two backlogs: packets that wait at the access point, and uploads that wait at its
        stations."""
        sending = [
            each
            for each in self.stations_at(ap)
            if self.wireless.network.has_data(each.user, UP)
            and self.wireless.is_sending(ap, each.user)
        ]
        if self.wireless.has_dcf(ap):
            uploads = self.wireless.uplink_backlog(ap, (each.user for each in sending))
        else:
            rates_bps = [each.way(UP).rate_bps for each in sending]
            uploads = waiting_uploads(self.wireless.uplink_wait_ns(ap), rates_bps)
        return wifi_occupancy(self.wireless.backlog(ap), uploads)

    def _update_collisions(self, air: str) -> None:
        """Count the contenders (nodes with a frame to send) on the channel of access point `air`,
        and update their mean number. This mean determines how often a frame is transmitted on the
        channel, and how many frames are lost."""
        here = [cell for cell in self.cells if air in (cell.ap, cell.medium)]
        stations = [(cell.ap, each.user) for cell in here for each in self.stations_at(cell.ap)]
        sending = sum(self.wireless.backlog(cell.ap) > 0 for cell in here)
        sending += sum(self.wireless.is_sending(*each) for each in stations)
        contenders = contention.smoothed(self.contenders[air], sending)
        self.contenders[air] = contenders
        sent = contention.transmissions(contenders)
        for cell in here:
            loss = contention.loss(contenders, cell.loss_ppm)
            users = [user for ap, user in stations if ap == cell.ap]
            self.wireless.set_collisions(cell.ap, sent, users, loss)

    # --- LTE

    def _lte(self, cell: Cell, tiers: Mapping[tuple[str, str], int]) -> float:
        """Return the MAC occupancy of an LTE base station (0 to 1). It is the mean over the
        users whose primary access point is this one (Tier 1, see `controller.tiers`)."""
        bearers = {
            each.user: bearer_occupancy(self._queued(cell.ap, each.user)) for each in cell.stations
        }
        here = {user: tier for (user, ap), tier in tiers.items() if ap == cell.ap}
        return tier1_mean(bearers, here)

    def _queued(self, ap: str, user: str) -> list[int]:
        """Return how many packets of the user wait at access point `ap`: one number for the
        downlink queue and, if the user uploads data, one for the uplink queue."""
        network = self.wireless.network
        directions = (DOWN, UP) if network.has_data(user, UP) else (DOWN,)
        return [network.tables.stations[ap, user, each].queue_count for each in directions]

    # --- changes

    def set_rate(self, ap: str, user: str, rate_bps: int, ways: Collection[Towards]) -> None:
        """Set the rate in bit/s that the user's station has at access point `ap` in some directions
        when no other station sends."""
        self.set_station(ap, self.stations[ap, user].with_rate(rate_bps, ways))

    def set_station(self, ap: str, station: Station) -> None:
        """Add a station to an access point, or replace the station of the same user."""
        self.stations[ap, station.user] = station
        self.wireless.set_station(ap, station)

    def hand_over(self, user: str, old: str, new: str, station: Station) -> None:
        """Move a user from WiFi access point `old` to `new`. `station` has the rate and signal of
        the user at `new`."""
        del self.stations[old, user]
        self.wireless.hand_over(user, old, new)
        self.set_station(new, station)
