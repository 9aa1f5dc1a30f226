"""Divide the rate of an LTE cell among its users, and measure the queues of these users."""

from __future__ import annotations

from collections.abc import Mapping

from controller.tiers import tier1_mean
from controller.units import mbps_from_bps
from lab.engines.mininet.kernel.netlink import Handle, Queue, Scheduler
from lab.engines.mininet.kernel.shaping import PFIFO, burst_bytes
from lab.engines.mininet.programs.access_points import AccessPoint, Report, StationReport, Stations
from lab.radio.lte import Bearer, is_backlogged, shares_bps
from lab.radio.occupancy import bearer_occupancy

LEAST_BPS = 1000  # of a user; with a larger floor, many users would exceed the cell's capacity
MIN_CHANGE = 0.01  # of a rate; smaller changes are not worth a request to the kernel


class Bearers:
    """Divide one direction of an LTE cell among its users.

    Each user has a bearer in this direction: a queue that is served at the user's share of the
    cell.
    """

    def __init__(
        self, stations: Stations, devices: Mapping[str, str], scheduler: Scheduler
    ) -> None:
        """Find the queues; `devices` maps each user to the interface with the user's queue."""
        self._stations, self._scheduler = stations, scheduler
        self._devices = {user: scheduler.index(device) for user, device in devices.items()}
        self.queues = [(device, PFIFO) for device in self._devices.values()]
        self._sent_bytes = dict.fromkeys(self._devices, 0)
        self._granted_bps: dict[str, int] = {}

    def divide(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> dict[str, int]:
        """Set the rate of each user's queue to the proportional-fair share of the user.

        `queues` has the current counters of the qdiscs, `elapsed_s` is the time since the last
        call. Return the number of packets in the queue of each user.
        """
        own = {user: queues[device, PFIFO] for user, device in self._devices.items()}
        bearers = {user: self._bearer(user, queue, elapsed_s) for user, queue in own.items()}
        shares = {user: max(LEAST_BPS, round(each)) for user, each in shares_bps(bearers).items()}
        self._grant({user: each for user, each in shares.items() if self._is_new(user, each)})
        return {user: queue.backlog_packets for user, queue in own.items()}

    def _bearer(self, user: str, queue: Queue, elapsed_s: float) -> Bearer:
        used_bps = (queue.sent_bytes - self._sent_bytes[user]) * 8 / elapsed_s
        self._sent_bytes[user] = queue.sent_bytes
        station = self._stations[user]
        granted_bps = self._granted_bps.get(user, station.rate_bps)
        waits = is_backlogged(queue.backlog_packets, used_bps, granted_bps, elapsed_s)
        return Bearer(station.rate_bps, station.weight, waits, used_bps)

    def _is_new(self, user: str, rate_bps: int) -> bool:
        before = self._granted_bps.get(user, 0)
        return abs(rate_bps - before) > MIN_CHANGE * before

    def _grant(self, shares: Mapping[str, int]) -> None:
        if shares:
            self._scheduler.set_rates(
                {self._devices[user]: (each, burst_bytes(each)) for user, each in shares.items()}
            )
            self._granted_bps |= shares


class LteCell:
    """Divide an LTE cell among its users, in each direction separately, and measure their queues.

    The uplink queue of a user is reported only if the user has uploads; otherwise it holds only
    acknowledgements.
    """

    def __init__(self, ap: AccessPoint, scheduler: Scheduler) -> None:
        self._stations = ap.stations
        ports = {user: each.device for user, each in ap.stations.items()}
        uplinks = {user: each.uplink_device for user, each in ap.stations.items()}
        self._down = Bearers(ap.stations, ports, scheduler)
        self._up = Bearers(ap.stations, uplinks, scheduler)
        self.queues = self._down.queues + self._up.queues

    def poll(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> Report:
        """Set the rates of all users in both directions, and return a report on the cell.

        `queues` has the current counters of the qdiscs, `elapsed_s` is the time since the last
        poll.
        """
        down, up = (each.divide(queues, elapsed_s) for each in (self._down, self._up))
        counted = {
            user: [down[user], up[user]] if station.uploads else [down[user]]
            for user, station in self._stations.items()
        }
        occupancies = {user: bearer_occupancy(each) for user, each in counted.items()}
        return Report(
            sum(max(each) for each in counted.values()),
            tier1_mean(occupancies, {}),
            {
                user: StationReport(
                    mbps_from_bps(each.rate_bps), occupancies[user], rssi_dbm=each.rssi_dbm
                )
                for user, each in self._stations.items()
            },
        )
