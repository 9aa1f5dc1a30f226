"""BALIA's window law, its inverses, and the probability of having the largest rate, on vectors."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from controller.strategies.subflow_selection.balia import (
    after_loss,
    increase,
    probability_of_largest,
    rtt_of_increase,
    rtt_of_loss,
)


def test_the_subflow_with_the_largest_rate():
    rest = 20 / 0.2
    assert increase(10, 0.05, rest, rest) == pytest.approx(0.04444, abs=1e-5)
    assert rtt_of_increase(10, increase(10, 0.05, rest, rest), rest, rest) == pytest.approx(0.05)


def test_a_subflow_beside_a_faster_one():
    rest = 20 / 0.05
    assert increase(10, 0.1, rest, rest) == pytest.approx(0.016)
    assert rtt_of_increase(10, 0.016, rest, rest) == pytest.approx(0.1)


def test_a_single_subflow_behaves_like_reno():
    assert increase(10, 0.1, 0, 0) == pytest.approx(1 / 10)
    assert after_loss(10, 0.1, 0) == 5


@pytest.mark.parametrize(("alpha", "left"), [(0.5, 10), (1, 10), (1.2, 8), (1.5, 5), (3, 5)])
def test_a_loss_takes_half_to_three_quarters(alpha, left):
    assert after_loss(20, 0.1, alpha * 20 / 0.1) == pytest.approx(left)


def test_no_window_is_below_two():
    assert after_loss(2, 0.1, 1000) == 2


@pytest.mark.parametrize("alpha", [1, 1.2, 1.5])
def test_the_round_trip_behind_a_loss(alpha):
    best = alpha * 20 / 0.1
    assert rtt_of_loss(20, after_loss(20, 0.1, best), best) == pytest.approx(0.1)


@given(
    window=st.floats(2, 100),
    rtt_s=st.floats(0.001, 1),
    best=st.floats(1, 10_000),
    further=st.floats(0, 10_000),
)
@example(window=2.00001, rtt_s=1.0, best=2.00001, further=8169.956323534513)
def test_the_inverse_finds_a_round_trip_with_the_same_increase(window, rtt_s, best, further):
    others = best + further
    added = increase(window, rtt_s, others, best)
    assume(added < 1)
    found = rtt_of_increase(window, added, others, best)
    assert found is not None
    assert increase(window, found, others, best) == pytest.approx(added, rel=1e-6)


@given(
    window=st.floats(2, 100),
    rtt_s=st.floats(0.001, 1),
    best=st.floats(0, 10_000),
    further=st.floats(0, 10_000),
)
def test_coupling_never_adds_more_than_reno_and_never_leaves_more_than_half(
    window, rtt_s, best, further
):
    assert increase(window, rtt_s, best + further, best) <= 1 / window * (1 + 1e-9)
    assert after_loss(window, rtt_s, best) <= max(2, window / 2)


def test_the_probability_of_the_largest_rate():
    rtts_s = [(0.05, 0.01), (0.1, 0.02)]
    assert probability_of_largest(0, (10, 10), rtts_s) == pytest.approx(0.9873, abs=1e-4)
    assert probability_of_largest(1, (10, 10), rtts_s) == pytest.approx(0.0127, abs=1e-4)
    assert probability_of_largest(0, (4, 20), rtts_s) == pytest.approx(0.0027, abs=1e-4)
    three = [(0.05, 0.01), (0.06, 0.02), (0.1, 0.02)]
    assert sum(probability_of_largest(n, (10, 12, 20), three) for n in range(3)) == pytest.approx(
        1, abs=1e-4
    )
