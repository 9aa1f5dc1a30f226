"""What a strategy observes about the network, simulated or emulated, as frozen data."""

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
    """An access point as a strategy observes it (MP-SDN, section III-B1).

    `capacity_bps` is the largest rate that a station can get if no other station sends.
    `mac_occupancy` is the mean of min(1, backlog / capacity of the MAC buffer) since the last
    control step; it is None without a report.

    `tier2_bps` is the rate of secondary traffic (Tier 2): the traffic of multipath users with
    another primary access point. It is None if it was not measured. `meter_bps` is the limit that
    an OpenFlow meter sets for secondary traffic, or None without a meter. With a meter, `tier2_bps`
    counts only the traffic that passes the meter.
    """

    id: str
    kind: ApKind
    capacity_bps: int
    mac_occupancy: float | None = None
    tier2_bps: int | None = None
    meter_bps: int | None = None


@dataclass(frozen=True)
class Association:
    """The association of a user with an access point (MP-SDN, section III-A).

    `rate_bps` is the rate that the user gets if no other user sends. `weight` is the user's LTE
    resource weight (MP-SDN, eq (3)). `addresses` are those of the user's interface at this access
    point.
    """

    user: str
    ap: str
    rate_bps: int
    weight: float = 1.0
    addresses: tuple[str, ...] = ()
    rssi_dbm: float | None = None


def air(ap: str) -> str:
    """Return the name of the graph node for the radio channel that the stations of `ap` share."""
    return f"{ap}~air"


@dataclass(frozen=True)
class Arc:
    """One direction of a link, from the node `tail` to the node `head`.

    A node is a switch, a host address, or the radio channel of an access point (`air`). `used_bps`
    is the mean rate since the last control step. `delay_s` is the one-way delay and `jitter_s` its
    standard deviation. `loss` is the configured random loss, as a fraction.
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
    """One subflow of an MPTCP connection, as a strategy observes it.

    `source` is the server's end and `destination` the user's end, both `address:port`. `path` lists
    the switches from the server to the user. `ap` is the access point of the destination address.
    `tier` is 1 if this is the user's primary access point, else 2.

    Packet counters are totals in the direction that carries the data: to the user for a download,
    from the user for an upload. A counter is None if it was not measured. `sent_packets` counts the
    packets that reached the first switch; packets that the sender's own link dropped are not
    counted. `lost_packets` counts the packets that reached the first switch but not the receiver.
    `retransmitted_packets` counts TCP's retransmits.

    `rate_bps` is the mean rate of the sent packets since the last control step, counting whole
    Ethernet frames. `device_loss` is the loss that the user's interface reports, as a fraction.
    `expected_bps` is the pacing rate that the hosts have confirmed.
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
        """The addresses of source and destination, without their ports."""
        return self.source.rsplit(":", 1)[0], self.destination.rsplit(":", 1)[0]

    @property
    def flow(self) -> Flow:
        """The 5-tuple of the packets from `source` to `destination`."""
        (source, source_port), (destination, port) = (
            end.rsplit(":", 1) for end in (self.source, self.destination)
        )
        return Flow(source, destination, TCP, int(source_port), int(port))


@dataclass(frozen=True)
class Observation:
    """All that a strategy knows at the time `now_ns`; a strategy has no other clock.

    `multipath` names the users that use MPTCP. `Control` fills in `tiers` before a strategy gets
    the observation. `receive_buffer_bytes` is the receive buffer of every connection.
    `user_addresses` maps each multipath user to all its addresses, including those on broken links.
    Rates are rates on the wire: those of the scenario file times `rate_scale`.
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
    user_addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def subflow(self, key: SubflowKey) -> Subflow | None:
        return next((each for each in self.subflows if each.key == key), None)

    def connections(self) -> dict[str, tuple[Subflow, ...]]:
        """Map each connection to its subflows, sorted by subflow number.

        Connections are in the order in which they first occur in `subflows`.
        """
        found: dict[str, tuple[Subflow, ...]] = {}
        for each in self.subflows:
            found[each.connection] = (*found.get(each.connection, ()), each)
        return {
            name: tuple(sorted(each, key=lambda subflow: subflow.number))
            for name, each in found.items()
        }

    def of_user(self, user: str) -> tuple[Association, ...]:
        """Return the associations of a user, sorted by access point."""
        return tuple(
            sorted(
                (each for each in self.associations if each.user == user), key=lambda each: each.ap
            )
        )

    def at(self, ap: str) -> tuple[Association, ...]:
        """Return the associations at an access point, sorted by user."""
        return tuple(
            sorted(
                (each for each in self.associations if each.ap == ap), key=lambda each: each.user
            )
        )

    def subflows_at(self, ap: str, tier: int) -> list[Subflow]:
        """Return the subflows at access point `ap` of all users that are in `tier` (1 or 2) there.
        A user that is missing in `tiers` counts as Tier 1."""
        return [
            each
            for each in self.subflows
            if each.ap == ap and self.tiers.get((each.user, ap), 1) == tier
        ]

    def addresses(self, ap: str, tier: int) -> frozenset[str]:
        """Return the addresses of all users that are in `tier` (1 or 2) at access point `ap`.

        A user is in Tier 1 at its primary access point, and in Tier 2 at all others. A user that is
        missing in `tiers` counts as Tier 1.
        """
        found = (each for each in self.at(ap) if self.tiers.get((each.user, each.ap), 1) == tier)
        return frozenset(address for each in found for address in each.addresses)
