"""Build a WiFi access point and an LTE base station with one server (MP-SDN, section VI-A)."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from controller.units import bps_from_mbps, ns_from_ms
from lab.errors import unknown
from lab.radio import wmediumd
from lab.radio.cell import Cell, Station, Towards
from lab.topologies.parallel_paths import BinMs, Way
from lab.topologies.queue_keys import Queue
from lab.topologies.queues import red
from lab.topologies.topology import Bearer, Link, Node, OneWay, Topology
from lab.topologies.trace import Trace, Traced, check_station, read

KINDS = ("wifi", "lte")
TOWARDS: tuple[Towards, Towards] = ("down", "up")
NO_BEARER = {
    key: f"LTE {does} (RLC). Give it to a link of kind nodes_and_links or parallel_paths"
    for key, does in {
        "reorder": "delivers packets in their order",
        "duplicate": "delivers each packet once",
    }.items()
}
NO_WIFI = {
    "delay_ms": "the stations of an access point have one delay: write wifi_delay_ms",
    "loss": "a lost frame is sent again, so its station is slower: write a lower rate_mbps",
    "queue": "it is known when a frame leaves as soon as it arrives, so none is dropped later: "
    "leave it out. LTE (lte_queue) and links have queues of other kinds",
    "queue_packets": "the stations of an access point share one buffer: write wifi_queue_packets",
    "reorder": "WiFi delivers frames in their order: leave it out",
    "duplicate": "WiFi delivers each frame once: leave it out",
}
STANDARD = "11n5"  # of the WiFi cell with air "dcf"; its stations have rates above those of 802.11a
Rate = Annotated[float, Field(gt=0, le=10_000)]
Delay = Annotated[float, Field(ge=0, le=5_000)]


class User(BaseModel):
    """A user, the access point that the user is near, and the user's rates on WiFi and LTE.

    `near` is "wifi" or "lte". `wifi_mbps` and `lte_mbps` are the rates of a user that is alone in
    the cell; they can follow the files `wifi_trace` and `lte_trace` instead. `lte_weight` is the
    user's LTE resource weight (MP-SDN, eq (3)).

    `down` is the direction towards the user, `up` the other one. Each has the rate of the station
    unless it has its own. LTE gives each station two queues (bearers), of the kind `lte_queue`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str
    near: str = Field("wifi", pattern="^(wifi|lte)$")
    wifi_mbps: Rate | None = None
    lte_mbps: Rate | None = None
    lte_weight: Annotated[float, Field(gt=0, le=10)] = 1.0
    wifi_trace: pathlib.Path | None = None
    lte_trace: pathlib.Path | None = None
    trace_bin_ms: BinMs = 100
    wifi_up: Way | None = None
    wifi_down: Way | None = None
    lte_up: Way | None = None
    lte_down: Way | None = None
    lte_queue: Queue | None = None

    @model_validator(mode="after")
    def directions_fit(self) -> User:
        for kind in KINDS:
            for towards in TOWARDS:
                if way := self.way(kind, towards):
                    check_way(f"{kind}_{towards}", way)
                    if not self.reaches(kind):
                        raise ValueError(f"{kind}_{towards}: write {kind}_mbps, too")
        if self.lte_queue and not self.reaches("lte"):
            raise ValueError("lte_queue: write lte_mbps, too")
        return self

    @model_validator(mode="after")
    def traces_are_rates(self) -> User:
        for kind in KINDS:
            trace = self.trace(kind)
            if trace and getattr(self, f"{kind}_mbps") is not None:
                raise ValueError(f"{kind}_mbps: {kind}_trace has the rate: leave out {kind}_mbps")
            if trace:
                check_station(trace, f"{kind}_trace")
        return self

    @model_validator(mode="after")
    def reaches_its_own(self) -> User:
        if not self.reaches(self.near):
            raise ValueError(
                f"user '{self.id}' is near {self.near} but has no {self.near}_mbps: add it"
            )
        return self

    def trace(self, kind: str) -> Trace | None:
        path: pathlib.Path | None = getattr(self, f"{kind}_trace")
        return read(path, self.trace_bin_ms) if path else None

    def way(self, kind: str, towards: str) -> Way | None:
        found: Way | None = getattr(self, f"{kind}_{towards}")
        return found

    def traced(self, kind: str) -> dict[str, Trace]:
        """Return the traces of a station: of all directions that have no rate of their own ("" if
        both have none), and of those with one of their own."""
        ways = {towards: self.way(kind, towards) or Way() for towards in TOWARDS}
        found: dict[str, Trace] = {}
        found |= {each: own for each, way in ways.items() if (own := way.read_trace())}
        if trace := self.trace(kind):
            others: list[str] = [towards for towards, way in ways.items() if not way.has_a_rate]
            found |= dict.fromkeys(others if len(others) < len(ways) else [""], trace)
        return found

    def reaches(self, kind: str) -> bool:
        return any(getattr(self, f"{kind}_{each}") is not None for each in ("mbps", "trace"))

    def rate_bps(self, kind: str, rate_scale: float) -> int:
        """Return the rate on the wire at the start."""
        if trace := self.trace(kind):
            return trace.steps[0].rate_bps(rate_scale) or 0
        return bps_from_mbps(getattr(self, f"{kind}_mbps") * rate_scale)

    def station(self, kind: str, rate_scale: float) -> Station:
        weight = 1.0 if kind == "wifi" else self.lte_weight
        found = Station(self.id, self.rate_bps(kind, rate_scale), weight)
        for towards in TOWARDS:
            own = (self.way(kind, towards) or Way()).one_way(rate_scale).rate_bps
            if own is not None:
                found = found.with_rate(own, [towards])
        return found


