"""Rates of connections (S-MPTCP, Algorithms 2 to 4, and the worked example of Figure 1)."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from controller.strategies.expected_throughput.allocation import (
    Sharing,
    largest_rates,
    reallocate,
    remaining_capacity,
)

# Rates that one connection could get (Algorithm 2)


uses = st.dictionaries(st.integers(0, 5), st.sampled_from([1.0, 1.0, 2.5]), min_size=1, max_size=4)
rooms = st.lists(st.one_of(st.floats(0, 10), st.floats(-5, 0)), min_size=6, max_size=6).map(
    lambda each: dict(enumerate(each))
)


def over(*arcs: int) -> dict[int, float]:
    return dict.fromkeys(arcs, 1.0)


@pytest.mark.parametrize(
    ("paths", "room", "rates"),
    [
        ([over(0, 2), over(1, 2)], (10, 10, 10), (0, 10)),  # both vectors are the specification's
        ([over(0, 1)], (4, 5), (4,)),
        ([over(0), over(1)], (9, 9), (9, 9)),
        ([over(0, 1)], (-3, 5), (0,)),
        ([over(0, 3), over(1, 3), over(2, 3)], (4, 4, 4, 9), (1, 4, 4)),
        ([{0: 1.0, 1: 4.0}], (10, 10), (2.5,)),
    ],
)
def test_vectors(paths, room, rates):
    assert largest_rates(paths, dict(enumerate(room))) == pytest.approx(rates)


@given(st.lists(uses, min_size=1, max_size=4), rooms)
def test_no_arc_is_overloaded_and_every_separate_path_is_full(paths, room):
    rates = largest_rates(paths, room)
    left = remaining_capacity({arc: max(0.0, each) for arc, each in room.items()}, paths, rates)
    assert min(rates) >= 0
    assert min(left.values()) >= -1e-6
    alone = [
        path
        for n, path in enumerate(paths)
        if not any(set(path) & set(other) for m, other in enumerate(paths) if m != n)
    ]
    assert all(min(left[arc] for arc in path) <= 1e-6 for path in alone)


@given(uses, rooms)
def test_a_single_subflow_takes_what_its_narrowest_arc_has(path, room):
    assert largest_rates([path], room) == pytest.approx(
        (min(max(0.0, room[arc]) / part for arc, part in path.items()),)
    )


MIDDLE = (2, 5, 10, 15)
TABLE_2 = {
    "C1": ((1, 2, 3), (4, 5, 6)),
    "C2": ((7, 5, 8), (9, 10, 11)),
    "C3": ((12, 10, 13), (14, 15, 16)),
}
PATHS = {name: [dict.fromkeys(path, 1.0) for path in own] for name, own in TABLE_2.items()}
STEPS = {  # middle links: shares after the arrival of C1, C2 and C3
    (9, 9, 9, 9): [
        {"C1": (9, 9)},
        {"C1": (9, 4.5), "C2": (4.5, 9)},
        {"C1": (9, 3), "C2": (6, 6), "C3": (3, 9)},
    ],
    (8, 10, 10, 8): [
        {"C1": (8, 10)},
        {"C1": (8, 6), "C2": (4, 10)},
        {"C1": (8, 4), "C2": (6, 6), "C3": (4, 8)},
    ],
    (10, 8, 8, 10): [
        {"C1": (10, 8)},
        {"C1": (10, 3), "C2": (5, 8)},
        {"C1": (10, 3), "C2": (5, 6), "C3": (2, 10)},
    ],
}


def capacities(middle):
    found = [10.0] * 17
    for number, mbps in zip(MIDDLE, middle, strict=True):
        found[number] = float(mbps)
    return found


def arrivals(capacity, paths, fairness=0.9):
    """Shares after the arrival of each connection, in the order of `paths`."""
    shares, present, after = {}, {}, []
    for name, own in paths.items():
        present[name] = own
        shares = reallocate(capacity, present, shares, name, fairness)
        after.append(dict(shares))
    return after


def used(paths, shares, arc):
    return sum(
        rate * path.get(arc, 0)
        for name in shares
        for path, rate in zip(paths[name], shares[name], strict=True)
    )


@pytest.mark.parametrize("middle", STEPS)
def test_the_worked_example_step_by_step(middle):
    for got, wanted in zip(arrivals(capacities(middle), PATHS), STEPS[middle], strict=True):
        assert got.keys() == wanted.keys()
        for name, rates in wanted.items():
            assert got[name] == pytest.approx(rates), name


def test_the_rule_of_nine_tenths_stops_early():
    totals = [sum(rates) for rates in arrivals(capacities((10, 8, 8, 10)), PATHS)[-1].values()]
    assert totals == pytest.approx([13, 11, 12])
    assert numpy.std(totals) == pytest.approx(0.816, abs=0.001)


def test_with_fairness_1_shares_are_closer_together():
    totals = [
        sum(rates)
        for rates in arrivals(capacities((10, 8, 8, 10)), PATHS, fairness=1.0)[-1].values()
    ]
    assert numpy.std(totals) < 0.816


def test_the_poorest_neighbour_takes_the_capacity_of_a_closed_connection():
    shares = arrivals(capacities((9, 9, 9, 9)), PATHS)[-1]
    left = {name: own for name, own in PATHS.items() if name != "C1"}
    after = reallocate(capacities((9, 9, 9, 9)), left, {name: shares[name] for name in left}, "C2")
    assert after["C2"] == pytest.approx((9, 6))
    assert after["C3"] == (3, 9)  # 12 is nine tenths of the mean; more would come from C2


def test_connections_that_share_no_arc_keep_their_rates():
    paths = PATHS | {"far": [dict.fromkeys((20, 21), 1.0)]}
    capacity = [*capacities((9, 9, 9, 9)), 0.0, 0.0, 0.0, 7.0, 7.0]
    shares = reallocate(capacity, paths, {"far": (3.0,)}, "C1")
    assert shares["far"] == (3.0,)
    sharing = Sharing(paths)
    assert sharing.together(["C1"]) == {"C1", "C2", "C3"}
    assert {name: sharing.near(name) for name in paths} == {
        "C1": {"C2"},
        "C2": {"C1", "C3"},
        "C3": {"C2"},
        "far": set(),
    }


def test_connections_with_only_a_narrow_arc_share_it_equally():
    """The paper's last rule would give all of arc 0 to the newcomer."""
    paths = {"rich": [{1: 1.0}, {2: 1.0}], "old": [{0: 1.0, 2: 1.0}], "new": [{0: 1.0}]}
    shares = arrivals([1.0, 10.0, 10.0], paths)[-1]
    assert shares["old"] == pytest.approx((0.5,))
    assert shares["new"] == pytest.approx((0.5,))


