"""Parse and validate the messages from AP agents and from the runner.

An AP agent reports the state of one access point. The runner is the process that runs a scenario;
it reports changed links and requests other strategies or parameters. docs/formats.md defines the
fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller.errors import MessageRefused
from controller.tiers import tier1_mean

Sequence = Annotated[int, Field(ge=0)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class StationReport(_Message):
    """Hold what an AP agent reports about one station of its access point.

    `associated` is False once the station has left. At an LTE base station, `mac_occupancy` is the
    MAC occupancy (see `ApReport`) of the bearer of this station; elsewhere it is None.
    """

    rssi_dbm: float | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    associated: bool = True
    mac_occupancy: Annotated[float, Field(ge=0, le=1)] | None = None


class ApReport(_Message):
    """Hold the report that the AP agent of an access point sends twice a second.

    `stations` maps the name of a user to the report about its station. `backlog_packets` is the
    number of packets that wait in the MAC. `mac_occupancy` is the mean of min(1, backlog / MAC
    slots) since the previous report, where MAC slots is the number of packets for which the MAC has
    room.
    """

    kind: Literal["ap"]
    seq: Sequence
    ap: str
    mac_occupancy: Annotated[float, Field(ge=0, le=1)]
    backlog_packets: Annotated[int, Field(ge=0)] = 0
    stations: dict[str, StationReport] = {}

    def occupancy(self, tiers: Mapping[str, int]) -> float:
        """Return the MAC occupancy of the access point.

        For an LTE base station that reports its bearers, it is the mean over the bearers that carry
        Tier 1. `tiers` maps each user to its tier at this access point; a missing user counts as
        Tier 1.
        """
        bearers = {
            user: station.mac_occupancy
            for user, station in self.stations.items()
            if station.mac_occupancy is not None
        }
        return tier1_mean(bearers, tiers) if bearers else self.mac_occupancy


class ParamsFlip(_Message):
    """Request new parameters for the running strategy; `value` maps names to values."""

    kind: Literal["params"]
    seq: Sequence
    value: dict[str, Any]


class StrategyChoice(_Message):
    """Name a strategy and its parameters.

    `file` is the Python file that defines the strategy, None for a strategy of the project.
    """

    name: str
    file: str | None = None
    params: dict[str, Any] = {}


class StrategyFlip(_Message):
    """Request that another strategy replaces the running one."""

    kind: Literal["strategy"]
    seq: Sequence
    value: StrategyChoice


class LinkState(_Message):
    """Hold the new settings of a link that has changed; a setting that is None has not changed.

    `up` is False while the link carries no traffic. `delay_ms` is the one-way delay. `loss` is the
    fraction of packets lost from end `a` of the link to end `b`, `loss_back` from `b` to `a`.
    """

    link: str
    up: bool | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    delay_ms: Annotated[float, Field(ge=0)] | None = None
    loss: Annotated[float, Field(ge=0, le=1)] | None = None
    loss_back: Annotated[float, Field(ge=0, le=1)] | None = None

    def scaled(self, factor: float) -> LinkState:
        """Return this state with `rate_mbps` multiplied by `factor`."""
        if self.rate_mbps is None or factor == 1:
            return self
        return self.model_copy(update={"rate_mbps": round(self.rate_mbps * factor, 6)})


class LinkFlip(_Message):
    """Report to the controller that a link has changed."""

    kind: Literal["link"]
    seq: Sequence
    value: LinkState


InboxMessage = ParamsFlip | StrategyFlip | LinkFlip
_INBOX: TypeAdapter[InboxMessage] = TypeAdapter(
    Annotated[InboxMessage, Field(discriminator="kind")]
)


def read_ap_report(datagram: bytes) -> ApReport:
    """Return the report in a datagram from an AP agent; raise `MessageRefused` if it is invalid."""
    try:
        return ApReport.model_validate_json(datagram)
    except ValidationError as error:
        raise MessageRefused(_refusal("read the report of an access point", error)) from error


def read_inbox_message(text: str | bytes) -> InboxMessage:
    """Parse one file of the inbox, the folder in which the runner leaves messages.

    Return a change of parameters, of the strategy or of a link. Raise `MessageRefused` if the text
    is not a valid message.
    """
    try:
        return _INBOX.validate_json(text)
    except ValidationError as error:
        raise MessageRefused(_refusal("read an inbox message", error)) from error


def _refusal(doing: str, error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole message"
    return f"{doing}: {where}: {first['msg']}. docs/formats.md shows what is expected"
