"""What a strategy may ask for: declarative and idempotent, checked before it is carried out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from controller.errors import CommandRefused
from controller.observation import Observation, Subflow, SubflowKey, air
from controller.units import rate_text

LOWEST_LIMIT_BPS = 50_000  # four full packets a second; a slower subflow times out


@dataclass(frozen=True)
class Throttle:
    """TCP to these addresses through the switch of this access point shares one meter of this rate."""

    ap: str
    addresses: frozenset[str]
    rate_bps: int


@dataclass(frozen=True)
class Unthrottle:
    """Nothing is metered at the switch of this access point."""

    ap: str


@dataclass(frozen=True)
class Route:
    """A subflow takes this way, in both directions: the switches from its source to its destination."""

    subflow: SubflowKey
    path: tuple[str, ...]


@dataclass(frozen=True)
class Expect:
    """The sender holds a subflow to this rate of Ethernet frames (S-MPTCP, section V); None lets it go."""

    subflow: SubflowKey
    rate_bps: int | None


@dataclass(frozen=True)
class SetBackup:
    """A subflow carries data only when no other can, or as usual again (MP_PRIO, RFC 8684, section 3.3.8)."""

    subflow: SubflowKey
    backup: bool


ApCommand = Throttle | Unthrottle
SubflowCommand = Route | Expect | SetBackup
Command = ApCommand | SubflowCommand
ACTIONS = {
    Throttle: "meter",
    Unthrottle: "release",
    Route: "route",
    Expect: "expect",
    SetBackup: "backup",
}


@dataclass(frozen=True)
class Forecast:
    """What a connection should bring with these subflows active, beside what all of them brought since the last step.

    Rates are wire bit/s; `buffer_bytes` is the receive buffer it should need; `measured_bps` is None when nobody measured.
    """

    active: tuple[SubflowKey, ...]
    throughput_bps: int
    buffer_bytes: int
    measured_bps: int | None = None


@dataclass(frozen=True)
class Decision:
    """What was decided, and why; without a command everything stays as it is.

    `about` is an access point, a subflow as `connection/number`, or with a forecast a connection.
    """

    about: str
    reason: str
    command: Command | None = None
    forecast: Forecast | None = None

    @property
    def action(self) -> str:
        """`meter`, `release`, `route`, `expect`, `backup`, `normal` (no backup any more), `forecast` or `keep`."""
        if self.forecast is not None:
            return "forecast"
        if isinstance(self.command, SetBackup) and not self.command.backup:
            return "normal"
        return ACTIONS.get(type(self.command), "keep")


def effective_floor_bps(min_rate_bps: int = 0) -> int:
    """Return the lowest wire rate in bit/s that a meter or a pacing rate may have.

    It is `min_rate_bps` (a wire rate too), but at least `LOWEST_LIMIT_BPS`. A strategy asks for no
    less; `Control` raises what asks for less.
    """
    return max(min_rate_bps, LOWEST_LIMIT_BPS)


def raised_to_floor(decision: Decision, rate_scale: float) -> Decision:
    """Return the decision with its meter or pacing rate raised to the floor, and the reason with it."""
    command = decision.command
    if not isinstance(command, Throttle | Expect) or command.rate_bps is None:
        return decision
    floor_bps = effective_floor_bps()
    if not 0 < command.rate_bps < floor_bps:
        return decision
    reason = f"{decision.reason}; raised to the floor of {rate_text(floor_bps, rate_scale)}"
    return replace(decision, reason=reason, command=replace(command, rate_bps=floor_bps))


def about(key: SubflowKey) -> str:
    """What a decision about this subflow is about."""
    return f"{key[0]}/{key[1]}"


def checked(command: Command, observation: Observation) -> Command:
    """The command itself, or `CommandRefused` when this network cannot carry it out."""
    if isinstance(command, Throttle | Unthrottle):
        _check_ap(command, observation)
    else:
        _check_subflow(command, observation)
    return command


def _check_ap(command: ApCommand, observation: Observation) -> None:
    aps = [ap.id for ap in observation.access_points]
    if command.ap not in aps:
        raise CommandRefused(
            f"throttle at access point '{command.ap}': it is unknown, choose from {', '.join(aps) or 'none'}"
        )
    if isinstance(command, Throttle):
        _check_throttle(command, observation)


def _check_throttle(command: Throttle, observation: Observation) -> None:
    doing = f"throttle at {command.ap}"
    if command.rate_bps <= 0:
        raise CommandRefused(
            f"{doing}: a rate of {command.rate_bps} bit/s lets nothing through, ask for 1 or more"
        )
    if not command.addresses:
        raise CommandRefused(f"{doing}: no address is named, use Unthrottle to lift a limit")
    allowed = {
        address
        for each in observation.at(command.ap)
        if each.user in observation.multipath
        for address in each.addresses
    }
    for address in sorted(command.addresses - allowed):
        raise CommandRefused(
            f"{doing}: address {address} belongs to no multipath user there, choose from {', '.join(sorted(allowed)) or 'none'}"
        )


def _check_subflow(command: SubflowCommand, observation: Observation) -> None:
    name = about(command.subflow)
    subflow = observation.subflow(command.subflow)
    if subflow is None:
        known = ", ".join(about(each.key) for each in observation.subflows) or "none"
        raise CommandRefused(f"command a subflow: '{name}' is unknown, choose from {known}")
    if isinstance(command, Route):
        _check_path(f"route subflow {name}", command.path, subflow, observation)
    elif isinstance(command, Expect) and command.rate_bps is not None and command.rate_bps <= 0:
        raise CommandRefused(
            f"hold subflow {name} to {command.rate_bps} bit/s: ask for 1 or more, or make it backup"
        )
    elif (
        isinstance(command, SetBackup)
        and command.backup
        and not _another_is_normal(subflow, observation)
    ):
        raise CommandRefused(
            f"make subflow {name} backup: it is the last one of its connection that is not"
        )


def _check_path(
    doing: str, path: tuple[str, ...], subflow: Subflow, observation: Observation
) -> None:
    """From the source's switch to the destination's, over links there are, no switch twice."""
    joined = {(arc.tail, arc.head) for arc in observation.arcs}
    if not path or len(set(path)) != len(path):
        raise CommandRefused(
            f"{doing}: a path names at least one switch and none twice, not {' '.join(path) or 'nothing'}"
        )
    source, destination = subflow.ends
    # a station hangs on the air of its access point
    last = path[-1] if (path[-1], destination) in joined else air(path[-1])
    first = path[0] if (source, path[0]) in joined else air(path[0])
    for tail, head in ((source, first), *pairwise(path), (last, destination)):
        if (tail, head) not in joined:
            raise CommandRefused(f"{doing}: no link leads from {tail} to {head}")


def _another_is_normal(subflow: Subflow, observation: Observation) -> bool:
    return any(
        each.connection == subflow.connection and each.key != subflow.key and not each.backup
        for each in observation.subflows
    )
