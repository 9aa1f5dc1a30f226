"""Measure a WiFi cell whose medium is wmediumd, from the access point's counters of its stations.

The kernel does not tell how full the access point's queue is, because frames wait in wmediumd. So
the occupancy is the share of the time in which the medium is busy, estimated from the frames sent
and received, from their repetitions, and from the rate of the latest frame of each station.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from controller.units import mbps_from_bps
from lab.engines.mininet.kernel.netlink import Handle, Queue
from lab.engines.mininet.machine import shell
from lab.engines.mininet.programs.access_points import AccessPoint, Report, StationReport
from lab.radio import wmediumd

DUMP_S = 0.45  # at least, between two readings: each starts a process
COUNTERS = ("rx bytes", "rx packets", "tx bytes", "tx packets", "tx retries")
ETHERNET_BYTES = 14  # the header, which the kernel's counters leave out


@dataclass(frozen=True)
class StationCounters:
    """Hold an access point's counters of one station: totals of bytes, frames and repetitions.

    `tx` is towards the station. The rates on the air, in Mb/s, are those of the latest frame, None
    before the first one.
    """

    rx_bytes: int = 0
    rx_packets: int = 0
    tx_bytes: int = 0
    tx_packets: int = 0
    tx_retries: int = 0
    tx_mbps: float | None = None
    rx_mbps: float | None = None
    signal_dbm: float | None = None


def parse(dump: str) -> dict[str, StationCounters]:
    """Return the counters of each station, by its MAC address, from `iw dev DEV station dump`."""
    found = {}
    for text in re.split(r"^Station ", dump, flags=re.MULTILINE)[1:]:
        rx_bytes, rx_packets, tx_bytes, tx_packets, tx_retries = (
            int(_number(f"{name}:", text) or 0) for name in COUNTERS
        )
        found[text.split()[0]] = StationCounters(
            rx_bytes,
            rx_packets,
            tx_bytes,
            tx_packets,
            tx_retries,
            _number("tx bitrate:", text),
            _number("rx bitrate:", text),
            _number("signal:", text),
        )
    return found


def _number(name: str, text: str) -> float | None:
    match = re.search(rf"^\s*{name}\s*(-?[\d.]+)", text, re.MULTILINE)
    return float(match.group(1)) if match else None


def busy_us(before: StationCounters, now: StationCounters) -> float:
    """Return how long the frames of a station occupied the medium between two readings, in us."""
    sent, received = now.tx_packets - before.tx_packets, now.rx_packets - before.rx_packets
    down = up = 0.0
    if sent > 0 and now.tx_mbps:
        size = (now.tx_bytes - before.tx_bytes) / sent + ETHERNET_BYTES
        tries = sent + now.tx_retries - before.tx_retries
        down = tries * wmediumd.frame_us(now.tx_mbps, round(size))
    if received > 0 and now.rx_mbps:
        size = (now.rx_bytes - before.rx_bytes) / received + ETHERNET_BYTES
        up = received * wmediumd.frame_us(now.rx_mbps, round(size))
    return down + up


class MediumCell:
    """Measure a WiFi access point by what `iw` lists of its stations, twice a second."""

    queues: list[Handle]

    def __init__(self, ap: AccessPoint) -> None:
        self.queues = []
        self._ap, self._waited_s, self._occupancy = ap, DUMP_S, 0.0
        self._counters: dict[str, StationCounters] = {}

    def poll(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> Report:
        """Return a report; between two readings it repeats the last occupancy.

        A station's rate is the one that its latest frame gives it when it is alone.
        """
        self._waited_s += elapsed_s
        if self._waited_s >= DUMP_S:
            self._read()
        stations = {
            user: self._report(self._counters.get(each.mac), each.rate_bps)
            for user, each in self._ap.stations.items()
        }
        return Report(0, self._occupancy, stations)

    def _read(self) -> None:
        argv = ["iw", "dev", self._ap.device, "station", "dump"]
        now = parse(shell.run(argv, f"list the stations of {self._ap.device}"))
        if self._counters:
            busy = sum(busy_us(self._counters.get(mac, now[mac]), now[mac]) for mac in now)
            self._occupancy = min(1.0, max(0.0, busy / (1e6 * self._waited_s)))
        self._counters, self._waited_s = now, 0.0

    @staticmethod
    def _report(counters: StationCounters | None, planned_bps: int) -> StationReport:
        if counters is None:
            return StationReport(mbps_from_bps(planned_bps), associated=False)
        alone_bps = wmediumd.rate_bps(counters.tx_mbps) if counters.tx_mbps else planned_bps
        return StationReport(mbps_from_bps(alone_bps), rssi_dbm=counters.signal_dbm)
