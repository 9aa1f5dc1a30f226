"""Workloads: many short flows at random times, from the scenario file to a simulated run."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest

from dashboard import finished
from lab.cli import terminal
from lab.engines import registry
from lab.errors import RequestError
from lab.results import rows
from lab.run.engine import Options
from lab.run.recorder import Recorder, write_scenario
from lab.run.runner import run
from lab.run.transfers import percentile
from lab.scenario import flow_sizes, loading
from lab.scenario.flows import scaled_traffic, schedule
from lab.scenario.traffic import Traffic

PATHS = {"kind": "parallel_paths", "paths": [{"rate_mbps": 20, "delay_ms": 5}] * 2}
BOTTLENECK = {
    "kind": "shared_bottleneck",
    "rate_mbps": 20,
    "delay_ms": 5,
    "users": [{"id": "a", "subflows": 2}, {"id": "b", "subflows": 1}],
}
WORKLOAD = {"user": "all", "kind": "workload", "sizes": "web_search", "size_scale": 0.05}


def loaded(topology=PATHS, duration_s=30, more=(), rate_scale=1, **keys):
    raw = {"name": "some", "title": "Some", "topology": topology, "duration_s": duration_s}
    raw |= {"rate_scale": rate_scale, "traffic": [WORKLOAD | keys, *more]}
    return loading.from_data(raw, "test")


def starts(acts):
    return [act for act in acts if act.verb == "start"]


@pytest.mark.parametrize("name", flow_sizes.PUBLISHED)
def test_sizes_follow_the_published_distribution(name):
    chance = random.Random(3)
    drawn = [flow_sizes.draw_kb(name, chance) for _ in range(50_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(flow_sizes.mean_kb(name), rel=0.1)
    for packets, part in flow_sizes.IN_PACKETS[name][1:]:
        smaller = sum(each <= packets * flow_sizes.PACKET_KB + 1e-9 for each in drawn)
        assert smaller / len(drawn) == pytest.approx(part, abs=0.01)


def test_points_of_a_file_are_a_distribution_too():
    chance = random.Random(3)
    drawn = [flow_sizes.draw_kb([(10, 0.25), (20, 1)], chance) for _ in range(20_000)]
    assert min(drawn) == 10
    assert sum(each == 10 for each in drawn) / len(drawn) == pytest.approx(0.25, abs=0.01)
    assert sum(each < 15 for each in drawn) / len(drawn) == pytest.approx(0.625, abs=0.02)
    assert flow_sizes.mean_kb([(10, 0.25), (20, 1)]) == pytest.approx(0.25 * 10 + 0.75 * 15)


@pytest.mark.parametrize(
    "points",
    [[[10, 0.5]], [[10, 0.5], [5, 1]], [[10, 0.9], [20, 0.5]], [[0, 1]], [[5, -1], [9, 1]]],
)
def test_points_that_are_no_distribution_are_refused(points):
    with pytest.raises(RequestError, match=r"traffic\[1\]: sizes: write points"):
        loaded(sizes=points, rate_mbps=1)


def test_flows_arrive_at_random_and_carry_the_rate():
    entry = Traffic(user="a", kind="workload", sizes=((100, 1.0),), rate_mbps=2, start_s=5)
    acts = starts(schedule([entry], 1, 2005))
    gaps = [b.at_s - a.at_s for a, b in pairwise(acts)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(0.4, rel=0.05)
    assert sum((gap - mean) ** 2 for gap in gaps) / len(gaps) == pytest.approx(mean**2, rel=0.15)
    assert min(act.at_s for act in acts) > 5
    assert {act.flow.volume_bytes for act in acts} == {100_000}
    assert len({act.flow.port for act in acts}) == len({act.flow.id for act in acts}) == len(acts)


def test_the_same_seed_gives_the_same_flows_and_another_does_not():
    entry = Traffic(user="a", kind="workload", sizes="web_search", rate_mbps=20, stop_s=50)
    acts = schedule([entry], 7, 60)
    assert acts == schedule([entry], 7, 60) != schedule([entry], 8, 60)
    assert max(act.at_s for act in acts) < 50


def test_a_scenario_that_was_written_and_read_again_has_the_same_flows(tmp_path):
    made = loaded(load=0.3, link="path1", rate_scale=0.5)
    write_scenario(tmp_path / "scenario.yaml", made)
    again = loading.load(str(tmp_path))
    acts = [schedule(scaled_traffic(each), each.seed, each.duration_s) for each in (made, again)]
    assert acts[0] == acts[1]
    assert len(acts[0]) > 20


def test_two_workloads_of_a_user_have_flows_of_their_own():
    entry = Traffic(user="a", kind="workload", sizes=((50, 1.0),), rate_mbps=2)
    acts = schedule([entry, entry], 1, 60)
    assert len({act.at_s for act in acts}) == len({act.flow.id for act in acts}) == len(acts)


def test_users_of_an_incast_transfer_at_the_same_times_and_others_do_not():
    def of(user, pattern, seed=1):
        entry = Traffic(
            user=user, kind="workload", sizes="web_search", rate_mbps=20, pattern=pattern
        )
        return [(act.at_s, act.flow.volume_bytes) for act in schedule([entry], seed, 60)]

    assert of("a", "incast") == of("b", "incast") != of("a", "incast", seed=2)
    assert of("a", "permutation") != of("b", "permutation")


@pytest.mark.parametrize("scale", [1, 0.25])
def test_a_load_is_a_part_of_a_links_rate_for_all_users_together(scale):
    bottleneck = BOTTLENECK | {"rate_mbps": 40}
    made = loaded(bottleneck, rate_scale=scale, load=0.5, link="bottleneck", size_scale=1)
    assert {each.user: each.rate_mbps for each in made.traffic} == {"a": 10, "b": 10}
    assert {each.load for each in made.traffic} == {None}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"load": 0.5}, "needs either rate_mbps, or load and link"),
        ({"load": 0.5, "link": "path1", "rate_mbps": 1}, "needs either rate_mbps, or load"),
        ({}, "needs either rate_mbps, or load and link"),
        ({"load": 0.5, "link": "path3"}, r"traffic\[1\].link: 'path3'.* path2"),
        ({"rate_mbps": 1, "parallel": 2}, "no parallel, no warm"),
        ({"rate_mbps": 1, "sizes": None}, "needs sizes: web_search or data_mining"),
        (
            {"rate_mbps": 1, "kind": "rate"},
            "sizes belongs to kind 'workload' and 'web', not 'rate'",
        ),
        ({"rate_mbps": 100, "sizes": [[1, 1]]}, "at most 12,000. Choose a lower rate"),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(keys, said):
    with pytest.raises(RequestError, match=said):
        loaded(**keys)


def test_the_emulation_has_fewer_flows_than_the_simulator():
    scenario = loaded(rate_mbps=1, sizes=[[15, 1]])
    registry.admit("sim", scenario, Options(0.0))
    with pytest.raises(RequestError, match=r"engine 'mininet': traffic: .*: at most 3,000"):
        registry.admit("mininet", scenario, Options())


def outcome(scenario, folder):
    folder.mkdir()
    recorder = Recorder(folder, scenario, "sim")
    made = run(scenario, registry.create("sim", Options(speed=0.0)), recorder)
    assert not made.error, made.error
    return made.result


@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_simulated_run_transfers_each_flow_and_says_how_long_it_took(tmp_path, direction):
    scenario = loaded(BOTTLENECK, 8, rate_mbps=3, direction=direction)
    planned = {act.flow.id: act for act in schedule(scenario.traffic, scenario.seed, 8)}
    result = outcome(scenario, tmp_path / "run")
    done = {each["id"]: each["completion_s"] for each in result["connections"]}
    assert set(done) == set(planned)
    assert result["flows"]["count"] == len(planned) > 20
    complete = [name for name, taken_s in done.items() if taken_s is not None]
    assert result["flows"]["completed"] == len(complete) > 0.8 * len(planned)
    for name in complete:
        bits = 8 * planned[name].flow.volume_bytes
        assert done[name] > bits / 20e6 + 0.014, "a transfer is faster than its link"
    events = [json.loads(each) for each in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    told = {each["connection"] for each in events if each.get("traffic") == "workload"}
    assert told == set(complete)


def test_tables_have_the_size_and_slowdown_of_each_flow(tmp_path):
    scenario = loaded(PATHS, 6, sizes=[[20, 1]], size_scale=1, rate_mbps=2)
    result = outcome(scenario, tmp_path / "run")
    found = rows.found([tmp_path / "run"])
    assert {"traffic", "start_s", "size_mb", "slowdown"} <= set(found.columns("flows"))
    flows = list(found.rows(found.runs[0], "flows"))
    assert [each["connection"] for each in flows] == [each["id"] for each in result["connections"]]
    assert {(each["traffic"], each["size_mb"]) for each in flows} == {("workload", 0.02)}
    slowdowns = sorted(each["slowdown"] for each in flows if each["slowdown"] is not None)
    assert percentile(slowdowns, 99) == pytest.approx(result["flows"]["slowdown_p99"])


def test_the_report_and_the_page_show_completion_times(tmp_path):
    scenario = loaded(PATHS, 6, sizes=[[20, 1]], size_scale=1, rate_mbps=2)
    result = outcome(scenario, tmp_path / "run")
    lines = terminal.summary(result, tmp_path / "run").splitlines()
    completed = f"{result['flows']['completed']} of {result['flows']['count']}"
    (row,) = [each for each in lines if completed in each]
    assert row.startswith("all (workload, small)")
    (points,) = finished.completion(tmp_path / "run", result).values()
    assert points[-1][1] == result["flows"]["completed"] / result["flows"]["count"]


def test_samples_leave_out_flows_that_were_complete_before(tmp_path):
    scenario = loaded(PATHS, 8, sizes=[[20, 1]], size_scale=1, rate_mbps=2)
    result = outcome(scenario, tmp_path / "run")
    frames = [
        json.loads(each) for each in (tmp_path / "run/samples.jsonl").read_text().splitlines()
    ]
    assert max(len(frame["sf"]) for frame in frames) < 20 < result["flows"]["completed"]
    read_mb = sum(frame["user"]["ue1"]["mbps"] * 0.5 / 8 for frame in frames if frame["user"])
    assert read_mb == pytest.approx(0.02 * result["flows"]["completed"], rel=0.05)


def test_a_demand_does_not_limit_a_workload_in_a_run(tmp_path):
    bulk = {"user": "ue1", "kind": "bulk"}
    scenario = loaded(PATHS, 6, rate_mbps=3, size_scale=0.02, more=[bulk])
    demand = {"events": [{"at_s": 0, "target": "user.ue1.demand_mbps", "value": 0.2}]}
    raw = scenario.model_dump(mode="json", by_alias=True) | demand
    raw["topology"] = PATHS
    limited = outcome(loading.from_data(raw, "test"), tmp_path / "run")
    assert limited["flows"]["completed"] > 0.9 * limited["flows"]["count"]
    assert limited["flows"]["fct_p50_s"] < 0.5
