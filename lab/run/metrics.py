"""From samples and the engine's report to the numbers of result.json: pure functions.

A frame holds means over the interval that ends at its `t`, so a mean over the run weighs each frame by its interval.
Rates are receivers' goodput in Mb/s. What was not measured is null, never zero.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from lab.topologies.topology import Topology

Frame = dict[str, Any]
CONVERGED_WITHIN = 0.10  # of the mean over the second half of the run
CONVERGENCE_WINDOW_S = 5.0
CONVERGENCE_AT_LEAST_S = 20.0


def result(
    header: dict[str, Any],
    topology: Topology,
    frames: Sequence[Frame],
    report: dict[str, Any] | None,
) -> dict[str, Any]:
    """The whole of result.json. `header` holds run_id, scenario, strategy, engine, seed and status; `report` is None after a crash."""
    report = report or {}
    weights = intervals(frames)
    aps = {ap: _ap(frames, weights, ap, topology) for ap in topology.ids("wifi", "lte")}
    connections = [_connection(each) for each in report.get("connections", [])]
    users = {user: _user(frames, weights, user, topology, connections) for user in topology.users}
    rates = [
        user["throughput_mbps"] for user in users.values() if user["throughput_mbps"] is not None
    ]
    overload = report.get("overload") or {}
    return {
        "schema": 1,
        **{key: header[key] for key in ("run_id", "scenario", "strategy")},
        "cc": report.get("cc"),
        **{key: header[key] for key in ("engine", "seed")},
        "duration_s": frames[-1]["t"] if frames else 0.0,
        "status": header["status"],
        "overloaded": bool(overload.get("overloaded", overload.get("reasons"))),
        "overload": overload,
        "throughput_mbps": _rounded(sum(rates)) if rates else None,
        "tiers": _tiers(
            frames, weights, {} if topology.relays else aps
        ),  # what is relayed passes several
        "aps": aps,
        "users": users,
        "connections": connections,
        "fairness": {"jain": _rounded(jain(rates)), "sd_mbps": _rounded(sd(rates))},
        "convergence_s": convergence_s(frames),
        "mptcp": {"verified": False, "joins": 0, "fallbacks": 0} | (report.get("mptcp") or {}),
    }


def intervals(frames: Sequence[Frame]) -> list[float]:
    """The length in s of the interval each frame stands for; the first begins at 0."""
    ends = [frame["t"] for frame in frames]
    return [end - start for start, end in zip([0.0, *ends], ends, strict=False)]


def mean(values: Iterable[float | None], weights: Sequence[float]) -> float | None:
    """Weighted mean of what was measured; None if nothing was."""
    pairs = [
        (value, weight)
        for value, weight in zip(values, weights, strict=True)
        if value is not None and weight > 0
    ]
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None


def jain(rates: Sequence[float]) -> float | None:
    """(sum x)^2 / (n sum x^2) (Jain, Chiu and Hawe 1984): 1 if all are equal, 1/n if one takes everything."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def sd(rates: Sequence[float]) -> float | None:
    """Standard deviation over the users there are (not an estimate for others)."""
    if not rates:
        return None
    centre = sum(rates) / len(rates)
    return math.sqrt(sum((rate - centre) ** 2 for rate in rates) / len(rates))


def convergence_s(frames: Sequence[Frame]) -> float | None:
    """When the total throughput, as a mean over the last 5 s, came within 10 % of its mean over the second half, and stayed.

    None for runs shorter than 20 s, for silent ones, and for those that never settle.
    """
    if not frames or frames[-1]["t"] < CONVERGENCE_AT_LEAST_S:
        return None
    totals = [
        sum(user.get("mbps") or 0.0 for user in frame.get("user", {}).values()) for frame in frames
    ]
    weights = intervals(frames)
    half = frames[-1]["t"] / 2
    late = [
        weight if frame["t"] > half else 0.0 for frame, weight in zip(frames, weights, strict=True)
    ]
    settled = mean(totals, late)
    if not settled:
        return None
    since: float | None = None
    window: deque[tuple[float, float, float]] = deque()
    for frame, total, weight in zip(frames, totals, weights, strict=True):
        window.append((frame["t"], total, weight))
        while window[0][0] <= frame["t"] - CONVERGENCE_WINDOW_S:
            window.popleft()
        if frame["t"] >= CONVERGENCE_WINDOW_S:
            recent = mean([each[1] for each in window], [each[2] for each in window]) or 0.0
            close = abs(recent - settled) <= CONVERGED_WITHIN * settled
            since = (frame["t"] if since is None else since) if close else None
    return since


