"""Many users on several cells: collisions, uploads, demand, walks, relays."""

from __future__ import annotations

import pytest

from lab.engines.sim.core import layout as at
from lab.engines.sim.core import links
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.radio.contention import abandoned, transmissions
from lab.radio.mobility import distance_m
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Cell, Link, Node, Station, Topology

pytestmark = pytest.mark.whole

WIFI_SERIES = {
    0: 39.34,
    1: 16.13,
    2: 11.03,
    3: 8.77,
    4: 7.49,
    5: 6.65,
    10: 4.76,
}  # MP-SDN's numeric model, Figure 6
FEW = ("topology.users=10", "topology.multipath_percent=50")


def mean(frames, ap, key):
    return sum(frame["ap"][ap][key] for frame in frames) / len(frames)


def carried(frames, ap):
    return mean(frames, ap, "tier1_mbps") + mean(frames, ap, "tier2_mbps")


def cell_of(stations, overhead=0.0):
    """A network that is one cell, and nobody does anything in it."""
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


def sent_down(network, users, packets, size=1514):
    """How long the air is busy with so many packets to each of these users, one after the other [ns]."""
    nowhere = network._written(())
    w = network.w
    for _ in range(packets):
        for user in users:
            p = links.new_packet(w.row, 0, at.SEGMENT, nowhere, size)
            h = network.tables.stations["wifi1", user, DOWN]
            links.send_down(w.row, h, p, 0)
    return int(w.row[network.tables.cells["wifi1"] + at.DOWNLINK_BUSY_UNTIL_NS])


@pytest.mark.parametrize("weak", WIFI_SERIES)
def test_a_saturated_cell_carries_what_the_numeric_model_says(weak):
    """Equal packets for 5 stations of 54 and m of 6 Mb/s, sent k(n) times each, n = N as there."""
    rates = [54] * 5 + [6] * weak
    network = cell_of(rates)
    network.set_collisions("wifi1", transmissions(len(rates)), [], abandoned(len(rates)))
    took_ns = sent_down(network, [f"ue{n}" for n in range(1, len(rates) + 1)], 50)
    delivered = len(rates) * 50 * (1 - abandoned(len(rates)))
    assert delivered * 1514 * 8e3 / took_ns == pytest.approx(WIFI_SERIES[weak], rel=0.002)


def test_short_frames_pay_the_fixed_part_in_full():
    """Half of a full frame's time is fixed: 757 bytes take three quarters of it."""
    full, half = (
        sent_down(cell_of([12.112], overhead=0.5), ["ue1"], 10, size) for size in (1514, 757)
    )
    assert (full, half) == (pytest.approx(10e6, rel=1e-6), pytest.approx(7.5e6, rel=1e-6))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("thirty_users", FEW),
        ("thirty_users", (*FEW, "traffic_direction=up")),
        ("moving_users", (*FEW, "mobility.speed_min_mps=20", "mobility.speed_max_mps=40")),
        ("rat_setup_1", ("rate_scale=0.2",)),
        ("rat_setup_3", ("rate_scale=0.2",)),
    ],
)
def test_what_goes_in_comes_out_is_lost_or_waits(simulated, name, settings):
    simulation = simulated(name, *settings)
    network = simulation.network
    for _ in range(5):
        simulation.run(0.5, step_s=0.25)
        waiting = dict.fromkeys(network.tables.cells, 0)
        for (ap, _user, direction), h in network.tables.stations.items():
            went = (
                network.hop(h, at.IN_PACKETS)
                - network.hop(h, at.OUT_PACKETS)
                - network.hop(h, at.DROPS)
            )
            kept = (
                network.hop(h, at.IN_BYTES)
                - network.hop(h, at.OUT_BYTES)
                - network.hop(h, at.DROPPED_BYTES)
            )
            assert went >= 0
            assert 60 * went <= kept <= 1514 * went
            if network.hop(h, at.KIND) == at.BEARER:
                assert went == network.hop(h, at.QUEUE_COUNT)
            elif direction == DOWN:
                waiting[ap] += went
            else:
                assert went == 0
        assert waiting == {ap: network.backlog(ap) for ap in waiting}


