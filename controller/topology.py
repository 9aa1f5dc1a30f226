"""Read the network from topology.json (docs/formats.md) and check it before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from controller.errors import TopologyRefused
from controller.observation import RECEIVE_BUFFER_BYTES, AccessPoint, ApKind, Arc, air
from controller.units import bps_from_mbps

Direction = Literal["down", "up"]
Rate = Annotated[float, Field(gt=0)]
Milliseconds = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
UNSHAPED_BPS = 1_000_000_000  # the capacity of a link without a rate


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Switch(_Part):
    """A switch with its OpenFlow datapath id.

    `ports` maps the name of each neighbouring switch to the name of the port towards it.
    """

    dpid: Annotated[int, Field(ge=1)]
    ports: dict[str, str] = {}


class Shape(_Part):
    """Rate, delay, jitter and loss of a link.

    If `rate_mbps` is None, the rate is not limited. `delay_ms` is the one-way delay, and
    `jitter_ms` the largest deviation from it. `loss` is the fraction of packets lost from end `a`
    of the link to end `b`, and `loss_back` the fraction lost from `b` to `a`. On the link of a
    host, `a` is the switch. `rate_back_mbps` and `delay_back_ms` are for the direction from `b` to
    `a` if it differs.
    """

    rate_mbps: Rate | None = None
    delay_ms: Milliseconds = 0
    jitter_ms: Milliseconds = 0
    loss: Fraction = 0
    loss_back: Fraction = 0
    rate_back_mbps: Rate | None = None
    delay_back_ms: Milliseconds | None = None

    def arcs(self, link: str, a: str, b: str) -> Iterator[Arc]:
        """Yield both directions of the link `link`: from node `a` to node `b`, then back.

        Jitter is uniform between its bounds, so its standard deviation is `jitter_ms` / sqrt(3).
        """
        rate_bps = bps_from_mbps(self.rate_mbps) if self.rate_mbps else UNSHAPED_BPS
        back_bps = bps_from_mbps(self.rate_back_mbps) if self.rate_back_mbps else rate_bps
        back_ms = self.delay_ms if self.delay_back_ms is None else self.delay_back_ms
        jitter_s = self.jitter_ms / 1000 / 3**0.5
        yield Arc(link, a, b, rate_bps, 0, self.delay_ms / 1000, jitter_s, self.loss)
        yield Arc(link, b, a, back_bps, 0, back_ms / 1000, jitter_s, self.loss_back)


class HostPort(Shape):
    """An interface of a host, with the switch and the port to which it is connected.

    `address` is the first address of the interface, and `further` lists all others. If the topology
    file has no IP or MAC address for the interface, the controller learns it from the first
    packets.
    """

    name: str
    switch: str
    port: str
    link: str = ""
    address: str | None = None
    further: tuple[str, ...] = ()
    mac: str | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.address, *self.further) if self.address else self.further


class Trunk(Shape):
    """A link between two switches, with the port at each end."""

    link: str
    a: str
    a_port: str
    b: str
    b_port: str


class StationEntry(_Part):
    """A user's station at an access point.

    `rate_mbps` is the rate that the station gets if no other station sends. `weight` is its LTE
    resource weight (MP-SDN, eq (3)).
    """

    rate_mbps: Rate
    weight: Rate = 1.0


class ApEntry(_Part):
    """An access point; `stations` maps each user to the user's station.

    `capacity_mbps` is the rate of the fastest station if no other station sends; 0 means no limit.
    `port` is the switch port for stations that move here. It is empty if no station can move here.
    `is_measured` is False if nothing measures the MAC occupancy.
    """

    kind: ApKind
    capacity_mbps: Annotated[float, Field(ge=0)]
    stations: dict[str, StationEntry] = {}
    port: str = ""
    is_measured: bool = True


class Topology(_Part):
    """The content of topology.json. The constructor checks every name that occurs in it.

    `multipath` names the hosts that use MPTCP. `data` maps a host to the directions of its data;
    the default is only "down". All rates are rates on the wire: those of the scenario file times
    `rate_scale`.
    """

    switches: dict[str, Switch]
    hosts: dict[str, tuple[HostPort, ...]] = {}
    trunks: tuple[Trunk, ...] = ()
    aps: dict[str, ApEntry] = {}
    multipath: tuple[str, ...] = ()
    data: dict[str, tuple[Direction, ...]] = {}
    receive_buffer_kb: Annotated[int, Field(ge=1)] = RECEIVE_BUFFER_BYTES // 1000
    rate_scale: Rate = 1.0

    @model_validator(mode="after")
    def names_are_known(self) -> Topology:
        """Raise `ValueError` if a switch or host is named but not defined."""
        for doing, name, known in self._uses():
            if name not in known:
                choice = ", ".join(sorted(known)) or "none"
                raise ValueError(f"{doing} '{name}', which is unknown: choose from {choice}")
        return self

    def _uses(self) -> list[tuple[str, str, dict[str, Any]]]:
        uses: list[tuple[str, str, dict[str, Any]]] = [
            ("multipath names", user, self.hosts) for user in self.multipath
        ]
        uses += [("data names", user, self.hosts) for user in self.data]
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

    def data_directions(self, user: str) -> tuple[Direction, ...]:
        """Return the directions of the data of `user`.

        "down" is data that the user receives, and "up" is data that the user sends.
        """
        return self.data.get(user, ("down",))

    @property
    def names(self) -> dict[int, str]:
        return {switch.dpid: name for name, switch in self.switches.items()}

    def trunk_ports(self, switch: str) -> dict[str, str]:
        """Map each port of `switch` that leads to another switch to the name of that switch."""
        towards = {each.a_port: each.b for each in self.trunks if each.a == switch}
        return towards | {each.b_port: each.a for each in self.trunks if each.b == switch}

    def access_points(self) -> tuple[AccessPoint, ...]:
        return tuple(
            AccessPoint(name, ap.kind, bps_from_mbps(ap.capacity_mbps))
            for name, ap in self.aps.items()
        )

    def arcs(self) -> tuple[Arc, ...]:
        """Return both directions of every link of the network.

        The radio channel of an access point is a node of its own. It lies between the switch of the
        access point and the stations.
        """
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

    def left_by(self, user: str, ap: str) -> str | None:
        """Return the access point that `user` has left, if `ap` reports the user as a new station.

        It is the access point of the same kind (WiFi or LTE) that has this user as a station.
        Return None if there is no such access point, or if the user already is a station of `ap`.
        """
        if user in self.aps[ap].stations:
            return None
        kind = self.aps[ap].kind
        return next(
            (
                name
                for name, each in self.aps.items()
                if each.kind == kind and user in each.stations
            ),
            None,
        )

    def handed_over(self, user: str, old: str, new: str) -> Topology | None:
        """Return the network after a user has moved from access point `old` to access point `new`.

        Return None if `new` has no port for stations that move there.
        """
        before, after = self.aps[old], self.aps[new]
        if not after.port:
            return None
        station = before.stations[user]
        left = {name: each for name, each in before.stations.items() if name != user}
        aps = {
            old: before.model_copy(update={"stations": left}),
            new: after.model_copy(update={"stations": after.stations | {user: station}}),
        }
        moved = {"switch": new, "port": after.port, "link": new}
        ports = tuple(
            each.model_copy(update=moved) if each.switch == old else each
            for each in self.hosts[user]
        )
        return self.model_copy(update={"aps": self.aps | aps, "hosts": self.hosts | {user: ports}})

    def ap_of(self, host: str, address: str) -> str | None:
        """Return the access point to which the interface with this address is connected.

        Return None if the interface is not connected to an access point.
        """
        return next(
            (
                each.switch
                for each in self.hosts.get(host, ())
                if each.address == address and each.switch in self.aps
            ),
            None,
        )


def read(text: str, name: str = "topology.json") -> Topology:
    """Parse and check the text of a topology file; `name` is its name in error messages.

    Raise `TopologyRefused` if the text is not valid; the message names the wrong key.
    """
    try:
        return Topology.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}." for part in first["loc"])[:-1]
        text = f"{where}: {first['msg']}" if where else first["msg"]
        raise TopologyRefused(f"read {name}: {text}. docs/formats.md shows the file") from error
