"""Parse and validate the messages from AP agents and from the runner.

An AP agent reports the state of one access point. The runner is the process that runs a scenario;
it reports changed links and requests other strategies or parameters. docs/formats.md defines the
fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller import bounded_json
from controller.datagrams import unseal
from controller.errors import MessageRefused
from controller.plan import Plan
from controller.tiers import tier1_mean
from controller.units import bps_from_mbps

Sequence = Annotated[int, Field(ge=0)]
Message = TypeVar("Message")


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class StationReport(_Message):
    """What an AP agent reports about one station of its access point.

    `rate_mbps` is the rate that the station has when it is alone. `associated` is False once the
    station has left. `mac_occupancy` is reported by LTE base stations only: the MAC occupancy (see
    `ApReport`) of the queue that the base station keeps for this station, its bearer.
    """

    rssi_dbm: float | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    associated: bool = True
    mac_occupancy: Annotated[float, Field(ge=0, le=1)] | None = None


class ApReport(_Message):
    """The report that the AP agent of an access point sends twice a second.

    `stations` maps the name of a user to the report about that user's station. `backlog_packets` is
    the number of packets that wait in the MAC buffer. `mac_occupancy` is a mean over the time since
    the previous report: the mean of min(1, backlog / capacity of the MAC buffer in packets). It is
    None if the access point's queue is not measured.
    """

    kind: Literal["ap"]
    seq: Sequence
    ap: str
    mac_occupancy: Annotated[float, Field(ge=0, le=1)] | None
    backlog_packets: Annotated[int, Field(ge=0)] = 0
    stations: dict[str, StationReport] = {}

    def occupancy(self, tiers: Mapping[str, int]) -> float | None:
        """Return the MAC occupancy of the access point, from 0 to 1; None if it is not measured.

        An LTE base station reports one value per bearer, the queue of one user. In this case,
        return the mean over the bearers that carry Tier 1 traffic (see `controller.tiers`), else
        `mac_occupancy`. `tiers` maps each user to its tier, 1 or 2, at this access point; a missing
        user counts as Tier 1.
        """
        bearers = {
            user: station.mac_occupancy
            for user, station in self.stations.items()
            if station.mac_occupancy is not None
        }
        return tier1_mean(bearers, tiers) if bearers else self.mac_occupancy


class ParamsFlip(_Message):
    """Request new parameters for the running strategy; `value` maps names to new values."""

    kind: Literal["params"]
    seq: Sequence
    value: dict[str, Any]


class StrategyChoice(_Message):
    """Name a strategy and its parameters.

    `file` is the Python file that defines the strategy; None for a built-in strategy.
    """

    name: str
    file: str | None = None
    params: dict[str, Any] = {}


class StrategyFlip(_Message):
    """Request that the strategy in `value` replaces the running strategy."""

    kind: Literal["strategy"]
    seq: Sequence
    value: StrategyChoice


class LinkState(_Message):
    """The new settings of a link that has changed; a setting that is None has not changed.

    `up` is False if the link is now down, so that it carries no traffic. `delay_ms` is the one-way
    delay. `loss` is the fraction of packets lost from end `a` of the link to end `b`, `loss_back`
    from `b` to `a`.
    """

    link: str
    up: bool | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    delay_ms: Annotated[float, Field(ge=0)] | None = None
    loss: Annotated[float, Field(ge=0, le=1)] | None = None
    loss_back: Annotated[float, Field(ge=0, le=1)] | None = None

    def scaled(self, factor: float) -> LinkState:
        """Return a copy with `rate_mbps` multiplied by `factor`; a rate of None stays None."""
        if self.rate_mbps is None or factor == 1:
            return self
        return self.model_copy(update={"rate_mbps": round(self.rate_mbps * factor, 6)})


class LinkFlip(_Message):
    """Report to the controller that a link has changed; `value` holds its new settings."""

    kind: Literal["link"]
    seq: Sequence
    value: LinkState


class Tier1Limit(_Message):
    """A limit of all Tier 1 data of an access point together; Tier 1 is data of primary paths.

    `mbps` is the limit in Mb/s on the wire; None means no limit.
    """

    ap: str
    mbps: Annotated[float, Field(gt=0)] | None

    def limit(self, plan: Plan, apply: Callable[[str, int | None], None]) -> dict[str, Any]:
        """Call `apply` with the name of the access point and the limit in bit/s.

        Return the limit in scenario units, for the log. Raise `MessageRefused` if `plan` has no
        such access point.
        """
        if self.ap not in plan.aps:
            known = ", ".join(plan.aps) or "none"
            raise MessageRefused(f"limit Tier 1 of '{self.ap}': choose from {known}")
        apply(self.ap, None if self.mbps is None else bps_from_mbps(self.mbps))
        in_scenario = None if self.mbps is None else round(self.mbps / plan.rate_scale, 6)
        return {"ap": self.ap, "mbps": in_scenario}


class Tier1Flip(_Message):
    """A message from the runner that changes the limit of an access point's Tier 1 data."""

    kind: Literal["tier1"]
    seq: Sequence
    value: Tier1Limit


class StepsState(_Message):
    """Say whether the control steps are held: if `held` is True, the controller makes none."""

    held: bool


class StepsFlip(_Message):
    """A message from the runner that holds the control steps, or lets them go on.

    The runner holds them while the first connections open. Otherwise the strategy would decide on
    some of them before it knows the others, and the result would depend on the order in which they
    became known.
    """

    kind: Literal["steps"]
    seq: Sequence
    value: StepsState


InboxMessage = ParamsFlip | StrategyFlip | LinkFlip | Tier1Flip | StepsFlip
_INBOX: TypeAdapter[InboxMessage] = TypeAdapter(
    Annotated[InboxMessage, Field(discriminator="kind")]
)


def read_ap_report(datagram: bytes, key: str) -> ApReport:
    """Return the report in a datagram from an AP agent.

    Raise `MessageRefused` if the datagram does not begin with `key`, the secret key of the run, or
    if the report is invalid.
    """
    doing = "read the report of an access point"
    return _validated(doing, ApReport.model_validate, unseal(datagram, key, doing))


def read_inbox_message(text: str | bytes) -> InboxMessage:
    """Parse the text of one file from the inbox, the folder in which the runner leaves messages.

    Return the change that the message requests: of parameters, of the strategy, of a link or of a
    limit of Tier 1 data. Raise `MessageRefused` if the text is not a valid message.
    """
    doing = "read an inbox message"
    try:
        values = bounded_json.parse(text)
    except bounded_json.JsonRefused as error:
        raise MessageRefused(f"{doing}: the whole message: {error}") from error
    return _validated(doing, _INBOX.validate_python, values)


def _validated(doing: str, validate: Callable[[Any], Message], values: Any) -> Message:
    try:
        return validate(values)
    except ValidationError as error:
        raise MessageRefused(_refusal(doing, error)) from error


def _refusal(doing: str, error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole message"
    return f"{doing}: {where}: {first['msg']}. docs/formats.md shows what is expected"
