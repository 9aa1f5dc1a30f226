"""The latest counters per port, path and subflow, as documents of the statistics file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from controller import paths
from controller.control import Step
from controller.observation import Subflow
from controller.paths import Flow
from controller.pox_ext.observer import to_user
from controller.pox_ext.openflow13 import FlowEntry, PortCount
from controller.pox_ext.rates import Rates
from controller.pox_ext.tracker import Joined
from controller.units import mbps

Document = dict[str, Any]


class Counters:
    """Flow entries are told apart by their cookie, the digest of their flow."""

    def __init__(self, ports: Callable[[str], dict[str, int]]) -> None:
        """`ports(switch)` gives the numbers of its ports by name."""
        self._names = ports
        self._ports: dict[tuple[str, int], Document] = {}
        self._flows: dict[tuple[str, int], Document] = {}
        self._rates = Rates()

    def take_ports(self, switch: str, counts: Iterable[PortCount]) -> None:
        """Port counters of a switch; they do not see what a queue drops."""
        names = {number: name for name, number in self._names(switch).items()}
        now_ns = time.monotonic_ns()
        for count in counts:
            rates = {
                f"{way}_mbps": _mbps(self._rates.rate_bps((switch, count.port, way), now_ns, total))
                for way, total in (("rx", count.rx_bytes), ("tx", count.tx_bytes))
            }
            known = {"switch": switch, "name": names.get(count.port, str(count.port))}
            self._ports[switch, count.port] = known | asdict(count) | rates

    def take_flows(self, switch: str, entries: Iterable[FlowEntry]) -> None:
        """Path entries of a switch; the others have no cookie."""
        now_ns = time.monotonic_ns()
        stale = [key for key in self._flows if key[0] == switch]
        for key in stale:
            del self._flows[key]
        for entry in entries:
            if entry.cookie:
                key = (switch, entry.cookie)
                self._flows[key] = {
                    "bytes": entry.bytes,
                    "packets": entry.packets,
                    "mbps": _mbps(self._rates.rate_bps(key, now_ns, entry.bytes)),
                }

    def documents(self, subflows: Iterable[tuple[Joined, Subflow]]) -> dict[str, list[Document]]:
        """The tables `ports`, `paths` and `subflows`; what a subflow carries is counted where it enters."""
        found = [self._subflow(joined, subflow) for joined, subflow in subflows]
        by_path: dict[tuple[str, ...], list[Document]] = {}
        for each in found:
            by_path.setdefault(tuple(each["path"]), []).append(each)
        ways = [
            {"path": list(path), "subflows": len(on), "mbps": sum(each["mbps"] or 0 for each in on)}
            for path, on in by_path.items()
        ]
        return {"ports": list(self._ports.values()), "paths": ways, "subflows": found}

    def _subflow(self, joined: Joined, subflow: Subflow) -> Document:
        cookie = paths.digest(to_user(subflow))
        entry = self._flows.get((subflow.path[0], cookie), {}) if subflow.path else {}
        counted = {key: entry.get(key) for key in ("bytes", "packets", "mbps")}
        return asdict(subflow) | {"path": list(subflow.path), "backup": joined.backup, "opened": asdict(joined.flow)} | counted

    @staticmethod
    def joined(document: Document) -> Joined:
        """A subflow out of its document."""
        return Joined(document["connection"], document["number"], Flow(**document["opened"]), document["backup"])

    @staticmethod
    def ap_documents(step: Step) -> list[Document]:
        """The table `aps`."""
        return [
            {
                "ap": ap.id,
                "mac_occupancy": ap.mac_occupancy,
                "tier2_mbps": _mbps(ap.tier2_bps),
                "meter_mbps": _mbps(ap.meter_bps),
            }
            for ap in step.seen.access_points
        ]


def _mbps(rate_bps: int | None) -> float | None:
    return None if rate_bps is None else mbps(rate_bps)
