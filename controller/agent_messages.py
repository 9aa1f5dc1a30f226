"""What agents and the runner tell the controller (docs/formats.md), refused with a clear error when it is garbage."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller.errors import MessageRefused

Sequence = Annotated[int, Field(ge=0)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class StationReport(_Message):
    """A station as its access point sees it; `mac_occupancy` is that of its own bearer (LTE)."""

    rssi_dbm: float | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    associated: bool = True
    mac_occupancy: Annotated[float, Field(ge=0, le=1)] | None = None


class ApReport(_Message):
    """Sent ten times a second by the agent of an access point; `mac_occupancy` is min(1, backlog / MAC slots)."""

    kind: Literal["ap"]
    seq: Sequence
    ap: str
    mac_occupancy: Annotated[float, Field(ge=0, le=1)]
    backlog_packets: Annotated[int, Field(ge=0)] = 0
    stations: dict[str, StationReport] = {}


class ParamsFlip(_Message):
    """Change parameters of the running strategy."""

    kind: Literal["params"]
    seq: Sequence
    value: dict[str, Any]


class StrategyChoice(_Message):
    """Name a strategy and its parameters; `file` is the Python file that defines it, if one does."""

    name: str
    file: str | None = None
    params: dict[str, Any] = {}


class StrategyFlip(_Message):
    """Replace the running strategy."""

    kind: Literal["strategy"]
    seq: Sequence
    value: StrategyChoice


class LinkState(_Message):
    """A link, and what is new of it: whether it carries traffic, its rate, its delay one way, its loss from its end `a` and back."""

    link: str
    up: bool | None = None
    rate_mbps: Annotated[float, Field(gt=0)] | None = None
    delay_ms: Annotated[float, Field(ge=0)] | None = None
    loss: Annotated[float, Field(ge=0, le=1)] | None = None
    loss_back: Annotated[float, Field(ge=0, le=1)] | None = None

    def scaled(self, factor: float) -> LinkState:
        """Return the same state with the rate multiplied by `factor`."""
        if self.rate_mbps is None or factor == 1:
            return self
        return self.model_copy(update={"rate_mbps": round(self.rate_mbps * factor, 6)})


class LinkFlip(_Message):
    """A link has changed."""

    kind: Literal["link"]
    seq: Sequence
    value: LinkState


InboxMessage = ParamsFlip | StrategyFlip | LinkFlip
_INBOX: TypeAdapter[InboxMessage] = TypeAdapter(
    Annotated[InboxMessage, Field(discriminator="kind")]
)


def read_ap_report(datagram: bytes) -> ApReport:
    """The report in a datagram, or `MessageRefused`."""
    try:
        return ApReport.model_validate_json(datagram)
    except ValidationError as error:
        raise MessageRefused(_refusal("read the report of an access point", error)) from error


def read_inbox_message(text: str | bytes) -> InboxMessage:
    """The message in an inbox file, or `MessageRefused`."""
    try:
        return _INBOX.validate_json(text)
    except ValidationError as error:
        raise MessageRefused(_refusal("read an inbox message", error)) from error


def _refusal(doing: str, error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the whole message"
    return f"{doing}: {where}: {first['msg']}. docs/formats.md shows what is expected"
