"""Define a frame, one sample of a running network, and its line in samples.jsonl. Both engines fill
in the same fields.

Every figure is the mean over the interval that ends at the time `t` of the frame, in s. Rates are
Mb/s of received payload. Engines measure rates on the wire; the runner records them in scenario
units (`Frame.in_scenario_units`). A figure that was not measured is None, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DIGITS = 4  # of a rate in samples.jsonl


@dataclass(frozen=True)
class ApSample:
    """Describe one access point: received payload by tier, MAC occupancy from 0 to 1, Tier 2 limit,
    and number of stations."""

    tier1_mbps: float | None = 0.0
    tier2_mbps: float | None = 0.0
    mac_occupancy: float | None = None
    meter_mbps: float | None = None
    stations: int = 0


@dataclass(frozen=True)
class Direction:
    """Hold what one direction of a link carried: rate in Mb/s of frames, packets in the queue, and
    fraction of packets dropped."""

    mbps: float
    backlog: int
    loss: float

    @classmethod
    def of(
        cls, sent_bytes: int, sent_packets: int, dropped: int, backlog: int, elapsed_s: float
    ) -> Direction:
        """Compute the figures from counts of the last `elapsed_s` seconds; `backlog` is the present
        number of packets in the queue."""
        rate = max(0, sent_bytes) * 8e-6 / elapsed_s if elapsed_s else 0.0
        offered = sent_packets + dropped
        return cls(round(rate, DIGITS), backlog, round(dropped / offered, 5) if offered else 0.0)


@dataclass(frozen=True)
class LinkSample:
    """Describe one shaped link: rate in each direction in Mb/s of frames, and queue and loss of the
    busier direction.

    `backlog` counts packets; `loss` is the fraction of packets that were dropped or lost. An
    unshaped link has no queue, so all its figures are None.
    """

    mbps_ab: float | None = None
    mbps_ba: float | None = None
    backlog: int | None = None
    loss: float | None = None

    @property
    def mbps(self) -> float | None:
        """Return the rate of the busier direction in Mb/s; None if no rate was measured."""
        known = [rate for rate in (self.mbps_ab, self.mbps_ba) if rate is not None]
        return max(known, default=None)

    @classmethod
    def of(cls, ab: Direction, ba: Direction) -> LinkSample:
        """Combine both directions of a link into a sample; queue and loss are taken from the busier
        direction."""
        busier = ba if ba.mbps > ab.mbps else ab
        return cls(ab.mbps, ba.mbps, busier.backlog, busier.loss)


@dataclass(frozen=True)
class UserSample:
    """Describe one user: the rate at which its applications read, and its position in m if it has
    one."""

    mbps: float = 0.0
    x_m: float | None = None
    y_m: float | None = None


@dataclass(frozen=True)
class SubflowSample:
    """Describe one subflow: the payload that it delivered, and the state of its sender.

    `cwnd` is in segments. `expected_mbps` is its pacing rate (S-MPTCP), None without one.
    `out_of_order` is the fraction of its segments that arrived out of order. `user` and `ap` (the
    access point or link of the user's interface) are given only by engines and runs in which they
    can change or cannot be found otherwise.
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
    """Hold one sample of the network, taken `t` s after the start of the run.

    Samples are keyed by ID: of access points (`ap`), links (`link`), users (`user`) and subflows
    (`sf`).
    """

    t: float
    ap: Mapping[str, ApSample] = field(default_factory=dict)
    link: Mapping[str, LinkSample] = field(default_factory=dict)
    user: Mapping[str, UserSample] = field(default_factory=dict)
    sf: Mapping[str, SubflowSample] = field(default_factory=dict)

    def in_scenario_units(self, rate_scale: float) -> Frame:
        """Return the frame with every rate divided by `rate_scale`: rates as in the scenario
        instead of rates on the wire."""
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
        """Return the frame as the object that is written as one line of samples.jsonl
        (docs/formats.md)."""
        return {
            "t": self.t,
            "ap": {name: vars(each) for name, each in self.ap.items()},
            "link": {name: {"mbps": each.mbps} | vars(each) for name, each in self.link.items()},
            "user": {name: _without_none(each, "x_m", "y_m") for name, each in self.user.items()},
            "sf": {name: _without_none(each, "user", "ap") for name, each in self.sf.items()},
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Frame:
        """Return the frame in a line of samples.jsonl. Keys that this version does not know are
        ignored."""
        return cls(
            line["t"],
            {name: _known(ApSample, each) for name, each in line.get("ap", {}).items()},
            {name: _known(LinkSample, each) for name, each in line.get("link", {}).items()},
            {name: _known(UserSample, each) for name, each in line.get("user", {}).items()},
            {name: _known(SubflowSample, each) for name, each in line.get("sf", {}).items()},
        )


def _divided(sample: Any, rate_scale: float) -> Any:
    """Return a sample with each rate divided by `rate_scale`. A rate is a field whose name contains
    `mbps`."""
    rates = {
        name: round(value / rate_scale, DIGITS)
        for name, value in vars(sample).items()
        if "mbps" in name and value is not None
    }
    return replace(sample, **rates)


def _without_none(sample: Any, *optional: str) -> dict[str, Any]:
    """Return the fields of a sample by name, without those of `optional` that are None."""
    return {
        name: value
        for name, value in vars(sample).items()
        if not (name in optional and value is None)
    }


def _known(kind: Any, fields: Mapping[str, Any]) -> Any:
    """Make a sample of class `kind` from fields by name. Ignore fields that the class does not
    have; set those that are missing to None."""
    empty = dict.fromkeys(name for name in kind.__dataclass_fields__)
    return kind(**(empty | {name: fields[name] for name in fields if name in empty}))
