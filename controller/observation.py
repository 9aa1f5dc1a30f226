"""What a strategy may know: frozen data, the same from the emulation and from the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ApKind = Literal["wifi", "lte"]
Tiers = Mapping[tuple[str, str], int]  # (user, access point) -> 1 or 2


@dataclass(frozen=True)
class AccessPoint:
    """An access point and the meter of the switch in front of it (MP-SDN, section III-B1).

    `mac_occupancy` is the mean of min(1, backlog / MAC slots) since the last step, None without a report;
    `tier2_bps` is what passed the meter since then, None when it was not measured; `meter_bps` is the limit, None without one.
    """

    id: str
    kind: ApKind
    capacity_bps: int
    mac_occupancy: float | None = None
    tier2_bps: int | None = None
    meter_bps: int | None = None


@dataclass(frozen=True)
class Association:
    """A user's connection to an access point, in the sense of MP-SDN, section III-A.

    `rate_bps` is its rate when alone on the access point; `weight` its LTE resource weight (eq (3)).
    """

    user: str
    ap: str
    rate_bps: int
    weight: float = 1.0
    addresses: tuple[str, ...] = ()
    rssi_dbm: float | None = None


@dataclass(frozen=True)
class Subflow:
    """One subflow of a Multipath TCP connection; `source` sends towards the user, `path` lists the switches in that direction."""

    connection: str
    number: int
    user: str
    ap: str
    source: str
    destination: str
    tier: int = 1
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Observation:
    """Everything seen up to `now_ns`, which is the only clock of the brain."""

    now_ns: int
    access_points: tuple[AccessPoint, ...] = ()
    associations: tuple[Association, ...] = ()
    multipath: frozenset[str] = frozenset()
    subflows: tuple[Subflow, ...] = ()
    tiers: Tiers = field(default_factory=dict)

    def of_user(self, user: str) -> tuple[Association, ...]:
        """The associations of a user, by access point."""
        return tuple(sorted((each for each in self.associations if each.user == user), key=lambda each: each.ap))

    def at(self, ap: str) -> tuple[Association, ...]:
        """The associations at an access point, by user."""
        return tuple(sorted((each for each in self.associations if each.ap == ap), key=lambda each: each.user))

    def addresses(self, ap: str, tier: int) -> frozenset[str]:
        """The addresses at an access point that belong to this tier."""
        found = (each for each in self.at(ap) if self.tiers.get((each.user, each.ap), 1) == tier)
        return frozenset(address for each in found for address in each.addresses)
