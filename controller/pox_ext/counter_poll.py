"""Request the counters of all bridges once per control step, and detect when all have replied.

The counters are those of ports, meters and path entries, the flow entries that forward a flow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from controller.pox_ext import openflow13_messages as messages
from controller.pox_ext.counters import Counters
from controller.pox_ext.meters import Meters
from controller.pox_ext.openflow13_channel import Channel

REPLY_TIMEOUT_S = 1.0


class CounterPoll:
    """Request counters and count the outstanding replies; call `done()` after the last reply.

    `aps` are the names of the access points, the switches that can have a meter.
    """

    def __init__(
        self, meters: Meters, counters: Counters, aps: Iterable[str], done: Callable[[], None]
    ) -> None:
        self._meters, self._counters, self._aps, self._done = meters, counters, list(aps), done
        self._outstanding = 0
        self._started_s: float | None = None

    @property
    def is_running(self) -> bool:
        """Return whether a poll has been started and not yet ended."""
        return self._started_s is not None

    def is_over(self, now_s: float) -> bool:
        """Return whether a poll is running and can be ended.

        It can be ended if no reply is outstanding, or if `REPLY_TIMEOUT_S` has passed since its
        start.
        """
        if self._started_s is None:
            return False
        return self._outstanding == 0 or now_s - self._started_s > REPLY_TIMEOUT_S

    def start(self) -> None:
        """Request the counters of meter, ports and path entries from every connected bridge."""
        self._started_s = time.monotonic()
        channels = self._meters.channels
        aps = [switch for switch in self._aps if switch in channels]
        self._outstanding = len(aps) + 2 * len(channels)
        for switch in aps:
            self._meters.read(switch, self._replied)
        for switch, channel in channels.items():
            self._request(switch, channel)

    def end(self) -> None:
        """Stop waiting for replies; a later reply still updates the counters."""
        self._started_s = None

    def _request(self, switch: str, channel: Channel) -> None:
        def with_ports(body: bytes | None) -> None:
            self._counters.take_ports(switch, messages.ports(body or b""))
            self._replied()

        def with_flows(body: bytes | None) -> None:
            self._counters.take_flows(switch, messages.flow_counts(body or b""))
            self._replied()

        channel.request(messages.port_stats_request(), with_ports)
        channel.request(messages.flow_stats_request(messages.PATHS_TABLE), with_flows)

    def _replied(self) -> None:
        self._outstanding -= 1
        if self._outstanding == 0 and self.is_running:
            self._done()
