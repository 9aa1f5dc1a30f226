"""The network as the topology file describes it (docs/formats.md, topology.json), checked as a whole before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from controller.errors import PlanRefused
from controller.observation import RECEIVE_BUFFER_BYTES, AccessPoint, Arc, Association, air
from controller.units import bps_from_mbps

Rate = Annotated[float, Field(gt=0)]
Milliseconds = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
UNSHAPED_BPS = 1_000_000_000  # what a link without a rate counts as


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Switch(_Part):
    dpid: Annotated[int, Field(ge=1)]
    ports: dict[str, str] = {}


class Shape(_Part):
    """What a link does: `delay_ms` is one way, `jitter_ms` the most it differs; `loss` from end `a` (of a host's link: from
    the switch) to the other, `loss_back` the other way."""

    rate_mbps: Rate | None = None
    delay_ms: Milliseconds = 0
    jitter_ms: Milliseconds = 0
    loss: Fraction = 0
    loss_back: Fraction = 0

    def arcs(self, link: str, a: str, b: str) -> Iterator[Arc]:
        """Its two directions; jitter is even between its bounds, so its standard deviation is smaller by the root of 3."""
        rate_bps = bps_from_mbps(self.rate_mbps) if self.rate_mbps else UNSHAPED_BPS
        delay_s, jitter_s = self.delay_ms / 1000, self.jitter_ms / 1000 / 3**0.5
        yield Arc(link, a, b, rate_bps, 0, delay_s, jitter_s, self.loss)
        yield Arc(link, b, a, rate_bps, 0, delay_s, jitter_s, self.loss_back)


class HostPort(Shape):
    """A host's interface and the port it ends at; address and MAC are learned when they are missing."""

    name: str
    switch: str
    port: str
    link: str = ""
    address: str | None = None
    further: tuple[str, ...] = ()
    mac: str | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """All that are known before anything is sent."""
        return (self.address, *self.further) if self.address else self.further


class Trunk(Shape):
    link: str
    a: str
    a_port: str
    b: str
    b_port: str


class PlannedStation(_Part):
    rate_mbps: Rate
    weight: Rate = 1.0


class PlannedAp(_Part):
    kind: Literal["wifi", "lte"]
    capacity_mbps: Annotated[float, Field(ge=0)]
    stations: dict[str, PlannedStation] = {}


class Plan(_Part):
    """Hold the whole file; every name it uses is one it defines.

    All rates are wire rates; a wire rate divided by `rate_scale` is in scenario units.
    """

    switches: dict[str, Switch]
    hosts: dict[str, tuple[HostPort, ...]] = {}
    trunks: tuple[Trunk, ...] = ()
    aps: dict[str, PlannedAp] = {}
    multipath: tuple[str, ...] = ()
    receive_buffer_kb: Annotated[int, Field(ge=1)] = RECEIVE_BUFFER_BYTES // 1000
    rate_scale: Rate = 1.0

    @model_validator(mode="after")
    def names_are_known(self) -> Plan:
        for doing, name, known in self._uses():
            if name not in known:
                raise ValueError(
                    f"{doing} '{name}', which is unknown: choose from {', '.join(sorted(known)) or 'none'}"
                )
        return self

    def _uses(self) -> list[tuple[str, str, dict[str, Any]]]:
        uses: list[tuple[str, str, dict[str, Any]]] = [
            ("multipath names", user, self.hosts) for user in self.multipath
        ]
        uses += [("aps names", ap, self.switches) for ap in self.aps]
        uses += [
            (f"aps.{ap}.stations names", user, self.hosts)
            for ap, line in self.aps.items()
            for user in line.stations
        ]
        uses += [
            (f"trunk '{each.link}' ends at", end, self.switches)
            for each in self.trunks
            for end in (each.a, each.b)
        ]
        uses += [
            (f"host {host} ends at", each.switch, self.switches)
            for host, ports in self.hosts.items()
            for each in ports
        ]
        return uses

    @property
    def names(self) -> dict[int, str]:
        """Switches by datapath id."""
        return {switch.dpid: name for name, switch in self.switches.items()}

    def trunk_ports(self, switch: str) -> dict[str, str]:
        """The ports of a switch that lead to another one, and to which."""
        towards = {each.a_port: each.b for each in self.trunks if each.a == switch}
        return towards | {each.b_port: each.a for each in self.trunks if each.b == switch}

    def access_points(self) -> tuple[AccessPoint, ...]:
        return tuple(
            AccessPoint(name, ap.kind, bps_from_mbps(ap.capacity_mbps))
            for name, ap in self.aps.items()
        )

    def arcs(self) -> tuple[Arc, ...]:
        """Every direction of every link, unused; a station hangs on the air of its access point (`Arc`)."""
        wires = [each.arcs(each.link, each.a, each.b) for each in self.trunks]
        for user, ports in self.hosts.items():
            for each in ports:
                station = (
                    self.aps[each.switch].stations.get(user) if each.switch in self.aps else None
                )
                shape, near = (
                    (Shape(rate_mbps=station.rate_mbps), air(each.switch))
                    if station
                    else (each, each.switch)
                )
                wires += [shape.arcs(each.link, near, address) for address in each.addresses]
        for name, ap in self.aps.items():
            wires.append(Shape(rate_mbps=ap.capacity_mbps or None).arcs(name, name, air(name)))
        return tuple(arc for both in wires for arc in both)

    def ap_of(self, host: str, address: str) -> str | None:
        """The access point at which a host has this address."""
        return next(
            (
                each.switch
                for each in self.hosts.get(host, ())
                if each.address == address and each.switch in self.aps
            ),
            None,
        )


@dataclass
class StationState:
    """What agents report about a station beyond the plan."""

    rate_bps: int | None = None
    rssi_dbm: float | None = None
    associated: bool = True


@dataclass
class Stations:
    """The latest report of every station, by (user, access point)."""

    states: dict[tuple[str, str], StationState] = field(default_factory=dict)

    def associations(
        self, plan: Plan, addresses: dict[tuple[str, str], tuple[str, ...]]
    ) -> tuple[Association, ...]:
        """Every station of the plan that is not reported as gone."""
        found = []
        for ap, line in plan.aps.items():
            for user, station in line.stations.items():
                state = self.states.get((user, ap), StationState())
                rate_bps = state.rate_bps or bps_from_mbps(station.rate_mbps)
                if state.associated:
                    own = addresses.get((user, ap), ())
                    found.append(
                        Association(user, ap, rate_bps, station.weight, own, state.rssi_dbm)
                    )
        return tuple(found)


def read(text: str, name: str = "topology.json") -> Plan:
    """The plan in a topology file, or `PlanRefused` naming what is wrong where."""
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PlanRefused(
            f"read {name}: {where + ': ' if where else ''}{first['msg']}. docs/formats.md shows the file"
        ) from error
