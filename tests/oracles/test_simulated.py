"""Whole simulated runs of `pooling`, whose connections start at random moments."""

from __future__ import annotations

import random
from statistics import fmean, pstdev

import pytest

from .simulated import frames

pytestmark = pytest.mark.oracle

SHORT, LONG = range(200), range(10)


def by_user(subflows, field):
    """Sum of a field over the subflows of each user."""
    found = {}
    for name, each in subflows.items():
        user = name.split("-")[0]
        found[user] = found.get(user, 0.0) + (each[field] or 0.0)
    return found


def spread(rates):
    return pstdev(rates.values())


def test_pacing_rates_are_equal_whenever_subflows_come(truth):
    worst = []
    for seed in SHORT:
        rng = random.Random(5000 + seed)
        starts = (rng.uniform(0.5, 1.5), rng.uniform(2.0, 3.0))
        settings = (
            f"topology.path_delay_ms={rng.randint(5, 100)}",
            *(f"traffic.{n}.start_s={at:.3f}" for n, at in zip((2, 3), starts, strict=True)),
        )
        last = frames("pooling", 4.5, "expected_throughput", *settings)[-1]
        worst.append(spread(by_user(last["sf"], "expected_mbps")))
    failed = sum(each > 0.001 for each in worst)
    text = f"SD {max(worst):.6f} Mb/s"
    truth("pacing rates of `pooling` in the simulator", len(worst), failed, text, "<= 0.001 Mb/s")
    assert not failed


def test_received_rates_are_equal_whenever_subflows_come(truth):
    worst = []
    for seed in LONG:
        rng = random.Random(6000 + seed)
        settings = (
            f"traffic.2.start_s={rng.uniform(4.5, 5.5):.3f}",
            f"traffic.3.start_s={rng.uniform(9.5, 10.5):.3f}",
        )
        found = [
            by_user(each["sf"], "mbps")
            for each in frames("pooling", 40, "expected_throughput", *settings)
            if each["t"] > 15
        ]
        worst.append(spread({user: fmean(each[user] for each in found) for user in found[-1]}))
    failed = sum(each > 0.001 for each in worst)
    text = f"SD {max(worst):.6f} Mb/s"
    truth("rates of `pooling` in the simulator", len(worst), failed, text, "<= 0.001 Mb/s")
    assert not failed
