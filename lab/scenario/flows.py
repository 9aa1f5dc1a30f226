"""Turn a scenario's traffic into flows and a time line of starts, stops and pauses. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controller.units import bps_from_mbps
from lab.scenario.schema import Traffic

PAUSED_BPS = 0


@dataclass(frozen=True)
class Flow:
    """Describe one connection; `ue2-1` is the first one of ue2.

    `rate_bps` limits its application; None: as much as possible.
    """

    id: str
    user: str
    direction: str
    cc: str
    rate_bps: int | None
    volume_bytes: int | None
    protocol: str = "tcp"  # or udp, which sends at its rate without feedback


@dataclass(frozen=True)
class Act:
    """Start or stop a flow, or set its rate, at `at_s` seconds."""

    at_s: float
    verb: str
    flow: Flow
    rate_bps: int | None = None


def plan(traffic: Iterable[Traffic], seed: int, duration_s: float) -> list[Act]:
    """Return the time line of a run, ordered by time.

    Rates and volumes come as on the wire (`lab.scenario.loading.scaled_traffic`).
    """
    acts: list[Act] = []
    count: dict[str, int] = {}
    for each in traffic:
        for _ in range(each.parallel):
            number = count[each.user] = count.get(each.user, 0) + 1
            rate = (
                bps_from_mbps(each.rate_mbps / each.parallel)
                if each.rate_mbps is not None
                else None
            )
            volume = (
                round(each.volume_mb * 1e6 / each.parallel) if each.volume_mb is not None else None
            )
            protocol = "udp" if each.kind == "udp" else "tcp"
            flow = Flow(
                f"{each.user}-{number}",
                each.user,
                each.direction,
                each.cc or "reno",
                rate,
                volume,
                protocol,
            )
            acts.append(Act(each.start_s, "start", flow))
            if each.stop_s is not None:
                acts.append(Act(each.stop_s, "stop", flow))
            if each.kind == "on_off":
                acts += _on_off(each, flow, random.Random(f"{seed}/{flow.id}"), duration_s)
    return sorted(acts, key=lambda act: (act.at_s, act.flow.id))


def _on_off(each: Traffic, flow: Flow, chance: random.Random, duration_s: float) -> Iterator[Act]:
    """Yield the changes between exponential periods of sending and silence, sending first."""
    now, end, on = each.start_s, min(duration_s, each.stop_s or duration_s), True
    while True:
        now += chance.expovariate(1 / (each.on_s if on else each.off_s))
        if now >= end:
            return
        on = not on
        yield Act(now, "rate", flow, flow.rate_bps if on else PAUSED_BPS)
