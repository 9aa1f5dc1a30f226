"""Many users on several cells: collisions, uploads, demand, meters."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import links
from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.engines.sim.wireless import Wireless
from lab.radio.cell import Cell, Station
from lab.radio.contention import abandoned, transmissions
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

from .networks import FEW_USERS, both_tiers, mean

pytestmark = pytest.mark.whole

WIFI_SERIES = {
    0: 39.34,
    1: 16.13,
    2: 11.03,
    3: 8.77,
    4: 7.49,
    5: 6.65,
    10: 4.76,
}  # MP-SDN's numerical model, Figure 6


def cell_of(stations, overhead=0.0):
    """A network with one WiFi cell and no traffic; rates of the stations in Mb/s."""
    users = tuple(
        Station(f"ue{n}", round(mbps * 1e6), overhead=overhead)
        for n, mbps in enumerate(stations, 1)
    )
    nodes = (
        *(Node(each.user, "user", "wifi1") for each in users),
        Node("wifi1", "wifi"),
        Node("srv1", "server"),
    )
    topology = Topology(
        "one", nodes, (Link("server", "wifi1", "srv1"),), (Cell("wifi1", "wifi", users, 10_000),)
    )
    return Network(
        topology, Multipath(), [Flow("ue1-1", "ue1", "down", "reno", None, None)], seed=1
    )


def airtime_down_ns(network, users, packets, size=1514):
    """Airtime of `packets` rounds, each with one packet to every user."""
    w = network.w
    for _ in range(packets):
        for user in users:
            p = links.new_packet(w, w.no_subflow, at.SEGMENT, w.end, size)
            h = network.tables.stations["wifi1", user, DOWN]
            links.send_down(w, h, p, 0)
    return network.tables.cells["wifi1"].downlink_busy_until_ns


COUNTERS = "in_packets", "out_packets", "drops"


@pytest.mark.parametrize("weak", WIFI_SERIES)
def test_a_saturated_cell_reaches_the_rate_of_the_numeric_model(weak):
    """5 stations of 54 and m of 6 Mb/s get equally many packets, each sent k(n) times, with n = N
    as in the model."""
    rates = [54] * 5 + [6] * weak
    network = cell_of(rates)
    Wireless(network).set_collisions("wifi1", transmissions(len(rates)), [], abandoned(len(rates)))
    took_ns = airtime_down_ns(network, [f"ue{n}" for n in range(1, len(rates) + 1)], 50)
    delivered = len(rates) * 50 * (1 - abandoned(len(rates)))
    assert delivered * 1514 * 8e3 / took_ns == pytest.approx(WIFI_SERIES[weak], rel=0.002)


def test_short_frames_take_the_fixed_airtime_in_full():
    """Half of a full frame's time is fixed, so 757 bytes take three quarters of it."""
    full, half = (
        airtime_down_ns(cell_of([12.112], overhead=0.5), ["ue1"], 10, size) for size in (1514, 757)
    )
    assert (full, half) == (pytest.approx(10e6, rel=1e-6), pytest.approx(7.5e6, rel=1e-6))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("thirty_users", FEW_USERS),
        ("thirty_users", (*FEW_USERS, "traffic_direction=up")),
        ("moving_users", (*FEW_USERS, "mobility.speed_min_mps=20", "mobility.speed_max_mps=40")),
        ("rat_setup_1", ("rate_scale=0.2",)),
        ("rat_setup_3", ("rate_scale=0.2",)),
    ],
)
def test_every_packet_comes_out_is_dropped_or_waits(simulated, name, settings):
    simulation = simulated(name, *settings)
    network = simulation.network
    for _ in range(5):
        simulation.run(0.5, step_s=0.25)
        waiting = dict.fromkeys(network.tables.cells, 0)
        for (ap, _user, direction), h in network.tables.stations.items():
            went = h.in_packets - h.out_packets - h.drops
            kept = h.in_bytes - h.out_bytes - h.dropped_bytes
            assert went >= 0
            assert 60 * went <= kept <= 1514 * went
            if h.kind == at.BEARER:
                assert went == h.queue_count
            elif direction == DOWN:
                waiting[ap] += went
            else:
                assert went == 0
        assert waiting == {ap: Wireless(network).backlog(ap) for ap in waiting}


def test_packets_that_wait_at_the_old_access_point_are_lost_at_a_handover(simulated):
    simulation = simulated("moving_users", "rate_scale=0.03")
    network, waited, left = simulation.network, 0, {}
    for _ in range(800):  # until t = 16 s; a hop counts packets that came and went
        hops = network.tables.stations.items()
        before = {key: [getattr(h, each) for each in COUNTERS] for key, h in hops}
        simulation.run(0.02, step_s=0.02)
        for each in (each for each in simulation.notes.events if each["kind"] == "handover"):
            key = each["from"], each["user"], DOWN
            left.setdefault(key, before[key])
    simulation.run(4)  # longer than a packet may wait
    for key, (came, went, dropped) in left.items():
        waited += came - went - dropped
        assert network.tables.stations[key].out_packets <= went + 1
    assert waited > 5


