"""Count packets per port and per flow; compute rates, losses and rows of the statistics file.

Port counters do not include the packets that a queue drops. The loss of a flow is therefore
computed from flow entries: the packets that entered the first switch of its path, minus those that
left the last switch, minus the packets in flight. The packets in flight are estimated as rate times
link delay. Packets in queues are missing too, but only for a while. The loss is therefore the
smallest number of missing packets within `LOSS_WINDOW_S`. If a queue never empties, its packets are
wrongly counted as lost, but only once.

The counters of a flow entry are stored by the entry's cookie, which is a hash of the flow.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.control import Step
from controller.observation import Subflow
from controller.paths import Flow, Path, digest
from controller.pox_ext.openflow13_messages import FlowCount, PortCount
from controller.pox_ext.tracker import Joined
from controller.units import NS_PER_S, scenario_mbps

LOSS_WINDOW_S, MIN_READINGS = 4.0, 3
FRAME_BITS = 1514 * 8
Document = dict[str, Any]


@dataclass
class EntryCounter:
    """The packets and bytes that a flow entry has counted.

    The totals continue to grow if the switch resets its own counters to 0.
    """

    packets: int = 0
    bytes: int = 0
    rate_bps: int | None = None
    _last: tuple[int, int] = (0, 0)

    def add_reading(self, packets: int, size: int) -> None:
        """Add a reading of the switch's counters: total packets and total bytes (`size`)."""
        was_reset = packets < self._last[0]
        before = (0, 0) if was_reset else self._last
        self.packets, self.bytes = self.packets + packets - before[0], self.bytes + size - before[1]
        self._last = (packets, size)


@dataclass(frozen=True)
class PathDelay:
    """The switches that a flow passes, and the sum of the link delays between them.

    The links of hosts and the waiting times in queues are not included.
    """

    path: Path
    delay_s: float = 0.0


@dataclass
class PathCount:
    """The packet counts of one flow.

    `sent` counts the packets that entered the first switch of the path. `lost` counts the packets
    that entered the first switch and did not reach the last one. `rate_bps` and `bytes` are
    measured at the first switch.
    """

    rate_bps: int | None = None
    sent: int = 0
    lost: int = 0
    bytes: int = 0
    _missing: list[tuple[float, int]] = field(default_factory=list)

    def update(self, first: EntryCounter, last: EntryCounter, delay_s: float, now_s: float) -> None:
        """Update the counts from the flow entries at the first and at the last switch of the path.

        Both counters must have been read at the time `now_s`. `delay_s` is the sum of the link
        delays between the two switches; packets in flight do not count as lost.
        """
        self.sent, self.bytes, self.rate_bps = first.packets, first.bytes, first.rate_bps
        in_flight = round((first.rate_bps or 0) / FRAME_BITS * delay_s)
        self._missing = [each for each in self._missing if each[0] > now_s - LOSS_WINDOW_S]
        self._missing.append((now_s, first.packets - last.packets - in_flight))
        if len(self._missing) >= MIN_READINGS:
            self.lost = max(self.lost, min(missing for _, missing in self._missing))


