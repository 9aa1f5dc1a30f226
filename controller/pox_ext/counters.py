"""The latest counters per port and flow: rates, what got lost on the way, and documents of the statistics file.

Port counters do not see what a queue drops, so a loss shows only where a flow is counted twice: what entered its first switch
and has not come out of its last one was lost, or is still under way. What the links' delay holds is known; what waits in queues
comes and goes while what is lost stays, so the smallest difference of `WINDOW_S` counts. A queue that never empties on the way
still counts once. Flow entries are told apart by their cookie, the digest of their flow.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.control import Step
from controller.observation import Subflow
from controller.paths import Flow, Path, digest
from controller.pox_ext.openflow13_messages import FlowCount, PortCount
from controller.pox_ext.rates import Rates
from controller.pox_ext.tracker import Joined
from controller.units import scenario_mbps

WINDOW_S, LEAST_LOOKS = 4.0, 3
FRAME_BITS = 1514 * 8
Document = dict[str, Any]


@dataclass
class Tally:
    """An entry's packets and bytes since it was first seen, whether or not its counters began again meanwhile."""

    packets: int = 0
    bytes: int = 0
    rate_bps: int | None = None
    _last: tuple[int, int] = (0, 0)

    def take(self, packets: int, size: int) -> None:
        """The next reading."""
        began_again = packets < self._last[0]
        before = (0, 0) if began_again else self._last
        self.packets, self.bytes = self.packets + packets - before[0], self.bytes + size - before[1]
        self._last = (packets, size)


@dataclass(frozen=True)
class Asked:
    """The way of a flow: the switches it passes, and how long a packet takes when no queue holds it [s]."""

    path: Path
    delay_s: float = 0.0


@dataclass
class Way:
    """What was counted of a flow on its way: packets that entered, packets that did not come out."""

    rate_bps: int | None = None
    sent: int = 0
    lost: int = 0
    bytes: int = 0
    _missing: list[tuple[float, int]] = field(default_factory=list)

    def count(self, first: Tally, last: Tally, delay_s: float, now_s: float) -> None:
        """The counters where it enters and where it leaves, at one moment."""
        self.sent, self.bytes, self.rate_bps = first.packets, first.bytes, first.rate_bps
        under_way = round((first.rate_bps or 0) / FRAME_BITS * delay_s)
        self._missing = [each for each in self._missing if each[0] > now_s - WINDOW_S]
        self._missing.append((now_s, first.packets - last.packets - under_way))
        if len(self._missing) >= LEAST_LOOKS:
            self.lost = max(self.lost, min(missing for _, missing in self._missing))


class Counters:
    """Takes what the switches say; `look` sums it up once per step."""

    def __init__(self, ports: Callable[[str], dict[str, int]], rate_scale: float = 1.0) -> None:
        """Take `ports(switch)`, which returns the port numbers of a switch by port name.

        Documents hold rates in scenario units: wire rates divided by `rate_scale`.
        """
        self._names, self._rate_scale = ports, rate_scale
        self._ports: dict[tuple[str, str], Document] = {}
        self._flows: defaultdict[str, dict[int, Tally]] = defaultdict(dict)  # by switch and cookie
        self._ways: dict[Flow, Way] = {}
        self._rates = Rates()

    def take_ports(self, switch: str, counts: Iterable[PortCount]) -> None:
        """Port counters of a switch."""
        names = {number: name for name, number in self._names(switch).items()}
        now_ns = time.monotonic_ns()
        for count in counts:
            name = names.get(count.port, str(count.port))
            rates: dict[str, float | None] = {}
            for way, total in (("rx", count.rx_bytes), ("tx", count.tx_bytes)):
                rate_bps = self._rates.rate_bps((switch, count.port, way), now_ns, total)
                rates[f"{way}_mbps"] = self._mbps(rate_bps)
            self._ports[switch, name] = {"switch": switch, "name": name} | vars(count) | rates

    def take_flows(self, switch: str, entries: Iterable[FlowCount]) -> None:
        """Path entries of a switch."""
        now_ns = time.monotonic_ns()
        flows = self._flows[switch]
        for tally in flows.values():
            tally.rate_bps = None
        for entry in entries:
            tally = flows.setdefault(entry.cookie, Tally())
            tally.take(entry.packets, entry.bytes)
            tally.rate_bps = self._rates.rate_bps((switch, entry.cookie), now_ns, entry.bytes)

    def flow_bps(self, switch: str, flow: Flow) -> int:
        """What a flow carries through a switch."""
        tally = self._flows[switch].get(digest(flow))
        return 0 if tally is None else tally.rate_bps or 0

    def look(self, asked: Mapping[Flow, Asked], now_s: float) -> None:
        """Sum up what has been counted of these flows, each in its own direction."""
        self._ways = {
            flow: self._summed(flow, each, now_s) for flow, each in asked.items() if each.path
        }
        known = {digest(flow) for flow in self._ways}
        for flows in self._flows.values():
            for cookie in [
                each
                for each, tally in flows.items()
                if each not in known and tally.rate_bps is None
            ]:
                del flows[cookie]

    def data(self, flow: Flow) -> Way | None:
        """Of a flow and its opposite direction the one that carries more; None when neither was counted."""
        both = [
            way
            for way in (self._ways.get(flow), self._ways.get(flow.back()))
            if way is not None and way.bytes
        ]
        return max(both, key=lambda way: way.bytes, default=None)

    def _summed(self, flow: Flow, asked: Asked, now_s: float) -> Way:
        way, cookie = self._ways.get(flow, Way()), digest(flow)
        first, last = (
            self._flows[switch].get(cookie) for switch in (asked.path[0], asked.path[-1])
        )
        if first is not None and last is not None:
            way.count(first, last, asked.delay_s, now_s)
        return way

    # --- documents

    def documents(
        self, subflows: Iterable[tuple[Joined, Subflow, bool]]
    ) -> dict[str, list[Document]]:
        """The tables `ports`, `paths` and `subflows` (each with how it joined, and whether its path was asked for)."""
        found = [self._document(*each) for each in subflows]
        by_path: dict[Path, list[Document]] = {}
        for each in found:
            by_path.setdefault(tuple(each["path"]), []).append(each)
        ways = [
            {"path": list(path), "subflows": len(on), "mbps": sum(each["mbps"] or 0 for each in on)}
            for path, on in by_path.items()
        ]
        return {"ports": list(self._ports.values()), "paths": ways, "subflows": found}

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
        """A subflow out of its document."""
        return Joined(
            document["connection"],
            document["number"],
            Flow(**document["opened"]),
            document["backup"],
        )

    def ap_documents(self, step: Step) -> list[Document]:
        """The table `aps`."""
        return [
            {
                "ap": ap.id,
                "mac_occupancy": ap.mac_occupancy,
                "tier2_mbps": self._mbps(ap.tier2_bps),
                "meter_mbps": self._mbps(ap.meter_bps),
            }
            for ap in step.seen.access_points
        ]

    def _mbps(self, rate_bps: int | None) -> float | None:
        return None if rate_bps is None else scenario_mbps(rate_bps, self._rate_scale)

    def _bps(self, rate_bps: int | None) -> int | None:
        return None if rate_bps is None else round(rate_bps / self._rate_scale)