def test_contenders_are_few_with_downloads_and_many_with_uploads(simulated):
    """At most all stations and the access point. With downloads about two, as a station's
    acknowledgements seldom wait."""
    for direction, least, most in (("down", 1.05, 2.5), ("up", 3.0, 99)):
        simulation = simulated(
            "thirty_users", f"traffic_direction={direction}", "topology.multipath_percent=0"
        )
        simulation.run(6)
        for ap, contenders in simulation.engine.cells.contenders.items():
            assert least < contenders <= min(most, len(simulation.engine.cells.stations_at(ap)) + 1)


def test_no_station_contends_without_traffic(simulated):
    simulation = simulated("thirty_users", *FEW_USERS, "traffic=[{user: ue1, start_s: 50}]")
    simulation.run(5)
    assert max(simulation.engine.cells.contenders.values()) < 0.01
    assert {frame["ap"]["wifi2"]["mac_occupancy"] for frame in simulation.run(1)} == {0}


def test_the_meter_of_uploads_spares_acknowledgements_and_other_users(simulated):
    simulation = simulated("thirty_users", *FEW_USERS, "traffic_direction=up")
    network = simulation.network
    on_wifi = [user for ap, user in simulation.engine.cells.stations if ap == "wifi2"]
    first, *others = on_wifi
    Wireless(network).set_meter("wifi2", [first], 500_000)
    simulation.run(10)
    passed = network.tables.stations["wifi2", first, UP].meter_passed_bytes
    assert 0.4 < passed * 8 / 10 / 500_000 < 1.3
    assert network.tables.stations["wifi2", first, UP].meter_drops > 0
    assert network.tables.stations["wifi2", first, DOWN].meter_drops == 0
    assert sum(network.tables.stations["wifi2", user, UP].meter_drops for user in others) == 0


@pytest.mark.parametrize(("is_set", "metered"), [(True, at.TIER_2_METER), (False, 0)])
def test_a_meter_limits_a_user_that_arrives_only_while_it_is_set(simulated, is_set, metered):
    simulation = simulated("moving_users")
    network, wireless = simulation.network, Wireless(simulation.network)
    user = next(user for ap, user in simulation.engine.cells.stations if ap == "wifi1")
    wireless.set_meter("wifi1", [user], 1_000_000)
    wireless.set_meter("wifi2", [], 500_000)
    if not is_set:
        wireless.set_meter("wifi2", [], None)
    wireless.hand_over(user, "wifi1", "wifi2")
    assert network.tables.stations["wifi2", user, DOWN].metered == metered
    assert network.tables.stations["wifi1", user, DOWN].metered == 0


def test_saturated_uploads_count_as_congestion(simulated):
    simulation = simulated("thirty_users", "traffic_direction=up")
    simulation.run(3)
    frames = simulation.run(3)
    assert all(mean(frames, ap, "mac_occupancy") > 0.85 for ap in ("wifi1", "wifi2", "wifi3"))


def test_the_demand_of_tier_1_can_be_reduced_and_restored(simulated):
    simulation = simulated("demand_swap", "events=[]", strategy="none")
    simulation.run(2)
    free = mean(simulation.run(4), "wifi2", "tier1_mbps")
    simulation.flip("cell.wifi2.tier1_mbps", 2)
    simulation.run(2)
    limited = mean(simulation.run(4), "wifi2", "tier1_mbps")
    simulation.flip("cell.wifi2.tier1_mbps", None)
    simulation.run(2)
    assert 1.2 < limited < 2.1 < 0.8 * free
    assert mean(simulation.run(4), "wifi2", "tier1_mbps") > 0.8 * free


def test_tier_2_gets_what_tier_1_leaves_and_returns_it(simulated):
    """Tier 1 of wifi2 demands 5 of the 10 Mb/s that it gets, and later 10 again (MP-SDN, Figure
    13)."""
    simulation = simulated("demand_swap")
    frames = []
    for now in range(45):
        for event in simulation.scenario.events:
            if event.at_s == now:
                simulation.flip(event.target, event.value)
        frames += simulation.run(1)

    def tier2(start_s, end_s):
        return mean(
            [frame for frame in frames if start_s < frame["t"] <= end_s], "wifi2", "tier2_mbps"
        )

    assert tier2(5, 15) < 0.2  # near the floor of 0.1
    assert tier2(22, 30) > 1.0
    assert tier2(38, 45) < 0.35  # within four intervals of 2 s


def test_the_network_loses_with_plain_mptcp_and_recovers_with_meters(simulated):
    """MP-SDN, Figures 5 and 10, with one seed and 20 s: the paper's loss and gain are up to 20
    %."""

    def run(percent, strategy):
        simulation = simulated(
            "thirty_users", f"topology.multipath_percent={percent}", strategy=strategy
        )
        simulation.run(5)
        frames = simulation.run(15)
        tier2 = max(mean(frames, ap, "tier2_mbps") for ap in ("wifi1", "wifi2", "wifi3"))
        return sum(both_tiers(frames, ap) for ap in ("wifi1", "wifi2", "wifi3", "lte1")), tier2

    alone, _ = run(0, "none")
    plain, _ = run(80, "none")
    regulated, tier2 = run(80, "meter_throttling")
    assert plain < 0.9 * alone
    assert regulated > 0.9 * alone
    assert tier2 < 0.2  # the floor is 0.1
