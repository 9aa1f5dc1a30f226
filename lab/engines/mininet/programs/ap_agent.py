"""The AP agent: a program that measures all access points, and divides LTE cells among users.

It reads the queues of the access points ten times a second, and sends reports to POX and to the
main process of the run twice a second. It is a separate process, so that POX gets reports even if
the main process is blocked. Its only argument is a JSON file with its configuration. It ends when
its standard input is closed.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from controller.datagrams import seal
from controller.tiers import tier1_mean
from controller.units import mbps_from_bps
from lab.engines.mininet.kernel.cell_maps import CellClock, CellMembers
from lab.engines.mininet.kernel.netlink import Handle, Queue, Scheduler
from lab.engines.mininet.kernel.shaping import FQ, PFIFO, burst_bytes
from lab.radio import contention
from lab.radio.lte import Bearer, is_backlogged, shares_bps
from lab.radio.occupancy import PERIOD_S, bearer_occupancy, waiting_uploads, wifi_occupancy


@dataclass(frozen=True)
class Station:
    """A user at an access point. It can also be a relay, a switch with a radio.

    - `rate_bps`: its rate when no other station sends
    - `weight`: its weight in the proportional-fair division of an LTE cell
    - `device`, `uplink_device`: interfaces with its downlink queue and its uplink queue, in an LTE
      cell
    - `uploads`: True for a relay, and for a user that uploads in the scenario
    - `rssi_dbm`: None if users have no positions
    - `up_bps`: its rate of uploads, if it is not `rate_bps`
    """

    rate_bps: int
    weight: float
    device: str
    uploads: bool = False
    rssi_dbm: float | None = None
    uplink_device: str = ""
    up_bps: int | None = None

    def way_bps(self, is_uplink: bool) -> int:
        return self.rate_bps if self.up_bps is None or not is_uplink else self.up_bps


Stations = dict[str, Station]


@dataclass(frozen=True)
class AccessPoint:
    """An access point, as the AP agent is told to measure it.

    - `kind`: "lte", "wifi", "wmediumd" for a WiFi cell that the program wmediumd models, or "queue"
      for an access point that another script has built
    - `device`: its radio interface, at WiFi access points
    - `collisions`: True if frames can collide and the agent has to count the contenders
    - `loss_ppm`: additional loss on the channel
    - `medium`: name of the access point whose channel this one uses; "" if it has its own
    - `sharing`: radio interfaces of other access points that use the channel of this one
    - `qdisc`: for the kind "queue", the major number of the qdisc that is measured at `device`
    """

    kind: str
    device: str
    stations: Stations
    collisions: bool = False
    loss_ppm: int = 0
    medium: str = ""
    sharing: Sequence[str] = ()
    qdisc: int = 0


def apply_change(aps: Mapping[str, AccessPoint], line: str | bytes) -> str:
    """Change a station in `aps`, which maps names to access points.

    Return the access point to which the station has moved, or "" if it has not moved.

    `line` is a JSON object with the keys `ap` and `user`, and new values of fields of `Station`. If
    the object also has the key `from`, the station moves from the access point `from` to the access
    point `ap`. The new values are then in the key `station`.
    """
    change = json.loads(line)
    ap, user = change["ap"], change["user"]
    if "from" in change:
        before = aps[change["from"]].stations.pop(user)
        aps[ap].stations[user] = replace(before, **change["station"])
        return str(ap)
    stations = aps[ap].stations
    values = {key: value for key, value in change.items() if key not in ("ap", "user")}
    stations[user] = replace(stations[user], **values)
    return ""


@dataclass(frozen=True)
class StationReport:
    """One station in a report about its access point.

    `rate_mbps` is the station's rate when no other station sends. `mac_occupancy` is the occupancy
    of its LTE queues, min(1, packets / 16). It is None at a WiFi access point.
    """

    rate_mbps: float
    mac_occupancy: float | None = None
    associated: bool = True
    rssi_dbm: float | None = None


@dataclass(frozen=True)
class Report:
    """The state of one access point: its queue, and its stations by name.

    `mac_occupancy` is the occupancy of the queue, from 0 to 1. It is None if nobody can measure the
    queue; `backlog_packets` is then 0.
    """

    backlog_packets: int
    mac_occupancy: float | None
    stations: Mapping[str, StationReport]


LEAST_BPS = 1000  # of a user; with a larger floor, many users would exceed the cell's capacity
MIN_CHANGE = 0.01  # of a rate; smaller changes are not worth a request to the kernel


class Bearers:
    """Divide one direction of an LTE cell, downlink or uplink, among the users of the cell.

    Each user has a bearer: a queue with a rate, which is the user's share of the cell.
    """

    def __init__(
        self,
        stations: Stations,
        devices: Mapping[str, str],
        scheduler: Scheduler,
        is_uplink: bool = False,
    ) -> None:
        """`devices` maps each user to the interface that has the user's queue."""
        self._stations, self._scheduler, self._is_uplink = stations, scheduler, is_uplink
        self._devices = {user: scheduler.index(device) for user, device in devices.items()}
        self.queues = [(device, PFIFO) for device in self._devices.values()]
        self._sent_bytes = dict.fromkeys(self._devices, 0)
        self._granted_bps: dict[str, int] = {}

    def divide(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> dict[str, int]:
        """Set the proportional-fair rate of each user. Return the number of packets in each queue.

        `queues` has the current counters of the qdiscs. `elapsed_s` is the time since the last
        call.
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
        rate_bps = station.way_bps(self._is_uplink)
        granted_bps = self._granted_bps.get(user, rate_bps)
        waits = is_backlogged(queue.backlog_packets, used_bps, granted_bps, elapsed_s)
        return Bearer(rate_bps, station.weight, waits, used_bps)

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
    """Divide both directions of an LTE cell among its users, and measure the queues of the users.

    A user without uploads has only ACKs in its uplink queue. This queue is not reported.
    """

    def __init__(self, ap: AccessPoint, scheduler: Scheduler) -> None:
        self._stations = ap.stations
        ports = {user: each.device for user, each in ap.stations.items()}
        uplinks = {user: each.uplink_device for user, each in ap.stations.items()}
        self._down = Bearers(ap.stations, ports, scheduler)
        self._up = Bearers(ap.stations, uplinks, scheduler, is_uplink=True)
        self.queues = self._down.queues + self._up.queues

    def poll(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> Report:
        """Set the rates of all users in both directions, and return a report about the cell.

        `queues` has the current counters of the qdiscs. `elapsed_s` is the time since the last
        call.
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


POLLS_PER_REPORT = 5  # a datagram costs more than a poll


class Cell(Protocol):
    """An access point that the agent measures.

    `queues` lists the qdiscs whose counters `poll` needs. A handle has the number of an interface
    and the major number of a qdisc.
    """

    queues: list[Handle]

    def poll(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> Report:
        """Return a report about the access point. `elapsed_s` is the time since the last call.

        `queues` has the current counters of the qdiscs.
        """


class Collisions:
    """Count the contenders in a WiFi cell, and set how much collisions slow the cell down.

    A contender is an access point or a station with a frame to send. The smoothed number of
    contenders determines the number of transmissions per frame and the fraction of lost frames.
    """

    def __init__(self, members: CellMembers, loss_ppm: int) -> None:
        self._members, self._loss_ppm = members, loss_ppm
        self._contenders = 1.0
        self._set = (1.0, 0.0)

    def update(self, downlinks: int) -> None:
        """Count the contenders now, and compute the transmissions per frame and the lost frames.

        If these values have changed, they are set in the cell. `downlinks` is the number of access
        points on this channel that have packets in their queue.
        """
        now_ns = time.monotonic_ns()
        stations = self._members.activity().values()
        sending = downlinks + sum(each.busy_until_ns > now_ns for each in stations)
        self._contenders = contention.smoothed(self._contenders, sending)
        transmissions = contention.transmissions(self._contenders)
        effect = transmissions, contention.loss(self._contenders, self._loss_ppm)
        if effect != self._set:
            self._members.set_collisions(*effect)
            self._set = effect


class WifiCell:
    """Measure a WiFi cell: the queue of its access point, and uploads that wait for the channel."""

    def __init__(
        self,
        ap: AccessPoint,
        scheduler: Scheduler,
        wait_ns: Callable[[], int],
        collisions: Collisions | None = None,
    ) -> None:
        """`wait_ns` returns how long an upload frame would have to wait for the channel [ns].

        `collisions` is None if there are no collisions in this cell.
        """
        self._stations, self._wait_ns, self._collisions = ap.stations, wait_ns, collisions
        self._handle = (scheduler.index(ap.device), FQ)
        self.queues = [self._handle, *((scheduler.index(each), FQ) for each in ap.sharing)]

    def poll(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> Report:
        """Return a report about the access point, and update the collisions in the cell.

        The reported backlog is the larger of two numbers: packets that wait at the access point,
        and upload frames that wait at the stations. `elapsed_s` is not used.
        """
        downlink = queues[self._handle].backlog_packets
        rates_bps = [each.way_bps(True) for each in self._stations.values() if each.uploads]
        uploads = waiting_uploads(self._wait_ns(), rates_bps) if rates_bps else 0
        if self._collisions:
            self._collisions.update(sum(queues[each].backlog_packets > 0 for each in self.queues))
        return Report(
            max(downlink, uploads),
            wifi_occupancy(downlink, uploads),
            {
                user: StationReport(mbps_from_bps(each.rate_bps), rssi_dbm=each.rssi_dbm)
                for user, each in self._stations.items()
            },
        )


class MediumCell:
    """Report on a WiFi access point whose cell is modelled by the program wmediumd.

    Frames wait inside wmediumd, and wmediumd does not say how many. So the occupancy is None.
    """

    def __init__(self, ap: AccessPoint) -> None:
        self.queues: list[Handle] = []
        self._report = Report(
            0,
            None,
            {
                user: StationReport(mbps_from_bps(each.rate_bps))
                for user, each in ap.stations.items()
            },
        )

    def poll(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> Report:
        """Return the rates of the stations, which never change. Both parameters are not used."""
        return self._report


class QueueCell:
    """Measure an access point that another script has built, by one qdisc at its radio.

    Its stations' uploads and contenders are not measured: nothing of that script counts them.
    """

    def __init__(self, ap: AccessPoint, scheduler: Scheduler) -> None:
        self._stations, self._handle = ap.stations, (scheduler.index(ap.device), ap.qdisc)
        self.queues = [self._handle]

    def poll(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> Report:
        """Return a report; its occupancy is None if the script has removed the qdisc.

        `elapsed_s` is not used.
        """
        found = queues.get(self._handle)
        return Report(
            found.backlog_packets if found else 0,
            wifi_occupancy(found.backlog_packets, 0) if found else None,
            {
                user: StationReport(mbps_from_bps(each.rate_bps))
                for user, each in self._stations.items()
            },
        )


def make_cell(name: str, ap: AccessPoint, scheduler: Scheduler) -> Cell:
    if ap.kind == "lte":
        return LteCell(ap, scheduler)
    if ap.kind == "wmediumd":
        return MediumCell(ap)
    if ap.kind == "queue":
        return QueueCell(ap, scheduler)
    clock = CellClock(ap.medium or name)

    def wait_ns() -> int:
        return max(0, clock.read().uplink_free_ns - time.monotonic_ns())

    collisions = Collisions(CellMembers(name), ap.loss_ppm) if ap.collisions else None
    return WifiCell(ap, scheduler, wait_ns, collisions)


def serve(aps: Mapping[str, AccessPoint], ports: Iterable[int], key: str) -> None:
    """Measure the access points and send reports, until standard input ends.

    Reports are sent to the local UDP ports `ports`. They begin with `key`, the secret key of the
    run. Standard input has the changes of stations, one per line (`apply_change`). If a station has
    moved to an access point, a report about this access point is sent at once.
    """
    scheduler, ports = Scheduler(), list(ports)
    cells = {name: make_cell(name, ap, scheduler) for name, ap in aps.items()}
    handles = [each for cell in cells.values() for each in cell.queues]
    reports: dict[str, list[Report]] = {name: [] for name in aps}
    output = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def send(name: str, report: Report) -> None:
        for port in ports:
            output.sendto(encode(name, number, report, key), ("127.0.0.1", port))

    before, number, due = time.monotonic(), 0, time.monotonic()
    lines = Lines(sys.stdin.fileno())
    while (moved := take_change(aps, lines, max(0.0, due - time.monotonic()))) is not None:
        if moved:
            send(moved, cells[moved].poll(scheduler.queues(cells[moved].queues), PERIOD_S))
        if time.monotonic() < due:
            continue
        now = time.monotonic()
        queues = scheduler.queues(handles)
        for name, cell in cells.items():
            reports[name].append(cell.poll(queues, max(1e-3, now - before)))
        if number % POLLS_PER_REPORT == 0:
            for name, polled in reports.items():
                send(name, mean(polled))
                polled.clear()
        before, number, due = now, number + 1, max(due + PERIOD_S, now)


def mean(reports: Sequence[Report]) -> Report:
    """Return the last of `reports`, but with each occupancy averaged over all of them."""

    latest = reports[-1]
    stations = {
        user: replace(
            station,
            mac_occupancy=_mean(each.stations[user] for each in reports if user in each.stations),
        )
        for user, station in latest.stations.items()
    }
    return replace(latest, mac_occupancy=_mean(reports), stations=stations)


def _mean(reports: Iterable[Report | StationReport]) -> float | None:
    known = [each.mac_occupancy for each in reports if each.mac_occupancy is not None]
    return sum(known) / len(known) if known else None


def encode(ap: str, number: int, report: Report, key: str) -> bytes:
    """Return a datagram with a report about the access point `ap`. `number` is its sequence number.

    `controller.agent_messages.read_ap_report` decodes it with the same secret `key`.
    """
    return seal({"kind": "ap", "seq": number, "ap": ap, **asdict(report)}, key)


class Lines:
    """Read lines from a pipe with a timeout. `descriptor` is the file descriptor to read from."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._unread = descriptor, b""

    def next(self, timeout_s: float) -> bytes | None:
        """Wait up to `timeout_s` for the next line, and return it without the newline.

        Returns b"" if no whole line has arrived in this time, and None at the end of the input.
        """
        if b"\n" not in self._unread:
            readable, _, _ = select.select([self._descriptor], [], [], timeout_s)
            if not readable:
                return b""
            data = os.read(self._descriptor, 1 << 16)
            if not data:
                return None
            self._unread += data
        line, end, rest = self._unread.partition(b"\n")
        if not end:
            return b""
        self._unread = rest
        return line


def take_change(aps: Mapping[str, AccessPoint], lines: Lines, timeout_s: float) -> str | None:
    """Wait up to `timeout_s` for a line that changes a station, and apply the change to `aps`.

    Returns the access point to which a station has moved. Returns "" if no station has moved, and
    None at the end of the input.
    """
    line = lines.next(timeout_s)
    if not line:
        return None if line is None else ""
    return apply_change(aps, line)


def access_points(configuration: Mapping[str, Any]) -> dict[str, AccessPoint]:
    return {
        name: AccessPoint(**ap | {"stations": _stations(ap["stations"])})
        for name, ap in configuration["aps"].items()
    }


def _stations(described: Mapping[str, Any]) -> Stations:
    return {user: Station(**station) for user, station in described.items()}


if __name__ == "__main__":
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    serve(access_points(settings), settings["ports"], settings["key"])
