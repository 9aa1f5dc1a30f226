"""Define the commands that a strategy can give, and check them against the observed network.

A command states the desired setting, so giving the same command twice has the effect of giving it
once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from controller.errors import CommandRefused
from controller.observation import Observation, Subflow, SubflowKey, air
from controller.units import rate_text

LOWEST_LIMIT_BPS = 50_000  # four full packets a second


@dataclass(frozen=True)
class Throttle:
    """Limit the TCP traffic that the switch of access point `ap` forwards to `addresses`.

    One OpenFlow meter limits the sum of this traffic to `rate_bps`.
    """

    ap: str
    addresses: frozenset[str]
    rate_bps: int


@dataclass(frozen=True)
class Unthrottle:
    """Remove the meter at the switch of access point `ap`."""

    ap: str


@dataclass(frozen=True)
class Route:
    """Set the path of a subflow, for both directions.

    `path` lists the switches in the order from the subflow's source to its destination.
    """

    subflow: SubflowKey
    path: tuple[str, ...]


@dataclass(frozen=True)
class Expect:
    """Set the pacing rate of a subflow at its sender: its expected throughput (S-MPTCP, section V).

    `rate_bps` counts Ethernet frames on the wire. None removes the pacing rate.
    """

    subflow: SubflowKey
    rate_bps: int | None


@dataclass(frozen=True)
class SetBackup:
    """Set or clear the backup flag of a subflow (MP_PRIO, RFC 8684, section 3.3.8).

    A backup subflow carries data only if no other subflow of its connection can.
    """

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
    """The throughput that a strategy forecasts for one connection.

    `throughput_bps` is the forecast for the case that exactly the subflows in `active` carry data.
    `buffer_bytes` is the receive buffer that the connection needs for this throughput.
    `measured_bps` is for comparison: the sum of the measured rates of the connection's subflows
    since the last control step, or None if no rate was measured. All rates are those of the running
    network: scenario rates multiplied by the rate scale.
    """

    active: tuple[SubflowKey, ...]
    throughput_bps: int
    buffer_bytes: int
    measured_bps: int | None = None


@dataclass(frozen=True)
class Decision:
    """One decision of a strategy and its reason.

    `subject` is the name of an access point, or of a subflow as `connection/number`; for a decision
    with a forecast it is the name of a connection. A decision without a command changes nothing in
    the network.
    """

    subject: str
    reason: str
    command: Command | None = None
    forecast: Forecast | None = None

    @property
    def action(self) -> str:
        """Name the kind of decision, as the decision log shows it.

        meter, release       set or remove the meter of an access point
        route                route a subflow
        expect               set or remove a pacing rate
        backup, normal       set or clear a backup flag
        forecast             the decision holds a forecast
        keep                 no command, nothing changes
        """
        if self.forecast is not None:
            return "forecast"
        if isinstance(self.command, SetBackup) and not self.command.backup:
            return "normal"
        return ACTIONS.get(type(self.command), "keep")


def effective_floor_bps(min_rate_bps: int = 0) -> int:
    """Return the lowest wire rate in bit/s that a strategy should request for a meter or pacing.

    This is the larger one of `min_rate_bps`, also a wire rate, and `LOWEST_LIMIT_BPS`. If a
    strategy requests less, `Control` raises the rate to `LOWEST_LIMIT_BPS`.
    """
    return max(min_rate_bps, LOWEST_LIMIT_BPS)


def raised_to_floor(decision: Decision, rate_scale: float) -> Decision:
    """Return the decision with its meter or pacing rate raised to `LOWEST_LIMIT_BPS`.

    If the rate was raised, the reason says so, with the rate in scenario units (wire rate divided
    by `rate_scale`). A decision with a higher rate or without a rate is returned unchanged.
    """
    command = decision.command
    if not isinstance(command, Throttle | Expect) or command.rate_bps is None:
        return decision
    floor_bps = effective_floor_bps()
    if not 0 < command.rate_bps < floor_bps:
        return decision
    reason = f"{decision.reason}; raised to the floor of {rate_text(floor_bps, rate_scale)}"
    return replace(decision, reason=reason, command=replace(command, rate_bps=floor_bps))


def subflow_name(key: SubflowKey) -> str:
    """Return the name of a subflow in decisions: `connection/number`."""
    return f"{key[0]}/{key[1]}"


def checked(command: Command, observation: Observation) -> Command:
    """Return the command unchanged; raise `CommandRefused` if the network cannot carry it out."""
    if isinstance(command, Throttle | Unthrottle):
        _check_ap(command, observation)
    else:
        _check_subflow(command, observation)
    return command


def _check_ap(command: ApCommand, observation: Observation) -> None:
    aps = [ap.id for ap in observation.access_points]
    if command.ap not in aps:
        known = ", ".join(aps) or "none"
        raise CommandRefused(
            f"throttle at access point '{command.ap}': it is unknown, choose from {known}"
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
        known = ", ".join(sorted(allowed)) or "none"
        raise CommandRefused(
            f"{doing}: address {address} belongs to no multipath user there, choose from {known}"
        )


def _check_subflow(command: SubflowCommand, observation: Observation) -> None:
    name = subflow_name(command.subflow)
    subflow = observation.subflow(command.subflow)
    if subflow is None:
        known = ", ".join(subflow_name(each.key) for each in observation.subflows) or "none"
        raise CommandRefused(f"command a subflow: '{name}' is unknown, choose from {known}")
    if isinstance(command, Route):
        _check_path(f"route subflow {name}", command.path, subflow, observation)
    elif isinstance(command, Expect) and command.rate_bps is not None and command.rate_bps <= 0:
        raise CommandRefused(
            f"pace subflow {name} at {command.rate_bps} bit/s: ask for 1 or more, or make it backup"
        )
    elif (
        isinstance(command, SetBackup)
        and command.backup
        and not _another_is_normal(subflow, observation)
    ):
        raise CommandRefused(
            f"make subflow {name} backup: all other subflows of its connection are backup"
        )


def _check_path(
    doing: str, path: tuple[str, ...], subflow: Subflow, observation: Observation
) -> None:
    """Raise `CommandRefused` unless `path` leads from the subflow's source to its destination.

    Each step must follow an existing link, and no switch may occur twice.
    """
    joined = {(arc.tail, arc.head) for arc in observation.arcs}
    if not path or len(set(path)) != len(path):
        text = " ".join(path) or "nothing"
        raise CommandRefused(
            f"{doing}: a path names at least one switch and none twice, not {text}"
        )
    source, destination = subflow.ends
    # a station is behind the air of its access point
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
