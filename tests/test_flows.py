"""The timeline of the traffic."""

from lab.scenario.flows import PAUSED_BPS, schedule
from lab.scenario.schema import Traffic


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
