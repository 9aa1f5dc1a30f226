"""The random cases of the ns-3 table, and how fast their applications must send.

This file imports only Python's standard library, because both the Python that has ns-3 and the one
that has the lab import it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

RATES_MBPS = {
    "11a": (6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0),
    "11n5": (6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0),
}
MOST_STATIONS = 15
FULL_IP_BYTES = 1500
GROUPS = {  # number of cases in each group
    "one station": 40,
    "downloads": 40,
    "uploads": 30,
    "both directions": 30,
    "TCP downloads": 25,
    "TCP uploads": 25,
    "802.11n downloads": 10,
    "802.11n uploads": 10,
}
SATURATING = 1.5  # times the throughput of a cell without backoff and collisions


@dataclass(frozen=True)
class Case:
    """One cell: each station has a fixed PHY rate and one flow.

    `number` is the seed of the case. `is_upload` and `rates_mbps` have one entry per station.
    `ip_bytes` is the size of all IP packets that carry data.
    """

    number: int
    group: str
    rates_mbps: tuple[float, ...]
    is_upload: tuple[bool, ...]
    ip_bytes: int = FULL_IP_BYTES

    @property
    def standard(self) -> str:
        """A key of `RATES_MBPS`."""
        return "11n5" if self.group.startswith("802.11n") else "11a"

    @property
    def is_tcp(self) -> bool:
        """If False, flows send datagrams at a constant rate."""
        return self.group.startswith("TCP")


def cases() -> list[Case]:
    """All cases; their numbers count from 1."""
    groups = [group for group, count in GROUPS.items() for _ in range(count)]
    return [_case(number, group) for number, group in enumerate(groups, 1)]


def _case(number: int, group: str) -> Case:
    rng = random.Random(f"wifi cell {number}")
    fewest = {"one station": 1, "both directions": 2}.get(group, 1)
    stations = 1 if group == "one station" else rng.randint(fewest, MOST_STATIONS)
    known = RATES_MBPS["11n5" if group.startswith("802.11n") else "11a"]
    rates = tuple(rng.choice(known) for _ in range(stations))
    if group == "one station":
        return Case(number, group, rates, (rng.random() < 0.5,), rng.randint(60, FULL_IP_BYTES))
    if group == "both directions":
        downloads = rng.randint(1, stations - 1)
        return Case(number, group, rates, (False,) * downloads + (True,) * (stations - downloads))
    return Case(number, group, rates, (group.endswith("uploads"),) * stations)


def saturating_frames_per_s(case: Case) -> list[float]:
    """Datagrams per second that each flow must send so that its sender always has one.

    Each uploading station gets as many turns as the access point, which divides its turns among the
    downloads. The time of a frame is a lower bound here: without backoff, and with aggregation.
    """
    fixed_s = 20e-6 if case.standard == "11n5" else 120e-6
    frames_s = [fixed_s + 8e-6 * (case.ip_bytes + 36) / mbps for mbps in case.rates_mbps]
    up_s = sum(each for each, up in zip(frames_s, case.is_upload, strict=True) if up)
    down_s = [each for each, up in zip(frames_s, case.is_upload, strict=True) if not up]
    turn_s = up_s + (sum(down_s) / len(down_s) if down_s else 0.0)
    share = 1 / max(1, len(down_s))
    return [SATURATING * (1.0 if up else share) / turn_s for up in case.is_upload]
