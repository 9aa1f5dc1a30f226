"""WiFi cells with `air: dcf`: who sends when, what is shared, and what is conserved."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from oracles import bianchi

from lab.engines.sim.core import state as at
from lab.engines.sim.network import Network
from lab.engines.sim.routes import DOWN, UP
from lab.engines.sim.wireless import Wireless
from lab.radio import dcf
from lab.radio.cell import Station, wifi_cell
from lab.radio.wifi import FRAME_BYTES, STANDARDS
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

from .networks import SECOND

US, IDLE_NS = 1000, 100_000_000
FULL_BPS = 60_000_000  # more than the air carries


def member(n, name, phy_mbps):
    alone = 8e6 * FRAME_BYTES / STANDARDS[name].frame_us(phy_mbps)
    return Station(f"ue{n}", round(alone))


def network_of(phy_mbps, flows, name="11a", seed=1, is_started=True):
    """One cell with a station for each PHY rate, and these flows."""
    members = tuple(member(n, name, mbps) for n, mbps in enumerate(phy_mbps, 1))
    nodes = (
        *(Node(each.user, "user", "wifi1") for each in members),
        Node("wifi1", "wifi"),
        Node("srv1", "server"),
    )
    cell = wifi_cell("wifi1", members, 150, 0, air="dcf", standard=name)
    topology = Topology("one", nodes, (Link("server", "wifi1", "srv1"),), (cell,))
    network = Network(topology, Multipath(), flows, seed)
    for flow in flows if is_started else ():
        network.start(flow, flow.cc)
    return network


def udp(n, direction=UP, rate_bps=FULL_BPS):
    return Flow(f"ue{n}-1", f"ue{n}", direction, "reno", rate_bps, None, "udp")


def tcp(n, direction):
    return Flow(f"ue{n}-1", f"ue{n}", direction, "reno", None, None, warm=True)


def carried(network, direction=UP):
    """Packets that each station has sent or got."""
    stations = network.tables.stations
    return [hop.out_packets for (_, _, each), hop in stations.items() if each == direction]


def run(network, seconds):
    network.run(network.now_ns + round(seconds * SECOND))


# --- one access


def sending_at_once(phy_mbps):
    """A cell whose stations all send one frame, the only one, when the air has long been idle."""
    flows = [udp(n, rate_bps=1) for n in range(1, len(phy_mbps) + 1)]
    network = network_of(phy_mbps, flows, is_started=False)
    network.w.host_noise_ns = 0
    network.run(IDLE_NS - 2)
    for flow in flows:
        network.start(flow, flow.cc)
    hops = [network.tables.stations["wifi1", flow.user, UP] for flow in flows]
    return network, hops, [hop.contender for hop in hops]


def test_a_frame_that_finds_the_air_idle_is_sent_after_a_difs():
    network, (hop,), (sender,) = sending_at_once([54])
    network.run(IDLE_NS + 34 * US)
    assert (hop.out_packets, sender.count) == (0, 1)
    network.run(IDLE_NS + 34 * US + 1)
    assert (hop.out_packets, sender.count) == (1, 0)
    assert sender.air.first == network.w.no_contender
    assert sender.sent_until_ns == IDLE_NS + (34 + 248 + 44) * US


def test_frames_that_begin_together_are_lost_and_take_the_time_of_the_longest():
    network, hops, (fast, slow) = sending_at_once([54, 6])
    network.run(IDLE_NS + 34 * US + 1)
    air, slow_us = fast.air, 20 + 4 * -(-12310 // 24)
    assert air.busy_until_ns == IDLE_NS + (34 + slow_us) * US
    assert air.counts_from_ns == air.busy_until_ns + 34 * US
    assert [each.window for each in (fast, slow)] == [31, 31]
    # the slow one hears nothing for 45 us; the fast one has noticed before
    assert [each.timeout_slots for each in (fast, slow)] == [0, 5]
    assert [hop.out_packets for hop in hops] == [0, 0]
    run(network, 1)
    assert [hop.out_packets for hop in hops] == [1, 1]


def test_the_window_is_doubled_up_to_1023_and_the_seventh_loss_drops_the_frame():
    network, hops, (first, second) = sending_at_once([54, 54])
    network.run(IDLE_NS + 1)
    air, windows = first.air, []
    while not windows or hops[0].drops == 0:
        assert len(windows) < 7
        windows.append(first.window)
        first.turn = second.turn = max(first.turn, second.turn)
        network.run(air.counts_from_ns + (first.turn - air.slots) * air.slot_ns + 1)
    assert windows == [15, 31, 63, 127, 255, 511, 1023]
    assert [hop.drops for hop in hops] == [1, 1]
    assert (first.window, second.window, air.first) == (15, 15, network.w.no_contender)


def test_a_backoff_pauses_while_others_send():
    """Whatever the others do, a station sends when the air has been idle for its slots."""
    network = network_of([54] * 3, [udp(n) for n in (1, 2, 3)])
    run(network, 0.1)
    contenders = [network.tables.stations["wifi1", f"ue{n}", UP].contender for n in (1, 2, 3)]
    air, kept = contenders[0].air, 0
    for _ in range(300):
        before = [(each.turn, each.timeout_slots, each.losses) for each in contenders]
        slots = air.slots
        while air.slots == slots and air.access.expires_ns:
            network.run(air.access.expires_ns + 1)
        for each, (turn, timeout_slots, losses) in zip(contenders, before, strict=True):
            if turn > air.slots and not timeout_slots:
                assert (each.turn, each.losses) == (turn, losses)
                kept += 1
    assert kept > 100


def test_a_station_that_leaves_takes_no_air_with_frames_that_wait():
    network = network_of([54, 54], [udp(1, DOWN), udp(2, DOWN)])
    run(network, 0.5)
    gone = network.tables.stations["wifi1", "ue1", DOWN]
    gone.is_up = 0
    sent = gone.out_packets
    run(network, 0.5)
    assert gone.out_packets == sent
    assert gone.in_packets - gone.out_packets == gone.drops


def test_frames_of_one_receiver_are_sent_as_one_aggregate():
    """The access point has frames for two stations in turn: an aggregate holds those of one."""
    network = network_of([65, 65], [udp(1, DOWN), udp(2, DOWN)], "11n5")
    run(network, 1)
    sender = network.tables.contenders["wifi1"]
    sizes = set()
    for _ in range(50):
        before = carried(network, DOWN)
        network.run(sender.air.access.expires_ns + 1)
        grown = [b - a for a, b in zip(before, carried(network, DOWN), strict=True)]
        assert sorted(grown) == [0, sender.frames]
        sizes.add(sender.frames)
    assert max(sizes) == 16


def test_a_rate_that_changes_applies_to_frames_that_wait():
    network = network_of([54], [udp(1)])
    run(network, 1)
    before = carried(network)[0]
    Wireless(network).set_station("wifi1", member(1, "11a", 6))
    run(network, 1)
    slow = carried(network)[0] - before
    assert slow == pytest.approx(dcf.alone_mbps("11a", 6) * 1e6 / 8 / FRAME_BYTES, rel=0.02)
    assert before > 4 * slow


# --- whole cells


@pytest.mark.parametrize(
    ("name", "phy_mbps"), [("11a", 54), ("11a", 9), ("11g", 24), ("11n5", 6.5), ("11n24", 65)]
)
@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_station_alone_has_the_rate_of_the_closed_form(name, phy_mbps, direction):
    network = network_of([phy_mbps], [udp(1, direction, 90_000_000)], name)
    run(network, 0.2)
    before = carried(network, direction)[0]
    run(network, 4)
    mbps = (carried(network, direction)[0] - before) * 8 * FRAME_BYTES / 4e6
    assert mbps == pytest.approx(dcf.alone_mbps(name, phy_mbps), rel=0.01)


@pytest.mark.parametrize("nodes", [2, 5, 10, 20])
def test_saturated_stations_agree_with_bianchi(nodes):
    """An independent model (JSAC 18(3), 2000), without the dropped frames, about 1 % at 20."""
    network = network_of([24] * nodes, [udp(n) for n in range(1, nodes + 1)])
    run(network, 0.2)
    before = sum(carried(network))
    run(network, 6)
    per_s = (sum(carried(network)) - before) / 6
    assert per_s == pytest.approx(nodes * bianchi.frames_per_s([[24.0]] * nodes, 1500), rel=0.03)


def test_all_that_upload_send_equally_often_whatever_their_rates():
    """The rate anomaly: a station of 6 Mb/s slows down the others. The access point, which has
    frames for three stations, is one contender like each station. Slow ones send a little less,
    because after a collision only the sender of the longest frame must wait for an answer."""
    phy_mbps = [6, 54, 24, 48, 12, 36]
    flows = [*(udp(n) for n in (1, 2, 3)), *(udp(n, DOWN) for n in (4, 5, 6))]
    network = network_of(phy_mbps, flows, seed=3)
    run(network, 100)
    up, down = carried(network, UP)[:3], sum(carried(network, DOWN))
    assert min(*up, down) > 0.88 * max(*up, down)
    assert min(carried(network, DOWN)[3:]) > 0.95 * max(carried(network, DOWN)[3:])
    alone = network_of(phy_mbps[1:3], [udp(1), udp(2)])
    run(alone, 5)
    assert 2 * up[1] / 100 < carried(alone)[0] / 5


def test_equal_stations_get_equal_shares():
    network = network_of([24] * 5, [udp(n) for n in range(1, 6)])
    run(network, 100)
    assert min(carried(network)) > 0.95 * max(carried(network))


def random_cell(seed):
    """PHY rates, the standard and the directions of the flows of a random cell."""
    rng = random.Random(f"dcf {seed}")
    name = rng.choice(sorted(STANDARDS))
    count = rng.randint(1, 8)
    phy_mbps = [rng.choice(STANDARDS[name].rates)[0] for _ in range(count)]
    return phy_mbps, name, [rng.choice((UP, DOWN)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(8))
def test_every_packet_arrives_waits_or_is_dropped_and_the_air_holds_one_frame(seed):
    phy_mbps, name, ways = random_cell(seed)
    network = network_of(phy_mbps, [udp(n, way) for n, way in enumerate(ways, 1)], name, seed=seed)
    for _ in range(4):
        run(network, 0.25)
        taken_ns, left = 0, {}
        for (_, user, _), hop in network.tables.stations.items():
            sender = hop.contender
            here = hop.in_packets - hop.out_packets - hop.drops
            left.setdefault((sender.air, id(sender) if hop.kind == at.DCF_UP else 0), [sender, 0])
            left[sender.air, id(sender) if hop.kind == at.DCF_UP else 0][1] += here
            n = int(user[2:])
            one = dcf.frames_ns(dcf.times(name, 1.0), phy_mbps[n - 1], 1, FRAME_BYTES)
            share = one - dcf.times(name, 1.0).preamble_ns  # aggregates share the preamble
            taken_ns += hop.out_packets * share
        assert all(sender.count == here for sender, here in left.values())
        assert 0.25 * network.now_ns < taken_ns <= 1.01 * network.now_ns


@pytest.mark.parametrize("seed", range(6))
def test_the_air_keeps_the_order_of_each_station(seed):
    phy_mbps, name, ways = random_cell(seed + 100)
    network = network_of(phy_mbps, [tcp(n, way) for n, way in enumerate(ways, 1)], name, seed=seed)
    run(network, 2)
    in_order = 0
    for subflow in network.subflows():
        s = subflow.record
        if s.segments_dropped == 0:
            assert s.segments_out_of_order == 0
            in_order += s.segments_received
    assert in_order > 0 or all(each.record.segments_dropped for each in network.subflows())


def test_occupancy_follows_the_queues_of_both_directions():
    idle = network_of([54, 54], [udp(1, DOWN, 1_000_000), udp(2, UP, 1_000_000)])
    full = network_of([54, 54], [udp(1, DOWN), udp(2, UP)])
    for network, most in ((idle, 3), (full, 10_000)):
        run(network, 1)
        wireless = Wireless(network)
        backlogs = wireless.backlog("wifi1"), wireless.uplink_backlog("wifi1", ["ue1", "ue2"])
        assert max(backlogs) <= most
        if most > 16:
            assert min(backlogs) >= 100
            assert wireless.is_sending("wifi1", "ue2")
            assert not wireless.is_sending("wifi1", "ue1")


def test_a_meter_limits_downloads_before_the_air_and_uploads_behind_it():
    for way in (DOWN, UP):
        network = network_of([54], [tcp(1, way)])
        Wireless(network).set_meter("wifi1", ["ue1"], 1_000_000)
        run(network, 5)
        hop = network.tables.stations["wifi1", "ue1", way]
        assert 0.5e6 < hop.meter_passed_bytes * 8 / 5 < 1.1e6
        assert hop.meter_drops > 0


def test_cells_on_one_channel_share_its_air(simulated):
    """In Setup III, wifi3 is on the channel of wifi2."""
    shared = simulated("rat_setup_3", "topology.air=dcf").network.tables
    apart = simulated("rat_setup_2", "topology.air=dcf").network.tables
    assert shared.contenders["wifi3"].air == shared.contenders["wifi2"].air
    assert apart.contenders["wifi3"].air != apart.contenders["wifi2"].air


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_the_rates_of_stations_are_those_of_their_standard(simulated, scale):
    tables = simulated("thirty_users", "topology.air=dcf", f"rate_scale={scale}").network.tables
    known = {dcf.symbol_microbits(mbps) for mbps, _ in STANDARDS["11a"].rates}
    for cell in tables.topology.cells:
        for each in cell.stations if cell.kind == "wifi" else ():
            assert dcf.frames(cell, each)["symbol_microbits"] in known


def test_a_user_that_walks_away_keeps_its_connection(simulated):
    simulation = simulated("moving_users", "topology.air=dcf", "topology.users=8")
    frames = simulation.run(20)
    moved = [each for each in simulation.notes.events if each["kind"] == "handover"]
    assert moved
    for event in moved:
        later = [each["user"][event["user"]]["mbps"] for each in frames if each["t"] > event["t"]]
        assert sum(later) > 0 or event["t"] > 19


def test_equal_seeds_give_equal_runs_and_others_do_not():
    found = []
    for seed in (1, 1, 2):
        network = network_of([54, 6, 24], [udp(n) for n in (1, 2, 3)], seed=seed)
        run(network, 2)
        found.append(carried(network))
    assert found[0] == found[1] != found[2]
    assert all(a != b for a, b in pairwise(found[1:]))
