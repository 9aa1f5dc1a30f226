"""Number the OpenFlow messages to switches, so that a warning can say what a switch has refused.

A switch that refuses a message answers with an ERROR that has the transaction id of the message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

MOST_KEPT = 4096
FIRST_XID = 1 << 30  # POX's own messages have smaller transaction ids
OPENFLOW10_ERRORS = {
    1: "BAD_REQUEST",
    2: "BAD_ACTION",
    3: "FLOW_MOD_FAILED",
    4: "PORT_MOD_FAILED",
}
OPENFLOW13_ERRORS = {
    1: "BAD_REQUEST",
    2: "BAD_ACTION",
    3: "BAD_INSTRUCTION",
    4: "BAD_MATCH",
    5: "FLOW_MOD_FAILED",
    12: "METER_MOD_FAILED",
}


class SentMessages:
    """The purposes of the latest OpenFlow messages, by transaction id.

    With them a warning can say which message a switch has refused.
    """

    def __init__(self, errors: Mapping[int, str]) -> None:
        """`errors` maps the error types of this OpenFlow version to their names."""
        self._errors = errors
        self._last = FIRST_XID
        self._kept: dict[int, str | Callable[[], str]] = {}

    def number(self, doing: str | Callable[[], str]) -> int:
        """Return the next transaction id, and store `doing` as the purpose of its message.

        `doing` is a text such as "write a path entry", or a function that returns such a text.
        """
        self._last = FIRST_XID | (self._last + 1) % FIRST_XID
        self._kept[self._last] = doing
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return self._last

    def numbered(self, message: bytes, doing: str | Callable[[], str]) -> bytes:
        """Return a copy of `message` that has the next transaction id.

        `doing` is the purpose of the message: a text, or a function that returns a text.
        """
        return message[:4] + struct.pack("!L", self.number(doing)) + message[8:]

    def refusal(self, switch: str, xid: int, error: int, code: int) -> str:
        """Return a warning that says which message `switch` has refused, and why.

        `xid` is the transaction id of the message. `error` and `code` are the type and the code of
        the switch's ERROR message.
        """
        doing = self._kept.get(xid, "carry out an OpenFlow message")
        text = doing if isinstance(doing, str) else doing()
        name = self._errors.get(error, f"error type {error}")
        return f"switch {switch} refused to {text}: {name}, code {code}. See ovs-ofctl(8)"
