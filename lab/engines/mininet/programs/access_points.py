"""Describe the access points that the AP agent measures, and its reports on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Station:
    """Describe a user at an access point.

    `rate_bps` is the user's rate when no other user sends. `device` and `uplink_device` are the
    interfaces with the user's LTE queues, one per direction. `uploads` is True if the scenario has
    an upload of this user, and for a relay. `rssi_dbm` is the strength of the signal at its place,
    None where users have no places.
    """

    rate_bps: int
    weight: float
    device: str
    uploads: bool = False
    rssi_dbm: float | None = None
    uplink_device: str = ""


Stations = dict[str, Station]


@dataclass(frozen=True)
class AccessPoint:
    """Describe an access point; `kind` is wifi or lte, `device` its radio interface (WiFi).

    With `collisions`, the number of contenders for its channel decides how often a frame is
    transmitted; `loss_ppm` is an additional loss of its channel. `medium` is the access point whose
    channel it shares, empty if none. `sharing` holds the radio interfaces of the access points that
    share its own channel.
    """

    kind: str
    device: str
    stations: Stations
    collisions: bool = False
    loss_ppm: int = 0
    medium: str = ""
    sharing: Sequence[str] = ()


@dataclass(frozen=True)
class StationReport:
    """Describe one station in a report; `mac_occupancy` is that of its LTE bearer."""

    rate_mbps: float
    mac_occupancy: float | None = None
    associated: bool = True
    rssi_dbm: float | None = None


@dataclass(frozen=True)
class Report:
    """Describe the state of one access point."""

    backlog_packets: int
    mac_occupancy: float
    stations: Mapping[str, StationReport]
