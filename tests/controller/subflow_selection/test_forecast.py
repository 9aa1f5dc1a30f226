"""The forecast on the paper's two networks, compared with the corrected model in Mb/s."""

from __future__ import annotations

import joint_chain
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.strategies.subflow_selection import forecast
from controller.strategies.subflow_selection.forecast import (
    FRAME_BITS,
    Model,
    OtherRates,
    PathQuality,
    SubflowChain,
    estimate,
    estimate_today,
    is_coupled,
    mean_windows,
    round_trips,
    searched,
    window_cap,
)

# The chain of one subflow, compared with matrices and with a joint chain of two subflows


BESIDE = OtherRates(total=150.0, largest=100.0)


def chain(largest=12, loss=0.03, rtt_s=0.05, sd=0.1):
    return SubflowChain(largest, loss, round_trips(rtt_s, sd * rtt_s), rtt_s)


@pytest.mark.parametrize("others", [OtherRates(), BESIDE, OtherRates(5000, 4000)])
@pytest.mark.parametrize("loss", [1e-4, 0.03, 0.5])
def test_every_row_is_a_distribution(others, loss):
    subject = chain(loss=loss)
    for w in range(2, subject.largest + 1):
        row = joint_chain.one_row(w, subject, others)
        assert sum(row.values()) == pytest.approx(1, abs=1e-12)
        assert min(row.values()) >= 0
        assert 2 <= min(row) <= max(row) <= subject.largest
        assert (
            sum(
                to * chance
                for to, chance in forecast.windows_after_loss(w, subject, others).items()
            )
            <= loss * max(2, w / 2) + 1e-12
        )


@pytest.mark.parametrize("others", [OtherRates(), BESIDE])
@pytest.mark.parametrize("loss", [1e-3, 0.03, 0.3])
def test_the_stationary_distribution_solves_the_chain(others, loss):
    subject = chain(loss=loss)
    matrix = np.zeros((11, 11))
    for w in range(2, 13):
        for to, chance in joint_chain.one_row(w, subject, others).items():
            matrix[w - 2, to - 2] += chance
    shares = forecast.stationary(subject, others)
    ours = np.array([shares.get(w, 0.0) for w in range(2, 13)])
    assert ours / ours.sum() == pytest.approx(joint_chain.stationary(matrix), abs=1e-8)


def test_rare_windows_do_not_change_the_mean(monkeypatch):
    subject = chain(largest=64, loss=0.05)
    short = forecast.mean_window(subject, OtherRates())
    assert forecast.largest_state(subject) < 64
    monkeypatch.setattr(forecast, "RARE", 0.0)
    assert forecast.largest_state(subject) == 64
    assert forecast.mean_window(subject, OtherRates()) == pytest.approx(short, rel=1e-6)


@given(st.floats(0.01, 0.9))
def test_the_largest_state_is_the_first_one_that_is_rarely_reached_without_a_loss(loss):
    """BALIA adds at most 1/w per segment, so w grows before a loss with this probability."""
    last = forecast.largest_state(chain(largest=512, loss=loss))
    grown = np.cumprod([(1 - loss) / w / ((1 - loss) / w + loss) for w in range(2, last + 1)])
    assert grown[-1] < forecast.RARE
    assert len(grown) == 1 or grown[-2] >= forecast.RARE


@pytest.mark.parametrize(
    "pair",
    [
        (chain(4, 0.01, 0.02), chain(12, 0.02, 0.06)),
        (chain(12, 0.05, 0.05), chain(12, 0.05, 0.05)),
        (chain(12, 0.02, 0.02), chain(8, 0.1, 0.1)),
        (chain(10, 0.005, 0.04), chain(10, 0.03, 0.12)),
    ],
)
def test_means_are_within_a_tenth_of_the_joint_chain(pair):
    assert mean_windows(pair) == pytest.approx(joint_chain.mean_windows(pair), rel=0.1)


def test_without_a_loss_a_window_stays_at_its_largest():
    assert mean_windows([chain(loss=0), chain(loss=0, largest=30)]) == (12.0, 30.0)


def test_a_window_never_exceeds_its_largest_and_falls_with_the_loss():
    means = [mean_windows([chain(64, loss)])[0] for loss in (1e-5, 1e-3, 0.01, 0.05, 0.2, 0.99)]
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


# The forecast for today's TCP, compared with closed forms and simulated goodput


MBPS = 1_000_000
LARGE = 4_000_000


