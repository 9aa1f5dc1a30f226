"""Traces: what their files say, when their values act, and what a run with them carries."""

from __future__ import annotations

import itertools
import json
import math
import random
import runpy
import shutil
from pathlib import Path

import pytest
import yaml
from users_files import _only_built_in, lab

from lab.errors import RequestError
from lab.run.reading import read_samples
from lab.run.traces import TracedChanges
from lab.scenario import loading, targets
from lab.scenario.schema import Scenario
from lab.scenario.targets import Change, SetLinkDelay, SetLinkLoss, SetLinkRate, SetStationRate
from lab.topologies import trace

__all__ = ["_only_built_in"]

SHIPPED = Path(loading.FOLDER, "traces")
FRAME_BITS = 1514 * 8


def deliveries(rng: random.Random) -> str:
    """A file of Mahimahi with silences."""
    now_ms, lines = 0, []
    while now_ms < 4000:
        now_ms += rng.choice([0, 0, 1, 1, 2, 3, rng.randrange(400) if rng.random() < 0.02 else 1])
        lines.append(now_ms)
    return "".join(f"{each}\n" for each in lines)


def rows(rng: random.Random, count: int = 30) -> tuple[str, list[tuple[float, ...]]]:
    """A CSV file and its rows. Times begin anywhere."""
    now_s, found = rng.uniform(-5, 5), []
    for _ in range(count):
        values = rng.uniform(0, 30), rng.uniform(5, 60), rng.choice([0, 0.01, 0.2])
        found.append((round(now_s, 3), *(round(each, 4) for each in values)))
        now_s += rng.uniform(0.03, 1.2)
    return "t_s,rate_mbps,delay_ms,loss\n" + "".join(
        f"{','.join(map(str, each))}\n" for each in found
    ), found


def carried_mb(read: trace.Trace) -> float:
    return sum((each.rate_mbps or 0) * each.lasts_s for each in read.steps) / 8


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bin_s", [0.01, 0.1, 0.37, 60])
def test_every_packet_of_mahimahi_counts_once(seed, bin_s):
    text = deliveries(random.Random(seed))
    read = trace.parsed(text, bin_s)
    assert carried_mb(read) == pytest.approx(len(text.splitlines()) * 1500 / 1e6, rel=1e-4)
    assert read.period_s == int(text.splitlines()[-1]) / 1000
    ends = [each.at_s + each.lasts_s for each in read.steps]
    assert [0, *ends] == pytest.approx([*(each.at_s for each in read.steps), read.period_s])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bin_s", [0.01, 0.1, 0.37, 60])
def test_values_of_csv_are_means_over_time(seed, bin_s):
    text, found = rows(random.Random(seed))
    read = trace.parsed(text, bin_s)
    spans_s = [b[0] - a[0] for a, b in itertools.pairwise(found)]
    spans_s.append(spans_s[-1])
    assert read.period_s == pytest.approx(sum(spans_s))
    for place, column in enumerate(trace.BOUNDS, 1):
        whole = sum(row[place] * span_s for row, span_s in zip(found, spans_s, strict=True))
        steps = sum(getattr(each, column) * each.lasts_s for each in read.steps)
        assert steps == pytest.approx(whole, rel=1e-4)


