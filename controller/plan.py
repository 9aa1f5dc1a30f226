"""Read the network from topology.json (docs/formats.md), and check it before anything starts."""

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
UNSHAPED_BPS = 1_000_000_000  # the capacity of a link without a rate


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Switch(_Part):
    """Describe a switch; `ports` maps a neighbouring switch to the port that leads to it."""

    dpid: Annotated[int, Field(ge=1)]
    ports: dict[str, str] = {}


class Shape(_Part):
    """Describe what a link does.

    `delay_ms` is one way; `jitter_ms` is the largest deviation from it. `loss` acts from end `a` to
    `b`, on a host's link from the switch to the host; `loss_back` acts in the other direction.
    """

    rate_mbps: Rate | None = None
    delay_ms: Milliseconds = 0
    jitter_ms: Milliseconds = 0
    loss: Fraction = 0
    loss_back: Fraction = 0

    def arcs(self, link: str, a: str, b: str) -> Iterator[Arc]:
        """Return both directions of the link.

        Jitter is uniform between its bounds, so its standard deviation is `jitter_ms` / sqrt(3).
        """
        rate_bps = bps_from_mbps(self.rate_mbps) if self.rate_mbps else UNSHAPED_BPS
        delay_s, jitter_s = self.delay_ms / 1000, self.jitter_ms / 1000 / 3**0.5
        yield Arc(link, a, b, rate_bps, 0, delay_s, jitter_s, self.loss)
        yield Arc(link, b, a, rate_bps, 0, delay_s, jitter_s, self.loss_back)


class HostPort(Shape):
    """Describe a host's interface and its switch port; a missing address or MAC is learned."""

    name: str
    switch: str
    port: str
    link: str = ""
    address: str | None = None
    further: tuple[str, ...] = ()
    mac: str | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return all addresses that are known at the start."""
        return (self.address, *self.further) if self.address else self.further


class Trunk(Shape):
    """Describe a link between two switches."""

    link: str
    a: str
    a_port: str
    b: str
    b_port: str


class PlannedStation(_Part):
    """Describe a station: its rate when alone, and its LTE resource weight."""

    rate_mbps: Rate
    weight: Rate = 1.0


class PlannedAp(_Part):
    """Describe an access point and its stations by user."""

    kind: Literal["wifi", "lte"]
    capacity_mbps: Annotated[float, Field(ge=0)]
    stations: dict[str, PlannedStation] = {}


class Plan(_Part):
    """Hold the whole file; every name in it is checked.

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
        """Check that every name that is used is defined."""
        for doing, name, known in self._uses():
            if name not in known:
                choice = ", ".join(sorted(known)) or "none"
                raise ValueError(f"{doing} '{name}', which is unknown: choose from {choice}")
        return self

    def _uses(self) -> list[tuple[str, str, dict[str, Any]]]:
        uses: list[tuple[str, str, dict[str, Any]]] = [
            ("multipath names", user, self.hosts) for user in self.multipath
        ]
        uses += [("aps names", ap, self.switches) for ap in self.aps]
        uses += [
            (f"aps.{ap}.stations names", user, self.hosts)
            for ap, planned in self.aps.items()
            for user in planned.stations
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
        """Return the switch names by datapath id."""
        return {switch.dpid: name for name, switch in self.switches.items()}

    def trunk_ports(self, switch: str) -> dict[str, str]:
        """Return the ports of a switch that lead to another switch, and that switch."""
        towards = {each.a_port: each.b for each in self.trunks if each.a == switch}
        return towards | {each.b_port: each.a for each in self.trunks if each.b == switch}

    def access_points(self) -> tuple[AccessPoint, ...]:
        """Return the access points as a strategy observes them, without measurements."""
        return tuple(
            AccessPoint(name, ap.kind, bps_from_mbps(ap.capacity_mbps))
            for name, ap in self.aps.items()
        )

    def arcs(self) -> tuple[Arc, ...]:
        """Return both directions of every link; stations are behind the air (`Arc`)."""
        pairs = [each.arcs(each.link, each.a, each.b) for each in self.trunks]
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
                pairs += [shape.arcs(each.link, near, address) for address in each.addresses]
        for name, ap in self.aps.items():
            pairs.append(Shape(rate_mbps=ap.capacity_mbps or None).arcs(name, name, air(name)))
        return tuple(arc for both in pairs for arc in both)

    def ap_of(self, host: str, address: str) -> str | None:
        """Return the access point at which a host has this address, None if at none."""
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
    """Hold what AP agents report of a station, beyond the plan."""

    rate_bps: int | None = None
    rssi_dbm: float | None = None
    associated: bool = True


@dataclass
class Stations:
    """Hold the latest report of every station, by (user, access point)."""

    states: dict[tuple[str, str], StationState] = field(default_factory=dict)

    def associations(
        self, plan: Plan, addresses: dict[tuple[str, str], tuple[str, ...]]
    ) -> tuple[Association, ...]:
        """Return every station of the plan that is not reported as gone."""
        found = []
        for ap, planned in plan.aps.items():
            for user, station in planned.stations.items():
                state = self.states.get((user, ap), StationState())
                rate_bps = state.rate_bps or bps_from_mbps(station.rate_mbps)
                if state.associated:
                    own = addresses.get((user, ap), ())
                    found.append(
                        Association(user, ap, rate_bps, station.weight, own, state.rssi_dbm)
                    )
        return tuple(found)


def read(text: str, name: str = "topology.json") -> Plan:
    """Return the plan in a topology file; raise `PlanRefused` that names the wrong key."""
    try:
        return Plan.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}." for part in first["loc"])[:-1]
        text = f"{where}: {first['msg']}" if where else first["msg"]
        raise PlanRefused(f"read {name}: {text}. docs/formats.md shows the file") from error
