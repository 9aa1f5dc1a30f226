"""The forecast for the TCP of today, against closed forms and simulated goodput."""

from __future__ import annotations

import pytest

from controller.strategies.subflow_selection.forecast import PathQuality
from controller.strategies.subflow_selection.strategy import (
    FRAME_BITS,
    estimate_today,
    is_coupled,
    searched,
)

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
    """The aim of a coupled congestion control: not more than TCP on the best path."""
    one, two = path(50, 40, 0.004), path(50, 40, 0.004)
    both = forecast_mbps(one, two, coupled=True)
    assert both == pytest.approx(forecast_mbps(one, coupled=True), rel=0.02)
    assert both < 0.6 * forecast_mbps(one, two)


def test_a_small_receive_buffer_limits_the_longest_round_trip():
    clean, lossy = path(20, 20, 0.0), path(20, 200, 0.001)
    assert forecast_mbps(clean, buffer=50_000) == pytest.approx(20)
    both = forecast_mbps(clean, lossy, buffer=50_000)
    assert both == pytest.approx(8 * 50_000 / 0.4 / MBPS)  # two round trips of 200 ms


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
    found = searched(paths, 10_000, False)  # the buffer limits each of the three sets alike
    assert [each for _, each in found] == [(0, 1), (0,), (1,)]


# goodput in Mb/s that the simulator measured (60 s, seed 1, 4 MB): paths, Reno, BALIA
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