def test_contenders_are_few_where_only_acknowledgements_go_up_and_many_where_data_do(simulated):
    """At most the stations and the access point; with downloads two or so (a station's acknowledgements seldom wait)."""
    for direction, least, most in (("down", 1.05, 2.5), ("up", 3.0, 99)):
        simulation = simulated(
            "thirty_users", f"traffic_direction={direction}", "topology.multipath_percent=0"
        )
        simulation.run(6)
        for ap, contenders in simulation.engine.cells.contenders.items():
            assert least < contenders <= min(most, len(simulation.engine.cells.at(ap)) + 1)


def test_nobody_contends_in_silence(simulated):
    simulation = simulated("thirty_users", *FEW, "traffic=[{user: ue1, start_s: 50}]")
    simulation.run(5)
    assert max(simulation.engine.cells.contenders.values()) < 0.01
    assert {frame["ap"]["wifi2"]["mac_occupancy"] for frame in simulation.run(1)} == {0}


def test_the_meter_of_uploads_spares_acknowledgements_and_others(simulated):
    simulation = simulated("thirty_users", *FEW, "traffic_direction=up")
    network = simulation.network
    on_wifi = [user for ap, user in simulation.engine.cells.stations if ap == "wifi2"]
    first, *others = on_wifi
    network.set_meter("wifi2", [first], 500_000)
    simulation.run(10)
    passed = network.station("wifi2", first, UP, at.METER_PASSED_BYTES)
    assert 0.4 < passed * 8 / 10 / 500_000 < 1.3
    assert network.station("wifi2", first, UP, at.METER_DROPS) > 0
    assert network.station("wifi2", first, DOWN, at.METER_DROPS) == 0
    assert sum(network.station("wifi2", user, UP, at.METER_DROPS) for user in others) == 0


def test_saturated_uploads_count_as_congestion(simulated):
    simulation = simulated("thirty_users", "traffic_direction=up")
    simulation.run(3)
    frames = simulation.run(3)
    assert all(mean(frames, ap, "mac_occupancy") > 0.85 for ap in ("wifi1", "wifi2", "wifi3"))


def test_tier_1_asks_for_less_and_for_all_again(simulated):
    simulation = simulated("demand_swap", "events=[]", strategy="none")
    simulation.run(2)
    free = mean(simulation.run(4), "wifi2", "tier1_mbps")
    simulation.flip("cell.wifi2.tier1_mbps", 2)
    simulation.run(2)
    held = mean(simulation.run(4), "wifi2", "tier1_mbps")
    simulation.flip("cell.wifi2.tier1_mbps", None)
    simulation.run(2)
    assert 1.2 < held < 2.1 < 0.8 * free
    assert mean(simulation.run(4), "wifi2", "tier1_mbps") > 0.8 * free


def test_second_paths_get_what_tier_1_leaves_and_give_it_back(simulated):
    """MP-SDN, Figure 13: at wifi2, 5 of 10 Mb/s, then 10 again."""
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


# --- walks


def test_who_walks_is_on_the_nearest_access_point(simulated):
    simulation = simulated(
        "moving_users",
        "topology.users=12",
        "mobility.speed_min_mps=10",
        "mobility.speed_max_mps=20",
    )
    frames = simulation.run(20)
    handovers = [event for event in simulation.notes.events if event["kind"] == "handover"]
    assert len(handovers) > 5
    assert all(
        {"user", "from", "to", "rssi_dbm"} <= set(event) and event["from"] != event["to"]
        for event in handovers
    )
    places = simulation.engine.movement.places
    for ap, user in simulation.engine.cells.stations:
        here = [where for where, who in simulation.engine.cells.stations if who == user]
        assert (
            len(here)
            == len(set(here))
            == (2 if user in simulation.engine.network.tables.topology.multipath else 1)
        )
        if ap != "lte1":
            nearest = min(
                ("wifi1", "wifi2", "wifi3"), key=lambda each: distance_m(places[user], places[each])
            )
            assert ap == nearest
            assert simulation.network.tables.wiring.at(user, ap).port == f"{ap}-wlan1"
    for row in frames[-1]["sf"].values():
        assert (row["ap"], row["user"]) in simulation.engine.cells.stations
    assert all(
        0 <= user[axis] <= 200
        for frame in frames
        for user in frame["user"].values()
        for axis in ("x_m", "y_m")
    )
    assert sum(user["mbps"] for user in frames[-1]["user"].values()) > 10


