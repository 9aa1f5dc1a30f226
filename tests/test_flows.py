"""The timeline of the traffic."""

from itertools import pairwise
from statistics import fmean

import pytest

from lab.scenario.flows import PAUSED_BPS, schedule
from lab.scenario.traffic import Traffic


def test_parallel_connections_share_rate_and_volume():
    acts = schedule([Traffic(user="ue1", kind="file", volume_mb=4, parallel=4, cc="reno")], 1, 60)
    assert [act.flow.id for act in acts] == ["ue1-1", "ue1-2", "ue1-3", "ue1-4"]
    assert {act.flow.volume_bytes for act in acts} == {1_000_000}


def test_starts_and_stops_in_order_of_time():
    acts = schedule([Traffic(user="a", start_s=5, stop_s=9), Traffic(user="b")], 1, 60)
    assert [(act.at_s, act.verb, act.flow.id) for act in acts] == [
        (0, "start", "b-1"),
        (5, "start", "a-1"),
        (9, "stop", "a-1"),
    ]


def test_on_off_alternates_and_is_the_same_for_the_same_seed():
    traffic = [Traffic(user="a", kind="on_off", rate_mbps=1, on_s=1, off_s=1)]
    acts = schedule(traffic, 7, 60)
    rates = [act.rate_bps for act in acts if act.verb == "rate"]
    assert rates[:4] == [PAUSED_BPS, 1_000_000, PAUSED_BPS, 1_000_000]
    assert acts == schedule(traffic, 7, 60)
    assert acts != schedule(traffic, 8, 60)
    assert all(act.at_s < 60 for act in acts)


def test_parallel_on_off_traffic_shares_its_rate_and_changes_it_between_start_and_stop():
    entry = {"kind": "on_off", "rate_mbps": 4, "parallel": 2, "on_s": 0.1, "off_s": 0.1}
    acts = schedule([Traffic(user="a", **entry, start_s=5, stop_s=9)], 1, 60)
    assert {act.flow.rate_bps for act in acts} == {2_000_000}
    changes = [act for act in acts if act.verb == "rate"]
    assert {act.rate_bps for act in changes} == {PAUSED_BPS, 2_000_000}
    assert min(act.at_s for act in changes) > 5
    assert 8 < max(act.at_s for act in changes) < 9
    first, second = ([act for act in changes if act.flow.id == f"a-{n}"] for n in (1, 2))
    assert first[0].rate_bps == second[0].rate_bps == PAUSED_BPS
    assert [act.at_s for act in first] != [act.at_s for act in second]


def test_on_off_traffic_sends_and_pauses_for_its_mean_times():
    entry = {"kind": "on_off", "rate_mbps": 1, "on_s": 1, "off_s": 3}
    acts = schedule([Traffic(user="a", **entry)], 1, 20_000)
    times = {PAUSED_BPS: [], 1_000_000: []}
    changes = [act for act in acts if act.verb == "rate"]
    for change, following in pairwise(changes):
        times[change.rate_bps].append(following.at_s - change.at_s)
    assert fmean(times[PAUSED_BPS]) == pytest.approx(3, rel=0.1)
    assert fmean(times[1_000_000]) == pytest.approx(1, rel=0.1)


def test_each_connection_of_a_user_has_a_port_of_its_own_that_follows_from_the_seed():
    traffic = [Traffic(user="a", parallel=64), Traffic(user="a", parallel=64), Traffic(user="b")]

    def ports(seed):
        return {act.flow.id: act.flow.port for act in schedule(traffic, seed, 60)}

    assert len({port for id, port in ports(1).items() if id.startswith("a-")}) == 128
    assert all(32_768 <= port < 61_000 for port in ports(1).values())
    assert ports(1) == ports(1) != ports(2)


def test_a_connection_is_as_its_entry_says():
    udp = Traffic(user="a", kind="udp", rate_mbps=0.5, direction="up")
    tcp = Traffic(user="a", cc="lia", rate_mbps=2, kind="rate")
    first, second = (act.flow for act in schedule([udp, tcp], 1, 60))
    assert (first.protocol, first.direction, first.rate_bps) == ("udp", "up", 500_000)
    assert (second.protocol, second.direction, second.cc) == ("tcp", "down", "lia")
    assert first.volume_bytes is second.volume_bytes is None
