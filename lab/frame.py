"""A frame: one sample of a running network, written as one line of samples.jsonl. Both engines (the
emulation and the simulator) fill in the same fields.

Every figure is the mean over the interval that ends at the frame's time `t`. Rates are Mb/s of
received payload. Engines measure rates on the wire; the runner divides them by the scenario's
`rate_scale` before it records them (`Frame.in_scenario_units`). A figure that was not measured is
None, never zero.

Tier 1 is the traffic over a user's primary access point or link, Tier 2 the traffic over its other
ones (MP-SDN).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DIGITS = 4  # of a rate in samples.jsonl
Computed = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by owner's kind, owner and name


@dataclass(frozen=True)
class ApSample:
    """One access point: received payload of Tier 1 and Tier 2, MAC occupancy from 0 to 1, the limit
    of the OpenFlow meter on Tier 2 (None: no limit), and the number of associated stations."""

    tier1_mbps: float | None = 0.0
    tier2_mbps: float | None = 0.0
    mac_occupancy: float | None = None
    meter_mbps: float | None = None
    stations: int = 0


@dataclass(frozen=True)
class Direction:
    """One direction of a link: its rate in Mb/s (Ethernet headers included), the number of packets
    in its queue, and the fraction of packets that were lost."""

    mbps: float
    backlog: int
    loss: float

    @classmethod
    def of(
        cls, sent_bytes: int, sent_packets: int, dropped: int, backlog: int, elapsed_s: float
    ) -> Direction:
        """Compute rate and loss from counts over the last `elapsed_s` seconds. `backlog` is the
        number of packets in the queue now."""
        rate = max(0, sent_bytes) * 8e-6 / elapsed_s if elapsed_s else 0.0
        offered = sent_packets + dropped
        return cls(round(rate, DIGITS), backlog, round(dropped / offered, 5) if offered else 0.0)


@dataclass(frozen=True)
class LinkSample:
    """One link: the rates of both directions in Mb/s (Ethernet headers included), and the queue and
    loss of the direction with the higher rate.

    `backlog` counts packets. `loss` is the fraction of packets that were dropped or lost. A link
    without a configured rate has no queue; all its figures are None.
    """

    mbps_ab: float | None = None
    mbps_ba: float | None = None
    backlog: int | None = None
    loss: float | None = None

    @property
    def mbps(self) -> float | None:
        """The rate of the busier direction in Mb/s, or None if no rate was measured."""
        known = [rate for rate in (self.mbps_ab, self.mbps_ba) if rate is not None]
        return max(known, default=None)

    @classmethod
    def of(cls, ab: Direction, ba: Direction) -> LinkSample:
        busier = ba if ba.mbps > ab.mbps else ab
        return cls(ab.mbps, ba.mbps, busier.backlog, busier.loss)


@dataclass(frozen=True)
class UserSample:
    """The rate at which a user's applications receive data, and the user's position in m (None if
    the topology gives users no positions).

    `held_back_kb` is data that has arrived but cannot be read yet because earlier data is missing.
    It is the maximum in the interval, summed over connections.
    """

    mbps: float = 0.0
    x_m: float | None = None
    y_m: float | None = None
    held_back_kb: float | None = None


@dataclass(frozen=True)
class SubflowSample:
    """One subflow: the payload that it delivered, and the state of its sender.

    `cwnd` is in segments. `expected_mbps` is the rate that the controller expects (S-MPTCP), or
    None. `out_of_order` is the fraction of segments that arrived out of order. `user` is the
    subflow's user, and `ap` the access point or link of the user's interface; the simulator sets
    them only if users move.
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
    """One sample of the network, taken `t` s after the start of the run.

    The four mappings hold one sample for each access point (`ap`), link (`link`), user (`user`) and
    subflow (`sf`), by its ID. Rates are means over the interval since the frame before.
    `interval_s` is the length of this interval as an emulation measured it; None in a simulation,
    whose samples are never late. `computed` holds the figures that `lab.metrics`
    computes from the others, those of users' metrics too.
    """

    t: float
    ap: Mapping[str, ApSample] = field(default_factory=dict)
    link: Mapping[str, LinkSample] = field(default_factory=dict)
    user: Mapping[str, UserSample] = field(default_factory=dict)
    sf: Mapping[str, SubflowSample] = field(default_factory=dict)
    interval_s: float | None = None
    computed: Computed = field(default_factory=dict)

    def figure(self, of: str, owner: str, name: str) -> Any:
        """The figure at the path `of.owner.name`, such as `user.ue1.mbps`; None if there is none.

        `owner` is "" for figures of the whole run.
        """
        if name in (mine := self.computed.get(of, {}).get(owner, {})):
            return mine[name]
        return getattr((getattr(self, of, None) or {}).get(owner), name, None)

    def subflows_of(self, user: str) -> dict[str, SubflowSample]:
        """The subflows of a user's connections, by name (`ue1-1/2`: the second one of `ue1-1`)."""
        return {
            name: each
            for name, each in self.sf.items()
            if user == (each.user or name.rpartition("/")[0].rpartition("-")[0])
        }

    def in_scenario_units(self, rate_scale: float) -> Frame:
        """Divide every rate by `rate_scale`: rates on the wire become the rates of the scenario
        file."""
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
        """Return the JSON object of one line of samples.jsonl (docs/formats.md)."""
        measured = {} if self.interval_s is None else {"interval_s": self.interval_s}
        line: dict[str, Any] = {
            "t": self.t,
            **measured,
            "ap": {name: vars(each) for name, each in self.ap.items()},
            "link": {name: {"mbps": each.mbps} | vars(each) for name, each in self.link.items()},
            "user": {
                name: _without_none(each, "x_m", "y_m", "held_back_kb")
                for name, each in self.user.items()
            },
            "sf": {name: _without_none(each, "user", "ap") for name, each in self.sf.items()},
        }
        for of, owners in self.computed.items():
            if of == "run":
                line["run"] = owners[""]
            else:
                line[of] = {name: each | owners.get(name, {}) for name, each in line[of].items()}
        return line

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Frame:
        """The frame that a line of samples.jsonl describes. Unknown figures are in `computed`."""
        return cls(
            line["t"],
            {name: _known(ApSample, each) for name, each in line.get("ap", {}).items()},
            {name: _known(LinkSample, each) for name, each in line.get("link", {}).items()},
            {name: _known(UserSample, each) for name, each in line.get("user", {}).items()},
            {name: _known(SubflowSample, each) for name, each in line.get("sf", {}).items()},
            line.get("interval_s"),
            _computed(line),
        )


