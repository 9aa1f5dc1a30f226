"""Changes of a running network: one frozen class per kind, which both engines match.

A change holds integers as they are on the wire (bit/s, ns); `lab.scenario.targets` makes it from a
flip or an event, which are text and numbers in the scenario's units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SetLinkRate:
    """Both directions of a link carry at most `rate_bps` from now on."""

    link: str
    rate_bps: int


@dataclass(frozen=True)
class SetLinkDelay:
    """Each direction of a link delays packets by `delay_ns` from now on."""

    link: str
    delay_ns: int


@dataclass(frozen=True)
class SetLinkLoss:
    """A link loses `loss_ppm` of the packets in each direction that carries data."""

    link: str
    loss_ppm: int


@dataclass(frozen=True)
class SetLinkUp:
    """A link carries packets again, or nothing at all."""

    link: str
    up: bool


@dataclass(frozen=True)
class SetStationRate:
    """A user's rate when it is alone on an access point."""

    ap: str
    user: str
    rate_bps: int


@dataclass(frozen=True)
class SetTier1Demand:
    """All Tier 1 traffic of an access point asks for at most `rate_bps`; None: no limit."""

    ap: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetDemand:
    """All connections of a user together ask for `rate_bps`; None: as much as possible."""

    user: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetCongestionControl:
    """Connections that open from now on use this congestion control."""

    name: str


@dataclass(frozen=True)
class SetStrategy:
    """Another strategy decides from the next step on; `params` holds every parameter."""

    name: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class SetStrategyParameter:
    """One parameter of the running strategy has this value from the next step on."""

    key: str
    value: Any


LinkChange = SetLinkRate | SetLinkDelay | SetLinkLoss | SetLinkUp
Change = (
    LinkChange
    | SetStationRate
    | SetTier1Demand
    | SetDemand
    | SetCongestionControl
    | SetStrategy
    | SetStrategyParameter
)
