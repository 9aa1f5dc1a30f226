"""Parse and validate the messages from AP agents and from the runner (docs/formats.md).

An AP agent reports the state of one access point. The runner is the process that runs a scenario;
it reports changed links and requests other strategies or parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller import bounded_json
from controller.datagrams import unseal
from controller.errors import MessageRefused
from controller.tiers import tier1_mean
from controller.topology import Topology
from controller.units import bps_from_mbps

Sequence = Annotated[int, Field(ge=0)]
Message = TypeVar("Message")


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class StationReport(_Message):
    """An AP agent's report about one station of its access point.

    `rate_mbps` is the station's rate when it is alone. `associated` is False once it has left.
    `mac_occupancy` (LTE only) is that of the bearer, the base station's queue for this station;
    `ApReport` defines it.
    """

    rssi_dbm: float | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    associated: bool = True
    mac_occupancy: Annotated[float, Field(ge=0, le=1)] | None = None


class ApReport(_Message):
    """The report that the agent of an access point sends twice a second.

    `stations` maps the name of a user to the report about its station. `backlog_packets` is the
    number of packets that wait in the MAC buffer. `mac_occupancy` is the mean of min(1, backlog /
    capacity of the MAC buffer) since the previous report, None if the queue is not measured.
    """

    kind: Literal["ap"]
    seq: Sequence
    ap: str
    mac_occupancy: Annotated[float, Field(ge=0, le=1)] | None
    backlog_packets: Annotated[int, Field(ge=0)] = 0
    stations: dict[str, StationReport] = {}

    def occupancy(self, tiers: Mapping[str, int]) -> float | None:
        """Return the MAC occupancy of the access point, from 0 to 1; None if it is not measured.

        For an LTE base station this is the mean over the bearers that carry Tier 1 traffic (a
        bearer is the queue of one user). `tiers` maps each user to its tier at this access point, 1
        or 2; a missing user counts as Tier 1.
        """
        bearers = {
            user: station.mac_occupancy
            for user, station in self.stations.items()
            if station.mac_occupancy is not None
        }
        return tier1_mean(bearers, tiers) if bearers else self.mac_occupancy


class ParamsFlip(_Message):
    """Requests new values for parameters of the running strategy, by parameter name."""

    kind: Literal["params"]
    seq: Sequence
    value: dict[str, Any]


class StrategyChoice(_Message):
    """`file` is the Python file that defines the strategy; None for a built-in strategy. If
    `source` is given, it is the path of a copy that is run instead."""

    name: str
    file: str | None = None
    source: str | None = None
    params: dict[str, Any] = {}


class StrategyFlip(_Message):
    """Requests that another strategy replaces the running one."""

    kind: Literal["strategy"]
    seq: Sequence
    value: StrategyChoice


class LinkState(_Message):
    """The new settings of a link that has changed; a setting that is None has not changed.

    A link that is not `up` carries no traffic. `delay_ms` is the one-way delay. `loss` is the
    fraction of packets lost from end `a` of the link to end `b`, `loss_back` from `b` to `a`.
    """

    link: str
    up: bool | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    delay_ms: Annotated[float, Field(ge=0)] | None = None
    loss: Annotated[float, Field(ge=0, le=1)] | None = None
    loss_back: Annotated[float, Field(ge=0, le=1)] | None = None

    def scaled(self, factor: float) -> LinkState:
        """Multiply the rate by `factor`; a rate of None stays None."""
        if self.rate_mbps is None or factor == 1:
            return self
        return self.model_copy(update={"rate_mbps": round(self.rate_mbps * factor, 6)})


class LinkFlip(_Message):
    """Reports that a link has changed."""

    kind: Literal["link"]
    seq: Sequence
    value: LinkState


class Tier1Limit(_Message):
    """The limit for all Tier 1 data of an access point together, on the wire; None: no limit."""

    ap: str
    mbps: Annotated[float, Field(gt=0)] | None

    def limit(self, network: Topology, apply: Callable[[str, int | None], None]) -> dict[str, Any]:
        """Call `apply` with the name of the access point and the limit in bit/s.

        Return the limit in scenario units, for the log. Raise `MessageRefused` if `network` has no
        such access point.
        """
        if self.ap not in network.aps:
            known = ", ".join(network.aps) or "none"
            raise MessageRefused(f"limit Tier 1 of '{self.ap}': choose from {known}")
        apply(self.ap, None if self.mbps is None else bps_from_mbps(self.mbps))
        in_scenario = None if self.mbps is None else round(self.mbps / network.rate_scale, 6)
        return {"ap": self.ap, "mbps": in_scenario}


class Tier1Flip(_Message):
    """Requests another limit for the Tier 1 data of an access point."""

    kind: Literal["tier1"]
    seq: Sequence
    value: Tier1Limit


class StepsState(_Message):
    """If `held` is True, the controller makes no control steps."""

    held: bool


class StepsFlip(_Message):
    """Requests that the control steps pause or go on.

    They pause while the first connections open. Otherwise the strategy would decide on some of them
    before it knows the others, and the result would depend on the order in which they became known.
    """

    kind: Literal["steps"]
    seq: Sequence
    value: StepsState


InboxMessage = ParamsFlip | StrategyFlip | LinkFlip | Tier1Flip | StepsFlip
_INBOX: TypeAdapter[InboxMessage] = TypeAdapter(
    Annotated[InboxMessage, Field(discriminator="kind")]
)


def read_ap_report(datagram: bytes, key: str) -> ApReport:
    """Raise `MessageRefused` if the report is invalid or does not begin with `key`."""
    doing = "read the report of an access point"
    return _validated(doing, ApReport.model_validate, unseal(datagram, key, doing))


def read_inbox_message(text: str | bytes) -> InboxMessage:
    """Parse one file of the inbox, the folder in which the runner leaves messages.

    Raise `MessageRefused` if the text is not a valid message.
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