class Counters:
    """The counters of the ports and flow entries of all switches.

    `update` computes from them the packet counts and losses of each flow.
    """

    def __init__(self, ports: Callable[[str], dict[str, int]], rate_scale: float = 1.0) -> None:
        """`ports(switch)` maps the port names of a switch to port numbers.

        In the statistics file, rates are as in the scenario file: rate on the wire / `rate_scale`.
        """
        self._port_numbers, self._rate_scale = ports, rate_scale
        self._ports: dict[tuple[str, str], Document] = {}
        # by switch and cookie
        self._flows: defaultdict[str, dict[int, EntryCounter]] = defaultdict(dict)
        self._counts: dict[Flow, PathCount] = {}
        self._rates = CounterRates()

    def take_ports(self, switch: str, counts: Iterable[PortCount]) -> None:
        names = {number: name for name, number in self._port_numbers(switch).items()}
        now_ns = time.monotonic_ns()
        for count in counts:
            name = names.get(count.port, str(count.port))
            rates: dict[str, float | None] = {}
            for direction, total in (("rx", count.rx_bytes), ("tx", count.tx_bytes)):
                rate_bps = self._rates.rate_bps((switch, count.port, direction), now_ns, total)
                rates[f"{direction}_mbps"] = self._mbps(rate_bps)
            self._ports[switch, name] = {"switch": switch, "name": name} | vars(count) | rates

    def take_flows(self, switch: str, entries: Iterable[FlowCount]) -> None:
        """Store the counters of a switch's flow entries, and compute the rate of each entry.

        `entries` must be entries that forward one flow each.
        """
        now_ns = time.monotonic_ns()
        flows = self._flows[switch]
        for counter in flows.values():
            counter.rate_bps = None
        for entry in entries:
            counter = flows.setdefault(entry.cookie, EntryCounter())
            counter.add_reading(entry.packets, entry.bytes)
            counter.rate_bps = self._rates.rate_bps((switch, entry.cookie), now_ns, entry.bytes)

    def flow_bps(self, switch: str, flow: Flow) -> int:
        """Return the rate in bit/s at which `flow` passes `switch`, 0 if it was not measured."""
        counter = self._flows[switch].get(digest(flow))
        return 0 if counter is None else counter.rate_bps or 0

    def update(self, paths: Mapping[Flow, PathDelay], now_s: float) -> None:
        """Update the packet counts of the flows in `paths`, and forget all other flows.

        The two directions of a connection are two flows.
        """
        self._counts = {
            flow: self._summed(flow, each, now_s) for flow, each in paths.items() if each.path
        }
        known = {digest(flow) for flow in self._counts}
        for switch, flows in self._flows.items():
            for cookie in [
                each
                for each, counter in flows.items()
                if each not in known and counter.rate_bps is None
            ]:
                del flows[cookie]
                self._rates.forget((switch, cookie))

    def data(self, flow: Flow) -> PathCount | None:
        """Return the counts of `flow` or of the opposite direction, whichever has more bytes.

        That direction carries the data, and the other one the ACKs. Return None if neither was
        counted.
        """
        both = [
            count
            for count in (self._counts.get(flow), self._counts.get(flow.back()))
            if count is not None and count.bytes
        ]
        return max(both, key=lambda count: count.bytes, default=None)

    def _summed(self, flow: Flow, path: PathDelay, now_s: float) -> PathCount:
        count, cookie = self._counts.get(flow, PathCount()), digest(flow)
        first, last = (self._flows[switch].get(cookie) for switch in (path.path[0], path.path[-1]))
        if first is not None and last is not None:
            count.update(first, last, path.delay_s, now_s)
        return count

    # Rows of the statistics file

    def documents(
        self, subflows: Iterable[tuple[Joined, Subflow, bool]]
    ) -> dict[str, list[Document]]:
        """Return the rows of the tables `ports`, `paths` and `subflows` of the statistics file.

        Each element of `subflows` has three parts: the subflow as tracked from its SYN packets, the
        subflow as strategies observe it, and True if a strategy chose its path.
        """
        found = [self._document(*each) for each in subflows]
        by_path: dict[Path, list[Document]] = {}
        for each in found:
            by_path.setdefault(tuple(each["path"]), []).append(each)
        path_documents = [
            {"path": list(path), "subflows": len(on), "mbps": sum(each["mbps"] or 0 for each in on)}
            for path, on in by_path.items()
        ]
        return {"ports": list(self._ports.values()), "paths": path_documents, "subflows": found}

    def _document(self, joined: Joined, subflow: Subflow, pinned: bool) -> Document:
        plain = vars(subflow) | {
            "path": list(subflow.path),
            "opened": vars(joined.flow),
            "pinned": pinned,
        }
        rates = {
            "rate_bps": self._bps(subflow.rate_bps),
            "expected_bps": self._bps(subflow.expected_bps),
            "mbps": self._mbps(subflow.rate_bps),
        }
        return plain | rates

    @staticmethod
    def joined(document: Document) -> Joined:
        return Joined(
            document["connection"],
            document["number"],
            Flow(**document["opened"]),
            document["backup"],
        )

    def ap_documents(self, step: Step) -> list[Document]:
        """Return the rows of the table `aps` of the statistics file, one per access point."""
        return [
            {
                "ap": ap.id,
                "mac_occupancy": ap.mac_occupancy,
                "tier2_mbps": self._mbps(ap.tier2_bps),
                "meter_mbps": self._mbps(ap.meter_bps),
            }
            for ap in step.observation.access_points
        ]

    def _mbps(self, rate_bps: int | None) -> float | None:
        return None if rate_bps is None else scenario_mbps(rate_bps, self._rate_scale)

    def _bps(self, rate_bps: int | None) -> int | None:
        return None if rate_bps is None else round(rate_bps / self._rate_scale)


class CounterRates:
    """Computes rates from readings of byte counters.

    A switch may reset a counter to 0 between two readings.
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[int, int]] = {}

    def rate_bps(
        self, name: Hashable, now_ns: int, total_bytes: int, least_ns: int = 0
    ) -> int | None:
        """Store a reading of the counter `name`; return the rate in bit/s since the last reading.

        Return None at the first reading. If `total_bytes` is smaller than in the last reading, the
        counter is taken to have been reset to 0 right after that reading. A reading less than
        `least_ns` after the last one is ignored, and the result is None.
        """
        before = self._last.get(name)
        if before is not None and 0 <= now_ns - before[0] < least_ns:
            return None
        self._last[name] = (now_ns, total_bytes)
        if before is None or now_ns <= before[0]:
            return None
        grown_bytes = total_bytes - before[1] if total_bytes >= before[1] else total_bytes
        return round(grown_bytes * 8 * NS_PER_S / (now_ns - before[0]))

    def restart(self, name: Hashable, now_ns: int, total_bytes: int) -> None:
        self._last[name] = (now_ns, total_bytes)

    def forget(self, name: Hashable) -> None:
        """Forget the counter `name`, so that its next reading counts as the first."""
        self._last.pop(name, None)
