"""Hold what a strategy observes, as frozen data that both engines fill in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from controller.paths import TCP, Flow

ApKind = Literal["wifi", "lte"]
Tiers = Mapping[tuple[str, str], int]  # (user, access point) -> 1 or 2
SubflowKey = tuple[str, int]  # (connection, number)
RECEIVE_BUFFER_BYTES = 4_000_000  # the default


@dataclass(frozen=True)
class AccessPoint:
    """Describe an access point and the meter of the switch in front of it (MP-SDN, section III-B1).

    `mac_occupancy` is the mean of min(1, backlog / MAC slots) since the last step, None without a
    report. `tier2_bps` is what passed the meter since then, None if it was not measured.
    `meter_bps` is the limit, None without one.
    """

    id: str
    kind: ApKind
    capacity_bps: int
    mac_occupancy: float | None = None
    tier2_bps: int | None = None
    meter_bps: int | None = None


@dataclass(frozen=True)
class Association:
    """Describe a user at an access point (MP-SDN, section III-A).

    `rate_bps` is its rate when alone at the access point; `weight` its LTE resource weight (eq
    (3)).
    """

    user: str
    ap: str
    rate_bps: int
    weight: float = 1.0
    addresses: tuple[str, ...] = ()
    rssi_dbm: float | None = None


def air(ap: str) -> str:
    """Return the name of the node that stands for the air of an access point."""
    return f"{ap}~air"


@dataclass(frozen=True)
class Arc:
    """Describe one direction of a link, from `tail` to `head`: switches or host addresses.

    The air of an access point is one arc between the switch and the node `air`; the arcs of its
    stations start there. `used_bps` is what passed since the last step. `delay_s` is one way,
    `jitter_s` its standard deviation. `loss` is the known random loss, a fraction.
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
    """Describe one subflow of an MPTCP connection, in the direction from `source` to its
    user.

    `source` and `destination` are `address:port`; `path` lists the switches from source to
    destination. Counters count since the subflow began and are None if nobody counts.
    `sent_packets` reached the first switch of the path in the direction of the data, so frames that
    the sender's own link dropped are not among them; `rate_bps` is their rate in bit/s of Ethernet
    frames since the last step. `lost_packets` of them did not leave the path; TCP retransmitted
    `retransmitted_packets`. `device_loss` is the loss that the user's interface reports, a
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
        """Return connection and number."""
        return self.connection, self.number

    @property
    def ends(self) -> tuple[str, str]:
        """Return the two addresses without their ports."""
        return self.source.rsplit(":", 1)[0], self.destination.rsplit(":", 1)[0]

    @property
    def flow(self) -> Flow:
        """Return the 5-tuple in the direction of the user."""
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
        """Return the subflow with this key, None if it is not open."""
        return next((each for each in self.subflows if each.key == key), None)

    def connections(self) -> dict[str, tuple[Subflow, ...]]:
        """Return the subflows of each connection by number; connections by first appearance."""
        found: dict[str, tuple[Subflow, ...]] = {}
        for each in self.subflows:
            found[each.connection] = (*found.get(each.connection, ()), each)
        return {
            name: tuple(sorted(each, key=lambda subflow: subflow.number))
            for name, each in found.items()
        }

    def of_user(self, user: str) -> tuple[Association, ...]:
        """Return the associations of a user, by access point."""
        return tuple(
            sorted(
                (each for each in self.associations if each.user == user), key=lambda each: each.ap
            )
        )

    def at(self, ap: str) -> tuple[Association, ...]:
        """Return the associations at an access point, by user."""
        return tuple(
            sorted(
                (each for each in self.associations if each.ap == ap), key=lambda each: each.user
            )
        )

    def addresses(self, ap: str, tier: int) -> frozenset[str]:
        """Return the addresses of one tier at an access point."""
        found = (each for each in self.at(ap) if self.tiers.get((each.user, each.ap), 1) == tier)
        return frozenset(address for each in found for address in each.addresses)
