"""What a strategy may ask for: declarative and idempotent, checked before it is carried out."""

from __future__ import annotations

from dataclasses import dataclass

from controller.errors import CommandRefused
from controller.observation import Observation


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


Command = Throttle | Unthrottle


@dataclass(frozen=True)
class Decision:
    """What was decided for an access point, and why; without a command everything stays as it is."""

    ap: str
    reason: str
    command: Command | None = None

    @property
    def action(self) -> str:
        """`meter`, `release` or `keep`."""
        return {Throttle: "meter", Unthrottle: "release"}.get(type(self.command), "keep")


def checked(command: Command, seen: Observation) -> Command:
    """The command itself, or `CommandRefused` when this network cannot carry it out."""
    aps = [ap.id for ap in seen.access_points]
    if command.ap not in aps:
        raise CommandRefused(f"throttle at access point '{command.ap}': it is unknown, choose from {', '.join(aps) or 'none'}")
    if isinstance(command, Throttle):
        _check_throttle(command, seen)
    return command


def _check_throttle(command: Throttle, seen: Observation) -> None:
    doing = f"throttle at {command.ap}"
    if command.rate_bps <= 0:
        raise CommandRefused(f"{doing}: a rate of {command.rate_bps} bit/s lets nothing through, ask for 1 or more")
    if not command.addresses:
        raise CommandRefused(f"{doing}: no address is named, use Unthrottle to lift a limit")
    allowed = {address for each in seen.at(command.ap) if each.user in seen.multipath for address in each.addresses}
    for address in sorted(command.addresses - allowed):
        raise CommandRefused(
            f"{doing}: address {address} belongs to no multipath user there, choose from {', '.join(sorted(allowed)) or 'none'}"
        )
