"""Claim 1 of MP-SDN in ns-3: do multipath users lose, too, when there are more of them?"""

from __future__ import annotations

import json

from lab.results.statistics import mean

from .mp_sdn_cells import PERCENTS, SEEDS, TABLE, means_of, wifi_cells

ROWS = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]


def test_the_table_has_the_cells_of_the_lab():
    assert [{**row, "goodput_mbps": None} for row in ROWS] == [
        {**cell, "goodput_mbps": None} for cell in wifi_cells()
    ]


def test_more_multipath_users_cost_the_network_and_everybody():
    total, single, multi = (
        {
            percent: mean([getattr(means_of(ROWS, seed, percent), name) for seed in SEEDS])
            for percent in PERCENTS
        }
        for name in ("total", "single", "multi")
    )
    assert total[0] > 1.05 * total[80]
    assert single[0] > 1.05 * single[80]
    assert multi[20] > 1.05 * multi[80]  # the paper says that they keep their rate
