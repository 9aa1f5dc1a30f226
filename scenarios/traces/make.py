"""Write the traces in this folder. They are synthetic: no network was measured.

    python scenarios/traces/make.py

- lte_drive.mahimahi: LTE in a moving car, 30 s. The rate wanders between 0 and 24 Mb/s; at a change
  of the cell nothing is delivered for half a second.
- starlink.csv: a satellite link, 240 s. The path changes every 15 s, and with it rate and delay; in
  the second before it changes, more packets are lost.
- wifi_walk.csv: a WiFi station on the way from its access point and back, 60 s.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
SEED = 1


def lte_drive(rng: random.Random) -> Iterator[str]:
    """A random walk of the rate [Mb/s] in steps of 0.1 s; one line for each packet."""
    rate_mbps, owed = 10.0, 0.0
    for tenth in range(300):
        rate_mbps = min(24.0, max(0.5, rate_mbps + rng.gauss(0.15 * (9 - rate_mbps), 2.2)))
        if tenth % 95 >= 90:
            continue  # a change of the cell
        for ms in range(100 * tenth + 1, 100 * tenth + 101):
            owed += rate_mbps * 1000 / 12_000
            while owed >= 1:
                owed -= 1
                yield str(ms)
    yield "30000"


def starlink(rng: random.Random) -> Iterator[str]:
    yield "t_s,rate_mbps,delay_ms,loss"
    for second in range(240):
        if second % 15 == 0:
            rate_mbps, delay_ms = rng.uniform(8, 30), rng.uniform(18, 34)
        loss = 0.01 if second % 15 == 14 else 0.0001
        yield f"{second},{rate_mbps:.1f},{delay_ms:.1f},{loss:g}"


def wifi_walk(rng: random.Random) -> Iterator[str]:
    """40 Mb/s beside the access point, 2 Mb/s at the far end, with fading."""
    yield "t_s,rate_mbps"
    for half in range(120):
        far = (1 - math.cos(2 * math.pi * half / 120)) / 2
        rate_mbps = 40 * (2 / 40) ** far * rng.uniform(0.8, 1.2)
        yield f"{half / 2:g},{rate_mbps:.1f}"


TRACES = {
    "lte_drive.mahimahi": lte_drive,
    "starlink.csv": starlink,
    "wifi_walk.csv": wifi_walk,
}


def text(name: str) -> str:
    return "".join(f"{line}\n" for line in TRACES[name](random.Random(SEED)))  # noqa: S311 - no secret


if __name__ == "__main__":
    for each in TRACES:
        (HERE / each).write_text(text(each), encoding="utf-8")
