"""Define the changes that can be made to a running network, one class for each kind. Engines choose
what to do by the class.

A change holds integers as they are on the wire (bit/s, ns). `lab.scenario.targets` makes it from a
flip or an event, which have text and numbers in the scenario's units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SetLinkRate:
    """Limit a link to `rate_bps` in each direction."""

    link: str
    rate_bps: int


@dataclass(frozen=True)
class SetLinkDelay:
    """Set the delay of a link to `delay_ns` in each direction."""

    link: str
    delay_ns: int


@dataclass(frozen=True)
class SetLinkLoss:
    """Set the loss of a link to `loss_ppm` millionths in each direction in which data flows."""

    link: str
    loss_ppm: int


@dataclass(frozen=True)
class SetLinkUp:
    """Take a link up (`up` is True) or down. A link that is down carries nothing."""

    link: str
    up: bool


@dataclass(frozen=True)
class SetStationRate:
    """Set the rate that a user's station has when it is alone at an access point."""

    ap: str
    user: str
    rate_bps: int


@dataclass(frozen=True)
class SetTier1Demand:
    """Limit all Tier 1 traffic of an access point together to `rate_bps`; None
    removes the limit."""

    ap: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetDemand:
    """Set the rate at which all connections of a user together write; None means no limit."""

    user: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetCongestionControl:
    """Use the congestion control `name` for connections that open from now on."""

    name: str


@dataclass(frozen=True)
class SetStrategy:
    """Let another strategy decide from the next control step on. `params`
    holds all its parameters."""

    name: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class SetStrategyParameter:
    """Set one parameter of the present strategy, from the next control step on."""

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
