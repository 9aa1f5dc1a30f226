"""Parse and validate the messages from AP agents and from the runner (docs/formats.md).

An AP agent is a program that reports the state of one access point. The runner is the process that
runs a scenario. It reports changed links, and requests other strategies or parameters.
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
    """What the agent of an access point reports about one station.

    `rate_mbps` is the rate that the station gets if no other station sends. `associated` is False
    after the station has left. `mac_occupancy` is reported only for LTE: how full the base
    station's queue for this station is, from 0 to 1.
    """

    rssi_dbm: float | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    associated: bool = True
    mac_occupancy: Annotated[float, Field(ge=0, le=1)] | None = None


class ApReport(_Message):
    """The report that the agent of an access point sends twice a second.

    `stations` maps the name of each user to the report about the user's station. `backlog_packets`
    is the number of packets that wait in the MAC buffer. `mac_occupancy` is the mean of min(1,
    backlog / capacity of the MAC buffer) since the previous report. It is None if nothing measures
    the buffer.
    """

    kind: Literal["ap"]
    seq: Sequence
    ap: str
    mac_occupancy: Annotated[float, Field(ge=0, le=1)] | None
    backlog_packets: Annotated[int, Field(ge=0)] = 0
    stations: dict[str, StationReport] = {}

    def occupancy(self, tiers: Mapping[str, int]) -> float | None:
        """Return how full the MAC buffer is, from 0 to 1; None if nothing measures it.

        For LTE this is the mean over the queues of the users in Tier 1. `tiers` maps each user to 1
        if this access point is the user's primary one, else to 2. A user that is missing in `tiers`
        counts as 1.
        """
        bearers = {
            user: station.mac_occupancy
            for user, station in self.stations.items()
            if station.mac_occupancy is not None
        }
        return tier1_mean(bearers, tiers) if bearers else self.mac_occupancy


class ParamsFlip(_Message):
    """A request to change parameters of the running strategy; `value` maps names to new values."""

    kind: Literal["params"]
    seq: Sequence
    value: dict[str, Any]


class StrategyChoice(_Message):
    """A strategy and its parameters.

    `file` is the Python file that defines the strategy. It is None for a built-in strategy. If
    `source` is given, it is the path of a copy of `file`, and the copy runs instead of `file`.
    """

    name: str
    file: str | None = None
    source: str | None = None
    params: dict[str, Any] = {}


class StrategyFlip(_Message):
    """A request to replace the running strategy by another one."""

    kind: Literal["strategy"]
    seq: Sequence
    value: StrategyChoice


class LinkState(_Message):
    """New settings of a link. A setting that is None stays as it is.

    If `up` is False, the link carries no traffic. `delay_ms` is the one-way delay. `loss` is the
    fraction of packets lost from end `a` of the link to end `b`, as the topology file names the
    ends. `loss_back` is the fraction lost from `b` to `a`. Rate and delay from `b` to `a` are in
    `rate_back_mbps` and `delay_back_ms` if they differ.
    """

    link: str
    up: bool | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    delay_ms: Annotated[float, Field(ge=0)] | None = None
    loss: Annotated[float, Field(ge=0, le=1)] | None = None
    loss_back: Annotated[float, Field(ge=0, le=1)] | None = None
    rate_back_mbps: Annotated[float, Field(gt=0)] | None = None
    delay_back_ms: Annotated[float, Field(ge=0)] | None = None

    def scaled(self, factor: float) -> LinkState:
        """Return a copy with the rates multiplied by `factor`. A rate of None stays None."""
        if factor == 1:
            return self
        rates = {"rate_mbps": self.rate_mbps, "rate_back_mbps": self.rate_back_mbps}
        return self.model_copy(
            update={key: rate and round(rate * factor, 6) for key, rate in rates.items()}
        )


class LinkFlip(_Message):
    """A report that the settings of a link have changed."""

    kind: Literal["link"]
    seq: Sequence
    value: LinkState


class Tier1Limit(_Message):
    """A rate limit for all primary traffic (Tier 1) of an access point together.

    Primary traffic is that of single-path users, and that of multipath users for whom `ap` is the
    primary access point. `mbps` is a rate on the wire. If it is None, the limit is removed.
    """

    ap: str
    mbps: Annotated[float, Field(gt=0)] | None

    def limit(self, network: Topology, apply: Callable[[str, int | None], None]) -> dict[str, Any]:
        """Call `apply(ap, limit)` with the limit in bit/s on the wire, or None for no limit.

        Return two fields for the log: the access point, and the limit in Mb/s as in the scenario
        file. Raise `MessageRefused` if `network` has no such access point.
        """
        if self.ap not in network.aps:
            known = ", ".join(network.aps) or "none"
            raise MessageRefused(f"limit Tier 1 of '{self.ap}': choose from {known}")
        apply(self.ap, None if self.mbps is None else bps_from_mbps(self.mbps))
        in_scenario = None if self.mbps is None else round(self.mbps / network.rate_scale, 6)
        return {"ap": self.ap, "mbps": in_scenario}


class Tier1Flip(_Message):
    """A request to change the rate limit for the primary traffic (Tier 1) of an access point."""

    kind: Literal["tier1"]
    seq: Sequence
    value: Tier1Limit


class StepsState(_Message):
    """Whether the strategy must pause: if `held` is True, it makes no decisions."""

    held: bool


class StepsFlip(_Message):
    """A request to pause the periodic decisions of the strategy, or to continue them.

    The runner (the process that runs a scenario) pauses the decisions while the first connections
    open. Otherwise the strategy would decide on some connections before it knows the others. The
    result would then depend on the order in which the connections open.
    """

    kind: Literal["steps"]
    seq: Sequence
    value: StepsState


InboxMessage = ParamsFlip | StrategyFlip | LinkFlip | Tier1Flip | StepsFlip
_INBOX: TypeAdapter[InboxMessage] = TypeAdapter(
    Annotated[InboxMessage, Field(discriminator="kind")]
)


def read_ap_report(datagram: bytes, key: str) -> ApReport:
    """Parse the report that the agent of an access point has sent.

    Raise `MessageRefused` if the report is invalid or does not begin with the secret `key`.
    """
    doing = "read the report of an access point"
    return _validated(doing, ApReport.model_validate, unseal(datagram, key, doing))


def read_inbox_message(text: str | bytes) -> InboxMessage:
    """Parse a message that the runner, the process that runs a scenario, has left in a file.

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