def _ap(
    frames: Sequence[Frame], weights: Sequence[float], ap: str, topology: Topology
) -> dict[str, Any]:
    seen = [frame.get("ap", {}).get(ap, {}) for frame in frames]
    tiers = [mean((each.get(f"tier{n}_mbps") for each in seen), weights) for n in (1, 2)]
    known = [tier for tier in tiers if tier is not None]
    return {
        "kind": topology.cell(ap).kind,
        "throughput_mbps": _rounded(sum(known)) if known else None,
        "tier1_mbps": _rounded(tiers[0]),
        "tier2_mbps": _rounded(tiers[1]),
        "mac_occupancy_mean": _rounded(mean((each.get("mac_occupancy") for each in seen), weights)),
    }


def _user(
    frames: Sequence[Frame],
    weights: Sequence[float],
    user: str,
    topology: Topology,
    connections: list[dict[str, Any]],
) -> dict[str, Any]:
    rates = [frame.get("user", {}).get(user, {}).get("mbps") for frame in frames]
    return {
        "kind": "multipath" if user in topology.multipath else "single_path",
        "throughput_mbps": _rounded(mean(rates, weights)),
        "by_ap": _by_ap(frames, weights, user) or _by_ap_of(connections, user, topology),
    }


def _by_ap(frames: Sequence[Frame], weights: Sequence[float], user: str) -> dict[str, float | None]:
    """Per access point from subflow samples that name their `user` and `ap`; a subflow that is not there carries nothing."""
    shares: dict[str, list[float]] = {}
    for n, frame in enumerate(frames):
        for subflow in frame.get("sf", {}).values():
            if subflow.get("user") == user and subflow.get("ap"):
                series = shares.setdefault(subflow["ap"], [0.0] * len(frames))
                series[n] += subflow.get("mbps") or 0.0
    return {ap: _rounded(mean(series, weights)) for ap, series in sorted(shares.items())}


def _by_ap_of(
    connections: list[dict[str, Any]], user: str, topology: Topology
) -> dict[str, float | None]:
    """The same from the report: the access point is the one on the subflow's path."""
    aps = topology.ids("wifi", "lte")
    shares: dict[str, float] = {}
    for subflow in (
        each
        for connection in connections
        if connection["user"] == user
        for each in connection["subflows"]
    ):
        ap = next((node for node in subflow["path"] if node in aps), None)
        if ap and subflow["throughput_mbps"] is not None:
            shares[ap] = shares.get(ap, 0.0) + subflow["throughput_mbps"]
    return {ap: _rounded(rate) for ap, rate in sorted(shares.items())}


def _tiers(
    frames: Sequence[Frame], weights: Sequence[float], aps: dict[str, dict[str, Any]]
) -> dict[str, float | None]:
    """Sums over access points; without any, over the subflows, a subflow without a tier counting as Tier 1."""
    sums: dict[str, float | None] = {}
    for n in (1, 2):
        if aps:
            known = [ap[f"tier{n}_mbps"] for ap in aps.values() if ap[f"tier{n}_mbps"] is not None]
            sums[str(n)] = _rounded(sum(known)) if known else None
        else:
            sums[str(n)] = _rounded(
                mean((_subflows_of_tier(frame, n) for frame in frames), weights)
            )
    return sums


def _subflows_of_tier(frame: Frame, tier: int) -> float | None:
    if "sf" not in frame:
        return None
    return float(
        sum(
            each.get("mbps") or 0.0
            for each in frame["sf"].values()
            if (each.get("tier") or 1) == tier
        )
    )


CONNECTION = (
    "id",
    "user",
    "throughput_mbps",
    "completion_s",
    "out_of_order_fraction",
    "receive_buffer_max_bytes",
)
SUBFLOW = (
    "id",
    "path",
    "tier",
    "throughput_mbps",
    "rtt_ms_mean",
    "segments",
    "out_of_order_segments",
    "lost_segments",
    "retransmitted_segments",
    "backup_s",
)


def _connection(reported: dict[str, Any]) -> dict[str, Any]:
    """A reported connection with every field of the contract; what the engine did not measure is null."""
    subflows = [
        dict.fromkeys(SUBFLOW) | {"path": []} | subflow for subflow in reported.get("subflows", [])
    ]
    return dict.fromkeys(CONNECTION) | reported | {"subflows": subflows}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