def test_an_address_and_a_tier_survive_a_handover(simulated):
    simulation = simulated("moving_users", "topology.users=12", "mobility.speed_min_mps=20", "mobility.speed_max_mps=20",
                           "strategy.params.categorisation_interval_s=100")  # fmt: skip
    addresses = {
        (each.node, each.name): each.address for each in simulation.network.tables.wiring.interfaces
    }
    simulation.run(1)

    def tiers():
        kinds = {
            (user, "lte" if ap == "lte1" else "wifi"): tier
            for (user, ap), tier in simulation.engine.brain.tiers.items()
        }
        assert len(kinds) == len(simulation.engine.cells.stations)
        return kinds

    before = tiers()
    simulation.run(15)
    assert any(event["kind"] == "handover" for event in simulation.notes.events)
    assert tiers() == before
    assert {
        (each.node, each.name): each.address for each in simulation.network.tables.wiring.interfaces
    } == addresses


def test_who_stands_still_has_a_place_too(simulated):
    frame = simulated("thirty_users", *FEW).run(0.5)[0]
    topology_places = simulated("thirty_users", *FEW).engine.movement.places
    assert {
        name: (user["x_m"], user["y_m"]) for name, user in frame["user"].items()
    }.items() <= topology_places.items()


# --- relays


def test_both_cells_of_a_relayed_path_carry_it(simulated):
    simulation = simulated("rat_setup_2", "traffic_volume_mb=100", "traffic_parallel=2")
    simulation.run(2)
    frames = simulation.run(4)
    assert carried(frames, "wifi1") == pytest.approx(carried(frames, "wifi2"))
    assert carried(frames, "lte1") == pytest.approx(carried(frames, "wifi3"))


def test_a_round_trip_over_lte_and_back_is_60_ms(simulated):
    simulation = simulated(
        "rat_setup_1", "traffic_volume_mb=0.01", "traffic_parallel=1", "topology.interfaces=lte"
    )
    simulation.run(1)
    (subflow,) = simulation.network.tables.subflows["ue1-1"]
    assert subflow.way == ("n1", "lte1")
    assert 60e6 < simulation.network.w.row[subflow.place + at.BASE_RTT_NS] < 65e6


def test_one_air_for_two_paths_carries_less_than_two(simulated):
    """RAT study, claims S4 and N1: Setup III below Setup II, and in Setup I more by WiFi than by LTE."""
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
        sent, dropped = sent + network.hop(hop, at.IN_PACKETS), dropped + network.hop(hop, at.DROPS)
    assert dropped / sent == pytest.approx(0.01, rel=0.25)


# --- the whole


def test_the_whole_network_loses_with_plain_mptcp_and_comes_back_with_meters(simulated):
    """MP-SDN, Figures 5 and 10, one seed and 20 s: the paper's loss and gain are up to 20 %."""

    def run(percent, strategy):
        simulation = simulated(
            "thirty_users", f"topology.multipath_percent={percent}", strategy=strategy
        )
        simulation.run(5)
        frames = simulation.run(15)
        tier2 = max(mean(frames, ap, "tier2_mbps") for ap in ("wifi1", "wifi2", "wifi3"))
        return sum(carried(frames, ap) for ap in ("wifi1", "wifi2", "wifi3", "lte1")), tier2

    alone, _ = run(0, "none")
    plain, _ = run(80, "none")
    regulated, tier2 = run(80, "meter_throttling")
    assert plain < 0.9 * alone
    assert regulated > 0.9 * alone
    assert tier2 < 0.2  # the floor is 0.1
