"""Figures of the benchmark: their names are fixed, and each can be measured alone."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from bench import classes, emulation, page, strategies
from bench import figures as bench
from lab.cli.commands import cli

FIXED = [
    "dumbbell_packets_per_s",
    "fat_tree_packets_per_s",
    "thirty_users_60s_s",
    "batch_1_process_runs_per_s",
    "batch_2_processes_runs_per_s",
    "batch_2_workers_runs_per_s",
    "batch_2_workers_lost_share",
    "cold_start_s",
    "warm_start_s",
    "compiled_after_s",
    "maxflow_k16_ms",
    "maxflow_k32_ms",
    "reallocate_100_ms",
    "arrival_k16_p99_ms",
    "link_change_k16_ms",
    "arrival_k16_max_min_p99_ms",
    "link_change_k16_max_min_ms",
    "forecast_15_paths_ms",
    "viewers_40_p99_ms",
    "viewers_40_cpu_share",
    "class_30_page_p99_ms",
    "class_30_answer_p99_ms",
    "class_30_lost_requests",
    "class_30_pss_mib",
    "class_30_all_run_s",
    "class_with_browsers_page_p99_ms",
    "class_with_browsers_answer_p99_ms",
    "class_with_browsers_lost_requests",
    "class_with_browsers_pss_mib",
    "class_with_browsers_all_run_s",
    "page_60_lines_cpu_share",
    "page_60_lines_paints_per_s",
    "page_hour_heap_growth",
    "page_hour_nodes_growth",
    "page_hour_listeners_growth",
    "vm_first_sample_s",
    "fat_tree_4_up_s",
    "mn_same_size_up_s",
    "testbed_up_s",
    "stock_testbed_up_s",
    "emulated_mbps_per_processor",
    "boots_without_panic",
    "boots_with_panic",
]


def test_the_names_are_fixed():
    assert [name for each in bench.MEASURES for name in each.names] == FIXED


@pytest.mark.whole
@pytest.mark.parametrize("name", ["maxflow_k16_ms", "reallocate_100_ms", "forecast_15_paths_ms"])
def test_one_figure(name):
    done = CliRunner().invoke(cli, ["bench", "--only", name])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout).items()
    assert found[0] == name
    assert found[1] > 0


@pytest.mark.long
@pytest.mark.browser
def test_a_live_page_of_many_lines_costs_less_than_a_fifth_of_a_processor():
    share, paints_per_s = page.many_lines()
    assert share < 0.2
    assert paints_per_s > 1.5


@pytest.mark.long
@pytest.mark.browser
def test_a_live_page_does_not_grow():
    """An hour of samples, within six minutes of real time."""
    for growth in page.hour(minutes=6, settled_min=1, speed=10):
        assert growth < 0.05


def test_a_selection_is_computed_each_time_it_is_measured():
    (first,), (second,) = strategies.selection(), strategies.selection()
    assert second > first / 10


@pytest.mark.whole
def test_every_viewer_gets_every_sample(monkeypatch):
    monkeypatch.setattr(page, "FRAMES", 5)
    late_ms, share = page.viewers()
    assert late_ms > 0
    assert 0 < share < 4


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.parametrize("browsers", [0, 1])
def test_a_small_class_loses_nothing(monkeypatch, browsers):
    monkeypatch.setattr(classes, "MEASURED_S", 6)
    monkeypatch.setattr(classes, "EACH_ANSWERS_S", 1)
    monkeypatch.setattr(classes, "SEATS", 2)
    monkeypatch.setattr(classes, "CLIENTS", 1)
    monkeypatch.setattr(classes, "BROWSERS", browsers)
    measure = classes.class_with_browsers if browsers else classes.class_of_30
    page_ms, answer_ms, lost, pss_mib, all_run_s = measure()
    assert lost == 0
    assert min(page_ms, answer_ms, pss_mib, all_run_s) > 0


def test_an_unknown_figure_is_refused():
    done = CliRunner().invoke(cli, ["bench", "--only", "miles"])
    assert done.exit_code == 2
    assert "forecast_15_paths_ms" in done.output


def test_boots_are_summed_over_sittings(tmp_path, monkeypatch):
    consoles = iter([[], ["double fault\nKernel panic"], *[[]] * 18])
    monkeypatch.setattr(emulation, "SITTINGS", tmp_path / "sittings.jsonl")
    monkeypatch.setattr(emulation, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(emulation.launch, "boot_once", lambda shared: next(consoles))
    assert emulation.boots_without_panic() == (9, 1)
    assert emulation.boots_without_panic() == (19, 1)
    first = json.loads((tmp_path / "sittings.jsonl").read_text().splitlines()[0])
    assert first["panics"] == ["double fault\nKernel panic"]
