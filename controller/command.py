"""The commands that a strategy can give, and their checks against the observed network.

A command states the desired setting. Giving the same command twice therefore changes nothing more.
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
    """A command to limit the TCP rate of some users at an access point, all together.

    `addresses` are those of the users. An OpenFlow meter enforces the limit.
    """

    ap: str
    addresses: frozenset[str]
    rate_bps: int


@dataclass(frozen=True)
class Unthrottle:
    """A command to remove the rate limit (the OpenFlow meter) of an access point."""

    ap: str


@dataclass(frozen=True)
class Route:
    """A command to set the path of a subflow, in both directions.

    `path` lists the switches from the subflow's source to its destination.
    """

    subflow: SubflowKey
    path: tuple[str, ...]


@dataclass(frozen=True)
class Expect:
    """A command to set the pacing rate of a subflow at its sender.

    S-MPTCP calls this rate the expected throughput (section V). `rate_bps` is the rate on the wire,
    counting whole Ethernet frames. If it is None, the pacing is removed.
    """

    subflow: SubflowKey
    rate_bps: int | None


@dataclass(frozen=True)
class SetBackup:
    """A command to set or clear the backup flag of a subflow (MP_PRIO, RFC 8684, section 3.3.8).

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
    """A strategy's throughput forecast for one connection.

    `active` lists the subflows that carry data according to the forecast; the others are backup.
    `buffer_bytes` is the receive buffer that this throughput needs. `measured_bps` is the measured
    sum of the subflows' rates since the last decision, for comparison. It is None if nothing was
    measured. All rates are rates on the wire.
    """

    active: tuple[SubflowKey, ...]
    throughput_bps: int
    buffer_bytes: int
    measured_bps: int | None = None


@dataclass(frozen=True)
class Decision:
    """A decision of a strategy, with its reason as text.

    `subject` names an access point, a subflow (`connection/number`) or, with a forecast, a
    connection. If `command` is None, nothing changes in the network.
    """

    subject: str
    reason: str
    command: Command | None = None
    forecast: Forecast | None = None

    @property
    def action(self) -> str:
        """The kind of decision, as the decision log shows it.

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
    """Return the lowest rate in bit/s that a strategy should set for a meter or for pacing.

    It is the larger of `min_rate_bps` and `LOWEST_LIMIT_BPS`. All rates are rates on the wire.
    """
    return max(min_rate_bps, LOWEST_LIMIT_BPS)


def raised_to_floor(decision: Decision, rate_scale: float) -> Decision:
    """Return the decision with its meter or pacing rate raised to at least `LOWEST_LIMIT_BPS`.

    If the rate is raised, the new rate is added to the reason, in Mb/s as in the scenario file
    (rate on the wire / `rate_scale`). If nothing must be raised, the decision is returned
    unchanged.
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
    """Return `connection/number`, the name of a subflow in decisions and in the log."""
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

    All consecutive nodes must be linked, and no switch may occur twice. The error message begins
    with `doing`.
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
