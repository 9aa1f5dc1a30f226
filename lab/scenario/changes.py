"""Define the changes that can be made to a running network, one class per kind. The class tells an
engine what to do.

A change holds integers as they are on the wire (bit/s, ns, millionths). `lab.scenario.targets`
makes a change from the name of a target and a value in scenario units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SetLinkRate:
    """Set the rate of a link to `rate_bps` in both directions."""

    link: str
    rate_bps: int


@dataclass(frozen=True)
class SetLinkDelay:
    """Set the one-way delay of a link to `delay_ns` in both directions."""

    link: str
    delay_ns: int


@dataclass(frozen=True)
class SetLinkLoss:
    """Set the loss of a link to `loss_ppm` lost packets per million, in each direction in which
    data (not only acknowledgements) flows."""

    link: str
    loss_ppm: int


@dataclass(frozen=True)
class SetLinkUp:
    """Take a link up (`up` is True) or down (False). A link that is down carries no packets."""

    link: str
    up: bool


@dataclass(frozen=True)
class SetStationRate:
    """Set the rate that the station of `user` reaches at the access point `ap` while no other
    station sends."""

    ap: str
    user: str
    rate_bps: int


@dataclass(frozen=True)
class SetTier1Demand:
    """Limit the total Tier 1 traffic of an access point, that is, the traffic of the users whose
    primary access point it is, to `rate_bps`. None removes the limit."""

    ap: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetDemand:
    """Set the total rate at which the connections of a user write. None means no limit."""

    user: str
    rate_bps: int | None


@dataclass(frozen=True)
class SetCongestionControl:
    """Use the congestion control `name` for all open connections, and for those that open later."""

    name: str


@dataclass(frozen=True)
class SetStrategy:
    """Replace the strategy of the controller. The new strategy makes the next decision. `params`
    holds all parameters of the new strategy."""

    name: str
    params: Mapping[str, Any]


@dataclass(frozen=True)
class SetStrategyParameter:
    """Set the parameter `key` of the controller's strategy. The next decision uses the new
    value."""

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
