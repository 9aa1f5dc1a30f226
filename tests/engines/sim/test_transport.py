"""TCP and MPTCP over links: windows, losses, paths, buffers and application rates."""

from __future__ import annotations

import pytest

from .networks import FAST, SLOW
from .rows import places


def sub(simulation, number=1, flow="ue1-1"):
    return simulation.network.tables.subflows[flow][number - 1].record


def test_reno_keeps_the_square_root_of_2_over_p(paths):
    simulation = paths({"rate_mbps": 1000, "delay_ms": 25, "loss": 0.01})
    simulation.run(5)
    frames = simulation.run(60)
    window = simulation.mbps(frames) * 1e6 * 0.05 / 8 / 1448
    assert 0.6 < window / (2 / 0.01) ** 0.5 < 1.4


def test_two_paths_reach_the_sum_of_their_rates(paths):
    simulation = paths(FAST, SLOW)
    simulation.run(5)
    assert simulation.mbps(simulation.run(5)) > 0.9 * 32 * 1420 / 1514


def test_a_warm_connection_has_all_its_subflows_when_it_starts(paths):
    simulation = paths(FAST, SLOW, traffic={"warm": True})
    first = simulation.run(0.06, 0.06)[-1][
        "sf"
    ]  # one RTT of the first subflow, less than half of one of the second
    assert set(first) == {"ue1-1/1", "ue1-1/2"}
    assert all(each["cwnd"] >= 10 for each in first.values())
    sent = [each["segments"] for each in simulation.report()["connections"][0]["subflows"]]
    assert min(sent) == 10


def test_a_server_that_refuses_multipath_falls_back_to_tcp_and_reports_it(paths):
    simulation = paths(FAST, SLOW, multipath={"server_enabled": False})
    simulation.run(1)
    report = simulation.report()
    assert (report["mptcp"]["verified"], report["mptcp"]["fallbacks"]) == (False, 1)
    assert len(report["connections"][0]["subflows"]) == 1


def test_a_small_receive_buffer_limits_a_connection(paths):
    slow = {"rate_mbps": 2, "delay_ms": 200, "queue_packets": 100}
    rates = []
    for kilobytes in (32, 4000):
        simulation = paths(
            FAST, slow, multipath={"receive_buffer_kb": kilobytes}, traffic={"warm": True}
        )
        simulation.run(4)
        rates.append(simulation.mbps(simulation.run(4)))
        assert simulation.report()["connections"][0]["receive_buffer_max_bytes"] <= kilobytes * 1000
    assert rates[0] < 0.6 * rates[1]


def test_samples_show_the_data_that_waits_for_a_slow_path(paths):
    simulation = paths({**SLOW, "delay_ms": 150}, FAST)
    held_kb = [frame["user"]["ue1"]["held_back_kb"] for frame in simulation.run(6)]
    (connection,) = simulation.report()["connections"]
    assert max(held_kb) == connection["receive_buffer_max_bytes"] / 1000 > 0
    assert len(set(held_kb)) > 3  # each sample has the maximum of its own interval
    unhurried = paths(FAST, traffic={"kind": "rate", "rate_mbps": 1})  # nothing is lost or waits
    assert {frame["user"]["ue1"]["held_back_kb"] for frame in unhurried.run(3)} == {0}


def test_a_completed_file_is_an_event_at_its_time(paths):
    simulation = paths(FAST, traffic={"kind": "file", "volume_mb": 1, "start_s": 1})
    simulation.run(4)
    (connection,) = simulation.report()["connections"]
    events = [each for each in simulation.notes.events if each["kind"] == "completion"]
    assert events == [
        {
            "t": pytest.approx(1 + connection["completion_s"], abs=0.001),
            "kind": "completion",
            "user": "ue1",
            "connection": "ue1-1",
            "completion_s": pytest.approx(connection["completion_s"], abs=0.001),
        }
    ]


def test_a_dead_path_does_not_stop_the_connection(paths):
    simulation = paths(FAST, SLOW)
    simulation.run(3)
    simulation.flip("link.path1.up", False)
    simulation.run(3)
    assert simulation.mbps(simulation.run(3)) > 0.85 * 12 * 1420 / 1514
    assert places(simulation.network)[0].reinjected > 0
    simulation.flip("link.path1.up", True)
    simulation.run(6)
    assert simulation.mbps(simulation.run(3)) > 0.8 * 32 * 1420 / 1514


def test_the_rto_doubles_after_every_timeout(paths):
    simulation = paths(FAST)
    simulation.run(2)
    simulation.flip("link.path1.up", False)
    simulation.run(10)
    s = sub(simulation)
    assert 3 <= s.timeouts <= 7
    assert s.cwnd == 1


