"""Clients as state machines, with an engine of a few lines: every answer takes a fixed time."""

from __future__ import annotations

import heapq
from itertools import pairwise

import pytest

from lab.errors import RequestError
from lab.scenario import loading
from lab.scenario.clients import NEVER_S, ClientSpec, make
from lab.scenario.flows import scaled_traffic, schedule
from lab.scenario.traffic import Traffic

CHAIN = {"kind": "parallel_paths", "paths": [{"rate_mbps": 20, "delay_ms": 5}]}


def rpc(**more):
    values = {"kind": "rpc", "seed": "1/ue1-1/rpc", "end_s": None, "request_bytes": 300}
    values |= {"answer_bytes": 5000, "think_s": 1.0, "requests_per_s": None}
    return make(ClientSpec(**(values | more)))


def web(**more):
    values = {"kind": "web", "seed": "1/ue1-1/web", "end_s": None, "request_bytes": 300}
    values |= {"answer_bytes": 1, "think_s": 1.0, "requests_per_s": None, "connections": 3}
    values |= {"objects": 10, "sizes_kb": ((10, 0.0), (10, 0.5), (100, 1.0))}
    return make(ClientSpec(**(values | more)))


def played(client, until_s, answer_s=0.1):
    """Run a client; every answer comes `answer_s` after the one before it or after its request."""
    coming: list = []
    last_s = 0.0

    def send(asks, now_s):
        nonlocal last_s
        for ask in asks:
            last_s = max(now_s, last_s) + answer_s
            heapq.heappush(coming, (last_s, len(coming), ask))

    send(client.begin(0.0), 0.0)
    while (now_s := min(client.wake_s, coming[0][0] if coming else NEVER_S)) < until_s:
        if now_s == client.wake_s:
            client.wake_s = NEVER_S
            send(client.woke(now_s), now_s)
        else:
            send(client.answered(now_s, heapq.heappop(coming)[2]), now_s)
    return client.take_done()


def test_the_next_request_follows_an_answer_after_a_pause_of_the_mean_length():
    done = played(rpc(think_s=0.4), 4000)
    pauses = [b.at_s - a.end_s for a, b in pairwise(done)]
    mean = sum(pauses) / len(pauses)
    assert mean == pytest.approx(0.4, rel=0.05)
    assert sum((each - mean) ** 2 for each in pauses) / len(pauses) == pytest.approx(0.16, rel=0.15)
    assert all(each.end_s - each.at_s == pytest.approx(0.1) for each in done)
    assert {each.size_bytes for each in done} == {5000}


def test_without_a_pause_requests_follow_at_once():
    assert len(played(rpc(think_s=0), 10.05)) == 100


def test_requests_at_random_times_do_not_wait_for_answers_but_their_answers_do():
    done = played(rpc(think_s=None, requests_per_s=8.0), 2000)
    gaps = [b.at_s - a.at_s for a, b in pairwise(done)]
    assert sum(gaps) / len(gaps) == pytest.approx(1 / 8, rel=0.05)
    waits = [each.end_s - each.at_s for each in done]
    assert min(waits) == pytest.approx(0.1)
    assert sum(waits) / len(waits) == pytest.approx(0.3, rel=0.2)  # M/D/1 with a load of 0.8


@pytest.mark.parametrize("more", [{"think_s": 0.1}, {"requests_per_s": 5.0}])
def test_a_client_stops_asking_at_its_end_and_its_last_request_is_answered(more):
    client = rpc(end_s=3.0, **more)
    done = played(client, 60)
    assert 2 < max(each.at_s for each in done) < 3
    assert client.waiting == []
    assert client.wake_s == NEVER_S


def test_what_was_not_answered_is_waiting():
    client = rpc(think_s=0)
    assert len(played(client, 1.05)) == 10
    ((at_s, size),) = client.waiting
    assert (at_s, size) == (pytest.approx(1.0), 5000)


def test_the_same_seed_gives_the_same_requests_and_another_does_not():
    first, again, other = (played(rpc(seed=seed), 60) for seed in ("1", "1", "2"))
    assert first == again != other


def test_a_page_begins_with_one_object_and_goes_on_over_all_connections():
    client = web()
    (first,) = client.begin(2.0)
    assert first.connection == 0
    asks = client.answered(3.0, first)
    assert [ask.connection for ask in asks] == [0, 1, 2]
    (following,) = client.answered(3.5, asks[1])
    assert following.connection == 1


@pytest.mark.parametrize(("objects", "connections"), [(1, 6), (2, 6), (5, 1), (50, 3)])
def test_a_page_is_complete_with_its_last_object(objects, connections):
    client = web(objects=objects, connections=connections)
    asks, seen = client.begin(0.0), []
    for n in range(1, objects + 1):
        seen.append(asks.pop(0))
        assert client.done == []
        asks += client.answered(float(n), seen[-1])
    assert asks == []
    ((at_s, end_s, size),) = client.take_done()
    assert (at_s, end_s) == (0, objects)
    assert size == sum(ask.answer_bytes for ask in seen)
    assert client.waiting == []


