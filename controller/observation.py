"""What a strategy may know: frozen data, the same from the emulation and from the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from controller.paths import TCP, Flow

ApKind = Literal["wifi", "lte"]
Tiers = Mapping[tuple[str, str], int]  # (user, access point) -> 1 or 2
SubflowKey = tuple[str, int]  # (connection, number)
RECEIVE_BUFFER_BYTES = 4_000_000  # where nobody says otherwise


@dataclass(frozen=True)
class AccessPoint:
    """An access point and the meter of the switch in front of it (MP-SDN, section III-B1).

    `mac_occupancy` is the mean of min(1, backlog / MAC slots) since the last step, None without a report;
    `tier2_bps` is what passed the meter since then, None when it was not measured; `meter_bps` is the limit, None without one.
    """

    id: str
    kind: ApKind
    capacity_bps: int
    mac_occupancy: float | None = None
    tier2_bps: int | None = None
    meter_bps: int | None = None


@dataclass(frozen=True)
class Association:
    """A user's connection to an access point, in the sense of MP-SDN, section III-A.

    `rate_bps` is its rate when alone on the access point; `weight` its LTE resource weight (eq (3)).
    """

    user: str
    ap: str
    rate_bps: int
    weight: float = 1.0
    addresses: tuple[str, ...] = ()
    rssi_dbm: float | None = None


def air(ap: str) -> str:
    """The node that stands for the air of an access point."""
    return f"{ap}~air"


@dataclass(frozen=True)
class Arc:
    """One direction of a link: what leaves `tail` and enters `head`, which are switches or addresses of hosts.

    The air of an access point is one arc between the switch and the node `air`, on which all its stations hang.
    `used_bps` passed since the last step; `delay_s` is one way, `jitter_s` its standard deviation; `loss` is what is known
    of random loss, a fraction.
    """

    link: str
    tail: str
    head: str
    capacity_bps: int
    used_bps: int = 0
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0


@dataclass(frozen=True)
class Subflow:
    """One subflow of a Multipath TCP connection; `source` sends towards the user, `path` lists the switches in that direction.

    `source` and `destination` are `address:port`. Counters count since the subflow began and are None when nobody
    counts: `sent_packets` entered the path towards the user, `lost_packets` of them did not come out,
    `retransmitted_packets` were sent again by TCP. `device_loss` is the loss that the user's interface itself reports, a
    fraction. `backup` and `expected_bps` are what the hosts have confirmed.
    """

    connection: str
    number: int
    user: str
    ap: str
    source: str
    destination: str
    tier: int = 1
    path: tuple[str, ...] = ()
    backup: bool = False
    expected_bps: int | None = None
    rate_bps: int | None = None
    sent_packets: int | None = None
    lost_packets: int | None = None
    retransmitted_packets: int | None = None
    device_loss: float | None = None

    @property
    def key(self) -> SubflowKey:
        return self.connection, self.number

    @property
    def ends(self) -> tuple[str, str]:
        """The two addresses, without their ports."""
        return self.source.rsplit(":", 1)[0], self.destination.rsplit(":", 1)[0]

    @property
    def flow(self) -> Flow:
        """Its 5-tuple towards the user."""
        (source, source_port), (destination, port) = (
            end.rsplit(":", 1) for end in (self.source, self.destination)
        )
        return Flow(source, destination, TCP, int(source_port), int(port))


@dataclass(frozen=True)
class Observation:
    """Hold everything known at `now_ns`, which is the only clock of a strategy.

    `receive_buffer_bytes` is the receive buffer of every connection. Rates are wire rates; a wire
    rate divided by `rate_scale` is in scenario units, as people read it (`units.rate_text`).
    """

    now_ns: int
    access_points: tuple[AccessPoint, ...] = ()
    associations: tuple[Association, ...] = ()
    multipath: frozenset[str] = frozenset()
    subflows: tuple[Subflow, ...] = ()
    tiers: Tiers = field(default_factory=dict)
    arcs: tuple[Arc, ...] = ()
    receive_buffer_bytes: int = RECEIVE_BUFFER_BYTES
    rate_scale: float = 1.0

    def subflow(self, key: SubflowKey) -> Subflow | None:
        """The subflow of this connection with this number, if it lives."""
        return next((each for each in self.subflows if each.key == key), None)

    def connections(self) -> dict[str, tuple[Subflow, ...]]:
        """The subflows of every connection, by number; connections in the order in which they appeared."""
        found: dict[str, tuple[Subflow, ...]] = {}
        for each in self.subflows:
            found[each.connection] = (*found.get(each.connection, ()), each)
        return {
            name: tuple(sorted(each, key=lambda subflow: subflow.number))
            for name, each in found.items()
        }

    def of_user(self, user: str) -> tuple[Association, ...]:
        """The associations of a user, by access point."""
        return tuple(
            sorted(
                (each for each in self.associations if each.user == user), key=lambda each: each.ap
            )
        )

    def at(self, ap: str) -> tuple[Association, ...]:
        """The associations at an access point, by user."""
        return tuple(
            sorted(
                (each for each in self.associations if each.ap == ap), key=lambda each: each.user
            )
        )

    def addresses(self, ap: str, tier: int) -> frozenset[str]:
        """The addresses at an access point that belong to this tier."""
        found = (each for each in self.at(ap) if self.tiers.get((each.user, each.ap), 1) == tier)
        return frozenset(address for each in found for address in each.addresses)
