"""A frame: one sample of a running network, written as one line of samples.jsonl. Both engines (the
emulation and the simulator) fill in the same fields.

Unless a field says otherwise, a number is the mean over the interval that ends at the frame's time
`t`. Rates are Mb/s of received payload. Engines measure rates on the wire; before a rate is
recorded, it is divided by the scenario's `rate_scale` (`Frame.in_scenario_units`). A number that
was not measured is None, never zero.

Tier 1 is the traffic over a user's primary access point or link. Tier 2 is the traffic over the
user's other access points or links (MP-SDN).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DIGITS = 4  # of a rate in samples.jsonl
Computed = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by kind of owner, its ID, and name


@dataclass(frozen=True)
class ApSample:
    """One access point.

    `tier1_mbps` and `tier2_mbps` are the rates of received payload on primary subflows (Tier 1) and
    on secondary subflows (Tier 2). `mac_occupancy` says how busy the access point is, from 0 to 1
    (full). `meter_mbps` is the limit that an OpenFlow meter sets on Tier 2; None means no limit.
    `stations` is the number of users at the access point.
    """

    tier1_mbps: float | None = 0.0
    tier2_mbps: float | None = 0.0
    mac_occupancy: float | None = None
    meter_mbps: float | None = None
    stations: int = 0


@dataclass(frozen=True)
class Direction:
    """One direction of a link: the rate in Mb/s with Ethernet headers (`mbps`), the number of
    packets in the queue (`backlog`), and the fraction of packets that were lost (`loss`)."""

    mbps: float
    backlog: int
    loss: float

    @classmethod
    def of(
        cls, sent_bytes: int, sent_packets: int, dropped: int, backlog: int, elapsed_s: float
    ) -> Direction:
        """Compute rate and loss from counts over the last `elapsed_s` seconds.

        `backlog` is the number of packets in the queue now.
        """
        rate = max(0, sent_bytes) * 8e-6 / elapsed_s if elapsed_s else 0.0
        offered = sent_packets + dropped
        return cls(round(rate, DIGITS), backlog, round(dropped / offered, 5) if offered else 0.0)


@dataclass(frozen=True)
class LinkSample:
    """One link: the rates in both directions, and the queue and the loss of the faster direction.

    Rates are Mb/s with Ethernet headers; `ab` is the direction from the link's first end to its
    second end. `backlog` counts the packets in the queue. `loss` is the fraction of packets that
    were dropped or lost. All fields are None for a link without a configured rate.
    """

    mbps_ab: float | None = None
    mbps_ba: float | None = None
    backlog: int | None = None
    loss: float | None = None

    @property
    def mbps(self) -> float | None:
        """The rate of the faster direction in Mb/s, or None if no rate was measured."""
        known = [rate for rate in (self.mbps_ab, self.mbps_ba) if rate is not None]
        return max(known, default=None)

    @classmethod
    def of(cls, ab: Direction, ba: Direction) -> LinkSample:
        busier = ba if ba.mbps > ab.mbps else ab
        return cls(ab.mbps, ba.mbps, busier.backlog, busier.loss)


@dataclass(frozen=True)
class UserSample:
    """The rate at which a user's applications receive data, and the user's position in m.

    The position is None if the topology gives users no positions. `held_back_kb` is out-of-order
    data: it has arrived but cannot be read yet, because earlier data is missing. The number is the
    largest in the interval, summed over the user's connections. `waited_s`, `mos` and `stalled` are
    what the user notices (`lab.run.felt`).
    """

    mbps: float = 0.0
    x_m: float | None = None
    y_m: float | None = None
    held_back_kb: float | None = None
    waited_s: float | None = None
    mos: float | None = None
    stalled: float | None = None


@dataclass(frozen=True)
class SubflowSample:
    """One subflow: the rate of the payload that it delivered, and the state of its sender.

    `cwnd` is in segments. `tier` is 1 for a primary and 2 for a secondary subflow (MP-SDN).
    `backup` is the MPTCP backup flag. `expected_mbps` is the rate that the SDN controller expects
    of the subflow (S-MPTCP), or None. `out_of_order` is the fraction of segments that arrived out
    of order. `user` is the subflow's user, and `ap` is the access point or link of the user's
    interface; the simulator sets `user` and `ap` only if users move.
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

    Four mappings from IDs to samples hold the access points (`ap`), links (`link`), users (`user`)
    and subflows (`sf`). Rates are means over the interval since the previous frame. `interval_s` is
    the length of this interval as an emulation measured it; it is None in a simulation, whose
    samples are never late. `computed` has the numbers that metrics, users' own included, compute
    from the other fields (`lab.metrics`).
    """

    t: float
    ap: Mapping[str, ApSample] = field(default_factory=dict)
    link: Mapping[str, LinkSample] = field(default_factory=dict)
    user: Mapping[str, UserSample] = field(default_factory=dict)
    sf: Mapping[str, SubflowSample] = field(default_factory=dict)
    interval_s: float | None = None
    computed: Computed = field(default_factory=dict)

    def figure(self, of: str, owner: str, name: str) -> Any:
        """Return the number with the path `of.owner.name`, such as `user.ue1.mbps`.

        `of` is "ap", "link", "user", "sf" or "run", and `owner` an ID. For a number of the whole
        run, `of` is "run" and `owner` is "". Return None if the frame does not have the number.
        """
        if name in (mine := self.computed.get(of, {}).get(owner, {})):
            return mine[name]
        return getattr((getattr(self, of, None) or {}).get(owner), name, None)

    def subflows_of(self, user: str) -> dict[str, SubflowSample]:
        """Return the subflows of a user's connections, by name.

        `ue1-1/2` is the second subflow of `ue1-1`, the first connection of user ue1.
        """
        return {
            name: each
            for name, each in self.sf.items()
            if user == (each.user or name.rpartition("/")[0].rpartition("-")[0])
        }

    def in_scenario_units(self, rate_scale: float) -> Frame:
        """Return a copy with every rate divided by `rate_scale`.

        This converts rates on the wire to the rates of the scenario file.
        """
        if rate_scale == 1:
            return self
        return replace(
            self,
            ap={name: _divided(each, rate_scale) for name, each in self.ap.items()},
            link={name: _divided(each, rate_scale) for name, each in self.link.items()},
            user={name: _divided(each, rate_scale) for name, each in self.user.items()},
            sf={name: _divided(each, rate_scale) for name, each in self.sf.items()},
        )

    def sharing(self, previous: Frame) -> Frame:
        """Return an equal frame that has the objects of `previous` where names and samples of
        subflows are equal. So the many subflows of a long run that have ended need little memory.
        """
        names = {name: name for name in previous.sf}
        subflows = {
            names.get(name, name): before if (before := previous.sf.get(name)) == each else each
            for name, each in self.sf.items()
        }
        return replace(self, sf=subflows)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of one line of samples.jsonl (docs/formats.md)."""
        measured = {} if self.interval_s is None else {"interval_s": self.interval_s}
        line: dict[str, Any] = {
            "t": self.t,
            **measured,
            "ap": {name: vars(each) for name, each in self.ap.items()},
            "link": {name: {"mbps": each.mbps} | vars(each) for name, each in self.link.items()},
            "user": {name: _without_none(each, *OPTIONAL) for name, each in self.user.items()},
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
        """Return the frame in a line of samples.jsonl. Numbers of unknown name are kept in
        `computed`."""
        return cls(
            line["t"],
            {name: _known(ApSample, each) for name, each in line.get("ap", {}).items()},
            {name: _known(LinkSample, each) for name, each in line.get("link", {}).items()},
            {name: _known(UserSample, each) for name, each in line.get("user", {}).items()},
            {name: _known(SubflowSample, each) for name, each in line.get("sf", {}).items()},
            line.get("interval_s"),
            _computed(line),
        )


# Fields of a user's sample that a line has only where they were measured
OPTIONAL = ("x_m", "y_m", "held_back_kb", "waited_s", "mos", "stalled")
KINDS: dict[str, Any] = {
    "ap": ApSample,
    "link": LinkSample,
    "user": UserSample,
    "sf": SubflowSample,
}
PROPERTIES = {"mbps"}  # in a line, a link has this key, which is no field of `LinkSample`


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
    """Return a copy of a sample with each rate divided by `rate_scale`.

    The fields with `mbps` in their name are the rates.
    """
    rates = {
        name: round(value / rate_scale, DIGITS)
        for name, value in vars(sample).items()
        if "mbps" in name and value is not None
    }
    return replace(sample, **rates)


def _without_none(sample: Any, *optional: str) -> dict[str, Any]:
    """Return the fields of a sample, except those that are named in `optional` and are None."""
    return {
        name: value
        for name, value in vars(sample).items()
        if not (name in optional and value is None)
    }


def _known(kind: Any, fields: Mapping[str, Any]) -> Any:
    """Return a sample of class `kind`. Unknown fields are ignored; missing fields become None."""
    empty = dict.fromkeys(name for name in kind.__dataclass_fields__)
    return kind(**(empty | {name: fields[name] for name in fields if name in empty}))
