"""The agent of the access points: ten times a second it looks at their queues and shares out LTE cells;
twice a second it reports what it saw to POX.

It is a process of its own, so that POX goes on seeing the access points when the runner stands still. Its configuration
is one JSON file; it ends when its standard input does.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from lab.engines.mininet.kernel.netlink import Handle, Queue, Scheduler
from lab.engines.mininet.kernel.shaping import FQ, PFIFO, burst_bytes
from lab.radio.lte import SMALLEST_BPS, Bearer, shares_bps
from lab.radio.occupancy import PERIOD_S, occupancy

LOOKS_PER_REPORT = 5  # a datagram is dearer than a look


class WifiAgent:
    """Watches one radio queue."""

    def __init__(self, ap: dict[str, Any], scheduler: Scheduler) -> None:
        self.ap, self.device = ap, scheduler.index(ap["device"])
        self.queues: list[Handle] = [(self.device, FQ)]

    def look(self, queues: Mapping[Handle, Queue], _elapsed_s: float) -> dict[str, Any]:
        """The report of this moment."""
        waiting = queues[self.device, FQ].backlog_packets
        stations = {
            user: {"rate_mbps": each["rate_bps"] / 1e6, "associated": True}
            for user, each in self.ap["stations"].items()
        }
        return {
            "backlog_packets": waiting,
            "mac_occupancy": occupancy(waiting),
            "stations": stations,
        }


class LteAgent:
    """Watches one queue per user and moves the users' rates to their proportional-fair shares."""

    def __init__(self, ap: dict[str, Any], scheduler: Scheduler) -> None:
        self.ap, self.scheduler = ap, scheduler
        self.devices = {
            user: scheduler.index(each["device"]) for user, each in ap["stations"].items()
        }
        self.queues: list[Handle] = [(device, PFIFO) for device in self.devices.values()]
        self.sent = dict.fromkeys(self.devices, 0)
        self.granted: dict[str, int] = {}

    def look(self, queues: Mapping[Handle, Queue], elapsed_s: float) -> dict[str, Any]:
        """Share out the cell, then report."""
        seen = {user: queues[device, PFIFO] for user, device in self.devices.items()}
        bearers = {}
        for user, queue in seen.items():
            used_bps = (queue.sent_bytes - self.sent[user]) * 8 / elapsed_s
            self.sent[user] = queue.sent_bytes
            station = self.ap["stations"][user]
            bearers[user] = Bearer(
                station["rate_bps"], station["weight"], queue.backlog_packets > 0, used_bps
            )
        for user, share in shares_bps(bearers).items():
            self._grant(user, max(SMALLEST_BPS, round(share)))
        stations = {
            user: {
                "rate_mbps": self.ap["stations"][user]["rate_bps"] / 1e6,
                "associated": True,
                "mac_occupancy": occupancy(queue.backlog_packets),
            }
            for user, queue in seen.items()
        }
        waiting = sum(queue.backlog_packets for queue in seen.values())
        mean = sum(station["mac_occupancy"] for station in stations.values()) / max(
            1, len(stations)
        )
        return {"backlog_packets": waiting, "mac_occupancy": mean, "stations": stations}

    def _grant(self, user: str, rate_bps: int) -> None:
        before = self.granted.get(user, 0)
        if abs(rate_bps - before) > 0.01 * before:
            self.scheduler.set_rate(self.devices[user], rate_bps, burst_bytes(rate_bps))
            self.granted[user] = rate_bps


AGENTS: dict[str, type[WifiAgent | LteAgent]] = {"wifi": WifiAgent, "lte": LteAgent}


def serve(aps: dict[str, Any], ports: Iterable[int]) -> None:
    """Look and report until standard input ends. A line of it replaces a station's rate: {"ap", "user", "rate_bps"}."""
    scheduler = Scheduler()
    agents = {name: AGENTS[ap["kind"]](ap, scheduler) for name, ap in aps.items()}
    watched = [each for agent in agents.values() for each in agent.queues]
    looks: dict[str, list[dict[str, Any]]] = {name: [] for name in aps}
    socket_to_all = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    before, number, due = time.monotonic(), 0, time.monotonic()
    while _take_changes(aps, max(0.0, due - time.monotonic())):
        if time.monotonic() < due:
            continue
        now = time.monotonic()
        queues = scheduler.queues(watched)
        for name, agent in agents.items():
            looks[name].append(agent.look(queues, max(1e-3, now - before)))
        if number % LOOKS_PER_REPORT == 0:
            for name, seen in looks.items():
                report = json.dumps(
                    {"kind": "ap", "seq": number, "ap": name, **mean(seen)}
                ).encode()
                for port in ports:
                    socket_to_all.sendto(report, ("127.0.0.1", port))
                seen.clear()
        before, number, due = now, number + 1, max(due + PERIOD_S, now)


def mean(looks: list[dict[str, Any]]) -> dict[str, Any]:
    """One report of several looks: the mean occupancies, and the latest of the rest."""
    latest = dict(looks[-1])
    latest["mac_occupancy"] = sum(look["mac_occupancy"] for look in looks) / len(looks)
    for user, station in latest["stations"].items():
        if "mac_occupancy" in station:
            station["mac_occupancy"] = sum(
                look["stations"][user]["mac_occupancy"] for look in looks
            ) / len(looks)
    return latest


def _take_changes(aps: dict[str, Any], timeout_s: float) -> bool:
    """Wait; take one change of a station's rate if it comes; False when standard input has ended."""
    readable, _, _ = select.select([sys.stdin], [], [], timeout_s)
    if readable:
        line = sys.stdin.readline()
        if not line:
            return False
        change = json.loads(line)
        aps[change["ap"]]["stations"][change["user"]]["rate_bps"] = change["rate_bps"]
    return True


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        configuration = json.load(file)
    serve(configuration["aps"], configuration["ports"])
