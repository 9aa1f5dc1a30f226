"""Repeat the changes that were made by hand during a simulated run, at their simulated times.

events.jsonl of the old run has each message that the run took from its inbox, with the simulated
time. `Replay` gives the same messages to a new run at the same simulated times. The new run then
writes the same lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab.run.pace import Pace

Message = tuple[str, dict[str, Any], str]  # as `lab.run.inbox.receive` yields it
CONTENT = ("target", "control", "value")  # the keys of a message
NEAR_S = 0.0005  # events hold their time rounded to 1 ms


class Replay:
    """The messages that a run received while it went on, for another run to receive them again.

    `events` are the lines of the old run's events.jsonl.
    """

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Find the messages in `events`.

        A message can have several events. Its content, and the time at which the run took it, are
        those of the first one.
        """
        first: dict[str, Mapping[str, Any]] = {}
        for each in events:
            if "seq" in each and each.get("source") != "scenario":
                first.setdefault(each["seq"], each)
        self._left = list(first.values())

    def messages(self, now_s: float) -> Iterator[Message]:
        """Yield each message that the old run had received by the simulated time `now_s`.

        No message is yielded twice.
        """
        while self._left and self._left[0]["t"] <= now_s + NEAR_S:
            event = self._left.pop(0)
            message = {key: event[key] for key in CONTENT if key in event}
            problem = "" if message else str(event.get("error", ""))
            yield event["seq"], message, problem


class WithoutWaiting(Pace):
    """Makes a run go as fast as possible. A repeated message "pause" does not stop it."""

    def wait_s(self, now_s: float) -> float:
        return 0.0
