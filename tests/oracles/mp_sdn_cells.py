"""The WiFi cells of claim 1 of MP-SDN (thirty_users), for ns-3, and its users' rates there.

    PYTHONPATH=. .venv/bin/python -m tests.oracles.mp_sdn_cells > cells.jsonl
    ns3/bin/python tests/oracles/ns3_mp_sdn_table.py cells.jsonl tests/oracles/ns3_mp_sdn.jsonl

Each station of a cell downloads over TCP, also those of multipath users: with Reno, which couples
nothing, the subflows of plain Multipath TCP are such connections while the receive buffer suffices.
LTE is not simulated: its stations share the air by MP-SDN's equation (3).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lab.radio.cell import Cell
from lab.radio.dcf import phy_mbps
from lab.results.statistics import mean
from lab.topologies.wireless_set import Params, build, users
from papers.mp_sdn import Means
from papers.mp_sdn_runs import GOODPUT

TABLE = Path(__file__).parent / "ns3_mp_sdn.jsonl"
SEEDS, PERCENTS = range(1, 6), (0, 20, 80)


def cells_of(seed: int, percent: int) -> tuple[Cell, ...]:
    return build(Params(multipath_percent=percent), seed=seed).cells


def wifi_cells() -> Iterator[dict[str, Any]]:
    """Yield each WiFi cell that has stations, with their users and PHY rates in Mb/s."""
    for seed in SEEDS:
        for percent in PERCENTS:
            for cell in cells_of(seed, percent):
                if cell.kind == "wifi" and cell.stations:
                    rates = [phy_mbps("11a", each.rate_bps / 1e6) for each in cell.stations]
                    names = [each.user for each in cell.stations]
                    yield {"seed": seed, "percent": percent, "users": names, "rates_mbps": rates}


def means_of(table: Iterable[dict[str, Any]], seed: int, percent: int) -> Means:
    """Return the users' goodput in Mb/s: over WiFi that of ns-3, over LTE that of equation (3)."""
    found: dict[str, float] = {}
    for row in table:
        if (row["seed"], row["percent"]) == (seed, percent):
            for user, mbps in zip(row["users"], row["goodput_mbps"], strict=True):
                found[user] = found.get(user, 0.0) + mbps
    (lte,) = (each for each in cells_of(seed, percent) if each.kind == "lte")
    weights = sum(each.weight for each in lte.stations)
    for each in lte.stations:
        own = each.weight / weights * each.rate_bps / 1e6 * GOODPUT
        found[each.user] = found.get(each.user, 0.0) + own
    paths = {each.id: len(each.uses) for each in users(Params(multipath_percent=percent), seed)}
    single, multi = ([found[user] for user in paths if paths[user] == n] for n in (1, 2))
    return Means(sum(found.values()), mean(single), mean(multi) if multi else 0.0)


if __name__ == "__main__":
    for line in wifi_cells():
        print(json.dumps(line))
