"""Rates of expected_throughput on random networks, compared with linear programmes."""

from __future__ import annotations

import random

import pytest

from .programmes import Rates, free_gain
from .random_networks import Watched, events, topology

pytestmark = pytest.mark.oracle

CASES = range(200)
FAIR, GAIN, FULL = 0.97, 0.01, 1 + 1e-6


def outcomes(form):
    """Each network after its events; `seed % 4` of them follow the opening of all connections."""
    for seed in CASES:
        rng = random.Random(seed)
        network = Watched(topology(rng), allocation=form)
        for _ in events(network, rng, seed % 4):
            pass
        if network.routes():
            yield network


def shares(network):
    """Each connection's rate, divided by its max-min fair rate on the same routes."""
    fair, rates = Rates(network.capacity(), network.routes()).max_min(), network.rates()
    return [rates[name] / level for name, level in fair.items() if level > 0]


def gains(network):
    """Free gain of each connection, divided by its rate."""
    capacity, carried, routes = network.capacity(), network.carried(), network.routes()
    for name, total in network.rates().items():
        if name in routes and total:
            own = [
                0.0 if each.backup else float(each.expected_bps or 0)
                for each in network.subflows.values()
                if each.connection == name and network.wires(each) is not None
            ]
            yield free_gain(capacity, carried, routes[name], own) / total


@pytest.mark.parametrize("form", ["max_min", "paper"])
def test_rates_are_max_min_fair(form, truth):
    worst = [min(shares(network)) for network in outcomes(form)]
    failed = sum(each < FAIR for each in worst)
    text = f"{min(worst):.3f} of the max-min share"
    truth(f"`{form}`: smallest share of a connection", len(worst), failed, text, ">= 0.97")
    assert form == "paper" or not failed


@pytest.mark.parametrize("form", ["max_min", "paper"])
def test_no_free_gain_is_left(form, truth):
    worst = [max(gains(network), default=0.0) for network in outcomes(form)]
    failed = sum(each > GAIN + 1e-6 for each in worst)
    text = f"{max(worst):.1%} of its rate"
    truth(f"`{form}`: free gain of a connection", len(worst), failed, text, "<= 1 %")
    assert form == "paper" or not failed


@pytest.mark.parametrize("form", ["max_min", "paper"])
def test_no_command_overloads_a_link(form, truth):
    worst = []
    for seed in CASES:
        rng = random.Random(1000 + seed)
        network = Watched(topology(rng), allocation=form)
        for _ in events(network, rng, 6):
            pass
        worst.append(network.worst)
    failed = sum(each > FULL for each in worst)
    text = f"{max(worst):.6f} of the capacity"
    truth(f"`{form}`: load of a link between two commands", len(worst), failed, text, "<= 1")
    assert not failed


def settle(network):
    """Make periodic steps until one gives no command."""
    for _ in range(10):
        if not network.step():
            return


@pytest.mark.parametrize("form", ["max_min", "paper"])
def test_the_offset_between_subflows_makes_no_difference(form, truth):
    worst = []
    for seed in CASES:
        rng = random.Random(2000 + seed)
        network = topology(rng)
        together, apart = (Watched(network, allocation=form) for _ in range(2))
        for user in network.users:
            together.open(user, ports=40_000)
            apart.open(user, only=1, ports=40_000)
            apart.now_s += rng.uniform(0.015, 0.5)
            apart.open(user, ports=40_001)
            settle(together)
            settle(apart)
        one, other = together.rates(), apart.rates()
        worst.append(max(abs(one[name] - other[name]) / 1e6 for name in one))
    failed = sum(each > 0.001 for each in worst)
    text = f"{max(worst):.6f} Mb/s"
    truth(f"`{form}`: subflows seen 15 to 500 ms apart", len(worst), failed, text, "<= 0.001 Mb/s")
    assert not failed
