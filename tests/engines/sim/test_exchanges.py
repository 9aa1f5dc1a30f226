"""Requests and answers over simulated connections: how long they take, losses, cut links."""

from __future__ import annotations

import json

import pytest

from lab.engines import registry
from lab.engines.sim.clients import Clients
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.clients import ClientSpec
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath

from .losses import lose
from .networks import MS, SECOND, chain


def client(answer_bytes=1000, **more):
    values = {"kind": "rpc", "seed": "1", "end_s": 0.5, "request_bytes": 300}
    values |= {"answer_bytes": answer_bytes, "think_s": 1.0, "requests_per_s": None}
    spec = ClientSpec(**(values | more))
    return Flow("ue1-1", "ue1", "down", "reno", None, None, warm=True, kind="rpc", client=spec)


def exchanged(flow, topology, until_s=30):
    """Let one client run, and return how long each exchange took [s]."""
    network = Network(topology, Multipath(), [flow], seed=1)
    took = []
    clients = Clients(network, lambda _, done: took.append(done.end_s - done.at_s))
    network.start(flow, flow.cc)
    clients.begin(flow)
    while network.now_ns < until_s * SECOND:
        network.run(min(clients.next_ns, until_s * SECOND))
        clients.wake()
    return took


def lose_request(monkeypatch, number):
    """Lose the first packet of a request that has this number; return what was lost."""
    lost = []

    def is_lost(p):
        if p.kind == at.ASK and p.seq == number and not lost:
            lost.append(p)
            return True
        return False

    lose(monkeypatch, is_lost)
    return lost