KINDS: dict[str, Any] = {
    "ap": ApSample,
    "link": LinkSample,
    "user": UserSample,
    "sf": SubflowSample,
}
PROPERTIES = {"mbps"}  # of a link, in a line


def _computed(line: Mapping[str, Any]) -> Computed:
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for of, kind in KINDS.items():
        known = kind.__dataclass_fields__.keys() | PROPERTIES
        for owner, figures in line.get(of, {}).items():
            if unknown := figures.keys() - known:
                mine = {name: figures[name] for name in figures if name in unknown}
                found.setdefault(of, {})[owner] = mine
    return found | ({"run": {"": line["run"]}} if "run" in line else {})


def _divided(sample: Any, rate_scale: float) -> Any:
    """Divide each rate of a sample by `rate_scale`. Fields with `mbps` in their name are rates."""
    rates = {
        name: round(value / rate_scale, DIGITS)
        for name, value in vars(sample).items()
        if "mbps" in name and value is not None
    }
    return replace(sample, **rates)


def _without_none(sample: Any, *optional: str) -> dict[str, Any]:
    """Return the fields of a sample, without those in `optional` that are None."""
    return {
        name: value
        for name, value in vars(sample).items()
        if not (name in optional and value is None)
    }


def _known(kind: Any, fields: Mapping[str, Any]) -> Any:
    """Make a sample of class `kind`. Unknown fields are ignored; missing ones become None."""
    empty = dict.fromkeys(name for name in kind.__dataclass_fields__)
    return kind(**(empty | {name: fields[name] for name in fields if name in empty}))