def path(mbps: float, rtt_ms: float, loss: float) -> PathQuality:
    return PathQuality(mbps * MBPS, loss, rtt_ms / 1000)


def forecast_mbps(*paths: PathQuality, buffer: int = LARGE, coupled: bool = False) -> float:
    return estimate_today(paths, buffer, coupled).throughput_bps / MBPS


def test_a_lossy_path_carries_what_mathis_says():
    expected = FRAME_BITS / 0.1 * (1.5 * 0.99 / 0.01) ** 0.5 / MBPS
    assert forecast_mbps(path(50, 100, 0.01)) == pytest.approx(expected)


def test_a_path_without_loss_carries_its_rate():
    assert forecast_mbps(path(20, 50, 0.0)) == pytest.approx(20)
    assert forecast_mbps(path(20, 50, 0.0), coupled=True) == pytest.approx(20)


def test_without_coupling_rates_are_added_and_no_subflow_waits_for_the_slowest():
    fast, slow = path(20, 20, 0.001), path(1, 300, 0.01)
    both = forecast_mbps(fast, slow)
    assert both == pytest.approx(forecast_mbps(fast) + forecast_mbps(slow))


def test_two_equal_lossy_paths_share_what_one_carries_if_they_are_coupled():
    """The aim of coupled congestion control: no more than TCP on the best path."""
    one, two = path(50, 40, 0.004), path(50, 40, 0.004)
    both = forecast_mbps(one, two, coupled=True)
    assert both == pytest.approx(forecast_mbps(one, coupled=True), rel=0.02)
    assert both < 0.6 * forecast_mbps(one, two)


def test_a_small_receive_buffer_limits_the_longest_round_trip():
    clean, lossy = path(20, 20, 0.0), path(20, 200, 0.001)
    assert forecast_mbps(clean, buffer=50_000) == pytest.approx(20)
    both = forecast_mbps(clean, lossy, buffer=50_000)
    assert both == pytest.approx(8 * 50_000 / 0.4 / MBPS)  # two RTTs of 200 ms


def test_the_congestion_control_is_recognised_by_what_it_carries():
    paths = (path(40, 60, 0.004), path(30, 90, 0.006), path(50, 50, 0.01))
    for coupled in (True, False):
        measured_bps = estimate_today(paths, LARGE, coupled).throughput_bps
        assert is_coupled(paths, LARGE, 1.1 * measured_bps) == coupled


@pytest.mark.parametrize("count", [3, 9])
def test_the_search_finds_the_paths_that_a_small_buffer_can_use(count):
    paths = (*[path(5, 10, 0.0)] * (count - 1), path(5, 400, 0.02))
    _, best = searched(paths, 40_000, False)[0]
    assert best == tuple(range(count - 1))


def test_of_equal_forecasts_the_larger_set_comes_first():
    paths = (path(10, 50, 0.0), path(10, 50, 0.0))
    found = searched(paths, 10_000, False)  # the buffer limits all three sets alike
    assert [each for _, each in found] == [(0, 1), (0,), (1,)]


# Goodput in Mb/s in the simulator (60 s, seed 1, buffer of 4 MB): paths, Reno, BALIA
SIMULATED = (
    ([(18.14, 151, 0.01176), (36.2, 12, 0.01589), (7.35, 171, 0.00344), (47.82, 163, 0.01052),
      (10.06, 30, 0.00617)], 16.09, 7.74),
    ([(16.44, 169, 0.01626), (34.67, 18, 0.01202), (46.02, 189, 0.00489), (13.8, 108, 0.01263),
      (35.78, 25, 0.00871)], 14.93, 6.68),
)  # fmt: skip


@pytest.mark.parametrize(("paths", "reno", "balia"), SIMULATED)
def test_the_forecast_is_within_a_fifth_of_the_simulator(paths, reno, balia):
    qualities = [path(*each) for each in paths]
    payload = 1420 / 1514
    assert payload * forecast_mbps(*qualities) == pytest.approx(reno, rel=0.2)
    assert payload * forecast_mbps(*qualities, coupled=True) == pytest.approx(balia, rel=0.2)


UNCAPPED = 1e9  # in BDP: queues never fill
MODEL = Model()


def parallel(first_loss: int = 0, rtt_per_delay: int = 2) -> list[PathQuality]:
    """Path i has i Mb/s, 10 i ms one way, and i - 1 (or i) % loss (section V-C)."""
    rtts_s = [rtt_per_delay * i * 0.01 for i in range(1, 16)]
    return [
        PathQuality(i * 1e6, (i - 1 + first_loss) / 100, rtt_s, 0.1 * rtt_s)
        for i, rtt_s in enumerate(rtts_s, 1)
    ]


