"""Senders that relay over radios of their own (RAT study)."""

from __future__ import annotations

import pytest

from lab.engines.sim.routes import DOWN

from .networks import both_tiers

pytestmark = pytest.mark.whole


def test_both_cells_of_a_relayed_path_have_its_traffic(simulated):
    simulation = simulated("rat_setup_2", "traffic_volume_mb=100", "traffic_parallel=2")
    simulation.run(2)
    frames = simulation.run(4)
    assert both_tiers(frames, "wifi1") == pytest.approx(both_tiers(frames, "wifi2"))
    assert both_tiers(frames, "lte1") == pytest.approx(both_tiers(frames, "wifi3"))


def test_a_round_trip_over_lte_and_back_is_60_ms(simulated):
    """And up to two TTIs of 1 ms in each of four LTE hops."""
    simulation = simulated(
        "rat_setup_1", "traffic_volume_mb=0.01", "traffic_parallel=1", "topology.interfaces=lte"
    )
    simulation.run(1)
    (subflow,) = simulation.network.tables.subflows["ue1-1"]
    assert subflow.path == ("n1", "lte1")
    assert 60e6 < subflow.record.base_rtt_ns <= 68e6


def test_one_air_for_two_paths_carries_less_than_two(simulated):
    """RAT study, claims S4 and N1: Setup III gets less than Setup II; in Setup I WiFi carries more
    than LTE."""
    done = {}
    for setup in (1, 2, 3):
        simulation = simulated(f"rat_setup_{setup}", "traffic_volume_mb=10", "traffic_parallel=5")
        simulation.run(25)
        done[setup] = simulation.report()["connections"]
        assert all(each["completion_s"] for each in done[setup])
    worst = {
        setup: max(each["completion_s"] for each in connections)
        for setup, connections in done.items()
    }
    assert worst[3] > worst[2]
    subflows = [subflow for each in done[1] for subflow in each["subflows"]]
    wifi, lte = (
        sum(s["throughput_mbps"] for s in subflows if (("wifi1" in s["path"]) == by_wifi))
        for by_wifi in (True, False)
    )
    assert wifi > lte


def test_the_air_of_11n_at_2_4_ghz_loses_one_per_cent_each_way(simulated):
    simulation = simulated(
        "rat_setup_1", "topology.wifi=11n24", "topology.interfaces=wifi", "traffic_volume_mb=1000"
    )
    simulation.run(8)
    network = simulation.network
    sent = dropped = 0
    for n in range(1, 6):
        hop = network.tables.stations["wifi2", f"ue{n}", DOWN]
        sent, dropped = sent + hop.in_packets, dropped + hop.drops
    assert dropped / sent == pytest.approx(0.01, rel=0.25)
