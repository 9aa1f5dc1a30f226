"""Encode and check the messages between the controller and host agents (docs/formats.md).

A host agent runs on a host; it reports the MPTCP subflows of the host and carries out commands,
similar to DTMC selection, section IV. Each datagram begins with the secret key of the run
(`controller.datagrams`). This module imports no validation library, so that agents start quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.datagrams import seal, unseal
from controller.errors import MessageRefused

VERSION = 2
MOST_SUBFLOWS = 256
NO_TOKEN = "00000000"  # noqa: S105 - no secret: in place of the token of a TCP connection without MPTCP
LARGEST = 2**63


@dataclass(frozen=True)
class SubflowChange:
    """New settings for a subflow. A setting that is None stays as it is.

    `source` and `destination` are `address:port`; the user is at `destination`. `expected_mbps` is
    the pacing rate on the wire, counting whole Ethernet frames; 0 removes the pacing.
    """

    source: str
    destination: str
    backup: bool | None = None
    expected_mbps: float | None = None


@dataclass(frozen=True)
class HostCommand:
    """A command to the agent on `host` to change subflows of one connection.

    `token` is the connection's name, as in `Subflow.connection`. Each command must have a larger
    `seq` than the one before; otherwise the host refuses the command.
    """

    seq: int
    host: str
    token: str
    subflows: tuple[SubflowChange, ...]


@dataclass(frozen=True)
class SubflowState:
    """A subflow as the agent on one of its two hosts reports it.

    `token` is the MPTCP token of the connection at this host, or `NO_TOKEN` without MPTCP. `local`
    is the end at this host and `remote` the other end, both `address:port`. `expected_mbps` is the
    pacing rate in Mb/s, or None if the subflow is not paced.
    """

    token: str
    local: str
    remote: str
    backup: bool
    expected_mbps: float | None
    retransmitted_packets: int


@dataclass(frozen=True)
class HostReport:
    """A host agent's report: all subflows of the host, and the loss on its paths.

    `loss` maps each address of the host to the fraction of data packets lost on the path of this
    address. `seq` is larger in each new report.
    """

    seq: int
    host: str
    subflows: tuple[SubflowState, ...] = ()
    loss: Mapping[str, float] = field(default_factory=dict)


def encode(message: HostCommand | HostReport, key: str) -> bytes:
    fields = {**vars(message), "subflows": [vars(each) for each in message.subflows]}
    return seal({"v": VERSION, **fields}, key)


def read_command(datagram: bytes, key: str) -> HostCommand:
    """Parse a command to a host agent.

    Raise `MessageRefused` if the datagram is not a valid command or does not begin with the secret
    `key`.
    """
    reading = _Reading("read a command", datagram, key, {"seq", "host", "token", "subflows"})
    subflows = tuple(_subflow_change(each) for each in reading.parts("subflows", SubflowChange))
    return HostCommand(reading.count("seq"), reading.text("host"), reading.text("token"), subflows)


def read_report(datagram: bytes, key: str) -> HostReport:
    """Parse the report of a host agent.

    Raise `MessageRefused` if the datagram is not a valid report or does not begin with the secret
    `key`.
    """
    reading = _Reading(
        "read the report of a host", datagram, key, {"seq", "host", "subflows", "loss"}
    )
    subflows = tuple(_subflow_state(each) for each in reading.parts("subflows", SubflowState))
    return HostReport(
        reading.count("seq"), reading.text("host"), subflows, reading.fractions("loss")
    )


class _Part:
    """One JSON object of a message, with a method for each type of field.

    A method returns the field `name`, or raises `MessageRefused` if the value is not valid. The
    error message begins with `doing`.
    """

    def __init__(self, doing: str, values: Any, fields: set[str]) -> None:
        self.doing = doing
        if not isinstance(values, dict) or set(values) != fields:
            raise self._refused(
                "the whole message" if not isinstance(values, dict) else "its fields",
                f"not {sorted(fields)}",
            )
        self._values = values

    def text(self, name: str) -> str:
        return str(
            self._checked(
                name, lambda value: isinstance(value, str) and 0 < len(value) <= 64, "no text"
            )
        )

    def flag(self, name: str) -> bool:
        return bool(
            self._checked(name, lambda value: isinstance(value, bool), "neither true nor false")
        )

    def flag_or_none(self, name: str) -> bool | None:
        return None if self._values[name] is None else self.flag(name)

    def count(self, name: str) -> int:
        return int(
            self._checked(
                name,
                lambda value: type(value) is int and 0 <= value < LARGEST,
                "no whole number from 0 on",
            )
        )

    def rate(self, name: str) -> float | None:
        value = self._checked(
            name,
            lambda each: each is None or (_is_number(each) and 0 <= each <= 1e6),
            "no rate, and not null",
        )
        return None if value is None else float(value)

    def fractions(self, name: str) -> dict[str, float]:
        def fine(values: Any) -> bool:
            return isinstance(values, dict) and all(
                _is_number(each) and 0 <= each <= 1 for each in values.values()
            )

        return {
            key: float(value) for key, value in self._checked(name, fine, "no fractions").items()
        }

    def parts(self, name: str, kind: type[SubflowChange | SubflowState]) -> list[_Part]:
        values = self._checked(
            name, lambda each: isinstance(each, list) and len(each) <= MOST_SUBFLOWS, "no list"
        )
        return [
            _Part(f"{self.doing}: {name}", each, set(kind.__dataclass_fields__)) for each in values
        ]

    def _checked(self, name: str, fine: Callable[[Any], bool], wrong: str) -> Any:
        value = self._values[name]
        if not fine(value):
            raise self._refused(name, wrong)
        return value

    def _refused(self, where: str, wrong: str) -> MessageRefused:
        return MessageRefused(
            f"{self.doing}: {where}: {wrong}. docs/formats.md shows what is expected"
        )


class _Reading(_Part):
    """A whole message. The constructor checks the key, the names of the fields and the version."""

    def __init__(self, doing: str, datagram: bytes, key: str, fields: set[str]) -> None:
        super().__init__(doing, unseal(datagram, key, doing), fields | {"v"})
        if self._values["v"] != VERSION:
            raise self._refused("v", f"not {VERSION}")


def _subflow_change(part: _Part) -> SubflowChange:
    return SubflowChange(
        part.text("source"),
        part.text("destination"),
        part.flag_or_none("backup"),
        part.rate("expected_mbps"),
    )


def _subflow_state(part: _Part) -> SubflowState:
    return SubflowState(
        part.text("token"),
        part.text("local"),
        part.text("remote"),
        part.flag("backup"),
        part.rate("expected_mbps"),
        part.count("retransmitted_packets"),
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