def mbps(paths, model=MODEL):
    return estimate(tuple(paths), model).throughput_bps / 1e6


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (parallel(), [0.69, 1.54, 1.94, 1.85, 1.76, 1.68, 1.57, 1.49, 1.44, 1.39]),
        (parallel(first_loss=1), [0.68, 1.41, 1.64, 1.60, 1.55, 1.50, 1.43, 1.38, 1.35, 1.32]),
        (parallel(rtt_per_delay=1), [0.81, 1.66, 2.18, 2.62, 3.04, 3.16, 3.02, 2.92, 2.84, 2.76]),
    ],
)
def test_the_first_n_of_fifteen_paths(paths, expected):
    """Full mesh over n paths; windows are capped at two BDP (section V-C, Figure 5)."""
    assert [mbps(paths[:n]) for n in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)] == pytest.approx(
        expected, abs=0.0055
    )


@pytest.mark.parametrize("queue_bdp", [0.0, 0.5, 1.0])
def test_the_throughput_peaks_at_three_paths_or_one_beside_it(queue_bdp):
    by_n = [mbps(parallel()[:n], Model(queue_bdp=queue_bdp)) for n in range(1, 16)]
    assert 2 <= by_n.index(max(by_n)) + 1 <= 4


def test_the_windows_of_three_paths():
    assert estimate(tuple(parallel()[:3]), Model()).windows == pytest.approx(
        [4.0, 4.8, 2.8], abs=0.05
    )


@pytest.mark.parametrize(
    ("loss", "paths", "paper", "pipelined"),
    [
        (0, 2, (0.94, 1.77, 3.18, 5.29, 7.89, 9.45), (0.99, 1.98, 3.95, 7.90, 15.8, 16.0)),
        (0, 3, (1.41, 2.66, 4.77, 7.93, 11.84, 14.17), (1.48, 2.96, 5.93, 11.85, 23.7, 24.0)),
        (0.05, 2, (0.58, 0.62, 0.62, 0.62, 0.62, 0.62), (0.60, 0.64, 0.64, 0.64, 0.64, 0.64)),
        (0.05, 3, (0.74, 0.76, 0.76, 0.76, 0.76, 0.76), (0.76, 0.77, 0.77, 0.77, 0.77, 0.77)),
    ],
)
def test_the_largest_window_of_the_verification_network(loss, paths, paper, pipelined):
    """Paths of 8, 8 and 18 Mb/s and 120 ms (section III-E, Figure 3)."""
    network = [PathQuality(rate * 1e6, loss, 0.12, 0.012) for rate in (8, 8, 18)][:paths]
    for largest, paper_mbps, pipelined_mbps in zip(
        (5, 10, 20, 40, 80, 120), paper, pipelined, strict=True
    ):
        assert mbps(network, Model("paper", largest, UNCAPPED)) == pytest.approx(
            paper_mbps, rel=0.005, abs=0.0055
        )
        assert mbps(network, Model("pipelined", largest, UNCAPPED)) == pytest.approx(
            pipelined_mbps, rel=0.005, abs=0.0055
        )


def test_equal_round_trips_need_no_buffer_and_a_wider_spread_needs_more():
    def buffer(*rtts_s):
        return estimate(
            tuple(PathQuality(8e6, 0.01, rtt_s) for rtt_s in rtts_s), Model()
        ).buffer_bytes

    assert buffer(0.1, 0.1, 0.1) == 0
    assert buffer(0.1) == 0
    assert buffer(0.1, 0.12) < buffer(0.1, 0.2)
    assert estimate(tuple(parallel()[:3]), Model()).buffer_bytes == pytest.approx(9700, rel=0.005)


def test_a_path_caps_its_window():
    assert window_cap(PathQuality(8e6, 0, 0.12), Model(queue_bdp=1, largest_window=512)) == 160
    assert window_cap(PathQuality(8e6, 0, 0.12), Model(queue_bdp=1)) == 64
    assert window_cap(PathQuality(1e6, 0, 0.02), Model()) == 4


def test_a_path_that_loses_everything_still_has_a_forecast():
    assert 0 < mbps([PathQuality(8e6, 1.0, 0.1), PathQuality(8e6, 0, 0.1)]) < 16
