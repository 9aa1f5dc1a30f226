"""Define the data about access points that the AP agent (ap_agent.py) reads and reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Station:
    """Describe a user, or a relay, at an access point.

    `rate_bps` is its rate when no other station sends, `weight` its weight in the proportional-fair
    division of an LTE cell. `device` and `uplink_device` are the interfaces with its LTE queues for
    downlink and uplink. `uploads` is True if the scenario has an upload of this user, and for every
    relay. `rssi_dbm` is the signal strength at its place, None if users have no places.
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
    """Describe an access point; `device` is its radio interface if it is a WiFi access point.

    `kind` is "wifi", "lte", or "wmediumd" for a WiFi cell whose medium is wmediumd.

    With `collisions`, the mean number of transmissions of a frame depends on the number of
    contenders: access points and stations that have a frame to send. `loss_ppm` is an additional
    loss on the channel. If the access point uses the channel of another one, `medium` is the name
    of that one; otherwise it is empty. `sharing` lists the radio interfaces of other access points
    that use the channel of this one.
    """

    kind: str
    device: str
    stations: Stations
    collisions: bool = False
    loss_ppm: int = 0
    medium: str = ""
    sharing: Sequence[str] = ()


def apply_change(aps: Mapping[str, AccessPoint], line: str | bytes) -> str:
    """Apply a change of a station to `aps`, the access points by their names.

    `line` is a JSON object. It has the keys `ap` and `user`, and new values of fields of `Station`.
    If it has the key `from`, an access point, the station moves from there to `ap`, and the key
    `station` has the new values; the name `ap` is then returned. Otherwise the empty text is
    returned.
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
    """Describe one station in a report on its access point.

    `rate_mbps` is its rate when no other station sends. `mac_occupancy` is the occupancy of its LTE
    queues, min(1, packets / 16); it is None at a WiFi access point.
    """

    rate_mbps: float
    mac_occupancy: float | None = None
    associated: bool = True
    rssi_dbm: float | None = None


@dataclass(frozen=True)
class Report:
    """Describe the state of one access point: its queue and its stations by name.

    `mac_occupancy` is the occupancy of the access point's queue, from 0 to 1. It is None, and
    `backlog_packets` is 0, if nothing measures the queue.
    """

    backlog_packets: int
    mac_occupancy: float | None
    stations: Mapping[str, StationReport]
