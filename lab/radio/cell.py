"""Describe the air of an access point and the stations that share it: frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lab.radio.signal import Radio


@dataclass(frozen=True)
class Station:
    """Describe a user's radio connection: its rate when alone, and its LTE weight (MP-SDN, eq (3)).

    `overhead` is the part of a full frame's air time that every frame takes, whatever its length. A
    station may also be a switch, joined to the access point by a link without a shape. Such a relay
    forwards for hosts that are not in the cell. `delay_ns` is one way, for LTE only.
    """

    user: str
    rate_bps: int
    weight: float = 1.0
    overhead: float = 0.0
    rssi_dbm: float | None = None
    delay_ns: int = 0


@dataclass(frozen=True)
class Cell:
    """Describe the air of one access point, which its stations share.

    `delay_ns` and `jitter_ns` are one way, between the access point and the core. WiFi: with
    `collisions` the number of contenders decides how often a frame is sent; `loss_ppm` is lost
    besides, in both directions. `medium` is an access point on the same channel with which this one
    shares the air. `radio` gives the rate of a user at a distance; stations of cells with a radio
    can move, also from one WiFi cell to another.
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
        """Return the rate of the best station alone.

        If stations can move, of the best possible one.
        """
        return self.best_bps or max((station.rate_bps for station in self.stations), default=0)
