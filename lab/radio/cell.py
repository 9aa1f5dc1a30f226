"""Define radio cells as frozen data: the channel of an access point and its stations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lab.radio.signal import Radio


@dataclass(frozen=True)
class Station:
    """Describe one member of a cell: its rate in bit/s when alone, and its LTE weight.

    The weight is that of MP-SDN, eq (3). `overhead` is the fixed part of each frame's airtime, as
    a fraction of a full frame's airtime. `delay_ns` is one way and for LTE only. `user` is usually
    the id of a user. It can also be that of a switch, joined to the access point by a link without
    rate or delay: such a relay forwards packets of hosts that are not in the cell.
    """

    user: str
    rate_bps: int
    weight: float = 1.0
    overhead: float = 0.0
    rssi_dbm: float | None = None
    delay_ns: int = 0


@dataclass(frozen=True)
class Cell:
    """Describe the radio channel of one access point, which its stations share.

    `delay_ns` and `jitter_ns` are one way, between the access point and the core. In WiFi,
    `collisions` makes the number of contending nodes decide how often a frame is transmitted;
    `loss_ppm` is an additional loss in both directions. `medium` is the id of another access point
    on the same channel, if the two share airtime. `radio` computes a user's rate from its
    distance; users can move only in cells with a `radio`, also from one WiFi cell to another.
    `best_bps` is a user's rate at the antenna.
    """

    ap: str
    kind: Literal["wifi", "lte"]
    stations: tuple[Station, ...]
    queue_packets: int = 150
    delay_ns: int = 0
    jitter_ns: int = 0
    collisions: bool = False
    loss_ppm: int = 0
    medium: str = ""
    radio: Radio | None = None
    best_bps: int = 0

    @property
    def capacity_bps(self) -> int:
        """Return the rate in bit/s of the fastest station when it is alone in the cell.

        In a cell with moving stations, return the rate at the antenna, the best that a station can
        reach.
        """
        return self.best_bps or max((station.rate_bps for station in self.stations), default=0)