def test_losses_are_repaired_and_data_stay_in_order(paths):
    simulation = paths(
        {"rate_mbps": 10, "delay_ms": 10, "loss_both": 0.03},
        traffic={"kind": "file", "volume_mb": 1},
    )
    simulation.run(20)
    (connection,) = simulation.report()["connections"]
    assert connection["completion_s"] is not None
    assert connection["throughput_mbps"] == pytest.approx(1 * 8 / 20)
    assert connection["subflows"][0]["lost_segments"] > 5
    assert (
        connection["subflows"][0]["retransmitted_segments"]
        >= connection["subflows"][0]["lost_segments"]
    )


def test_round_robin_uses_subflows_in_turn(paths):
    simulation = paths(
        FAST,
        {**FAST, "delay_ms": 60},
        traffic={"kind": "rate", "rate_mbps": 2},
        multipath={"scheduler": "round_robin"},
    )
    simulation.run(1)
    rows = simulation.run(4, 4)[-1]["sf"]
    assert rows["ue1-1/1"]["mbps"] == pytest.approx(rows["ue1-1/2"]["mbps"], rel=0.05)
    lowest = paths(FAST, {**FAST, "delay_ms": 60}, traffic={"kind": "rate", "rate_mbps": 2})
    lowest.run(1)
    assert lowest.run(4, 4)[-1]["sf"]["ue1-1/2"]["mbps"] < 0.1


def test_an_application_gets_its_rate_and_a_change_of_its_demand(paths):
    simulation = paths(FAST, traffic={"kind": "rate", "rate_mbps": 3, "parallel": 2})
    simulation.run(2)
    assert simulation.mbps(simulation.run(3)) == pytest.approx(3, rel=0.02)
    simulation.flip("user.ue1.demand_mbps", 6)
    simulation.run(1)
    assert simulation.mbps(simulation.run(3)) == pytest.approx(6, rel=0.02)
    simulation.flip("user.ue1.demand_mbps", None)
    simulation.run(3)
    assert simulation.mbps(simulation.run(3)) > 17
    simulation.flip("user.ue1.demand_mbps", 1)
    simulation.run(2)
    assert simulation.mbps(simulation.run(3)) == pytest.approx(1, rel=0.05)


def test_on_off_traffic_pauses(paths):
    simulation = paths(
        FAST, traffic={"kind": "on_off", "rate_mbps": 4, "on_s": 1, "off_s": 1}, duration_s=20
    )
    rates = [frame["user"]["ue1"]["mbps"] for frame in simulation.run(20)]
    assert any(rate == 0 for rate in rates)
    assert any(rate == pytest.approx(4, rel=0.05) for rate in rates)


def test_flows_start_and_stop_at_their_times(paths):
    simulation = paths(FAST, traffic={"start_s": 1, "stop_s": 3})
    rates = [frame["user"].get("ue1", {"mbps": 0})["mbps"] for frame in simulation.run(5, 1)]
    assert rates[0] == 0
    assert min(rates[1:3]) > 10
    assert rates[4] == 0


def test_uploads_use_the_other_direction(paths):
    simulation = paths(FAST, SLOW, traffic={"direction": "up"})
    simulation.run(5)
    assert simulation.mbps(simulation.run(4)) > 0.9 * 32 * 1420 / 1514


def test_two_subflows_on_one_link_fill_it_with_another_flow(paths):
    from lab.scenario import loading as scenario

    users = [{"id": "mp", "subflows": 2}, {"id": "sp"}]
    data = {
        "name": "shared_pipe",
        "title": "Shared",
        "topology": {"kind": "shared_bottleneck", "rate_mbps": 20, "delay_ms": 20, "users": users},
        "traffic": [{"user": "mp"}, {"user": "sp", "cc": "cubic"}],
    }
    simulation = type(paths(FAST))(scenario.from_data(data, "shared.yaml"))
    simulation.run(3)
    frames = simulation.run(12)
    both = simulation.mbps(frames, "mp"), simulation.mbps(frames, "sp")
    assert sum(both) > 0.9 * 20 * 1420 / 1514
    assert simulation.report()["cc"] == "cubic+reno"


@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_changed_loss_applies_to_the_direction_of_the_data(paths, direction):
    simulation = paths(FAST, traffic={"direction": direction})
    simulation.run(1)
    simulation.flip("link.path1.loss", 1.0)
    simulation.run(2)
    assert simulation.mbps(simulation.run(1)) == 0
    assert places(simulation.network)[1].segments_dropped > 10