def test_pages_follow_after_a_pause_and_have_sizes_of_their_own():
    done = played(web(think_s=0.4), 3000)
    pauses = [b.at_s - a.end_s for a, b in pairwise(done)]
    assert sum(pauses) / len(pauses) == pytest.approx(0.4, rel=0.07)
    mean_bytes = sum(each.size_bytes for each in done) / len(done)
    assert mean_bytes == pytest.approx(10 * 1000 * (5 + 27.5), rel=0.05)
    assert len({each.size_bytes for each in done}) > 0.9 * len(done)


@pytest.mark.parametrize("think_s", [0, 0.5])
def test_a_browser_opens_no_page_after_its_end(think_s):
    client = web(end_s=5.0, think_s=think_s)
    done = played(client, 60)
    assert 3.5 < max(each.at_s for each in done) < 5
    assert client.waiting == []


def test_an_entry_of_web_has_connections_that_share_a_client():
    entry = Traffic(user="a", kind="web", sizes=((9, 1.0),), connections=3, parallel=2)
    flows = [act.flow for act in schedule([Traffic(user="a"), entry], 4, 60)]
    flows = sorted((flow for flow in flows if flow.client), key=lambda each: each.id)
    assert [flow.place for flow in flows] == [0, 1, 2, 0, 1, 2]
    first, second = {flow.client for flow in flows[:3]}, {flow.client for flow in flows[3:]}
    assert len(first) == len(second) == 1
    assert first != second


def test_an_entry_of_rpc_makes_one_client_for_each_connection():
    entry = Traffic(user="a", kind="rpc", answer_kb=20, think_s=0.5, parallel=3, stop_s=9)
    flows = [act.flow for act in schedule([entry], 4, 60)]
    assert [flow.id for flow in flows] == ["a-1", "a-2", "a-3"]
    assert all(flow.warm and flow.volume_bytes is None for flow in flows)
    assert len({flow.client.seed for flow in flows}) == 3
    (spec,) = {flow.client._replace(seed="") for flow in flows}
    assert spec[:7] == ("rpc", "", 9.0, 300, 20_000, 0.5, None)
    assert spec.connections == 1


@pytest.mark.parametrize(
    ("request_kb", "request_bytes", "packets"),
    [(0.3, 300, 1), (1.4, 1400, 1), (2, 1400, 1), (6, 3000, 3), (14, 7000, 5)],
)
def test_requests_of_several_packets_are_scaled(request_kb, request_bytes, packets):
    raw = {"name": "some", "title": "Some", "topology": CHAIN, "rate_scale": 0.5}
    entry = {"user": "ue1", "kind": "rpc", "answer_kb": 20, "request_kb": request_kb}
    made = loading.from_data(raw | {"traffic": [entry]}, "test")
    (act,) = schedule(scaled_traffic(made), 1, 60)
    assert act.flow.client.request_bytes == request_bytes
    assert act.flow.client.request_packets == packets


def test_answers_are_scaled_and_requests_are_packets():
    raw = {"name": "some", "title": "Some", "topology": CHAIN, "rate_scale": 0.5}
    entry = {"user": "ue1", "kind": "rpc", "answer_kb": 20, "request_kb": 1}
    made = loading.from_data(raw | {"traffic": [entry]}, "test")
    (act,) = schedule(scaled_traffic(made), 1, 60)
    assert (act.flow.client.answer_bytes, act.flow.client.request_bytes) == (10_000, 1000)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "needs answer_kb"),
        ({"answer_kb": 1, "think_s": 5, "requests_per_s": 3}, "Leave out one of them"),
        ({"answer_kb": 1, "request_kb": 15}, "at most 14 kB"),
        ({"answer_kb": 1, "direction": "up"}, "'rpc' is always a download: leave out direction"),
        ({"answer_kb": 1, "warm": True}, "leave out warm$"),
        ({"answer_kb": 1, "rate_mbps": 3}, "leave out rate_mbps$"),
        ({"answer_kb": 1, "load": 0.5}, "load belongs to kind 'workload', not 'rpc'"),
        ({"kind": "bulk", "think_s": 2}, "think_s belongs to kind 'rpc' and 'web', not 'bulk'"),
        ({"kind": "web"}, "needs sizes of its objects"),
        ({"kind": "web", "sizes": [[5, 0.5]]}, "sizes: write points"),
        ({"kind": "web", "sizes": [[5, 1]], "answer_kb": 1}, "answer_kb belongs to kind 'rpc'"),
        ({"kind": "web", "sizes": [[5, 1]], "direction": "up"}, "leave out direction"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(keys, said):
    raw = {"name": "some", "title": "Some", "topology": CHAIN}
    with pytest.raises(RequestError, match=said):
        loading.from_data(raw | {"traffic": [{"user": "ue1", "kind": "rpc"} | keys]}, "test")