@pytest.mark.parametrize("rtt_ms", [2, 40, 300])
def test_an_answer_of_one_packet_takes_a_round_trip(rtt_ms):
    (took_s,) = exchanged(client(), chain(2, delay_ns=rtt_ms * MS // 4))
    assert took_s == pytest.approx(rtt_ms / 1000, abs=0.0005)


def test_a_large_answer_takes_the_rounds_of_slow_start():
    (took_s,) = exchanged(client(10 * 1448 + 1), chain(2, delay_ns=10 * MS))
    assert took_s == pytest.approx(0.08, abs=0.002)  # 10 segments, and one a round trip later


def test_a_request_waits_in_the_queue_of_the_uplink():
    slow = chain(2, delay_ns=10 * MS, rate_bps=100_000)
    (took_s,) = exchanged(client(100, request_bytes=1200), slow)
    up_s, down_s = 2 * (1200 + 66) * 8 / 1e5, 2 * 1514 * 8 / 1e5
    assert took_s == pytest.approx(0.04 + up_s + down_s, abs=0.01)


@pytest.mark.parametrize("packets", [2, 5, 10])
def test_a_large_request_takes_the_time_of_its_packets_on_both_links(packets):
    slow = chain(2, delay_ns=10 * MS, rate_bps=1_000_000)
    flow = client(100, request_bytes=1400 * packets)
    (took_s,) = exchanged(flow, slow)
    up_s, down_s = (packets + 1) * (1400 + 66) * 8 / 1e6, 2 * 1514 * 8 / 1e6
    assert took_s == pytest.approx(0.04 + up_s + down_s, abs=0.003)


def test_a_large_request_is_answered_when_its_last_lost_packet_is_there(monkeypatch, interpreted):
    lost = lose_request(monkeypatch, 4)
    (took_s,) = exchanged(client(request_bytes=14_000), chain(2, delay_ns=10 * MS))
    assert lost
    assert 0.2 < took_s < 0.4


@pytest.mark.parametrize(
    ("kind", "extra_s"), [(at.ASK, 0.2), (at.ASK_CONFIRMATION, 0), (at.SEGMENT, 0.2)]
)
def test_what_is_lost_is_repeated_and_nothing_is_answered_twice(
    monkeypatch,
    interpreted,
    kind,
    extra_s,
):
    seen, heard = [], []

    def is_lost(p):
        first_hop = p.step in (p.subflow.data_route, p.subflow.ack_route)
        if first_hop:
            seen.append(p.kind)
        return first_hop and p.kind == kind and seen.count(kind) == 1

    lose(monkeypatch, is_lost)
    answer = Network.answer
    monkeypatch.setattr(
        Network, "answer", lambda *args: heard.append(args) or answer(*args), raising=True
    )
    (took_s,) = exchanged(client(), chain(2, delay_ns=10 * MS))
    assert 0.039 + extra_s <= took_s < 0.06 + 3 * extra_s
    assert len(heard) == 1


def test_requests_that_overtake_a_lost_one_wait_for_it(monkeypatch, interpreted):
    lose_request(monkeypatch, 1)
    flow = client(requests_per_s=40.0, think_s=None)
    took = exchanged(flow, chain(2, delay_ns=10 * MS))
    assert len(took) > 10
    assert took[0] == pytest.approx(0.04, abs=0.001)
    assert took[1] > 0.2
    assert took[2] > 0.04 + 0.05


def outcome(folder, *traffic, **more):
    raw = {"name": "some", "title": "Some", "duration_s": 10, "traffic": list(traffic)}
    paths = [{"rate_mbps": 20, "delay_ms": 5}, {"rate_mbps": 20, "delay_ms": 15}]
    raw["topology"] = {"kind": "parallel_paths", "paths": paths}
    scenario = loading.from_data(raw | more, "test")
    folder.mkdir()
    recorder = Recorder(folder, scenario, "sim")
    done = run(scenario, registry.create("sim", Options(speed=0.0)), recorder)
    assert not done.error, done.error
    events = [json.loads(each) for each in (folder / "events.jsonl").read_text().splitlines()]
    return done.result, [each for each in events if each["kind"] == "completion"]


RPC = {"user": "ue1", "kind": "rpc", "answer_kb": 50, "think_s": 0.1}


@pytest.mark.parametrize("scheduler", ["lowest_rtt", "linux"])
def test_a_run_has_an_event_for_each_exchange_and_their_percentiles(tmp_path, scheduler):
    result, events = outcome(tmp_path / "run", RPC, multipath={"scheduler": scheduler})
    flows = result["flows"]
    assert flows["completed"] == len(events) > 30
    assert flows["count"] - flows["completed"] in (0, 1)
    assert flows["by_kind"]["rpc"]["fct_p50_s"] == flows["fct_p50_s"]
    taken_s = sorted(each["completion_s"] for each in events)
    assert taken_s[0] > 0.01 + 50_000 * 8 / 40e6
    assert flows["fct_p99_s"] <= taken_s[-1]
    assert {(each["traffic"], each["mb"]) for each in events} == {("rpc", 0.05)}
    read_mb = result["throughput_mbps"] * 10 / 8
    assert read_mb == pytest.approx(0.05 * len(events), rel=0.05)


WEB = {"user": "ue1", "kind": "web", "sizes": [[5, 0.5], [50, 1]], "think_s": 0.2, "objects": 9}


@pytest.mark.parametrize("connections", [1, 6])
def test_a_run_loads_pages_over_its_connections(tmp_path, connections):
    entry = WEB | {"connections": connections}
    result, events = outcome(tmp_path / "run", entry)
    assert len(result["connections"]) == connections
    assert len(events) > 10
    assert {each["connection"] for each in events} == {"ue1-1"}
    assert result["flows"]["by_kind"]["web"]["completed"] == len(events)
    read_mb = result["throughput_mbps"] * 10 / 8
    assert read_mb >= sum(each["mb"] for each in events)
    several = [each for each in result["connections"] if each["throughput_mbps"] > 0.1]
    assert len(several) == connections


def test_six_connections_load_pages_of_many_objects_sooner_than_one(tmp_path):
    one, six = (
        outcome(tmp_path / str(n), WEB | {"connections": n, "objects": 30})[0]["flows"]
        for n in (1, 6)
    )
    assert six["fct_p50_s"] < 0.7 * one["fct_p50_s"]


def test_the_same_seed_gives_the_same_exchanges(tmp_path):
    first, again, other = (
        outcome(tmp_path / name, RPC, seed=seed)[1]
        for name, seed in zip("abc", (1, 1, 2), strict=True)
    )
    assert first == again != other


def test_samples_do_not_change_exchanges(tmp_path):
    many, few = (
        outcome(tmp_path / str(each), RPC, sample_interval_s=each)[1] for each in (0.05, 5.0)
    )
    assert many == few


def test_a_client_goes_on_over_the_other_path_when_one_is_cut(tmp_path):
    cut = {"at_s": 4, "target": "link.path1.up", "value": False}
    _, events = outcome(tmp_path / "run", RPC, events=[cut])
    late = [each for each in events if each["t"] > 6]
    assert len(late) > 8
    assert all(each["completion_s"] > 0.03 for each in late)


def test_a_download_beside_it_makes_a_client_wait(tmp_path):
    _, alone = outcome(tmp_path / "alone", RPC)
    _, beside = outcome(tmp_path / "beside", RPC, {"user": "ue1", "kind": "bulk"})

    def median(events):
        return sorted(each["completion_s"] for each in events)[len(events) // 2]

    assert median(beside) > 1.5 * median(alone)
