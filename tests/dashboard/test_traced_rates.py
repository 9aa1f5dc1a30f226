"""The rates of traces as lines of charts: which ones, where, and with which values."""

from __future__ import annotations

import json
import random

import pytest
import yaml

from dashboard import traced_rates, view
from dashboard.charts import About, figures
from lab.scenario import loading
from lab.topologies import trace

HALVES = "t_s,rate_mbps\n0,20\n4,5\n8,5\n"  # 20 Mb/s in one third of the time


def loaded(folder, topology, **keys):
    (folder / "a.csv").write_text(HALVES)
    content = {
        "name": "traced",
        "title": "A traced network",
        "topology": topology,
        "traffic": [{"user": "all"}],
        "duration_s": 40,
    }
    path = folder / "traced.yaml"
    path.write_text(yaml.safe_dump(content | keys))
    return loading.load(str(path))


def lines(scenario, duration_s=40.0):
    return [(each.chart, each.name) for each in traced_rates.of_run(scenario, duration_s)]


def paths(*several):
    return {"kind": "parallel_paths", "paths": list(several)}


def test_a_link_has_a_line_below_its_own_and_below_a_user_who_has_no_other(tmp_path):
    one = loaded(tmp_path, paths({"trace": "a.csv"}))
    assert lines(one) == [("links", "rate of path1 (trace)"), ("users", "rate of path1 (trace)")]
    two = loaded(tmp_path, paths({"rate_mbps": 9}, {"trace": "a.csv"}))
    assert lines(two) == [("links", "rate of path2 (trace)")]
    without = loaded(tmp_path, paths({"rate_mbps": 9}))
    assert lines(without) == []


def test_own_links_of_users_and_links_that_users_share(tmp_path):
    links = [
        {"id": "lte1", "a": "a", "b": "s", "trace": "a.csv"},
        {"a": "b", "b": "s", "rate_mbps": 10},
        {"id": "shared", "a": "s", "b": "t", "trace": "a.csv"},
        {"a": "t", "b": "srv"},
    ]
    topology = {
        "kind": "nodes_and_links",
        "users": [{"id": "a"}, {"id": "b"}],
        "servers": ["srv"],
        "switches": ["s", "t"],
        "links": links,
    }
    assert sorted(lines(loaded(tmp_path, topology))) == [
        ("links", "rate of lte1 (trace)"),
        ("links", "rate of shared (trace)"),
        ("users", "rate of lte1 (trace)"),
    ]


def test_stations_have_a_line_below_their_access_point(tmp_path):
    users = [
        {"id": "ue1", "wifi_trace": "a.csv"},
        {"id": "ue2", "wifi_mbps": 9, "lte_trace": "a.csv"},
    ]
    run = loaded(tmp_path, {"kind": "wifi_lte", "users": users, "multipath": ["ue2"]})
    assert lines(run) == [
        ("tiers", "rate of ue1 at wifi1 (trace)"),
        ("users", "rate of ue1 at wifi1 (trace)"),
        ("tiers", "rate of ue2 at lte1 (trace)"),
    ]


def test_a_trace_without_a_rate_has_no_line(tmp_path):
    (tmp_path / "b.csv").write_text("t_s,loss\n0,0\n5,0.1\n")
    run = loaded(tmp_path, paths({"rate_mbps": 9, "trace": "b.csv"}))
    assert lines(run) == []


@pytest.mark.parametrize("seed", range(5))
def test_values_are_means_between_samples_in_the_scenarios_unit(tmp_path, seed):
    rng = random.Random(seed)
    duration_s = round(rng.uniform(1, 60), 2)
    interval_s = rng.choice([0.1, 0.25, 0.5, 2])
    scale = rng.choice([0.1, 1])
    run = loaded(
        tmp_path, paths({"trace": "a.csv"}), sample_interval_s=interval_s, rate_scale=scale
    )
    line = traced_rates.of_run(run, duration_s)[0]
    read = trace.read(tmp_path / "a.csv", 100)
    assert len(line.t_s) == len(line.mbps) <= traced_rates.MOST_POINTS
    assert line.t_s[-1] == duration_s
    assert line.t_s[0] == min(interval_s, duration_s)
    ends = zip((0, *line.t_s), line.t_s, line.mbps, strict=False)
    for start_s, end_s, mbps in ends:
        assert mbps == pytest.approx(trace.means_mbps(read, [start_s, end_s])[0], abs=1e-3)


def test_long_runs_and_many_traces_have_lines_of_bounded_size(tmp_path):
    run = loaded(tmp_path, paths(*[{"trace": "a.csv"}] * 15), duration_s=3600)
    found = traced_rates.of_run(run, 3600)
    assert len(found) == 15
    most = traced_rates.MOST_POINTS * traced_rates.MOST_LINES
    assert most / 2 < sum(len(each.t_s) for each in found) <= most
    for line in found:  # no offered bit is lost
        spans_s = [end - start for start, end in zip((0, *line.t_s), line.t_s, strict=False)]
        offered = sum(span * mbps for span, mbps in zip(spans_s, line.mbps, strict=True))
        assert offered == pytest.approx(3600 * 10, rel=1e-4)


def test_lines_have_the_colour_of_the_line_above_and_get_no_samples(tmp_path):
    run = loaded(tmp_path, paths({"rate_mbps": 9}, {"trace": "a.csv"}))
    rates = {"mbps": 3.0, "mbps_ab": 3.0, "mbps_ba": 0.1, "backlog": 0, "loss": 0}
    frames = [{"t": t, "link": {"path1": rates, "path2": rates}} for t in (0.5, 1.0)]
    about = About(links=("path1", "path2"), traced=traced_rates.of_run(run, 1))
    (drawn,) = (each for each in figures(frames, about) if each["name"] == "links")
    first, *others = drawn["figure"]["data"]
    assert (first["name"], first["meta"]["key"]) == ("rate of path2 (trace)", [])
    (above,) = (each for each in others if each["name"] == "path2")
    assert first["line"]["color"] == above["line"]["color"]
    assert first["meta"]["of"] == above["meta"]["key"][:2]


def test_a_run_that_was_stopped_ends_its_lines_where_it_ended(tmp_path):
    run = loaded(tmp_path, paths({"trace": "a.csv"}))
    folder = tmp_path / "run"
    (folder / "inputs").mkdir(parents=True)
    (folder / "scenario.yaml").write_text((tmp_path / "traced.yaml").read_text())
    (folder / "a.csv").write_text(HALVES)
    samples = [json.dumps({"t": t, "user": {"ue1": {"mbps": 1.0}}}) for t in (0.5, 1.0, 1.5)]
    (folder / "samples.jsonl").write_text("\n".join(samples) + "\n")
    (folder / "events.jsonl").write_text("")
    ends = []
    for result in (None, "{}"):
        if result:
            (folder / "result.json").write_text(result)
        (users,) = (e for e in view.charts(folder, 100)["figures"] if e["name"] == "users")
        ends.append(users["figure"]["data"][0]["x"][-1])
    assert ends == [run.duration_s, 1.5]
