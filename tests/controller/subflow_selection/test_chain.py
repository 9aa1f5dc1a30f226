"""The chain of one subflow, compared with matrices and with a joint chain of two subflows."""

import joint_chain
import numpy as np
import pytest

from controller.strategies.subflow_selection import forecast
from controller.strategies.subflow_selection.forecast import Field, Walk, mean_windows, round_trips

BESIDE = Field(others=150.0, best=100.0)


def walk(largest=12, loss=0.03, rtt_s=0.05, sd=0.1):
    return Walk(largest, loss, round_trips(rtt_s, sd * rtt_s), rtt_s)


@pytest.mark.parametrize("others", [Field(), BESIDE, Field(5000, 4000)])
@pytest.mark.parametrize("loss", [1e-4, 0.03, 0.5])
def test_every_row_is_a_distribution(others, loss):
    subject = walk(loss=loss)
    for w in range(2, subject.largest + 1):
        row = joint_chain.one_row(w, subject, others)
        assert sum(row.values()) == pytest.approx(1, abs=1e-12)
        assert min(row.values()) >= 0
        assert 2 <= min(row) <= max(row) <= subject.largest
        assert (
            sum(to * chance for to, chance in forecast.fall(w, subject, others).items())
            <= loss * max(2, w / 2) + 1e-12
        )


@pytest.mark.parametrize("others", [Field(), BESIDE])
@pytest.mark.parametrize("loss", [1e-3, 0.03, 0.3])
def test_the_stationary_distribution_solves_the_chain(others, loss):
    subject = walk(loss=loss)
    matrix = np.zeros((11, 11))
    for w in range(2, 13):
        for to, chance in joint_chain.one_row(w, subject, others).items():
            matrix[w - 2, to - 2] += chance
    shares = forecast.stationary(subject, others)
    ours = np.array([shares.get(w, 0.0) for w in range(2, 13)])
    assert ours / ours.sum() == pytest.approx(joint_chain.stationary(matrix), abs=1e-8)


def test_rare_windows_do_not_change_the_mean(monkeypatch):
    subject = walk(largest=64, loss=0.05)
    short = forecast.mean_window(subject, Field())
    assert forecast.largest_state(subject) < 64
    monkeypatch.setattr(forecast, "RARE", 0.0)
    assert forecast.largest_state(subject) == 64
    assert forecast.mean_window(subject, Field()) == pytest.approx(short, rel=1e-6)


@pytest.mark.parametrize(
    "pair",
    [
        (walk(4, 0.01, 0.02), walk(12, 0.02, 0.06)),
        (walk(12, 0.05, 0.05), walk(12, 0.05, 0.05)),
        (walk(12, 0.02, 0.02), walk(8, 0.1, 0.1)),
        (walk(10, 0.005, 0.04), walk(10, 0.03, 0.12)),
    ],
)
def test_means_are_within_a_tenth_of_the_joint_chain(pair):
    assert mean_windows(pair) == pytest.approx(joint_chain.mean_windows(pair), rel=0.1)


def test_without_a_loss_a_window_stays_at_its_largest():
    assert mean_windows([walk(loss=0), walk(loss=0, largest=30)]) == (12.0, 30.0)


def test_a_window_never_exceeds_its_largest_and_falls_with_the_loss():
    means = [mean_windows([walk(64, loss)])[0] for loss in (1e-5, 1e-3, 0.01, 0.05, 0.2, 0.99)]
    assert means == sorted(means, reverse=True)
    assert 2 <= means[-1] <= means[0] <= 64


def test_round_trips_keep_mean_and_spread_and_none_is_negative():
    points = round_trips(0.1, 0.01)
    assert sum(p for _, p in points) == pytest.approx(1)
    assert sum(r * p for r, p in points) == pytest.approx(0.1)
    assert sum((r - 0.1) ** 2 * p for r, p in points) == pytest.approx(0.01**2)
    wide = round_trips(0.1, 0.1)
    assert min(r for r, _ in wide) > 0
    assert sum(p for _, p in wide) == pytest.approx(1)
    assert round_trips(0.1, 0) == ((0.1, 1.0),)