def test_a_value_holds_until_the_next_row(tmp_path):
    path = tmp_path / "of_a_spreadsheet.csv"
    path.write_bytes(
        b"\xef\xbb\xbft_s,delay_ms\r\n# a comment\r\n10, 20\r\n\r\n10.5, 40\r\n12.5, 30"
    )
    read = trace.read(path, 100)
    assert [(each.at_s, each.lasts_s, each.delay_ms) for each in read.steps] == [
        pytest.approx(each) for each in [(0, 0.5, 20), (0.5, 2, 40), (2.5, 2, 30)]
    ]
    assert read.period_s == 4.5
    assert read.columns == ("delay_ms",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("1\n3\n2\n", "line 3: 2 ms is before 3 ms"),
        ("1\n2.5\n", "line 2: '2.5' is not a time in ms"),
        ("0\n0\n", "it ends at 0 ms"),
        ("t_s,rate\n0,1\n", "line 1: column 'rate' is unknown .did you mean 'rate_mbps'"),
        ("rate_mbps\n1\n", "line 1: a header names t_s"),
        ("t_s\n1\n", "line 1: a header names t_s"),
        ("t_s,loss,loss\n1,0,0\n", "each once"),
        ("t_s,loss\n", "no row"),
        ("t_s,loss\n0,0\n1\n", "line 3: 1 values for 2 columns"),
        ("t_s,loss\n0,0\n0,0.1\n", "line 3: 0 s is not after 0 s"),
        ("t_s,loss\n0,5\n", "line 2: loss: 5 is not within 0 to 1"),
        ("t_s,rate_mbps\n0,-1\n", "line 2: rate_mbps: -1 is not within 0 to 10000"),
        ("t_s,rate_mbps\n0,nan\n", "line 2: rate_mbps: nan is not within"),
        ("t_s,rate_mbps\n0,x\n", "line 2: rate_mbps: 'x' is not a number"),
        ("t_s,rate_mbps\n0,0\n1,0\n", "rate_mbps is 0 in all rows: the link would carry nothing"),
        ("t_s,rate_mbps\n0,1\n90000,2\n", "write trace_bin_ms: 1800"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        trace.parsed(text, 0.1)


def test_no_frame_outlasts_the_time_of_its_rate():
    """A shaper is busy with a frame that it has begun, whatever comes after."""
    for rate_mbps, lasts_s in itertools.product([0, 0.001, 0.5, 20], [0.1, 2, 30]):
        step = trace.TraceStep(0, lasts_s, rate_mbps)
        for scale in (0.05, 1):
            bps = step.rate_bps(scale)
            assert bps is not None
            assert FRAME_BITS / bps <= lasts_s
            assert bps >= rate_mbps * scale * 1e6 - 1
            assert bps <= max(rate_mbps * scale * 1e6, FRAME_BITS / lasts_s + 1)


def test_the_shipped_traces_come_from_their_program():
    made = runpy.run_path(str(SHIPPED / "make.py"))
    assert {each.name for each in SHIPPED.iterdir() if each.is_file()} == {
        *made["TRACES"],
        "make.py",
    }
    for name in made["TRACES"]:
        assert (SHIPPED / name).read_text() == made["text"](name)
        assert trace.read(SHIPPED / name, 100).steps


def scenario(folder: Path, topology: dict[str, object], **keys: object) -> Path:
    content = {
        "name": "traced",
        "title": "A traced network",
        "topology": topology,
        "traffic": [{"user": "ue1", "kind": "bulk"}],
        "multipath": {"cc": "cubic"},
        "duration_s": 20,
    }
    path = folder / "traced.yaml"
    path.write_text(yaml.safe_dump(content | keys))
    return path


def one_path(**path: object) -> dict[str, object]:
    return {"kind": "parallel_paths", "paths": [path]}


def loaded(folder: Path, topology: dict[str, object], **keys: object) -> Scenario:
    return loading.load(str(scenario(folder, topology, **keys)))


def holds(changes: list[tuple[float, Change]], kind: type, at_s: float) -> Change | None:
    found = [each for t, each in changes if isinstance(each, kind) and t <= at_s]
    return found[-1] if found else None


def taken(scenario: Scenario, until_s: float) -> list[tuple[float, Change]]:
    due, found = TracedChanges(scenario), []
    while (now_s := due.next_s) <= until_s:
        found += [(now_s, each) for each in due.take(now_s)]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_each_value_acts_from_its_time_in_every_round(tmp_path, seed):
    rng = random.Random(seed)
    text, _ = rows(rng, 12)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.mahimahi").write_text(deliveries(rng))
    paths = [{"trace": "a.csv", "trace_bin_ms": 250}, {"trace": "b.mahimahi", "delay_ms": 7}]
    run = loaded(tmp_path, {"kind": "parallel_paths", "paths": paths}, rate_scale=0.5)
    first, second = (each.trace for each in run.network.traces)
    changes = taken(run, 30)
    assert [t for t, _ in changes] == sorted(t for t, _ in changes)
    for _ in range(60):
        at_s = rng.uniform(0, 30)
        for link, read in (("path1", first), ("path2", second)):
            step = max(
                (each for each in read.steps if each.at_s <= at_s % read.period_s),
                key=lambda each: each.at_s,
            )
            own = [(t, each) for t, each in changes if each.link == link]
            rate = holds(own, SetLinkRate, at_s)
            start = next(each for each in run.network.links if each.id == link)
            assert (rate.rate_bps if rate else start.rate_bps) == step.rate_bps(0.5)
            if link == "path1":
                delay, loss = holds(own, SetLinkDelay, at_s), holds(own, SetLinkLoss, at_s)
                assert (delay.delay_ns if delay else start.delay_ns) == round(step.delay_ms * 1e6)
                assert (loss.loss_ppm if loss else start.loss_ppm) == round(step.loss * 1e6)
            else:
                assert start.delay_ns == 7_000_000


@pytest.mark.parametrize("seed", range(8))
def test_means_are_what_the_trace_offers_between_two_times(seed):
    rng = random.Random(seed)
    text = rng.choice([deliveries(rng), rows(rng, rng.choice([1, 2, 9]))[0]])
    read = trace.parsed(text, rng.choice([0.01, 0.1, 0.7]))
    edges_s = [0.0, *sorted(rng.uniform(0, 5 * read.period_s) for _ in range(40))]
    found = trace.means_mbps(read, edges_s)
    offered = [
        sum(each.rate_mbps * each.lasts_s for each in until(read, end_s)) for end_s in edges_s
    ]
    for mbps, (start_s, end_s), (before, later) in zip(
        found, itertools.pairwise(edges_s), itertools.pairwise(offered), strict=True
    ):
        assert mbps * (end_s - start_s) == pytest.approx(later - before, abs=1e-6)


def test_a_constant_trace_changes_nothing(tmp_path):
    (tmp_path / "a.csv").write_text("t_s,rate_mbps\n0,8\n5,8\n")
    run = loaded(tmp_path, one_path(trace="a.csv"))
    assert TracedChanges(run).next_s == math.inf
    assert run.network.links[-1].rate_bps == 8_000_000


@pytest.mark.parametrize("name", ["lte_drive.mahimahi", "starlink.csv"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_bulk_flow_carries_what_the_trace_offers(tmp_path, name, seed):
    shutil.copy(SHIPPED / name, tmp_path)
    if name.endswith("csv"):  # without its loss, which lets Cubic leave the link idle
        lines = (SHIPPED / name).read_text().splitlines()
        (tmp_path / name).write_text("".join(f"{x.rpartition(',')[0]}\n" for x in lines))
    path = scenario(tmp_path, one_path(trace=name, queue_packets=800), duration_s=30, seed=seed)
    out = tmp_path / "run"
    assert lab("run", "--engine", "sim", path, "--out", out).exit_code == 0
    samples = read_samples(out)
    offered = sum(
        each.rate_mbps * each.lasts_s for each in until(trace.read(SHIPPED / name, 100), 30)
    )
    frames = sum(each["link"]["path1"]["mbps"] for each in samples) / len(samples)
    assert 0.95 < frames / (offered / 30) <= 1.001
    assert json.loads((out / "result.json").read_text())["throughput_mbps"] > 0.89 * offered / 30


def until(read: trace.Trace, end_s: float) -> list[trace.TraceStep]:
    rounds = range(math.ceil(end_s / read.period_s))
    steps = [(r * read.period_s + each.at_s, each) for r in rounds for each in read.steps]
    return [
        trace.TraceStep(at_s, min(each.lasts_s, end_s - at_s), each.rate_mbps)
        for at_s, each in steps
        if at_s < end_s
    ]


def test_nothing_leaves_while_the_rate_is_zero(tmp_path):
    (tmp_path / "a.csv").write_text("t_s,rate_mbps\n0,10\n4,0\n7,10\n11,10\n")
    path = scenario(
        tmp_path, one_path(trace="a.csv", queue_packets=200), sample_interval_s=0.5, duration_s=11
    )
    assert lab("run", "--engine", "sim", path, "--out", tmp_path / "run").exit_code == 0
    mbps = {each["t"]: each["link"]["path1"]["mbps"] for each in read_samples(tmp_path / "run")}
    assert sum(mbps[t] for t in (4.5, 5.0, 5.5, 6.0, 6.5, 7.0)) * 0.5e6 <= FRAME_BITS
    assert min(mbps[8.0], mbps[9.0], mbps[10.0]) > 9.5


def test_stations_follow_traces(tmp_path):
    (tmp_path / "walk.csv").write_text("t_s,rate_mbps\n0,30\n5,3\n10,3\n")
    users = [{"id": "ue1", "wifi_trace": "walk.csv"}, {"id": "ue2", "lte_trace": "walk.csv"}]
    users[1]["near"] = "lte"
    path = scenario(tmp_path, {"kind": "wifi_lte", "users": users}, traffic=[{"user": "all"}])
    run = loading.load(str(path))
    assert [each.target for each in run.network.traces] == ["cell.wifi1.ue1", "cell.lte1.ue2"]
    assert taken(run, 6) == [
        (5, SetStationRate("wifi1", "ue1", 3_000_000)),
        (5, SetStationRate("lte1", "ue2", 3_000_000)),
    ]
    assert lab("run", "--engine", "sim", path, "--out", tmp_path / "run").exit_code == 0
    for ap in ("wifi1", "lte1"):
        mbps = [
            each["ap"][ap]["tier1_mbps"]
            for each in read_samples(tmp_path / "run")
            if each["t"] < 15
        ]
        fast, slow = mbps[4:9], mbps[14:]
        assert sum(fast) / len(fast) > 20
        assert 2 < sum(slow) / len(slow) < 3.5


def test_own_links_follow_traces(tmp_path):
    (tmp_path / "a.csv").write_text("t_s,rate_mbps,loss\n0,5,0\n1,2,0.1\n")
    links = [{"a": "h1", "b": "s1", "trace": "a.csv"}, {"a": "s1", "b": "far"}]
    lists = {"users": [{"id": "h1"}], "servers": ["far"], "switches": ["s1"], "links": links}
    run = loaded(tmp_path, {"kind": "nodes_and_links", **lists}, traffic=[{"user": "h1"}])
    assert taken(run, 1) == [
        (1, SetLinkRate("h1-s1", 2_000_000)),
        (1, SetLinkLoss("h1-s1", 100_000)),
    ]


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (one_path(trace="none.csv"), "there is no file"),
        (
            one_path(trace="delay.csv"),
            "paths.1.*: rate_mbps is missing: write it, or a trace with a",
        ),
        (one_path(trace="all.csv", rate_mbps=5), "rate_mbps: all.csv has its own rate_mbps"),
        (one_path(trace="all.csv", delay_ms=5), "delay_ms: all.csv has its own delay_ms"),
        (one_path(trace="all.csv", loss_both=0.1), "loss_both: all.csv has its own loss"),
        (one_path(trace="all.csv", jitter_ms=15), "jitter_ms 15 is above a delay of 10 ms"),
        (one_path(trace="all.csv", trace_bin_ms=1), "trace_bin_ms"),
        (one_path(), "rate_mbps is missing"),
        (one_path(trace="bad.csv"), "read .*bad.csv: line 2: 1 values"),
        (
            {"kind": "wifi_lte", "users": [{"id": "ue1", "wifi_trace": "slow.csv"}]},
            "0.05 Mb/s is below 0.1 Mb/s, the least of a station",
        ),
        (
            {"kind": "wifi_lte", "users": [{"id": "ue1", "wifi_trace": "all.csv"}]},
            "wifi_trace: a station has a rate only",
        ),
        (
            {
                "kind": "wifi_lte",
                "users": [{"id": "ue1", "wifi_mbps": 5, "wifi_trace": "fine.csv"}],
            },
            "wifi_trace has the rate: leave out wifi_mbps",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, topology, message):
    files = {
        "all": "rate_mbps,delay_ms,loss\n0,5,10,0\n",
        "delay": "delay_ms\n0,10\n",
        "bad": "rate_mbps\n0\n",
        "slow": "rate_mbps\n0,5\n1,0.05\n",
        "fine": "rate_mbps\n0,5\n",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(f"t_s,{text}")
    with pytest.raises(RequestError, match=message):
        loaded(tmp_path, topology)


def test_what_follows_a_trace_is_no_target(tmp_path):
    (tmp_path / "a.csv").write_text("t_s,delay_ms\n0,10\n1,20\n")
    run = loaded(tmp_path, one_path(rate_mbps=5, trace="a.csv"))
    names = {each for each in targets.targets(run) if each.startswith("link.path1")}
    rates = {f"link.path1.{way}rate_mbps" for way in ("", "up.", "down.")}
    queues = {
        f"link.path1.{way}queue{what}" for way in ("", "up.", "down.") for what in ("", ".packets")
    }
    others = {"link.path1.loss", "link.path1.up"} | queues
    assert names == rates | others
    with pytest.raises(RequestError, match=r"link.path1.delay_ms"):
        loaded(
            tmp_path,
            one_path(rate_mbps=5, trace="a.csv"),
            events=[{"at_s": 1, "target": "link.path1.delay_ms", "value": 3}],
        )


def test_a_run_carries_its_trace(tmp_path):
    """The run folder has a copy, with the digest; an edited trace is another experiment."""
    shutil.copy(SHIPPED / "starlink.csv", tmp_path / "a.csv")
    path = scenario(tmp_path, one_path(trace="a.csv"), duration_s=2)
    assert lab("run", "--engine", "sim", path, "--out", tmp_path / "run").exit_code == 0
    (tmp_path / "run").rename(tmp_path / "moved")
    before = loading.experiment(loading.load(str(path)), "sim")
    (tmp_path / "a.csv").write_text("t_s,rate_mbps\n0,5\n1,2\n")
    assert loading.experiment(loading.load(str(path)), "sim") != before
    (tmp_path / "a.csv").unlink()
    again = lab("run", "--engine", "sim", tmp_path / "moved", "--out", tmp_path / "again")
    assert again.exit_code == 0
    one, other = ((tmp_path / each / "samples.jsonl").read_bytes() for each in ("moved", "again"))
    assert one == other


def test_a_trace_is_read_only_where_files_may_be_read(tmp_path):
    content = yaml.safe_load(scenario(tmp_path, one_path(trace="a.csv")).read_text())
    with pytest.raises(RequestError, match="a path is accepted only in a scenario file"):
        loading.from_data(content, "the page")
