"""Completion times: the time alone on a path, percentiles, and the section of result.json."""

from __future__ import annotations

import random

import pytest

from lab.metrics import of_number
from lab.results import transfers as read
from lab.results.compare import numbers
from lab.run.report import ConnectionReport
from lab.run.transfers import Transfer, percentile, section, transfers
from lab.scenario import loading
from lab.topologies.alone import AlonePath, paths_alone


def scenario(
    traffic, topology="{kind: parallel_paths, paths: [{rate_mbps: 8, delay_ms: 10}]}", **more
):
    import yaml

    raw = {"name": "some", "title": "Some", "topology": yaml.safe_load(topology)}
    return loading.from_data(raw | {"traffic": traffic, "duration_s": 20} | more, "test")


def transfer(completion_s, mb=1.0, kind="file", slowdown=None):
    return Transfer(kind, "ue1", "ue1-1", 0.0, mb, completion_s, slowdown)


@pytest.mark.parametrize("scale", [1, 0.5])
def test_a_file_alone_takes_the_round_trip_and_its_frames(scale):
    file = {"user": "ue1", "kind": "file", "volume_mb": 1}
    made = scenario([file], rate_scale=scale)
    (path,) = paths_alone(made.network, "ue1", "down")
    assert path == AlonePath(round(8_000_000 * scale), pytest.approx(0.02))
    alone_s = 0.02 + 1e6 * 8 * 1514 / 1420 / 8e6
    (found,) = transfers(made, [ConnectionReport("ue1-1", "ue1", completion_s=2 * alone_s)])
    assert (found.mb, found.slowdown, found.kind) == (1, pytest.approx(2, rel=1e-3), "file")


def test_each_direction_has_its_own_rate_and_both_delays():
    path = "{rate_mbps: 8, delay_ms: 10, up: {rate_mbps: 2, delay_ms: 30}}"
    made = scenario([{"user": "ue1", "kind": "bulk"}], f"{{kind: parallel_paths, paths: [{path}]}}")
    (down,), (up,) = (paths_alone(made.network, "ue1", each) for each in ("down", "up"))
    assert (down.rate_bps, up.rate_bps) == (8_000_000, 2_000_000)
    assert down.rtt_s == up.rtt_s == pytest.approx(0.04)


def test_the_slowest_hop_of_a_radio_path_counts():
    made = loading.load("testbed_wifi_lte")
    rates = {
        (cell.ap, station.user): station.rate_bps
        for cell in made.network.cells
        for station in cell.stations
    }
    for user in made.network.users:
        found = {path.rate_bps for path in paths_alone(made.network, user, "down")}
        assert found <= set(rates.values())


def test_percentiles_are_between_the_ordered_numbers():
    draws = sorted(random.Random(4).uniform(0, 9) for _ in range(101))
    assert percentile(draws, 50) == draws[50]
    assert percentile(draws, 0) == draws[0]
    assert percentile(draws, 100) == draws[-1]
    assert percentile([1, 2], 50) == 1.5
    assert percentile([], 99) is None


def test_what_was_not_complete_is_counted_and_in_no_percentile():
    found = section([transfer(1.0), transfer(3.0), transfer(None, mb=20)])
    assert (found["count"], found["completed"], found["fct_p50_s"]) == (3, 2, 2)
    assert set(found["by_size"]) == {"medium", "large"}
    assert found["by_size"]["large"]["fct_p99_s"] is None
    assert section([]) == {}


@pytest.mark.parametrize(
    ("mb", "size"), [(0.1, "small"), (0.100001, "medium"), (10, "medium"), (10.1, "large")]
)
def test_size_classes_have_their_bounds(mb, size):
    assert transfer(1, mb=mb).size_class == size


def test_only_runs_with_transfers_have_these_metrics_in_a_comparison():
    result = {"connections": [], "throughput_mbps": 1, "tiers": {}, "fairness": {}}
    result |= {"convergence_s": None}
    assert not any(path.startswith("flows.") for path in numbers(result))
    kept = [transfer(2.0, slowdown=4.0)]
    found = numbers(result | {"flows": section(kept)})
    assert (found["flows.fct_p99_s"], found["flows.by_size.medium.slowdown_p99"]) == (2, 4)
    assert found["flows.by_size.large.slowdown_p99"] is None
    metric, owner = of_number("flows.fct_p99_s")
    assert (metric.unit, metric.better, owner) == ("s", -1, "")


@pytest.mark.parametrize("count", [1, 7, 199, 1234])
def test_a_distribution_has_few_points_and_ends_at_what_was_complete(count):
    times = [each / 10 for each in range(1, count + 1)]
    found = read.distribution([*map(transfer, times), transfer(None)])
    assert len(found) <= read.MOST_POINTS + 1
    assert found[-1] == (times[-1], count / (count + 1))
    assert found == sorted(found)