def test_a_connection_with_another_path_leaves_the_narrow_arc():
    shares = arrivals([1.0, 10.0], {"rich": [{0: 1.0}, {1: 1.0}], "new": [{0: 1.0}]})[-1]
    assert shares == {"rich": pytest.approx((0, 10)), "new": pytest.approx((1,))}


def test_a_slow_station_gets_as_much_as_a_fast_one_and_takes_more_of_the_air():
    shares = arrivals([10.0, 2.5], {"fast": [{0: 1.0}], "slow": [{0: 4.0, 1: 1.0}]})[-1]
    assert shares["slow"] == pytest.approx((2,), rel=0.1)
    assert shares["fast"][0] + 4 * shares["slow"][0] == pytest.approx(10)


@st.composite
def networks(draw):
    capacity = draw(st.lists(st.integers(1, 10).map(float), min_size=3, max_size=7))
    path = st.dictionaries(st.integers(0, len(capacity) - 1), st.just(1.0), min_size=1, max_size=3)
    own = st.lists(path, min_size=1, max_size=3)
    return capacity, {
        f"c{n}": each for n, each in enumerate(draw(st.lists(own, min_size=1, max_size=6)))
    }


@given(networks())
def test_no_arc_is_ever_overloaded(network):
    capacity, paths = network
    for shares in arrivals(capacity, paths):
        assert all(rate >= 0 for rates in shares.values() for rate in rates)
        for arc, most in enumerate(capacity):
            assert used(paths, shares, arc) <= most * (1 + 1e-6)


@given(networks(), st.integers(0, 5))
def test_a_smaller_capacity_is_respected_after_every_connection_had_a_turn(network, which):
    capacity, paths = network
    shares = arrivals(capacity, paths)[-1]
    arc = which % len(capacity)
    smaller = [each / 4 if n == arc else each for n, each in enumerate(capacity)]
    for name in paths:
        shares = reallocate(smaller, paths, shares, name)
    assert used(paths, shares, arc) <= smaller[arc] * (1 + 1e-6)


def best(capacity, paths):
    """Rates with the largest sum of logarithms (eq (4)), by convex optimisation."""
    owners, every = zip(
        *((n, path) for n, own in enumerate(paths.values()) for path in own), strict=True
    )
    takes = numpy.array([[path.get(arc, 0.0) for path in every] for arc in range(len(capacity))])
    own = numpy.array([[float(owner == n) for owner in owners] for n in range(len(paths))])
    found = minimize(
        lambda x: -numpy.log(own @ x + 1e-12).sum(),
        numpy.full(len(every), min(capacity) / (len(every) + 1)),
        jac=lambda x: -(own.T @ (1 / (own @ x + 1e-12))),
        constraints=[
            {"type": "ineq", "fun": lambda x: capacity - takes @ x, "jac": lambda x: -takes}
        ],
        bounds=[(0, None)] * len(every),
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-9},
    )
    assert found.success, found.message
    return own @ found.x


def ratio(capacity, paths):
    """Geometric mean of the connections' rates, divided by that of the optimal rates."""
    got = numpy.array([sum(rates) for rates in arrivals(capacity, paths)[-1].values()])
    return math.exp(numpy.log(numpy.maximum(got, 1e-3) / best(numpy.array(capacity), paths)).mean())


def test_the_worked_example_is_optimal():
    assert ratio(capacities((9, 9, 9, 9)), PATHS) == pytest.approx(1, abs=1e-4)
    assert ratio(capacities((10, 8, 8, 10)), PATHS) == pytest.approx(1, abs=0.01)


def test_random_networks_are_close_to_optimal():
    """One turn per connection gives 0.9 of the optimum on average, and 0.75 in nine of ten
    cases."""
    found = []
    for seed in range(200):
        chance = numpy.random.default_rng(seed)
        arcs = int(chance.integers(3, 8))
        capacity = chance.integers(1, 11, arcs).astype(float)
        paths = {
            f"c{n}": [
                dict.fromkeys(chance.permutation(arcs)[: chance.integers(1, 4)].tolist(), 1.0)
                for _ in range(chance.integers(1, 4))
            ]
            for n in range(chance.integers(2, 6))
        }
        found.append(ratio(capacity.tolist(), paths))
    assert max(found) <= 1 + 1e-6
    assert numpy.mean(found) >= 0.9
    assert numpy.quantile(found, 0.1) >= 0.75
