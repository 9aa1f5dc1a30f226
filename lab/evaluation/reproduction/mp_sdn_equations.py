"""Compute what users get by the equations of MP-SDN itself, without a simulation.

Eq (2): the stations of a WiFi cell send equally many packets, each of them k times on average (k by
Bianchi's model). Eq (3): the stations of an LTE cell share the air by their weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controller.units import mbps_from_bps
from lab.radio.cell import Cell
from lab.radio.contention import transmissions
from lab.results.statistics import mean
from lab.topologies.wireless_set import Params, build, users


@dataclass(frozen=True)
class Means:
    """Hold rates in Mb/s: the total of all users, and the mean of single-path and of multipath
    users. A mean over no users is 0."""

    total: float
    single: float
    multi: float


def by_equations(params: Params, seeds: Iterable[int]) -> Means:
    """Return the rates of the users by equations (2) and (3), as means over the networks of all
    `seeds`."""
    each_seed = [_of_network(params, seed) for seed in seeds]
    return Means(
        mean([each.total for each in each_seed]),
        mean([each.single for each in each_seed]),
        mean([each.multi for each in each_seed]),
    )


def _of_network(params: Params, seed: int) -> Means:
    rates: dict[str, float] = {}
    for cell in build(params, seed=seed).cells:
        for user, bps in _shares_bps(cell).items():
            rates[user] = rates.get(user, 0.0) + mbps_from_bps(round(bps))
    by_paths: dict[int, list[float]] = {1: [], 2: []}
    for each in users(params, seed):
        by_paths[len(each.uses)].append(rates[each.id])
    single, multi = (mean(here) if here else 0.0 for here in by_paths.values())
    return Means(sum(rates.values()), single, multi)


def _shares_bps(cell: Cell) -> dict[str, float]:
    """Return the rate of each station of a cell in bit/s, by eq (2) or (3)."""
    stations = cell.stations
    if cell.kind == "wifi" and stations:
        airtime = transmissions(len(stations) + 1) * sum(1 / each.rate_bps for each in stations)
        return {each.user: 1 / airtime for each in stations}
    weights = sum(each.weight for each in stations)
    return {each.user: each.weight * each.rate_bps / weights for each in stations}