def check_way(name: str, way: Way) -> None:
    """Raise `ValueError` if one direction of a station has a key that radio channels lack."""
    refused = NO_BEARER if name.startswith("lte") else NO_WIFI
    for key, reason in refused.items():
        if getattr(way, key) is not None:
            raise ValueError(f"{name}.{key}: {reason}")
    if trace := way.read_trace():
        check_station(trace, f"{name}.trace")


class Params(BaseModel):
    """The parameters of a topology with `kind: wifi_lte`. Delays are one way.

    Rates count whole Ethernet frames. `multipath` names the users that are on both WiFi and LTE.
    `air` selects the model of the WiFi channel. "dcf" goes access by access (`lab.radio.dcf`).
    "cell" gives each frame its mean airtime, as MP-SDN's equations do. "wmediumd" is the program
    wmediumd (`lab.radio.wmediumd`), which only the emulation can use; `wifi_queue_packets` then has
    no effect.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    users: tuple[User, ...] = Field(min_length=1)
    multipath: tuple[str, ...] = ()
    wifi_delay_ms: Delay = 5
    lte_delay_ms: Delay = 20
    lte_jitter_ms: Delay = 2
    wifi_queue_packets: Annotated[int, Field(ge=100, le=10_000)] = 150
    lte_queue_packets: Annotated[int, Field(ge=100, le=10_000)] = 200
    air: Literal["cell", "dcf", "wmediumd"] = "dcf"

    @model_validator(mode="after")
    def multipath_users_reach_both(self) -> Params:
        known = {user.id: user for user in self.users}
        for name in self.multipath:
            if name not in known:
                raise ValueError(f"multipath user {unknown(name, known)}")
            if not all(map(known[name].reaches, KINDS)):
                raise ValueError(f"multipath user '{name}' needs both wifi_mbps and lte_mbps")
        return self

    @model_validator(mode="after")
    def wmediumd_has_its_own_rates(self) -> Params:
        for key in ("wifi_trace", "wifi_up", "wifi_down"):
            if self.air == "wmediumd" and any(getattr(user, key) for user in self.users):
                raise ValueError(f"{key}: air 'wmediumd' keeps the rates of WiFi. Choose air: dcf")
        return self

    @model_validator(mode="after")
    def bearers_can_be(self) -> Params:
        for user in self.users:
            for towards in TOWARDS if user.reaches("lte") else ():
                own = self.bearer(user, towards)
                if own.delay_ns is not None and own.delay_ns < 0:
                    raise ValueError(
                        f"lte_{towards}.delay_ms of '{user.id}' is below lte_delay_ms "
                        f"{self.lte_delay_ms:g}, which all have: lower lte_delay_ms"
                    )
                if own.discipline and own.discipline.kind == "red":
                    red(own.discipline, own.queue_packets or self.lte_queue_packets)
        return self

    def bearer(self, user: User, towards: Towards) -> OneWay:
        """Return what the queue of a user's LTE station has of its own, the rate apart."""
        own = (user.way("lte", towards) or Way()).one_way(1)
        both = user.lte_queue
        delay_ns = None if own.delay_ns is None else own.delay_ns - ns_from_ms(self.lte_delay_ms)
        return OneWay(
            delay_ns=delay_ns,
            loss_ppm=own.loss_ppm,
            queue_packets=own.queue_packets or (both.packets if both else None),
            discipline=own.discipline or (both.discipline() if both else None),
            bursts=own.bursts,
        )

    @model_validator(mode="after")
    def wmediumd_carries_its_stations(self) -> Params:
        count = sum(user.near == "wifi" or user.id in self.multipath for user in self.users)
        if self.air == "wmediumd" and count > wmediumd.MAX_STATIONS:
            raise ValueError(
                f"air 'wmediumd' is for at most {wmediumd.MAX_STATIONS} WiFi stations, not {count}:"
                " it handles each frame in user space. Choose air: dcf"
            )
        return self


