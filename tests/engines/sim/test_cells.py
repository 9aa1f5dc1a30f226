"""WiFi cells, LTE bearers, and the meter of an access point."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import state as at
from lab.engines.sim.routes import DOWN
from lab.engines.sim.wireless import Wireless

THREE = [f"traffic.{n}.user={user}" for n, user in enumerate(("ue1", "ue2", "ue2", "ue2"), 1)]


def mean(frames, ap, key):
    return sum(frame["ap"][ap][key] for frame in frames) / len(frames)


def test_three_reno_flows_fill_the_mac(testbed):
    simulation = testbed("topology.multipath=[]", *THREE)
    simulation.run(2)
    assert mean(simulation.run(5), "wifi1", "mac_occupancy") > 0.95


@pytest.mark.parametrize("ap", ["wifi1", "lte1"])
@pytest.mark.parametrize("direction", ["down", "up"])
def test_saturating_traffic_of_either_direction_fills_the_mac(testbed, ap, direction):
    simulation = testbed(f"traffic_direction={direction}")
    simulation.run(4)
    assert mean(simulation.run(4), ap, "mac_occupancy") > 0.8


def test_an_idle_cell_is_empty(testbed):
    simulation = testbed("topology.multipath=[]", *(f"traffic.{n}.start_s=50" for n in range(1, 5)))
    frames = simulation.run(2)
    assert mean(frames, "wifi1", "mac_occupancy") == 0
    assert mean(frames, "lte1", "mac_occupancy") == 0


def test_a_slow_station_lowers_the_throughput_of_a_fast_one(testbed):
    """Two saturated stations with equal packets get 1 / (1/r1 + 1/r2) each (MP-SDN, eq (2)), less
    the acknowledgements."""
    settings = ("topology.multipath=[]", "topology.users.ue1.wifi_mbps=8", "rate_scale=0.25")
    simulation = testbed(*settings)
    simulation.run(3)
    total = mean(simulation.run(5), "wifi1", "tier1_mbps")
    share = 1 / (1 / 2 + 1 / 10.5)
    assert 0.75 * 2 * share < total < 1.5 * 2 * share


def test_bearers_get_proportional_fair_shares(testbed):
    """Stations of 30 and 12 Mb/s with weights 2 and 1 get 20 and 4 Mb/s (MP-SDN, eq (3), the
    paper's example)."""
    simulation = testbed(
        "topology.multipath=[]",
        "rate_scale=0.5",
        *(
            "topology.users.ue3.lte_mbps=30",
            "topology.users.ue3.lte_weight=2",
            "topology.users.ue4.lte_mbps=12",
        ),
        *(
            "traffic.3.parallel=4",
            "traffic.4.parallel=4",
            "traffic.1.start_s=50",
            "traffic.2.start_s=50",
        ),
    )
    simulation.run(3)
    before = {
        user: simulation.network.tables.stations["lte1", user, DOWN].out_bytes
        for user in ("ue3", "ue4")
    }
    simulation.run(4)
    for user, mbps in (("ue3", 20), ("ue4", 4)):
        sent = simulation.network.tables.stations["lte1", user, DOWN].out_bytes - before[user]
        assert sent * 8 / 4e6 == pytest.approx(0.5 * mbps, rel=0.03)


def test_a_single_bearer_gets_the_whole_cell(testbed):
    simulation = testbed("topology.multipath=[]", "traffic.3.start_s=50")
    simulation.run(10)  # slow start is over, and its losses are retransmitted
    assert simulation.mbps(simulation.run(3), "ue4") == pytest.approx(46 * 1448 / 1514, rel=0.03)


def test_a_meter_passes_its_rate_and_burst(testbed):
    simulation = testbed()
    network = simulation.network
    Wireless(network).set_meter("wifi1", ["ue3"], 1_000_000)
    simulation.run(10)
    passed = network.tables.stations["wifi1", "ue3", DOWN].meter_passed_bytes
    most = 1_000_000 * 10 / 8 + 10 * 1514
    assert 0.5 * most < passed <= most
    assert network.tables.stations["wifi1", "ue3", DOWN].meter_drops > 0
    assert network.tables.stations["wifi1", "ue1", DOWN].meter_drops == 0


def test_every_packet_on_the_air_arrives_is_dropped_or_waits(testbed):
    simulation = testbed("traffic.2.direction=up")
    network = simulation.network
    for _ in range(7):
        simulation.run(0.3, step_s=0.1)
        waiting = {"wifi1": 0}
        for (ap, _user, direction), place in network.tables.stations.items():
            left = place.in_packets - place.out_packets - place.drops
            if place.kind == at.BEARER:
                assert left == place.queue_count
            elif direction == DOWN:
                waiting[ap] += left
        assert waiting["wifi1"] == Wireless(network).backlog("wifi1")


def test_plain_mptcp_lowers_wifi_throughput_and_a_meter_restores_it(testbed):
    def wifi(*settings, strategy="none"):
        frames = testbed(*settings, strategy=strategy).run(10)
        return mean(frames, "wifi1", "tier1_mbps") + mean(frames, "wifi1", "tier2_mbps")

    alone = wifi("topology.multipath=[]")
    assert wifi() < 0.85 * alone
    assert wifi(strategy="meter_throttling") > 0.9 * alone
