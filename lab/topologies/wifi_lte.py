"""Build a WiFi access point and an LTE base station with one server (MP-SDN, section VI-A)."""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from controller.units import bps_from_mbps, ns_from_ms
from lab.errors import unknown
from lab.radio import wmediumd
from lab.radio.cell import Cell, Station
from lab.topologies.parallel_paths import BinMs
from lab.topologies.topology import Link, Node, Topology
from lab.topologies.trace import Trace, Traced, check_station, read

KINDS = ("wifi", "lte")
STANDARD = "11n5"  # of the WiFi cell with air "dcf"; its stations have rates above those of 802.11a
Rate = Annotated[float, Field(gt=0, le=10_000)]
Delay = Annotated[float, Field(ge=0, le=5_000)]


class User(BaseModel):
    """A user, the access point that the user is near, and the user's rates on WiFi and LTE.

    `near` is "wifi" or "lte". `wifi_mbps` and `lte_mbps` are the rates of a user that is alone in
    the cell; they can follow the files `wifi_trace` and `lte_trace` instead. `lte_weight` is the
    user's LTE resource weight (MP-SDN, eq (3)).
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

    def reaches(self, kind: str) -> bool:
        return any(getattr(self, f"{kind}_{each}") is not None for each in ("mbps", "trace"))

    def rate_bps(self, kind: str, rate_scale: float) -> int:
        """Return the rate on the wire at the start."""
        if trace := self.trace(kind):
            return trace.steps[0].rate_bps(rate_scale) or 0
        return bps_from_mbps(getattr(self, f"{kind}_mbps") * rate_scale)


class Params(BaseModel):
    """The parameters of a topology with `kind: wifi_lte`. Delays are one way.

    Rates count whole Ethernet frames. `multipath` names the users that are on both WiFi and LTE.
    `air` selects the model of the WiFi channel. "cell" is a virtual clock. "dcf" goes access by
    access (`lab.radio.dcf`), which only the simulator can do. "wmediumd" is the program wmediumd
    (`lab.radio.wmediumd`), which only the emulation can use; `wifi_queue_packets` then has no
    effect.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    users: tuple[User, ...] = Field(min_length=1)
    multipath: tuple[str, ...] = ()
    wifi_delay_ms: Delay = 5
    lte_delay_ms: Delay = 20
    lte_jitter_ms: Delay = 2
    wifi_queue_packets: Annotated[int, Field(ge=100, le=10_000)] = 150
    lte_queue_packets: Annotated[int, Field(ge=100, le=10_000)] = 200
    air: Literal["cell", "dcf", "wmediumd"] = "cell"

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
        if self.air == "wmediumd" and any(user.wifi_trace for user in self.users):
            raise ValueError("wifi_trace: air 'wmediumd' keeps the rates of WiFi. Choose air: cell")
        return self

    @model_validator(mode="after")
    def wmediumd_carries_its_stations(self) -> Params:
        count = sum(user.near == "wifi" or user.id in self.multipath for user in self.users)
        if self.air == "wmediumd" and count > wmediumd.MAX_STATIONS:
            raise ValueError(
                f"air 'wmediumd' is for at most {wmediumd.MAX_STATIONS} WiFi stations, not {count}:"
                " it handles each frame in user space. Choose air: cell"
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
    )


def is_on(params: Params, user: User, kind: str) -> bool:
    return user.reaches(kind) and (user.near == kind or user.id in params.multipath)


def traces(params: Params) -> tuple[Traced, ...]:
    return tuple(
        Traced(f"cell.{kind}1.{user.id}", trace)
        for user in params.users
        for kind in KINDS
        if is_on(params, user, kind) and (trace := user.trace(kind))
    )


def cells(params: Params, rate_scale: float) -> tuple[Cell, Cell]:
    """Return the WiFi cell and the LTE cell, in this order.

    The stations of a cell are the users near its access point, and all multipath users. wmediumd
    has only certain rates: with it, a WiFi station gets the rate that is nearest to its
    `wifi_mbps`.
    """

    def stations(kind: str) -> tuple[Station, ...]:
        found = []
        for user in params.users:
            weight = 1.0 if kind == "wifi" else user.lte_weight
            if is_on(params, user, kind):
                found.append(Station(user.id, user.rate_bps(kind, rate_scale), weight))
        return tuple(found)

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
