"""Describe changes of a running network: one frozen class per kind, which both engines match.

A change holds integers as they are on the wire (bit/s, ns); `lab.scenario.targets` makes it from a
flip or an event, which are text and numbers in the scenario's units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SetLinkRate:
    """Limit both directions of a link to `rate_bps` each."""

    link: str
    rate_bps: int


@dataclass(frozen=True)
class SetLinkDelay:
    """Delay packets by `delay_ns` in each direction of a link."""

    link: str
    delay_ns: int


@dataclass(frozen=True)
class SetLinkLoss:
    """Set the loss of a link, in each direction that carries data, to `loss_ppm`."""

    link: str
    loss_ppm: int


@dataclass(frozen=True)
class SetLinkUp:
    """Take a link up or down; a link that is down carries nothing."""

    link: str
    up: bool


@dataclass(frozen=True)
class SetStationRate:
    """Set a user's rate when it is alone on an access point."""

    ap: str
    user: str
    rate_bps: int


@dataclass(frozen=True)
class SetTier1Demand:
    """Limit all Tier 1 traffic of an access point to `rate_bps`; None: no limit."""

    ap: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetDemand:
    """Set what all connections of a user ask for together; None: as much as possible."""

    user: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetCongestionControl:
    """Use this congestion control for connections that open from now on."""

    name: str


@dataclass(frozen=True)
class SetStrategy:
    """Let another strategy decide from the next step on; `params` holds every parameter."""

    name: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class SetStrategyParameter:
    """Set one parameter of the running strategy from its next step on."""

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
