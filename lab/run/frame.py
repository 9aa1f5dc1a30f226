"""Hold one sample of a running network, which both engines fill in, and its line of samples.jsonl.

Every figure is the mean over the interval that ends at `t`. Rates are Mb/s of received payload.
Engines measure rates on the wire; the runner records scenario units (`in_scenario_units`).
A figure that nobody measured is None, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DIGITS = 4  # of a rate in samples.jsonl


@dataclass(frozen=True)
class ApSample:
    """Describe one access point: payload per tier, MAC occupancy, Tier 2 limit, stations."""

    tier1_mbps: float | None = 0.0
    tier2_mbps: float | None = 0.0
    mac_occupancy: float | None = None
    meter_mbps: float | None = None
    stations: int = 0


@dataclass(frozen=True)
class Direction:
    """Hold what one direction of a link carried: Mb/s of frames, queued packets, fraction lost."""

    mbps: float
    backlog: int
    loss: float

    @classmethod
    def of(
        cls, sent_bytes: int, sent_packets: int, dropped: int, backlog: int, elapsed_s: float
    ) -> Direction:
        """Compute the figures from what was counted in the last `elapsed_s` seconds."""
        rate = max(0, sent_bytes) * 8e-6 / elapsed_s if elapsed_s else 0.0
        offered = sent_packets + dropped
        return cls(round(rate, DIGITS), backlog, round(dropped / offered, 5) if offered else 0.0)


@dataclass(frozen=True)
class LinkSample:
    """Describe one shaped link: frames in each direction, queue and loss of the busier one.

    `backlog` counts packets; `loss` is the fraction of packets that were dropped or lost. An
    unshaped link has no queue to read: all its figures are None.
    """

    mbps_ab: float | None = None
    mbps_ba: float | None = None
    backlog: int | None = None
    loss: float | None = None

    @property
    def mbps(self) -> float | None:
        """Return the rate of the busier direction."""
        known = [rate for rate in (self.mbps_ab, self.mbps_ba) if rate is not None]
        return max(known, default=None)

    @classmethod
    def of(cls, ab: Direction, ba: Direction) -> LinkSample:
        """Combine both directions of a link; queue and loss are those of the busier one."""
        busier = ba if ba.mbps > ab.mbps else ab
        return cls(ab.mbps, ba.mbps, busier.backlog, busier.loss)


@dataclass(frozen=True)
class UserSample:
    """Describe one user: what its applications read, and its position in m where it has one."""

    mbps: float = 0.0
    x_m: float | None = None
    y_m: float | None = None


@dataclass(frozen=True)
class SubflowSample:
    """Describe one subflow: payload it delivered, and its sender's state.

    `cwnd` counts segments. `expected_mbps` is its pacing rate (S-MPTCP), None without one.
    `out_of_order` is the fraction of its segments that arrived out of order. `user` and `ap` (the
    access point or link of the user's interface) are given where they can change or be needed.
    """

    mbps: float
    cwnd: int | None
    rtt_ms: float | None
    tier: int
    backup: bool
    expected_mbps: float | None
    out_of_order: float
    user: str | None = None
    ap: str | None = None


@dataclass(frozen=True)
class Frame:
    """Hold one sample of the network, `t` seconds after the start; mappings are keyed by ID."""

    t: float
    ap: Mapping[str, ApSample] = field(default_factory=dict)
    link: Mapping[str, LinkSample] = field(default_factory=dict)
    user: Mapping[str, UserSample] = field(default_factory=dict)
    sf: Mapping[str, SubflowSample] = field(default_factory=dict)

    def in_scenario_units(self, rate_scale: float) -> Frame:
        """Return the frame with every rate divided by `rate_scale`."""
        if rate_scale == 1:
            return self
        return replace(
            self,
            ap={name: _divided(each, rate_scale) for name, each in self.ap.items()},
            link={name: _divided(each, rate_scale) for name, each in self.link.items()},
            user={name: _divided(each, rate_scale) for name, each in self.user.items()},
            sf={name: _divided(each, rate_scale) for name, each in self.sf.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the line of samples.jsonl (docs/formats.md)."""
        return {
            "t": self.t,
            "ap": {name: vars(each) for name, each in self.ap.items()},
            "link": {name: {"mbps": each.mbps} | vars(each) for name, each in self.link.items()},
            "user": {name: _without_none(each, "x_m", "y_m") for name, each in self.user.items()},
            "sf": {name: _without_none(each, "user", "ap") for name, each in self.sf.items()},
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Frame:
        """Return the frame in a line of samples.jsonl; keys it does not know are left out."""
        return cls(
            line["t"],
            {name: _known(ApSample, each) for name, each in line.get("ap", {}).items()},
            {name: _known(LinkSample, each) for name, each in line.get("link", {}).items()},
            {name: _known(UserSample, each) for name, each in line.get("user", {}).items()},
            {name: _known(SubflowSample, each) for name, each in line.get("sf", {}).items()},
        )


def _divided(sample: Any, rate_scale: float) -> Any:
    """Divide each rate of a sample; a rate is a field whose name holds `mbps`."""
    rates = {
        name: round(value / rate_scale, DIGITS)
        for name, value in vars(sample).items()
        if "mbps" in name and value is not None
    }
    return replace(sample, **rates)


def _without_none(sample: Any, *optional: str) -> dict[str, Any]:
    """Return a sample's fields, without the optional ones that are None."""
    return {
        name: value
        for name, value in vars(sample).items()
        if not (name in optional and value is None)
    }


def _known(kind: Any, fields: Mapping[str, Any]) -> Any:
    """Make a sample of the fields that its class has; a field the line lacks is None."""
    empty = dict.fromkeys(name for name in kind.__dataclass_fields__)
    return kind(**(empty | {name: fields[name] for name in fields if name in empty}))
