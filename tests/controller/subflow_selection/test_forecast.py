"""The forecast on the paper's two networks, compared with the corrected model in Mb/s."""

import pytest

from controller.strategies.subflow_selection.forecast import (
    Model,
    PathQuality,
    estimate,
    window_cap,
)

UNCAPPED = 1e9  # queues that never fill
MODEL = Model()


def parallel(first_loss: int = 0, rtt_per_delay: int = 2) -> list[PathQuality]:
    """Path i: i Mb/s, 10 i ms one way, i - 1 (or i) % loss (section V-C)."""
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
    """Full mesh over n paths, windows capped at two BDP (section V-C, Figure 5)."""
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
