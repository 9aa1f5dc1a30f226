"""Calls: how they are judged, and what a simulated run says of them."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from lab.cli import terminal
from lab.engines import registry
from lab.engines.sim.network import Network
from lab.engines.sim.tables import CALL_ARRIVALS
from lab.errors import RequestError
from lab.results.compare import numbers
from lab.run import calls
from lab.run.calls import judged, mos
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.flows import CallSpec, Flow, scaled_traffic, schedule
from lab.scenario.schema import Multipath

FRAME_BITS = (172 + 42) * 8
PATHS = ({"rate_mbps": 6, "delay_ms": 10}, {"rate_mbps": 4, "delay_ms": 35})


def flow(packet_s=0.02, playout_ms=60.0, packet_bytes=172):
    call = CallSpec(packet_bytes, packet_s, playout_ms)
    rate_bps = round(packet_bytes * 8 / packet_s)
    return Flow("ue1-1", "ue1", "down", "reno", rate_bps, None, "udp", kind="call", call=call)


@pytest.mark.parametrize(
    ("r", "score"), [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)]
)
def test_scores_are_those_of_the_table_of_g_107(r, score):
    unheard = (math.exp((94.2 - r) / 30) - 1) / 15
    assert mos(0, unheard) == pytest.approx(score, abs=0.01)
    assert mos((94.2 - r) / 0.024, 0) < score + 0.01  # above 177.3 ms delay counts more


def test_nobody_understands_a_call_without_datagrams():
    assert 1 <= mos(0, 1) < 1.2
    assert mos(5000, 0) == 1


@pytest.mark.parametrize("packet_s", [0.01, 0.02, 0.06])
@pytest.mark.parametrize("delay_ms", [0.5, 80, 400])
def test_a_steady_call_has_the_score_of_its_delay(delay_ms, packet_s):
    found = judged(flow(packet_s, 40.0), dict.fromkeys(range(5000), delay_ms), 12)
    expected = mos(packet_s * 1000 + delay_ms + 40, 0)
    assert found["mos"] == pytest.approx(expected, abs=1e-5)
    assert found["mos_worst"] == pytest.approx(expected, abs=1e-5)
    assert (found["loss"], found["late"], found["jitter_ms"]) == (0, 0, 0)
    assert found["delay_p99_ms"] == delay_ms


@pytest.mark.parametrize("seed", range(3))
def test_delays_jitter_loss_and_lateness_are_counted(seed):
    chance = random.Random(seed)
    delays_ms = {n: 20 + chance.uniform(0, 100) for n in range(500) if chance.random() > 0.1}
    found = judged(flow(), delays_ms, 10.0)
    late = sum(
        delays_ms[n] > 60 + min(delays_ms[m] for m in delays_ms if m // 250 == n // 250)
        for n in delays_ms
    )
    assert found["loss"] == pytest.approx(1 - len(delays_ms) / 500)
    assert found["late"] == pytest.approx(late / 500)
    assert 0.2 < found["late"] < 0.5
    in_order = [delays_ms[n] for n in sorted(delays_ms)]
    changes = [abs(b - a) for a, b in pairwise(in_order)]
    assert found["jitter_ms"] == pytest.approx(sum(changes) / len(changes))
    assert found["delay_p50_ms"] == pytest.approx(sorted(in_order)[len(in_order) // 2], abs=2)


def test_the_worst_window_is_the_one_in_which_most_is_missing():
    delays_ms = {n: 20.0 for n in range(750) if not 250 <= n < 375}
    found = judged(flow(), delays_ms, 15.0)
    assert found["mos_worst"] == pytest.approx(mos(100, 0.5), abs=1e-5)
    assert found["mos"] == pytest.approx((2 * mos(100, 0) + mos(100, 0.5)) / 3, abs=1e-5)


def test_a_call_of_which_nothing_arrives_has_no_delay():
    found = judged(flow(), {}, 7.0)
    assert found["delay_p50_ms"] is None
    assert found["jitter_ms"] is None
    assert found["loss"] == 1
    assert found["mos"] < 1.2


def scenario(*flows, paths=PATHS, **keys):
    raw = {"name": "some", "title": "Some", "duration_s": 8}
    raw["topology"] = {"kind": "parallel_paths", "paths": [*paths]}
    entries = flows or ({},)
    raw["traffic"] = [{"user": "ue1", "kind": "call"} | each for each in entries]
    return loading.from_data(raw | keys, "test")


def test_a_call_has_two_directions_with_a_port_of_its_own_each():
    made = scenario({"parallel": 3, "start_s": 1, "stop_s": 5}, {"interface": "eth2"})
    acts = schedule(scaled_traffic(made), made.seed, 8)
    flows = [act.flow for act in acts if act.verb == "start"]
    assert [each.direction for each in sorted(flows, key=lambda one: one.id)] == ["down", "up"] * 4
    assert len({each.port for each in flows}) == 8
    assert sorted(act.at_s for act in acts if act.verb == "stop") == [5] * 6
    assert {each.interface for each in flows} == {"", "eth2"}
    assert made.data_flows == (("ue1", "down"), ("ue1", "up")) * 2


@pytest.mark.parametrize(("rate_scale", "size_bytes"), [(1, 172), (0.25, 43), (0.01, 16)])
def test_datagrams_shrink_with_the_rates_of_the_network(rate_scale, size_bytes):
    made = scenario(rate_scale=rate_scale)
    for act in schedule(scaled_traffic(made), made.seed, 8):
        assert act.flow.call.packet_bytes == size_bytes
        assert act.flow.rate_bps == size_bytes * 8 * 50


def simulated(tmp_path, made):
    tmp_path.mkdir(exist_ok=True)
    recorder = Recorder(tmp_path, made, "sim")
    done = run(made, registry.create("sim", Options(speed=0.0)), recorder)
    assert not done.error, done.error
    return done.result


@pytest.mark.parametrize(("interface", "path"), [("", 0), ("eth1", 0), ("eth2", 1)])
def test_a_run_says_how_good_its_calls_are(tmp_path, interface, path):
    result = simulated(tmp_path, scenario({"interface": interface}))
    delay_ms = PATHS[path]["delay_ms"] + FRAME_BITS / PATHS[path]["rate_mbps"] / 1000
    assert [each["direction"] for each in result["call"]["calls"]] == ["down", "up"]
    for each in result["call"]["calls"]:
        assert each["delay_p50_ms"] == pytest.approx(delay_ms, abs=0.15)
        assert each["mos"] == pytest.approx(mos(20 + delay_ms + 60, 0), abs=0.01)
        assert each["loss"] == each["late"] == 0
    rows = [line.split() for line in terminal.summary(result, tmp_path).splitlines()]
    assert [each[1:3] for each in rows if each[1:2] in (["ue1-1"], ["ue1-2"])] == [
        ["ue1-1", "down"],
        ["ue1-2", "up"],
    ]
    found = numbers(result)
    assert found["call.mos"] == pytest.approx(result["call"]["calls"][0]["mos"], abs=1e-3)
    assert found["call.mos_worst"] <= found["call.mos"]
    assert found["users.ue1.throughput_mbps"] == pytest.approx(2 * 0.0688, rel=0.02)


def test_losses_of_a_link_are_those_of_the_call_in_both_directions(tmp_path):
    path = {"rate_mbps": 6, "delay_ms": 10, "loss": 0.1}
    result = simulated(tmp_path, scenario({}, paths=[path], duration_s=40))
    for each in result["call"]["calls"]:
        assert each["loss"] == pytest.approx(0.1, abs=0.03)
        assert each["mos"] == pytest.approx(mos(90, each["loss"]), abs=0.1)


def test_a_download_over_the_path_of_a_call_spoils_it_and_over_another_does_not(tmp_path):
    users = [{"id": "ue1", "subflows": 1}, {"id": "ue2", "subflows": 1}]
    link = {"kind": "shared_bottleneck", "rate_mbps": 5, "delay_ms": 10, "queue_packets": 200}
    bulk = {"user": "ue2", "kind": "bulk"}
    shared = scenario({}, bulk, topology=link | {"users": users}, duration_s=12)
    found = simulated(tmp_path / "shared", shared)["call"]
    down, up = found["calls"]
    assert found["mos_worst"] == down["mos_worst"] < 3
    assert up["mos"] > 4.3
    assert found["mos"] == pytest.approx(down["mos"], abs=1e-6)  # the good direction hides nothing
    assert found["delay_p95_ms"] == pytest.approx(down["delay_p95_ms"], abs=1e-6)
    fair = link | {"users": users, "queue": {"kind": "fq_codel", "packets": 200}}
    del fair["queue_packets"]
    saved = simulated(tmp_path / "fair", scenario({}, bulk, topology=fair, duration_s=12))["call"]
    assert saved["mos_worst"] > 4.2


def test_calls_are_judged_by_their_worse_directions_and_averaged():
    def direction(user, name, mos, late):
        rest = dict.fromkeys(calls.KEYS, 1.0)
        return {"user": user, "direction": name, **rest, "mos": mos, "mos_worst": mos, "late": late}

    found = [
        direction("ue1", "down", 4.0, 0.1),
        direction("ue1", "up", 2.0, 0.0),
        direction("ue1", "down", 3.0, 0.0),
        direction("ue2", "up", 4.0, 0.3),
    ]
    whole = {key: calls._over_all(found, key) for key in ("mos", "mos_worst", "late")}
    assert whole == {"mos": 3.0, "mos_worst": 2.0, "late": pytest.approx(0.4 / 3, abs=1e-6)}


def test_a_call_is_silent_while_its_interface_is_down_and_goes_on_after_that(tmp_path):
    down = {"at_s": 6, "target": "iface.ue1.eth1.up", "value": False}
    up = {"at_s": 11, "target": "iface.ue1.eth1.up", "value": True}
    made = scenario({}, {"kind": "bulk"}, events=[down, up], duration_s=21)
    for each in simulated(tmp_path, made)["call"]["calls"]:
        assert each["loss"] == pytest.approx(5 / 20, abs=0.02)
        assert each["mos_worst"] < 1.6


def test_a_call_that_stops_early_is_judged_until_then(tmp_path):
    result = simulated(tmp_path, scenario({"start_s": 2, "stop_s": 5}))
    for each in result["call"]["calls"]:
        assert each["loss"] == 0
    assert "call" not in simulated(tmp_path / "short", scenario({"start_s": 2, "stop_s": 2.5}))


def test_a_call_has_any_number_of_datagrams_and_each_counts_once():
    topology = scenario(paths=[PATHS[0] | {"duplicate": 0.2}]).network
    one = flow()
    network = Network(topology, Multipath(), [one], seed=1)
    network.start(one, "reno")
    seconds = (3 * CALL_ARRIVALS + 100) * 0.02
    network.run(round(seconds * 1e9))
    found = network.delays_ns(one)
    assert set(range(3 * CALL_ARRIVALS + 95)) <= set(found)
    assert all(each >= 10_000_000 for each in found.values())


def test_both_engines_admit_a_call():
    registry.admit("mininet", scenario(), Options())
    registry.admit("sim", scenario(), Options(speed=0.0))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"interface": "eth7"}, r"traffic\[1\].interface of ue1: 'eth7' is unknown"),
        ({"direction": "up"}, "leave out direction"),
        ({"cc": "reno"}, "leave out cc$"),
        ({"warm": True, "cc": "reno"}, "leave out warm and cc$"),
        ({"rate_mbps": 1}, "leave out rate_mbps$"),
        ({"packet_bytes": 2000}, "packet_bytes"),
        ({"kind": "bulk", "playout_ms": 5}, "playout_ms belongs to kind 'call', not 'bulk'"),
    ],
)
def test_a_call_that_cannot_be_is_refused(keys, said):
    with pytest.raises(RequestError, match=said):
        scenario(keys)
