"""The three readings of Algorithm 1, and exhaustive search."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.strategies.subflow_selection.forecast import Model, PathQuality, estimate
from controller.strategies.subflow_selection.search import exhaustive, greedy, ranked

FIFTEEN = tuple(PathQuality(i * 1e6, (i - 1) / 100, i * 0.02, i * 0.002) for i in range(1, 16))
KB = 1000.0


def numbers(choice) -> list[int]:
    return [n + 1 for n in choice.chosen]


def test_the_order_begins_with_the_short_paths():
    assert [n + 1 for n in ranked(FIFTEEN)][:9] == [1, 2, 3, 4, 15, 14, 13, 12, 5]


@pytest.mark.parametrize(
    ("accept", "rl_max_kb", "expected"),
    [
        ("gain", 12, [1, 2, 3]),
        ("gain", 50, [1, 2, 3]),
        ("gain", 1e6, [1, 2, 3]),
        ("gain", 8, [1, 2]),
        ("tentative", 12, [1, 2, 3]),
        ("printed", 12, [1, 2, 3, 4]),
        ("printed", 1e6, list(range(1, 16))),
    ],
)
def test_three_readings_of_algorithm_1(accept, rl_max_kb, expected):
    assert numbers(greedy(FIFTEEN, Model(), rl_max_kb * KB, accept)) == expected


@pytest.mark.parametrize(
    ("rl_max_kb", "expected", "mbps"),
    [(12, [1, 2, 3], 1.936), (8, [2, 3], 1.554), (1e6, [1, 2, 3], 1.936)],
)
def test_the_best_set(rl_max_kb, expected, mbps):
    choice = exhaustive(FIFTEEN, Model(), rl_max_kb * KB, 6)
    assert numbers(choice) == expected
    assert choice.estimate.throughput_bps / 1e6 == pytest.approx(mbps, abs=0.001)


def test_the_best_sets_of_four_five_and_six_paths():
    for size, mbps in ((4, 1.851), (5, 1.756), (6, 1.678)):
        assert estimate(tuple(FIFTEEN[:size]), Model()).throughput_bps / 1e6 == pytest.approx(
            mbps, abs=0.0015
        )


def test_a_set_may_need_exactly_the_limit():
    needed = estimate(FIFTEEN[:3], Model()).buffer_bytes
    for search in (
        lambda most: greedy(FIFTEEN, Model(), most),
        lambda most: greedy(FIFTEEN, Model(), most, "tentative"),
        lambda most: exhaustive(FIFTEEN, Model(), most, 6),
    ):
        assert numbers(search(needed)) == [1, 2, 3]
        assert numbers(search(needed * (1 - 1e-9))) != [1, 2, 3]


def test_the_exhaustive_search_tries_no_larger_set_than_asked():
    for most in (1, 2):
        sets = [each for size in range(1, most + 1) for each in combinations(FIFTEEN, size)]
        best = max(estimate(each, Model()).throughput_bps for each in sets)
        choice = exhaustive(FIFTEEN, Model(), 1e6 * KB, most)
        assert len(choice.chosen) <= most
        assert choice.estimate.throughput_bps == best


def test_one_path_is_always_chosen():
    assert (
        greedy(FIFTEEN[14:], Model(), 0.001).chosen
        == exhaustive(FIFTEEN[14:], Model(), 0.001, 6).chosen
        == (0,)
    )
    assert len(exhaustive(FIFTEEN, Model(), 0.001, 6).chosen) == 1


paths = st.builds(
    PathQuality,
    st.integers(1, 15).map(lambda n: n * 1e6),
    st.sampled_from([0.0, 0.01, 0.04, 0.1]),
    st.floats(0.01, 0.15),
)


@given(st.lists(paths, min_size=2, max_size=4), st.floats(0.5, 60))
@settings(max_examples=40, deadline=None)
def test_exhaustive_is_the_best_of_all_and_greedy_is_no_better(network, rl_max_kb):
    sets = [
        places
        for size in range(1, len(network) + 1)
        for places in combinations(range(len(network)), size)
    ]
    estimates = [estimate(tuple(network[n] for n in places), Model()) for places in sets]
    best = max(each.throughput_bps for each in estimates if each.buffer_bytes <= rl_max_kb * KB)
    found = exhaustive(tuple(network), Model(), rl_max_kb * KB, len(network)).estimate
    assert found.throughput_bps == best
    first, every = (
        greedy(network, Model(), rl_max_kb * KB, starts=starts).estimate
        for starts in ("first", "all")
    )
    assert first.throughput_bps <= every.throughput_bps <= best
    assert max(first.buffer_bytes, every.buffer_bytes) <= rl_max_kb * KB