def build(params: Params, rate_scale: float = 1.0) -> Topology:
    """Return a network with users on WiFi (~) and users on LTE (|).

    A multipath user is on both, as ue2 and ue3 in the figure.

    ue1   ue2   ue3   ue4
      ~   ~ |   ~ |   |
      ~   ~ +---~-+---+
      ~   ~     ~     |
      wifi1 ~~~~~    lte1
          \\          /
           +-- s1 --+
               |
              srv1
    """
    nodes = [Node(user.id, "user", f"{user.near}1") for user in params.users]
    nodes += [
        Node("wifi1", "wifi"),
        Node("lte1", "lte"),
        Node("s1", "switch"),
        Node("srv1", "server"),
    ]
    links = (Link("server", "s1", "srv1"), Link("wifi", "s1", "wifi1"), Link("lte", "s1", "lte1"))
    return Topology(
        "wifi_lte",
        tuple(nodes),
        links,
        cells(params, rate_scale),
        params.multipath,
        traces=traces(params),
        bearers=bearers(params),
    )


def is_on(params: Params, user: User, kind: str) -> bool:
    return user.reaches(kind) and (user.near == kind or user.id in params.multipath)


def traces(params: Params) -> tuple[Traced, ...]:
    return tuple(
        Traced(f"cell.{kind}1.{user.id}{towards and '.'}{towards}", trace)
        for user in params.users
        for kind in KINDS
        if is_on(params, user, kind)
        for towards, trace in user.traced(kind).items()
    )


def bearers(params: Params) -> tuple[Bearer, ...]:
    return tuple(
        Bearer("lte1", user.id, towards, own)
        for user in params.users
        if is_on(params, user, "lte")
        for towards in TOWARDS
        if (own := params.bearer(user, towards)) != OneWay()
    )


def cells(params: Params, rate_scale: float) -> tuple[Cell, Cell]:
    """Return the WiFi cell and the LTE cell, in this order.

    The stations of a cell are the users near its access point, and all multipath users. wmediumd
    has only certain rates: with it, a WiFi station gets the rate that is nearest to its
    `wifi_mbps`.
    """

    def stations(kind: str) -> tuple[Station, ...]:
        return tuple(
            user.station(kind, rate_scale) for user in params.users if is_on(params, user, kind)
        )

    on_wifi = stations("wifi")
    if params.air == "wmediumd":
        phy_rates = wmediumd.phy_rates(each.rate_bps for each in on_wifi)
        on_wifi = tuple(
            replace(each, rate_bps=wmediumd.rate_bps(phy_mbps))
            for each, phy_mbps in zip(on_wifi, phy_rates, strict=True)
        )

    return (
        Cell(
            "wifi1",
            "wifi",
            on_wifi,
            params.wifi_queue_packets,
            ns_from_ms(params.wifi_delay_ms),
            air=params.air,
            standard=STANDARD,
            rate_scale=rate_scale,
        ),
        Cell(
            "lte1",
            "lte",
            stations("lte"),
            params.lte_queue_packets,
            ns_from_ms(params.lte_delay_ms),
            ns_from_ms(params.lte_jitter_ms),
        ),
    )
